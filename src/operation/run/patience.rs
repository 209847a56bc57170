//! How long one thing has been waited for, and how often that is told.

use std::time::Duration;

/// Between the first two looks of a wait; it doubles up to [`SLOWEST`].
const FIRST: Duration = Duration::from_millis(100);
/// Between two looks of a wait, at most.
const SLOWEST: Duration = Duration::from_secs(1);
/// A wait that lasts is told of again after this.
const TELL_AGAIN: Duration = Duration::from_secs(10);

/// What is known of a wait. Only the time counts during which it was waited for: a condition that held in
/// between, and a wait for something else, take nothing from its limit.
#[derive(Debug, Clone, Copy)]
pub(super) struct Patience {
    pub(super) spent: Duration,
    pause: Duration,
    /// When it is told of next.
    tell: Duration,
}

impl Patience {
    pub(super) const NEW: Self = Self { spent: Duration::ZERO, pause: FIRST, tell: Duration::ZERO };

    /// The pause before the next look, and whether to tell of this one.
    pub(super) fn once_more(&mut self, elapsed: Duration) -> (Duration, bool) {
        let (pause, tell) = (self.pause, elapsed >= self.tell);
        self.pause = SLOWEST.min(pause * 2);
        if tell {
            self.tell = elapsed + TELL_AGAIN;
        }
        (pause, tell)
    }
}
