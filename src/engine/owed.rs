//! Where a host keeps the markers of owed reactions.

use crate::resource::contract::owed::Owed;

/// Sets the variables of [`marker`].
pub(super) const DIRECTORIES: &str = include_str!("owed.sh");

/// The directory and the name of a marker, as two words for the shell.
pub(super) fn marker(owed: &Owed) -> String {
    let directory = if owed.until_boot { "$owed_until_boot" } else { "$owed" };
    format!("\"{directory}\" {}", owed.marker())
}
