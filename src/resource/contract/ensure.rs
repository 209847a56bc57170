//! Whether a resource should be there.

use serde::{Deserialize, Serialize};

/// The shared key `ensure`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ensure {
    /// It should be as its fields say.
    #[default]
    Present,
    /// It should not be there; only the fields that say where it lies matter.
    Absent,
}
