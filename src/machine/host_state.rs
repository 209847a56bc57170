//! What a Host of the pool is doing, and what is done with it next.
//!
//! # Guarantees
//! - No host is available that was not inspected or reset, and found clean, since anything was done with it.
//! - No host is inspected or available that has the address of an earlier Host, or the address or name of a node that no
//!   Machine has deployed.
//! - A host keeps its claim until it is clean and the Node of that claim is deleted: it never serves two Machines.
//! - A Node is deleted only when the stop of its kubelet was verified, or the host does not answer and is confirmed to
//!   be off or lost.
//! - A host is switched off only where it was to be reset for a Machine that is drained or gone, and is unreachable.
//! - A host that is not metalform's to clean is quarantined, not reset: one that was not clean when it was first
//!   inspected. An operator releases it, and thereby has it reset.
//!
//! # How it is used
//! The caller carries out the step, one write at most, with the resource version that was observed. A step that
//! [needs a live read](HostStep::needs_live_read) is carried out only if a plan on objects read from the API server, and
//! not from a cache, is the same. Each reset begins with a new token ([`HostStep::BeginReset`]), by which the host refuses
//! every earlier worker.
//!
//! # Assumptions
//! An operator or a power hook that confirms that a host is off keeps it off until its Node is deleted.

mod claimed;
mod cleanup;
mod observed;
mod power;
mod reason;
mod step;
mod unclaimed;

pub use self::observed::{ClaimView, Claimant, HostOrders, HostView};
pub use self::reason::HostReason;
pub use self::step::{HostLifePlan, HostStep};

use jiff::{SignedDuration, Timestamp};

use super::api::conflict::HostConflict;
use super::api::host_state::HostState;
use super::host_job::HostWork;

/// Without an answer for longer than this, a host is unreachable.
pub const SILENCE: SignedDuration = SignedDuration::from_mins(1);

/// A host that was to be reset and does not answer is quarantined after this time.
pub const UNREACHABLE_TIMEOUT: SignedDuration = SignedDuration::from_hours(1);

/// How long a Host that is in conflict stays as it is, where nothing of its own changes.
pub const CONFLICT_KNOWN: SignedDuration = SignedDuration::from_mins(1);

/// Resets that fail in a row, after which a host is quarantined.
pub const RESET_ATTEMPTS: u32 = 3;

/// What is known of a Host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostScene {
    /// The Host.
    pub host: HostView,
    /// The Machine in its claim; has no meaning without one.
    pub claimant: Claimant,
    /// A Node exists whose provider ID is that of the claim, letter by letter.
    pub node_exists: bool,
    /// With an earlier Host, or a node that it did not become; has no meaning with a claim.
    pub conflict: Option<HostConflict>,
    /// What workers of this process do on it.
    pub work: HostWork,
    /// Failed joins in a row, after which it is quarantined ([`super::join_deadline::FAILED_JOINS`]).
    pub failed_joins: u32,
}

/// The next step of a Host.
pub fn next(scene: &HostScene, now: Timestamp) -> HostLifePlan {
    if !scene.host.finalizer && !scene.host.deleting {
        return HostLifePlan::of(scene.host.state, HostReason::NoFinalizer).step(HostStep::AddFinalizer);
    }
    if scene.host.orders.release && scene.host.state != HostState::Quarantined {
        // Else it would also end the next quarantine.
        return HostLifePlan::of(scene.host.state, HostReason::Resetting).step(HostStep::ClearReleaseOrder);
    }
    match &scene.host.claim {
        Some(claim) => claimed::plan(scene, claim, now),
        None => unclaimed::plan(scene, now),
    }
}

#[cfg(test)]
mod tests;
