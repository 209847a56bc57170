//! An amount of hosts: a number, or a percentage.

use std::fmt;
use std::str::FromStr;

/// `3`, or `20%` of the hosts of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Amount {
    /// A number of hosts.
    Hosts(usize),
    /// 0 to 100.
    Percent(u8),
}

/// A string that is not an amount.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected a number of hosts or a percentage up to 100%")]
pub struct AmountError;

impl Amount {
    /// The number, of `total` hosts. A percentage is rounded down, so that it is never exceeded.
    pub fn of(self, total: usize) -> usize {
        match self {
            Self::Hosts(hosts) => hosts,
            Self::Percent(percent) => total * usize::from(percent) / 100,
        }
    }
}

impl FromStr for Amount {
    type Err = AmountError;

    fn from_str(text: &str) -> Result<Self, AmountError> {
        // `parse` accepts a sign.
        let number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok());
        match text.strip_suffix('%') {
            Some(percent) => match number(percent).flatten() {
                Some(percent @ 0..=100) => u8::try_from(percent).map(Self::Percent).map_err(|_| AmountError),
                _ => Err(AmountError),
            },
            None => number(text).flatten().map(Self::Hosts).ok_or(AmountError),
        }
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hosts(hosts) => write!(f, "{hosts}"),
            Self::Percent(percent) => write!(f, "{percent}%"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_amount_is_a_number_or_a_percentage() {
        for (text, total, expected) in [
            ("0", 7, Some(0)),
            ("3", 7, Some(3)),
            ("30", 7, Some(30)),
            ("0%", 7, Some(0)),
            ("10%", 9, Some(0)),
            ("10%", 10, Some(1)),
            ("50%", 7, Some(3)),
            ("100%", 7, Some(7)),
            ("101%", 7, None),
            ("-1", 7, None),
            ("+1", 7, None),
            ("1.5%", 7, None),
            ("%", 7, None),
            ("", 7, None),
            ("99999999999999999999", 7, None),
        ] {
            assert_eq!(text.parse().ok().map(|amount: Amount| amount.of(total)), expected, "{text}");
        }
    }
}
