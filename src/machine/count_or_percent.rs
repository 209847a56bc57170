//! A number of Machines, or a percentage of them: `3`, `25%`.

use std::fmt;
use std::str::FromStr;

/// As Kubernetes' `IntOrString` of `maxSurge`, `maxUnavailable` and `maxUnhealthy`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CountOrPercent {
    /// So many.
    Count(u32),
    /// Of all Machines; may be above 100.
    Percent(u32),
}

/// A string is neither a number nor a percentage.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a number or a percentage: write 1 or 25%")]
pub struct CountOrPercentError(String);

impl CountOrPercent {
    /// Whether it is 0 of any number.
    pub fn is_zero(self) -> bool {
        matches!(self, Self::Count(0) | Self::Percent(0))
    }

    /// Of `total`, rounded up: Kubernetes rounds `maxSurge` so.
    pub fn rounded_up(self, total: u32) -> u32 {
        self.of(total, u64::div_ceil)
    }

    /// Of `total`, rounded down: Kubernetes rounds `maxUnavailable` so, Cluster API also `maxUnhealthy`.
    pub fn rounded_down(self, total: u32) -> u32 {
        self.of(total, |dividend, divisor| dividend / divisor)
    }

    fn of(self, total: u32, divide: impl Fn(u64, u64) -> u64) -> u32 {
        match self {
            Self::Count(count) => count,
            Self::Percent(percent) => {
                u32::try_from(divide(u64::from(percent) * u64::from(total), 100)).unwrap_or(u32::MAX)
            }
        }
    }
}

impl FromStr for CountOrPercent {
    type Err = CountOrPercentError;

    fn from_str(text: &str) -> Result<Self, CountOrPercentError> {
        let error = || CountOrPercentError(text.to_owned());
        let number = |digits: &str| {
            let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
            plain.then(|| digits.parse().ok()).flatten().ok_or_else(error)
        };
        match text.strip_suffix('%') {
            Some(percent) => number(percent).map(Self::Percent),
            None => number(text).map(Self::Count),
        }
    }
}

impl fmt::Display for CountOrPercent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(count) => write!(f, "{count}"),
            Self::Percent(percent) => write!(f, "{percent}%"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_are_rounded() {
        for (text, total, up, down) in [
            ("0", 10, 0, 0),
            ("3", 2, 3, 3),
            ("0%", 10, 0, 0),
            ("1%", 1, 1, 0),
            ("25%", 10, 3, 2),
            ("25%", 4, 1, 1),
            ("35%", 3, 2, 1),
            ("100%", 7, 7, 7),
            ("150%", 3, 5, 4),
            ("25%", 0, 0, 0),
            ("4294967295%", 4_294_967_295, u32::MAX, u32::MAX),
        ] {
            let share: CountOrPercent = text.parse().unwrap();
            assert_eq!((share.rounded_up(total), share.rounded_down(total)), (up, down), "{text} of {total}");
            assert_eq!(share.to_string(), text);
        }
    }

    #[test]
    fn other_strings_are_refused() {
        for text in ["", "%", "-1", "+1", "1.5", "25 %", "a", "99999999999"] {
            assert!(text.parse::<CountOrPercent>().is_err(), "{text}");
        }
    }
}
