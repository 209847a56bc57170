//! How long a node may take to drain.

use std::time::Duration;

use super::go_duration;

/// A string is not a duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("nodeDrainTimeout is {0:?}, expected a duration such as 2h or 30m")]
pub struct DrainTimeoutError(String);

/// When the rest of the pods of a node is deleted without regard to their disruption budgets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DrainTimeout {
    /// Never: the drain waits for the budgets.
    Never,
    /// So long after the deletion of the Machine began.
    After(Duration),
}

impl DrainTimeout {
    /// Parses the form of Go's `time.ParseDuration`: `2h`, `1h30m`, `90s`. `0` is [`DrainTimeout::Never`].
    ///
    /// # Errors
    /// When it has another form, or is negative.
    pub fn parse(text: &str) -> Result<Self, DrainTimeoutError> {
        match go_duration::parse(text).ok_or_else(|| DrainTimeoutError(text.to_owned()))? {
            Duration::ZERO => Ok(Self::Never),
            duration => Ok(Self::After(duration)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_the_form_of_go() {
        for (text, seconds) in [
            ("2h", 7200.0),
            ("1h30m", 5400.0),
            ("90s", 90.0),
            ("1.5h", 5400.0),
            ("2h0m0s", 7200.0),
            ("500ms", 0.5),
        ] {
            assert_eq!(
                DrainTimeout::parse(text),
                Ok(DrainTimeout::After(Duration::from_secs_f64(seconds))),
                "{text}"
            );
        }
        for text in ["0", "0s", "0h0m0s"] {
            assert_eq!(DrainTimeout::parse(text), Ok(DrainTimeout::Never), "{text}");
        }
        for text in ["", "2", "-2h", "2 h", "2d", "h", "PT2H", "2 hours", "2hours", "forever"] {
            assert_eq!(DrainTimeout::parse(text), Err(DrainTimeoutError(text.to_owned())), "{text}");
        }
    }
}
