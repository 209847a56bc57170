//! The state of a Host.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How far a Host is from being free.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum HostState {
    /// It has not been inspected: it may be anything, and is not free.
    #[default]
    Unknown,
    /// Its facts are read, and whether it is clean.
    Inspecting,
    /// It is clean and free.
    Available,
    /// A Machine has claimed it; nothing on it has changed.
    Claimed,
    /// It was checked, and is being deployed.
    Provisioning,
    /// It is a node.
    InUse,
    /// Its node is drained.
    Draining,
    /// It is reset, and verified to be clean.
    Resetting,
    /// It could not be reset, or failed to join too often. An operator returns it to the pool.
    Quarantined,
    /// It does not answer. Its claim, if any, stays: it may still run its node.
    Unreachable,
    /// An operator has declared that it will not return.
    Lost,
}

impl HostState {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::Unknown,
        Self::Inspecting,
        Self::Available,
        Self::Claimed,
        Self::Provisioning,
        Self::InUse,
        Self::Draining,
        Self::Resetting,
        Self::Quarantined,
        Self::Unreachable,
        Self::Lost,
    ];

    /// Whether a Machine may claim it.
    pub fn is_free(self) -> bool {
        self == Self::Available
    }

    /// Whether it always has a claim in this state (`Some(true)`), never has one, or may have one (`None`).
    pub fn has_claim(self) -> Option<bool> {
        match self {
            Self::Claimed | Self::Provisioning | Self::InUse | Self::Draining => Some(true),
            Self::Available => Some(false),
            Self::Unknown
            | Self::Inspecting
            | Self::Resetting
            | Self::Quarantined
            | Self::Unreachable
            | Self::Lost => None,
        }
    }
}

impl fmt::Display for HostState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}
