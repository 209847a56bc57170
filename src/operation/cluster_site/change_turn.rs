//! Turns to change a host, and the images of the registry.

use std::time::Duration;

use tokio::time::sleep;

use crate::model::name::HostName;
use crate::operation::site::EffectError;
use crate::workspace::atomic_file::FileError;
use crate::workspace::change_lock::ChangeLock;
use crate::workspace::image_lock::ImageLock;
use crate::workspace::layout::Layout;

/// Between two attempts to take the lock.
const PACE: Duration = Duration::from_millis(50);

/// Works once no other plan is carried out on this host. The deadline of the action limits the wait.
///
/// # Errors
/// Those of the work, and when the lock file cannot be used.
pub(super) async fn alone<T>(
    layout: &Layout,
    host: &HostName,
    work: impl Future<Output = Result<T, EffectError>>,
) -> Result<T, EffectError> {
    let _lock = acquired(|| ChangeLock::try_acquire(layout, host)).await?;
    work.await
}

/// The lock on the images of the registry, once no other process changes them. The deadline of the action limits the
/// wait.
///
/// # Errors
/// When the lock file cannot be used.
pub(super) async fn images(layout: &Layout) -> Result<ImageLock, EffectError> {
    acquired(|| ImageLock::try_acquire(layout)).await
}

async fn acquired<L>(attempt: impl Fn() -> Result<Option<L>, FileError>) -> Result<L, EffectError> {
    loop {
        match attempt()? {
            Some(lock) => return Ok(lock),
            None => sleep(PACE).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn images_are_loaded_once_no_other_command_changes_them() {
        let root = tempfile::tempdir().unwrap();
        let layout = Layout::below(root.path());
        let other = images(&layout).await.unwrap();
        tokio::time::timeout(4 * PACE, images(&layout)).await.unwrap_err();
        drop(other);
        images(&layout).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn plans_of_one_host_follow_each_other() {
        let root = tempfile::tempdir().unwrap();
        let layout = Layout::below(root.path());
        let seen = Mutex::new(Vec::new());
        let note = |text: &str| seen.lock().unwrap().push(text.to_owned());
        let work = async |host: &str, name: &str| {
            let work = async {
                note(&format!("{name} begins"));
                sleep(4 * PACE).await;
                note(&format!("{name} ends"));
                Ok(())
            };
            alone(&layout, &host.parse().unwrap(), work).await.unwrap();
        };
        tokio::join!(work("node-1", "one"), work("node-1", "two"));
        assert_eq!(seen.lock().unwrap().split_off(0), ["one begins", "one ends", "two begins", "two ends"]);
        tokio::join!(work("node-1", "one"), work("node-2", "two"));
        assert_eq!(
            seen.lock().unwrap()[..2],
            ["one begins", "two begins"],
            "hosts do not wait for each other"
        );
    }
}
