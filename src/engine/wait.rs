//! Waiting for something that has a name, until a deadline: the only place that sleeps.

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout_at};

/// Between the first two looks; it doubles up to [`SLOWEST`].
const FIRST: Duration = Duration::from_millis(200);
/// Between looks, at most.
const SLOWEST: Duration = Duration::from_secs(1);

/// What one look found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seen<T> {
    /// It holds.
    Yes(T),
    /// It does not hold: what is there instead, for people.
    NotYet(String),
    /// It never will: why.
    Never(String),
}

/// Why a wait ended without what it waited for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WaitError {
    /// The deadline passed.
    #[error("waited {} s for {condition}: {last_seen}", elapsed.as_secs())]
    Late {
        /// `node n1 to be Ready`.
        condition: String,
        /// How long.
        elapsed: Duration,
        /// What was there at the last look.
        last_seen: String,
    },
    /// Waiting longer does not help.
    #[error("no use in waiting for {condition}: {reason}")]
    Never {
        /// `node n1 to be Ready`.
        condition: String,
        /// Why.
        reason: String,
    },
}

/// Looks until the condition holds, at once and then every 200 ms to 1 s. It looks at least once, and a look that
/// does not return is given up at the deadline.
///
/// # Errors
/// [`WaitError::Late`] with the last thing seen, or [`WaitError::Never`] as soon as a look says so.
pub async fn wait_for<T, F>(
    condition: impl Into<String>,
    limit: Duration,
    mut look: impl FnMut() -> F,
) -> Result<T, WaitError>
where
    F: Future<Output = Seen<T>>,
{
    let condition = condition.into();
    let began = Instant::now();
    let deadline = began + limit;
    let mut pause = FIRST;
    let mut last_seen = "there was no answer".to_owned();
    loop {
        match timeout_at(deadline, look()).await {
            Ok(Seen::Yes(found)) => return Ok(found),
            Ok(Seen::Never(reason)) => return Err(WaitError::Never { condition, reason }),
            Ok(Seen::NotYet(seen)) => last_seen = seen,
            Err(_) => return Err(WaitError::Late { condition, elapsed: began.elapsed(), last_seen }),
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(WaitError::Late { condition, elapsed: began.elapsed(), last_seen });
        }
        sleep(pause.min(left)).await;
        pause = SLOWEST.min(pause * 2);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn it_looks_at_once_and_ever_less_often() {
        let began = Instant::now();
        let mut looks = Vec::new();
        let found = wait_for("five looks", Duration::from_secs(60), || {
            looks.push(began.elapsed().as_millis());
            let seen =
                if looks.len() == 6 { Seen::Yes(looks.len()) } else { Seen::NotYet("too few".to_owned()) };
            std::future::ready(seen)
        });
        assert_eq!(found.await, Ok(6));
        assert_eq!(looks, [0, 200, 600, 1400, 2400, 3400]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_late_wait_says_what_it_saw_last() {
        let mut looks = 0;
        let waited = wait_for("node n1 to be Ready", Duration::from_secs(5), || {
            looks += 1;
            std::future::ready(Seen::<()>::NotYet(format!("look {looks}: NotReady")))
        });
        assert_eq!(
            waited.await.unwrap_err().to_string(),
            "waited 5 s for node n1 to be Ready: look 8: NotReady"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_look_that_hangs_does_not_outlive_the_deadline() {
        let waited = wait_for("an answer", Duration::from_secs(5), || async {
            std::future::pending::<()>().await;
            Seen::Yes(())
        });
        assert_eq!(waited.await.unwrap_err().to_string(), "waited 5 s for an answer: there was no answer");
    }

    #[tokio::test(start_paused = true)]
    async fn what_can_never_be_ends_the_wait() {
        let began = Instant::now();
        let waited = wait_for("a miracle", Duration::from_secs(5), || {
            std::future::ready(Seen::<()>::Never("refused".to_owned()))
        });
        assert_eq!(waited.await.unwrap_err().to_string(), "no use in waiting for a miracle: refused");
        assert_eq!(began.elapsed(), Duration::ZERO);
    }
}
