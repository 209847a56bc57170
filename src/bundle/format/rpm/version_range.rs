//! Versions that a relation admits (rpm-dependencies(7), rpm-version(7)).

use std::cmp::Ordering;

use rpm_version::Evr;

/// A comparison with an `[EPOCH:]VERSION[-RELEASE]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct VersionRange {
    below: bool,
    equal: bool,
    above: bool,
    epoch: String,
    version: String,
    release: Option<String>,
}

impl VersionRange {
    /// `operator` is as in rpm-dependencies(7) or in the indexes: `>=` or `GE`. `None` for any other.
    pub(super) fn new(operator: &str, evr: (&str, &str, &str)) -> Option<Self> {
        let (below, equal, above) = match operator {
            "<" | "LT" => (true, false, false),
            "<=" | "LE" => (true, true, false),
            "=" | "EQ" => (false, true, false),
            ">=" | "GE" => (false, true, true),
            ">" | "GT" => (false, false, true),
            _ => return None,
        };
        let (epoch, version, release) = evr;
        Some(Self {
            below,
            equal,
            above,
            epoch: epoch.to_owned(),
            version: version.to_owned(),
            release: (!release.is_empty()).then(|| release.to_owned()),
        })
    }

    /// `>= 1:2.3-4`; `None` when it is not a comparison.
    pub(super) fn parse(operator: &str, evr: &str) -> Option<Self> {
        Self::new(operator, Evr::parse_values(evr))
    }

    /// Whether a version is in both. Releases are compared only where both have one.
    pub(super) fn overlaps(&self, other: &Self) -> bool {
        match self.compare(other) {
            Ordering::Less => self.above || other.below,
            Ordering::Greater => self.below || other.above,
            Ordering::Equal => {
                self.equal && other.equal || self.below && other.below || self.above && other.above
            }
        }
    }

    fn compare(&self, other: &Self) -> Ordering {
        let (releases, none) = (self.release.as_deref().zip(other.release.as_deref()), ("", ""));
        let (own, others) = releases.unwrap_or(none);
        let own = Evr::new(self.epoch.as_str(), self.version.as_str(), own);
        own.cmp(&Evr::new(other.epoch.as_str(), other.version.as_str(), others))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From rpm's own tests (tests/rpmvercmp.at), and with epochs and releases.
    #[test]
    fn versions_are_ordered_as_by_rpm() {
        for (a, order, b) in [
            ("1.0", "=", "1.0"),
            ("1.0", "<", "2.0"),
            ("2.0.1", "<", "2.0.1a"),
            ("5.5p1", "<", "5.5p10"),
            ("10xyz", "<", "10.1xyz"),
            ("xyz10", "<", "xyz10.1"),
            ("xyz.4", "<", "8"),
            ("5.5p2", "<", "5.6p1"),
            ("6.0", "<", "6.0.rc1"),
            ("10a2", "<", "10b2"),
            ("1.05", "=", "1.5"),
            ("10.0001", "<", "10.0039"),
            ("4.999.9", "<", "5.0"),
            ("20101121", "<", "20101122"),
            ("2_0", "=", "2.0"),
            ("1.0~rc1", "<", "1.0"),
            ("1.0~rc1", "<", "1.0~rc2"),
            ("1.0~rc1~git123", "<", "1.0~rc1"),
            ("1.0", "<", "1.0^"),
            ("1.0^git1", "<", "1.01"),
            ("1.0^20160101", "<", "1.0.1"),
            ("1.0~rc1^git1", "<", "1.0"),
            ("0:1.0", "=", "1.0"),
            ("9", "<", "1:1"),
            ("1.0-9", "<", "1.0-10"),
            ("1.0-1.el9", "<", "1.0-1.el9_4"),
            ("1.0-1", "=", "1.0"),
        ] {
            let range = |operator: &str, evr: &str| VersionRange::parse(operator, evr).unwrap();
            let found = range("=", a).compare(&range("=", b));
            assert_eq!(found, if order == "<" { Ordering::Less } else { Ordering::Equal }, "{a} {b}");
            assert_eq!(range("=", b).compare(&range("=", a)), found.reverse(), "{b} {a}");
        }
    }

    #[test]
    fn ranges_overlap_where_a_version_is_in_both() {
        for (one, other, expected) in [
            ("= 1.5-2", ">= 1.5", true),
            ("= 1.5-2", "> 1.5", false),
            ("= 1.5-2", "> 1.5-1", true),
            ("= 1.5-2", "<= 1.5", true),
            ("= 1.5-2", "< 1.5-2", false),
            ("= 1:1.5-2", "< 2", false),
            ("< 2", "> 1", true),
            ("< 1", "> 1", false),
            ("<= 1", ">= 1", true),
            ("< 1", "< 0.5", true),
        ] {
            let range = |text: &str| {
                let (operator, evr) = text.split_once(' ').unwrap();
                VersionRange::parse(operator, evr).unwrap()
            };
            assert_eq!(range(one).overlaps(&range(other)), expected, "{one}, {other}");
            assert_eq!(range(other).overlaps(&range(one)), expected, "{other}, {one}");
        }
        assert_eq!(VersionRange::parse("!=", "1"), None);
    }
}
