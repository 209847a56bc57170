//! A run that is asked to stop before it is done.

use tokio::sync::watch;

/// How far a run shall still go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Asked {
    /// To its end.
    Nothing,
    /// To the end of the resource at hand, on each host.
    AfterResource,
    /// No further; what runs on hosts is ended too.
    Now,
}

/// Who may ask.
#[derive(Debug)]
pub struct Asker(watch::Sender<Asked>);

/// What a run looks at. A clone sees the same.
#[derive(Debug, Clone)]
pub struct Stop(Option<watch::Receiver<Asked>>);

/// Nothing was asked for yet.
pub fn channel() -> (Asker, Stop) {
    let (sender, receiver) = watch::channel(Asked::Nothing);
    (Asker(sender), Stop(Some(receiver)))
}

impl Asker {
    /// Asks. What was asked for is never taken back.
    pub fn ask(&self, asked: Asked) {
        self.0.send_if_modified(|present| {
            let more = asked > *present;
            *present = asked.max(*present);
            more
        });
    }
}

impl Stop {
    /// Of a run that nobody can ask.
    pub fn never() -> Self {
        Self(None)
    }

    /// What is asked for at this moment.
    pub fn asked(&self) -> Asked {
        self.0.as_ref().map_or(Asked::Nothing, |receiver| *receiver.borrow())
    }

    /// Ends once at least this is asked for, and otherwise never.
    pub async fn reached(&self, asked: Asked) {
        let Some(mut receiver) = self.0.clone() else { return std::future::pending().await };
        if receiver.wait_for(|present| *present >= asked).await.is_err() {
            // Nobody is left who could ask.
            std::future::pending::<()>().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[tokio::test]
    async fn what_was_asked_for_is_seen_by_all_and_not_taken_back() {
        let (asker, stop) = channel();
        let other = stop.clone();
        assert!(stop.reached(Asked::AfterResource).now_or_never().is_none());
        asker.ask(Asked::Now);
        asker.ask(Asked::AfterResource);
        assert_eq!(other.asked(), Asked::Now);
        other.reached(Asked::AfterResource).await;
        other.reached(Asked::Now).await;
        drop(asker);
        assert_eq!(stop.asked(), Asked::Now);
        assert!(Stop::never().reached(Asked::AfterResource).now_or_never().is_none());
    }
}
