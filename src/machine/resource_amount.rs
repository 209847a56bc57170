//! Amounts of resources (apimachinery, `resource.Quantity`), as far as they are compared here.

/// Fractional digits of an amount that can be compared.
const DIGITS: u32 = 9;

/// An amount; ordered by its size. Equal are `1Gi` and `1024Mi`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ResourceAmount {
    /// In units of 10^-9.
    nanos: u128,
}

impl ResourceAmount {
    /// Of so many thousandths.
    pub(super) fn of_thousandths(thousandths: u64) -> Self {
        Self { nanos: u128::from(thousandths) * 1_000_000 }
    }

    /// A number and a suffix, as the schema of a Host allows; `None` for anything else, for more than nine fractional
    /// digits, and for more than 10^28.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let end = text.find(|c: char| c != '.' && !c.is_ascii_digit()).unwrap_or(text.len());
        let (number, suffix) = text.split_at(end);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
        let places = u32::try_from(fraction.len()).ok().filter(|places| *places <= DIGITS)?;
        let whole = whole.parse::<u128>().ok()?.checked_mul(10_u128.pow(DIGITS))?;
        let fraction = fraction.parse::<u128>().ok()? * 10_u128.pow(DIGITS - places);
        let (factor, divisor) = scale(suffix)?;
        Some(Self { nanos: whole.checked_add(fraction)?.checked_mul(factor)?.div_ceil(divisor) })
    }

    /// Without a fraction.
    pub(super) fn floor(self) -> u128 {
        self.nanos / 10_u128.pow(DIGITS)
    }
}

fn scale(suffix: &str) -> Option<(u128, u128)> {
    if suffix == "m" {
        return Some((1, 1000));
    }
    let (letter, base) = suffix.strip_suffix('i').map_or((suffix, 1000_u128), |letter| (letter, 1024));
    let exponent = match letter {
        "" if base == 1000 => 0,
        "k" if base == 1000 => 1,
        "K" if base == 1024 => 1,
        "M" => 2,
        "G" => 3,
        "T" => 4,
        "P" => 5,
        "E" => 6,
        _ => return None,
    };
    Some((base.pow(exponent), 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_have_their_size() {
        for (text, expected) in [
            ("0", Some(0)),
            ("4", Some(4_000)),
            ("3880m", Some(3_880)),
            ("0.5", Some(500)),
            ("1.5k", Some(1_500_000)),
            ("2Ki", Some(2_048_000)),
            ("0.5Gi", Some(536_870_912_000)),
            ("1M", Some(1_000_000_000)),
            ("16Ei", Some(18_446_744_073_709_551_616_000)),
            ("", None),
            ("Gi", None),
            ("1.", None),
            (".5", None),
            ("1.2.3", None),
            ("1K", None),
            ("1ki", None),
            ("1i", None),
            ("1mi", None),
            ("-1", None),
            ("1e3", None),
            ("0.0000000001", None),
            ("99999999999999999999999999999999999999", None),
        ] {
            let thousandths = ResourceAmount::parse(text).map(|amount| amount.nanos / 1_000_000);
            assert_eq!(thousandths, expected, "{text}");
        }
    }

    #[test]
    fn amounts_are_compared_by_their_size() {
        let parse = |text| ResourceAmount::parse(text).unwrap();
        assert_eq!(parse("1Gi"), parse("1024Mi"));
        assert_eq!(parse("4"), ResourceAmount::of_thousandths(4_000));
        assert!(parse("999M") < parse("1G") && parse("1G") < parse("1Gi") && parse("1m") < parse("0.0011"));
        assert_eq!((parse("2.9").floor(), parse("1k").floor()), (2, 1000));
    }
}
