//! Waiting for a named condition, until a deadline: the only place of the engine that sleeps.

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout_at};

use super::backoff::Backoff;

/// The first pause between two checks.
const FIRST: Duration = Duration::from_millis(200);
/// The longest pause between two checks.
const LONGEST: Duration = Duration::from_secs(1);

/// The result of one check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WaitStatus<T> {
    /// The condition holds.
    Holds(T),
    /// It does not hold yet; for the message: what was seen instead.
    NotYet(String),
    /// It cannot hold any more; for the message: why.
    Never(String),
}

/// Why a wait failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WaitError {
    /// The deadline passed.
    #[error("waited {} s for {condition}: {last_seen}", elapsed.as_secs())]
    Late {
        /// `node n1 to be Ready`.
        condition: String,
        /// How long was waited.
        elapsed: Duration,
        /// From the last check.
        last_seen: String,
    },
    /// The condition cannot hold any more.
    #[error("gave up waiting for {condition}: {reason}")]
    Never {
        /// `node n1 to be Ready`.
        condition: String,
        /// From the last check.
        reason: String,
    },
}

/// Checks the condition until it holds: at once, and then every 200 ms to 1 s. It is checked at least once, and a check
/// that does not return is given up at the deadline.
///
/// # Errors
/// [`WaitError::Late`] with what was seen last; [`WaitError::Never`] as soon as a check returns that.
pub async fn wait_for<T, F>(
    condition: impl Into<String>,
    limit: Duration,
    mut check: impl FnMut() -> F,
) -> Result<T, WaitError>
where
    F: Future<Output = WaitStatus<T>>,
{
    let condition = condition.into();
    let began = Instant::now();
    let deadline = began + limit;
    let mut backoff = Backoff::new(FIRST, LONGEST);
    let mut last_seen = "no answer".to_owned();
    loop {
        match timeout_at(deadline, check()).await {
            Ok(WaitStatus::Holds(found)) => return Ok(found),
            Ok(WaitStatus::Never(reason)) => return Err(WaitError::Never { condition, reason }),
            Ok(WaitStatus::NotYet(seen)) => last_seen = seen,
            Err(_) => return Err(WaitError::Late { condition, elapsed: began.elapsed(), last_seen }),
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(WaitError::Late { condition, elapsed: began.elapsed(), last_seen });
        }
        sleep(backoff.pause().min(left)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_first_check_is_immediate_and_pauses_grow() {
        let began = Instant::now();
        let mut looks = Vec::new();
        let found = wait_for("five looks", Duration::from_secs(60), || {
            looks.push(began.elapsed().as_millis());
            let seen = if looks.len() == 6 {
                WaitStatus::Holds(looks.len())
            } else {
                WaitStatus::NotYet("too few".to_owned())
            };
            std::future::ready(seen)
        });
        assert_eq!(found.await, Ok(6));
        assert_eq!(looks, [0, 200, 600, 1400, 2400, 3400]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_that_times_out_has_what_was_seen_last() {
        let mut looks = 0;
        let waited = wait_for("node n1 to be Ready", Duration::from_secs(5), || {
            looks += 1;
            std::future::ready(WaitStatus::<()>::NotYet(format!("look {looks}: NotReady")))
        });
        assert_eq!(
            waited.await.unwrap_err().to_string(),
            "waited 5 s for node n1 to be Ready: look 8: NotReady"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_check_that_hangs_ends_at_the_deadline() {
        let waited = wait_for("an answer", Duration::from_secs(5), || async {
            std::future::pending::<()>().await;
            WaitStatus::Holds(())
        });
        assert_eq!(waited.await.unwrap_err().to_string(), "waited 5 s for an answer: no answer");
    }

    #[tokio::test(start_paused = true)]
    async fn a_condition_that_cannot_hold_ends_the_wait() {
        let began = Instant::now();
        let waited = wait_for("a miracle", Duration::from_secs(5), || {
            std::future::ready(WaitStatus::<()>::Never("refused".to_owned()))
        });
        assert_eq!(waited.await.unwrap_err().to_string(), "gave up waiting for a miracle: refused");
        assert_eq!(began.elapsed(), Duration::ZERO);
    }
}
