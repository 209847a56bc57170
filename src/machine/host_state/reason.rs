//! Why a Host is in its state.

use std::fmt;

use crate::machine::api::conflict::HostConflict;

/// Of the condition of a Host. Displays as its message, which contains no time: it stays the same while nothing changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostReason {
    /// It is new.
    NoFinalizer,
    /// It may be anything.
    NotInspected,
    /// It is a machine that exists already.
    HostConflict(HostConflict),
    /// It is looked at.
    Inspecting,
    /// It is looked at again, after this error.
    InspectionFailed(String),
    /// It is clean and free.
    Clean,
    /// It was not clean when it was inspected: this was found.
    NotClean(Vec<String>),
    /// By this Machine.
    Claimed(String),
    /// For this Machine.
    Provisioning(String),
    /// By this Machine.
    InUse(String),
    /// The node of this Machine drains.
    Draining(String),
    /// It is made clean.
    Resetting,
    /// It is made clean again, after this error.
    ResetFailed {
        /// How often.
        attempts: u32,
        /// The last error.
        message: String,
    },
    /// Its Machines failed to join.
    JoinsFailed(u32),
    /// By an operator.
    QuarantineOrdered,
    /// It was to be reset, and is off.
    PoweredOff,
    /// It does not answer.
    NoAnswer,
    /// It was to be reset, and does not answer.
    ResetUnreachable,
    /// It was to be reset, does not answer, and its power hook is called.
    PoweringOff,
    /// It was to be reset, does not answer, and its power hook is called again, after this error.
    PowerHookFailed {
        /// How often.
        attempts: u32,
        /// The last error.
        message: String,
    },
    /// By an operator.
    DeclaredLost,
}

impl HostReason {
    /// `CamelCase`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::NoFinalizer => "NoFinalizer",
            Self::NotInspected => "NotInspected",
            Self::HostConflict(_) => "HostConflict",
            Self::Inspecting => "Inspecting",
            Self::InspectionFailed(_) => "InspectionFailed",
            Self::Clean => "Clean",
            Self::NotClean(_) => "NotClean",
            Self::Claimed(_) => "Claimed",
            Self::Provisioning(_) => "Provisioning",
            Self::InUse(_) => "InUse",
            Self::Draining(_) => "Draining",
            Self::Resetting => "Resetting",
            Self::ResetFailed { .. } => "ResetFailed",
            Self::JoinsFailed(_) => "JoinsFailed",
            Self::QuarantineOrdered => "QuarantineOrdered",
            Self::PoweredOff => "PoweredOff",
            Self::NoAnswer => "NoAnswer",
            Self::ResetUnreachable => "ResetUnreachable",
            Self::PoweringOff => "PoweringOff",
            Self::PowerHookFailed { .. } => "PowerHookFailed",
            Self::DeclaredLost => "DeclaredLost",
        }
    }
}

impl fmt::Display for HostReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoFinalizer => f.write_str("the finalizer is not set yet"),
            Self::NotInspected => f.write_str("the host has not been inspected"),
            Self::HostConflict(conflict) => write!(f, "{conflict}; correct this Host or delete it"),
            Self::Inspecting => f.write_str("the host is inspected"),
            Self::InspectionFailed(message) => write!(f, "the inspection failed and is repeated: {message}"),
            Self::Clean => f.write_str("the host is clean and free"),
            Self::NotClean(residue) => {
                write!(f, "the host is not clean: {}; clean it or let it be reset, and release it", residue.join(", "))
            }
            Self::Claimed(machine) => write!(f, "claimed by machine {machine}"),
            Self::Provisioning(machine) => write!(f, "deployed for machine {machine}"),
            Self::InUse(machine) => write!(f, "runs the node of machine {machine}"),
            Self::Draining(machine) => write!(f, "machine {machine} is being deleted, and its node drains"),
            Self::Resetting => f.write_str("the host is reset"),
            Self::ResetFailed { attempts, message } => {
                write!(f, "the reset of the host failed, attempts: {attempts}: {message}")
            }
            Self::JoinsFailed(failures) => {
                write!(f, "machines that failed to join in a row: {failures}; fix the host and release it")
            }
            Self::QuarantineOrdered => f.write_str("quarantined by an operator"),
            Self::PoweredOff => f.write_str("the host is off and was not reset; release it when it is on"),
            Self::NoAnswer => f.write_str("the host does not answer over SSH; its node may still run"),
            Self::ResetUnreachable => f.write_str(
                "the host does not answer over SSH and was not reset; its Node stays until the host is confirmed off",
            ),
            Self::PoweringOff => {
                f.write_str("the host does not answer over SSH; its power hook is to confirm that it is off")
            }
            Self::PowerHookFailed { attempts, message } => write!(
                f,
                "the host does not answer over SSH, and is not confirmed to be off, attempts: {attempts}: {message}"
            ),
            Self::DeclaredLost => f.write_str("declared lost by an operator"),
        }
    }
}
