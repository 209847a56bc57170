//! What a host needs to run a copy of this program, as masters and mirrors do.

use std::collections::BTreeSet;
use std::env::consts::ARCH;
use std::io;
use std::path::Path;

use super::libraries::{latest, of_file};
use super::own_program::RUNNING;
use crate::model::platform::architecture_of;

/// What a host needs to run a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramNeeds {
    /// As in the facts of a host.
    pub architecture: &'static str,
    /// The earliest version of the GNU C library that has all symbols that the program takes from it: `2.34`; `None` of
    /// a program that takes none.
    pub c_library: Option<String>,
}

impl ProgramNeeds {
    /// Of the program that runs.
    ///
    /// # Errors
    /// When its file cannot be read.
    pub fn of_running() -> io::Result<Self> {
        let versions: BTreeSet<String> = of_file(Path::new(RUNNING))?.into_values().flatten().collect();
        Ok(Self { architecture: architecture_of(ARCH), c_library: latest(&versions, "GLIBC_") })
    }

    /// The version of the C library that is needed, where this one is an earlier one. `present` is the version of its
    /// package: `2.36-9+deb12u10`, `2.34-100.el9`.
    pub fn later_c_library(&self, present: &str) -> Option<&str> {
        let needed = self.c_library.as_deref()?;
        let present = numbers(present);
        (!present.is_empty() && present < numbers(needed)).then_some(needed)
    }
}

/// Those that a version starts with.
fn numbers(version: &str) -> Vec<u32> {
    let upstream = version.split(|c: char| c != '.' && !c.is_ascii_digit()).next().unwrap_or_default();
    upstream.split('.').map_while(|number| number.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_what_this_program_needs() {
        let needs = ProgramNeeds::of_running().unwrap();
        let needed = needs.c_library.as_deref().unwrap();
        assert!(needed.starts_with("2."), "{needed}");
        assert_eq!(needs.later_c_library("2.0"), Some(needed));
        assert_eq!(needs.later_c_library(needed), None);
    }

    #[test]
    fn an_earlier_c_library_is_one_with_smaller_numbers() {
        let cases = [
            ("2.36-9+deb12u10", Some("2.39"), true),
            ("2.34-100.el9", Some("2.39"), true),
            ("2.4-1", Some("2.34"), true),
            ("2.39-0ubuntu8", Some("2.39"), false),
            ("2.41-12", Some("2.39"), false),
            ("2.34-100.el9", Some("2.2.5"), false),
            ("3.0-1", Some("2.39"), false),
            ("unknown", Some("2.39"), false),
            ("", Some("2.39"), false),
            ("2.28-1", None, false),
        ];
        for (present, needed, earlier) in cases {
            let needs = ProgramNeeds { architecture: "amd64", c_library: needed.map(str::to_owned) };
            assert_eq!(needs.later_c_library(present), needed.filter(|_| earlier), "{present} {needed:?}");
        }
    }
}
