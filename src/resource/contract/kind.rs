//! The closed set of kinds. Every question about a kind is a `match` without a wildcard, so that a new one does not
//! compile until each is answered.

use std::fmt;
use std::str::FromStr;

use crate::model::near::Near;

macro_rules! kinds {
    ($($kind:ident: $name:literal,)+) => {
        /// The kind of a resource: the first key of its entry in a state file.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Kind {
            $(#[doc = concat!("`", $name, "`")] $kind,)+
        }

        impl Kind {
            /// Every kind, by name.
            pub const ALL: &[Self] = &[$(Self::$kind,)+];

            /// As in a state file.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$kind => $name,)+
                }
            }
        }
    };
}

kinds! {
    Archive: "archive",
    AuthorizedKey: "authorized_key",
    Binary: "binary",
    Certificate: "certificate",
    Command: "command",
    Directory: "directory",
    File: "file",
    Group: "group",
    HostEntry: "host_entry",
    Image: "image",
    Kmod: "kmod",
    Kubeconfig: "kubeconfig",
    Line: "line",
    Mount: "mount",
    Package: "package",
    PackageRepository: "package_repository",
    Reboot: "reboot",
    Route: "route",
    Service: "service",
    StaticPod: "static_pod",
    Swap: "swap",
    Symlink: "symlink",
    Sysctl: "sysctl",
    Template: "template",
    Unit: "unit",
    User: "user",
    Wait: "wait",
}

/// A string that is not the name of a kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown kind {name:?}{near}")]
pub struct UnknownKind {
    /// As written.
    pub name: String,
    /// The kind that may have been meant.
    pub near: Near,
}

impl FromStr for Kind {
    type Err = UnknownKind;

    fn from_str(name: &str) -> Result<Self, UnknownKind> {
        Self::ALL.iter().copied().find(|kind| kind.name() == name).ok_or_else(|| UnknownKind {
            name: name.to_owned(),
            near: Near::to(name, Self::ALL.iter().map(|kind| kind.name())),
        })
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_parsed_by_name_and_listed_in_order() {
        for kind in Kind::ALL {
            assert_eq!(kind.name().parse(), Ok(*kind));
        }
        assert!(Kind::ALL.is_sorted_by_key(|kind| kind.name()));
        let error = "pakage".parse::<Kind>().unwrap_err();
        assert_eq!(error.to_string(), "unknown kind \"pakage\"; did you mean \"package\"?");
    }
}
