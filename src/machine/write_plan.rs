//! What a controller does in one pass over one object.

use jiff::Timestamp;

use super::object_write::MachineWrite;

/// Writes, and when to look again. What changes nothing is not among the writes: a pass over what a pass has achieved
/// writes nothing.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct WritePlan {
    /// In this order; none is done after one that fails.
    pub writes: Vec<MachineWrite>,
    /// When to look again if nothing changes; `None`: not before.
    pub wake: Option<Timestamp>,
    /// Whether more is to be decided as soon as the writes are done.
    pub again: bool,
}

impl WritePlan {
    /// Writes that come before all that is yet to be decided.
    pub(super) fn first(writes: Vec<MachineWrite>) -> Self {
        Self { writes, wake: None, again: true }
    }
}
