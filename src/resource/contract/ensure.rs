//! Whether a resource should exist.

use serde::{Deserialize, Serialize};

/// The shared key `ensure`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ensure {
    /// It should exist as its fields describe it.
    #[default]
    Present,
    /// It should not exist; only the fields that locate it matter.
    Absent,
}
