//! The file name of a snapshot that metalform keeps: when it was taken, and of what revision.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

/// `strftime(3)` of the time, which is in UTC.
const TIME: &str = "%Y%m%dT%H%M%SZ";

/// `etcd-20261123T045830Z-769.db`. Ordered by time.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SnapshotName {
    time: Timestamp,
    revision: u64,
}

/// A file that is not a snapshot of metalform's, by its name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not the file name of a snapshot, such as etcd-20261123T045830Z-769.db")]
pub struct SnapshotNameError(String);

impl SnapshotName {
    /// Of a snapshot that is taken now of a member with this revision. Fractions of the second are dropped.
    pub fn new(now: Timestamp, revision: u64) -> Self {
        Self { time: Timestamp::from_second(now.as_second()).unwrap_or(now), revision }
    }

    /// When it was taken; whole seconds.
    pub fn time(&self) -> Timestamp {
        self.time
    }

    /// The revision of the member before: the snapshot has this one or a later one.
    pub fn revision(&self) -> u64 {
        self.revision
    }
}

impl fmt::Display for SnapshotName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "etcd-{}-{}.db", self.time.strftime(TIME), self.revision)
    }
}

impl FromStr for SnapshotName {
    type Err = SnapshotNameError;

    fn from_str(text: &str) -> Result<Self, SnapshotNameError> {
        let parsed = || {
            let (time, revision) = text.strip_prefix("etcd-")?.strip_suffix(".db")?.split_once('-')?;
            let time = DateTime::strptime(TIME, time).ok()?.to_zoned(TimeZone::UTC).ok()?.timestamp();
            Some(Self { time, revision: revision.parse().ok()? })
        };
        // A file is removed by its name: no other spelling is one of these.
        let canonical = parsed().filter(|name| name.to_string() == text);
        canonical.ok_or_else(|| SnapshotNameError(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_one_spelling() {
        let time: Timestamp = "2026-11-23T04:58:30.9Z".parse().unwrap();
        let name = SnapshotName::new(time, 769);
        assert_eq!(name.to_string(), "etcd-20261123T045830Z-769.db");
        assert_eq!(name.to_string().parse(), Ok(name));
        for other in [
            "",
            "etcd-20261123T045830Z-769",
            "etcd-20261123T045830Z-0769.db",
            "etcd-20261123T045830Z-+769.db",
            "etcd-20261123T045830Z--769.db",
            "etcd-20261123T045830Z-.db",
            "etcd-20261323T045830Z-769.db",
            "etcd-20261123T045830-769.db",
            "etcd- 20261123T045830Z-769.db",
            "etcd-20261123T045830Z-769.db ",
            "../etcd-20261123T045830Z-769.db",
            "before-upgrade.db",
        ] {
            assert!(other.parse::<SnapshotName>().is_err(), "{other:?}");
        }
    }

    #[test]
    fn names_are_ordered_by_time_and_then_by_revision() {
        let at =
            |second: i64, revision: u64| SnapshotName::new(Timestamp::from_second(second).unwrap(), revision);
        assert!(at(1, 900) < at(2, 20) && at(2, 3) < at(2, 20));
    }
}
