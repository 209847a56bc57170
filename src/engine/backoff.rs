//! The pauses between two attempts.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Pauses that double up to a longest one. A value: it neither sleeps nor reads a clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Backoff {
    next: Duration,
    longest: Duration,
}

impl Backoff {
    /// Begins with a pause of `first`.
    pub const fn new(first: Duration, longest: Duration) -> Self {
        Self { next: first, longest }
    }

    /// The next pause.
    pub fn pause(&mut self) -> Duration {
        let pause = self.next.min(self.longest);
        self.next = self.longest.min(pause.saturating_mul(2));
        pause
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest() {
        let mut backoff = Backoff::new(Duration::from_millis(200), Duration::from_secs(1));
        let pauses: Vec<u128> = (0..5).map(|_| backoff.pause().as_millis()).collect();
        assert_eq!(pauses, [200, 400, 800, 1000, 1000]);
        let mut short = Backoff::new(Duration::from_secs(5), Duration::from_secs(1));
        assert_eq!(short.pause(), Duration::from_secs(1));
    }

    #[test]
    fn a_backoff_continues_after_serialisation() {
        let mut backoff = Backoff::new(Duration::from_millis(200), Duration::from_secs(1));
        backoff.pause();
        let text = serde_json::to_string(&backoff).unwrap();
        let mut restored: Backoff = serde_json::from_str(&text).unwrap();
        assert_eq!(restored.pause(), backoff.pause());
    }
}
