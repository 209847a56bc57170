//! A Host that a Machine has.

use jiff::Timestamp;

use super::HostScene;
use super::cleanup;
use super::observed::{ClaimView, Claimant};
use super::power;
use super::reason::HostReason;
use super::step::{HostLifePlan, HostStep};
use crate::machine::api::host_state::HostState;
use crate::machine::host_job::{HostJob, HostWork};

pub(super) fn plan(scene: &HostScene, claim: &ClaimView, now: Timestamp) -> HostLifePlan {
    let host = &scene.host;
    if host.orders.lost && host.silent_since.is_some() {
        return lost(scene, claim);
    }
    if host.state == HostState::Quarantined {
        return quarantined(scene, claim, now);
    }
    let must_be_clean = match scene.claimant {
        Claimant::Gone => true,
        Claimant::Present { deleting, drained, .. } => deleting && drained,
    };
    // Once a cleanup has stopped the kubelet, there is no way back, whatever a cache shows of the Machine.
    let has_begun = host.state == HostState::Resetting || host.done.contains(&HostJob::StopKubelet);
    if must_be_clean || has_begun {
        return cleanup::plan(scene, Some(claim), now);
    }
    let machine = || claim.machine.clone();
    let (state, reason) = match scene.claimant {
        _ if host.is_unreachable(now) => (HostState::Unreachable, HostReason::NoAnswer),
        Claimant::Present { deleting: true, .. } => (HostState::Draining, HostReason::Draining(machine())),
        Claimant::Present { joined: true, .. } => (HostState::InUse, HostReason::InUse(machine())),
        _ if is_provisioned(scene) => (HostState::Provisioning, HostReason::Provisioning(machine())),
        _ => (HostState::Claimed, HostReason::Claimed(machine())),
    };
    HostLifePlan::of(state, reason).entered_from(host.state)
}

/// Whether a job has begun that changes the host, or is the next one: the host was checked.
fn is_provisioned(scene: &HostScene) -> bool {
    let changes = |job: HostJob| !matches!(job, HostJob::Inspect | HostJob::Check);
    let runs = matches!(scene.work, HostWork::Running { job, .. } if changes(job));
    let failed = scene.host.failure.as_ref().is_some_and(|failure| changes(failure.job));
    let done = |job: HostJob| job != HostJob::Inspect;
    runs || failed || scene.host.state == HostState::Provisioning || scene.host.done.iter().copied().any(done)
}

/// It answers no more, and an operator has declared that this is for good.
fn lost(scene: &HostScene, claim: &ClaimView) -> HostLifePlan {
    let plan = HostLifePlan::of(HostState::Lost, HostReason::DeclaredLost);
    if scene.host.state != HostState::Lost {
        return plan.entered_from(scene.host.state);
    }
    ended(scene, claim, plan)
}

/// Its Node is deleted when its kubelet is stopped, and the Host itself when a person has deleted it.
fn ended(scene: &HostScene, claim: &ClaimView, plan: HostLifePlan) -> HostLifePlan {
    if let Some(step) = cleanup::node_deletion(scene, claim) {
        return plan.step(step);
    }
    let is_unused = scene.claimant == Claimant::Gone && !scene.node_exists;
    let is_over = scene.host.deleting && scene.host.finalizer && is_unused && scene.host.is_kubelet_stopped();
    if is_over { plan.step(HostStep::RemoveFinalizer) } else { plan }
}

fn quarantined(scene: &HostScene, claim: &ClaimView, now: Timestamp) -> HostLifePlan {
    let host = &scene.host;
    if host.orders.release && host.silent_since.is_none() {
        return cleanup::begin(scene);
    }
    let reason = match &host.failure {
        _ if host.is_off() => HostReason::PoweredOff,
        Some(failure) if failure.job != HostJob::PowerOff => {
            HostReason::ResetFailed { attempts: failure.attempts, message: failure.message.clone() }
        }
        _ => HostReason::ResetUnreachable,
    };
    let plan = ended(scene, claim, HostLifePlan::of(HostState::Quarantined, reason));
    if host.is_unreachable(now) && !host.is_kubelet_stopped() {
        // Its Node stays until it is confirmed to be off.
        return power::confirm_off(scene, claim, plan, now);
    }
    plan
}
