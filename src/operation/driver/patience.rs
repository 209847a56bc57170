//! How long one thing has been waited for, and how often that is reported.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Between two looks of a wait, at least.
const FASTEST: Duration = Duration::from_millis(100);
/// Between two looks of a wait, at most.
const SLOWEST: Duration = Duration::from_secs(1);
/// The part of the time waited so far that passes until the next look: what holds is not seen later than that.
const PART: u32 = 5;
/// A wait that lasts is reported again after this.
const REPORT_AGAIN: Duration = Duration::from_secs(10);

/// One wait. Only the time counts during which it was waited for: a condition that held in between, and a wait
/// for something else, take nothing from its limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Patience {
    pub(super) spent: Duration,
    /// When it is reported next.
    report: Duration,
}

impl Patience {
    pub(super) const NEW: Self = Self { spent: Duration::ZERO, report: Duration::ZERO };

    /// The pause before the next look, and whether to report this one.
    pub(super) fn once_more(&mut self, elapsed: Duration) -> (Duration, bool) {
        let (pause, report) = ((elapsed / PART).clamp(FASTEST, SLOWEST), elapsed >= self.report);
        if report {
            self.report = elapsed + REPORT_AGAIN;
        }
        (pause, report)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longer_a_wait_the_rarer_its_looks() {
        for (waited, pause) in
            [(0, 100), (400, 100), (1_000, 200), (2_500, 500), (5_000, 1_000), (60_000, 1_000)]
        {
            let mut patience = Patience::NEW;
            let next = patience.once_more(Duration::from_millis(waited)).0;
            assert_eq!(next, Duration::from_millis(pause), "after {waited} ms");
        }
    }
}
