//! How long one thing has been waited for, and how often that is reported.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Between the first two looks of a wait; it doubles up to [`SLOWEST`].
const FIRST: Duration = Duration::from_millis(100);
/// Between two looks of a wait, at most.
const SLOWEST: Duration = Duration::from_secs(1);
/// A wait that lasts is reported again after this.
const REPORT_AGAIN: Duration = Duration::from_secs(10);

/// One wait. Only the time counts during which it was waited for: a condition that held in between, and a wait
/// for something else, take nothing from its limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Patience {
    pub(super) spent: Duration,
    pause: Duration,
    /// When it is reported next.
    report: Duration,
}

impl Patience {
    pub(super) const NEW: Self = Self { spent: Duration::ZERO, pause: FIRST, report: Duration::ZERO };

    /// The pause before the next look, and whether to report this one.
    pub(super) fn once_more(&mut self, elapsed: Duration) -> (Duration, bool) {
        let (pause, report) = (self.pause, elapsed >= self.report);
        self.pause = SLOWEST.min(pause * 2);
        if report {
            self.report = elapsed + REPORT_AGAIN;
        }
        (pause, report)
    }
}
