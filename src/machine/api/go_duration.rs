//! Durations in the form of Go's `time.ParseDuration`, as the API has them.

use std::time::Duration;

use jiff::SignedDuration;

/// `2h`, `1h30m`, `90s`; `0` has no unit. `None` for another form, and for a negative one.
pub(super) fn parse(text: &str) -> Option<Duration> {
    let spoken = text.contains(|c: char| !(c.is_ascii_digit() || ".hms".contains(c)));
    if text == "0" {
        return Some(Duration::ZERO);
    }
    let duration: SignedDuration = text.parse().ok().filter(|_| !spoken)?;
    Duration::try_from(duration).ok()
}
