//! The kinds of things that are compared.

use std::fmt;
use std::str::FromStr;

/// A line that `cluster_site/inventory.sh` prints begins with the name of its section.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Section {
    /// A package of the distribution, and whether it is held.
    Package,
    /// A unit file, and whether it is enabled.
    Unit,
    /// A line of `/etc/passwd`.
    User,
    /// A line of `/etc/group`.
    Group,
    /// A kernel parameter.
    Sysctl,
    /// A mount point, and its type.
    Mount,
    /// A network interface.
    Link,
    /// A route.
    Route,
    /// A table of nftables.
    Nftables,
    /// A path: its type, mode, owner, and target if it is a link.
    Path,
    /// A regular file in `/etc`: its SHA-256.
    File,
}

const SECTIONS: [(Section, &str); 11] = [
    (Section::Package, "package"),
    (Section::Unit, "unit"),
    (Section::User, "user"),
    (Section::Group, "group"),
    (Section::Sysctl, "sysctl"),
    (Section::Mount, "mount"),
    (Section::Link, "link"),
    (Section::Route, "route"),
    (Section::Nftables, "nftables"),
    (Section::Path, "path"),
    (Section::File, "file"),
];

impl fmt::Display for Section {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = SECTIONS.iter().find(|(section, _)| section == self).map_or("", |(_, name)| name);
        f.pad(name)
    }
}

/// No section has this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no section {0:?}")]
pub struct UnknownSection(String);

impl FromStr for Section {
    type Err = UnknownSection;

    fn from_str(name: &str) -> Result<Self, UnknownSection> {
        let found = SECTIONS.iter().find(|(_, known)| *known == name);
        found.map(|(section, _)| *section).ok_or_else(|| UnknownSection(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_have_the_names_that_are_printed() {
        for (section, name) in SECTIONS {
            assert_eq!((name.parse(), section.to_string()), (Ok(section), name.to_owned()));
        }
    }
}
