//! What a Machine does next: from a claim of a host to a Node that runs pods, and back.
//!
//! # Guarantees
//! - A Machine never has two hosts: it notes one, claims that one, and notes another only when an API server has
//!   confirmed that the first is not its own, and never after its provider ID is set.
//! - Both finalizers are set before a host is noted, and removed when no host is its own, or the host is given up
//!   ([`HostView::is_given_up`]) and no Node is left whose kubelet is known to be stopped.
//! - A Node is linked by its provider ID, letter by letter; never by name alone, or by address.
//! - Of a Node's labels, annotations and taints only those that came from the Machine are removed.
//! - A plan depends on what was observed alone: a controller that was killed between two writes resumes.
//!
//! # How it is used
//! The caller carries out the step, one write at most, with the resource version that was observed, and writes the
//! conditions where they changed. A step that [needs a live read](MachineStep::needs_live_read) is carried out only if a
//! plan on objects read from the API server, and not from a cache, is the same. The host is made clean, and the Node of a
//! stopped kubelet deleted, by [`super::host_state`], once the condition Drained is True.

mod conditions;
mod deletion;
mod job;
mod joining;
mod machine_node;
mod node_settings;
mod observed;
mod provisioning;
mod reason;
mod step;

pub use self::conditions::{MachineCondition, MachineConditionKind, phase};
pub use self::machine_node::MachineNode;
pub use self::node_settings::{NodeSettings, NodeSettingsChange};
pub use self::observed::{LifecycleLimits, MachineScene, MachineView, VERSIONS_KNOWN};
pub use self::reason::MachineReason;
pub use self::step::{MachineLifePlan, MachineStep};

use jiff::Timestamp;

use super::host_state::{ClaimView, HostView};

/// The next step of a Machine.
pub fn next(scene: &MachineScene, now: Timestamp) -> MachineLifePlan {
    let mut plan = if scene.machine.deleting_since.is_some() {
        deletion::plan(scene, now)
    } else {
        provisioning::plan(scene, now)
    };
    plan.conditions.sort_by_key(|condition| condition.kind);
    plan
}

/// The Host that is the Machine's own.
fn claimed(scene: &MachineScene) -> Option<(&HostView, &ClaimView)> {
    let host = scene.host.as_ref()?;
    let claim = host.claim.as_ref().filter(|claim| claim.machine_uid == scene.machine.uid)?;
    Some((host, claim))
}

#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;
