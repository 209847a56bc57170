//! A component of a host that a bundle would replace by another minor version.

use std::cmp::Ordering;
use std::fmt;

/// A component of a host that a bundle must not replace.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{component} {present} is on the host, and the bundle has {offered}, {distance}")]
pub struct MinorChange {
    /// `kubernetes` or `etcd`.
    component: String,
    /// On the host.
    present: String,
    /// In the bundle.
    offered: String,
    /// From the one to the other.
    distance: MinorDistance,
}

/// How far the bundle's minor version is from the host's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MinorDistance {
    /// Neither the API server nor etcd is known to read what a later minor version of it has stored
    /// (<https://kubernetes.io/releases/version-skew-policy/>, <https://etcd.io/docs/v3.6/downgrades/>).
    Earlier,
    /// Kubelets would be upgraded before API servers, and API servers by more than one minor version
    /// (<https://kubernetes.io/releases/version-skew-policy/>).
    Later,
    /// Members of etcd work together where they differ by one
    /// (<https://etcd.io/docs/v3.6/upgrades/upgrade_3_6/>).
    TooFar,
}

impl fmt::Display for MinorDistance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Earlier => "an earlier minor version",
            Self::Later => "a later minor version",
            Self::TooFar => "more than one minor version later",
        })
    }
}

impl MinorChange {
    /// Why a component must not be replaced; `None` where it may, or where a version is none.
    pub fn of(component: &str, present: &str, offered: &str) -> Option<Self> {
        let (from, to) = (minor(present)?, minor(offered)?);
        let distance = match to.cmp(&from) {
            Ordering::Less => MinorDistance::Earlier,
            Ordering::Equal => return None,
            Ordering::Greater if component != "etcd" => MinorDistance::Later,
            Ordering::Greater if to > (from.0, from.1.saturating_add(1)) => MinorDistance::TooFar,
            Ordering::Greater => return None,
        };
        let [component, present, offered] = [component, present, offered].map(str::to_owned);
        Some(Self { component, present, offered, distance })
    }

    /// What to do about it.
    pub fn hint(&self) -> String {
        let Self { component, present, .. } = self;
        let (what, why) = match self.distance {
            MinorDistance::Earlier => (format!("the bundle with {component} {present}"), ""),
            MinorDistance::Later => {
                (self.bundle(), ": upgrades to another minor version are not implemented")
            }
            MinorDistance::TooFar => (self.bundle(), ": it is upgraded by one minor version at a time"),
        };
        format!("put {what} first in bundles in /etc/metalform/bootstrap.yaml{why}")
    }

    /// Any bundle of the host's minor version.
    fn bundle(&self) -> String {
        let (major, minor) = minor(&self.present).unwrap_or_default();
        format!("a bundle with {} {major}.{minor}", self.component)
    }
}

/// The major and the minor version.
fn minor(version: &str) -> Option<(u32, u32)> {
    let mut numbers = version.split('.').map_while(|number| number.parse::<u32>().ok());
    Some((numbers.next()?, numbers.next()?))
}
