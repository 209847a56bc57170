//! Cancelling a run before it is done.

use tokio::sync::watch;

/// How far a run still goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CancelLevel {
    /// To its end.
    Continue,
    /// To the end of the current resource, on each host.
    AfterResource,
    /// No further; programs on hosts are ended too.
    Now,
}

/// Cancels a run.
#[derive(Debug)]
pub struct CancelHandle(watch::Sender<CancelLevel>);

/// Whether a run is cancelled. Clones see the same level.
#[derive(Debug, Clone)]
pub struct Cancel(Option<watch::Receiver<CancelLevel>>);

/// A run that is not cancelled yet.
pub fn channel() -> (CancelHandle, Cancel) {
    let (sender, receiver) = watch::channel(CancelLevel::Continue);
    (CancelHandle(sender), Cancel(Some(receiver)))
}

impl CancelHandle {
    /// Raises the level; it is never lowered.
    pub fn cancel(&self, level: CancelLevel) {
        self.0.send_if_modified(|present| {
            let raised = level > *present;
            *present = level.max(*present);
            raised
        });
    }
}

impl Cancel {
    /// For a run that cannot be cancelled.
    pub fn never() -> Self {
        Self(None)
    }

    /// The current level.
    pub fn level(&self) -> CancelLevel {
        self.0.as_ref().map_or(CancelLevel::Continue, |receiver| *receiver.borrow())
    }

    /// Returns once this level is reached; otherwise never.
    pub async fn reached(&self, level: CancelLevel) {
        let Some(mut receiver) = self.0.clone() else { return std::future::pending().await };
        if receiver.wait_for(|present| *present >= level).await.is_err() {
            // The handle was dropped: the level cannot change any more.
            std::future::pending::<()>().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[tokio::test]
    async fn the_level_is_shared_and_never_lowered() {
        let (handle, cancel) = channel();
        let other = cancel.clone();
        assert!(cancel.reached(CancelLevel::AfterResource).now_or_never().is_none());
        handle.cancel(CancelLevel::Now);
        handle.cancel(CancelLevel::AfterResource);
        assert_eq!(other.level(), CancelLevel::Now);
        other.reached(CancelLevel::AfterResource).await;
        other.reached(CancelLevel::Now).await;
        drop(handle);
        assert_eq!(cancel.level(), CancelLevel::Now);
        assert!(Cancel::never().reached(CancelLevel::AfterResource).now_or_never().is_none());
    }
}
