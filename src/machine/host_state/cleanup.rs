//! A Host that is made clean again.

use jiff::Timestamp;

use super::observed::{ClaimView, Claimant};
use super::power;
use super::reason::HostReason;
use super::step::{HostLifePlan, HostStep};
use super::{HostScene, RESET_ATTEMPTS, UNREACHABLE_TIMEOUT};
use crate::machine::api::host_state::HostState;
use crate::machine::api::provider_id::ProviderId;
use crate::machine::host_job::{HostJob, HostWork, JobFence};
use crate::machine::join_deadline::{HostFate, fate_of_host};

/// The first write of a cleanup: from here on, no earlier worker can change the host. A join that failed is counted by
/// it, as it forgets the jobs of the claim.
pub(super) fn begin(scene: &HostScene) -> HostLifePlan {
    let host = &scene.host;
    let token = host.last_token.saturating_add(1);
    let failures = host.failures.saturating_add(u32::from(has_failed_a_join(scene)));
    HostLifePlan::of(HostState::Resetting, HostReason::Resetting)
        .step(HostStep::BeginReset { token, failures })
}

/// Only where a job has begun to make a node of the host: it is not to blame for a Machine that waited, or was refused,
/// until its time was over.
fn has_failed_a_join(scene: &HostScene) -> bool {
    let HostScene { host, claimant, .. } = scene;
    let failed = host.claim.is_some() && matches!(claimant, Claimant::Present { join_failed: true, .. });
    let failure = host.failure.as_ref().filter(|failure| failure.attempts > 0);
    let mut begun = host.done.iter().copied().chain(failure.map(|failure| failure.job));
    failed && begun.any(HostJob::provisions)
}

/// The Node of a claim whose kubelet is known not to run.
pub(super) fn node_deletion(scene: &HostScene, claim: &ClaimView) -> Option<HostStep> {
    let is_due = scene.node_exists && scene.host.is_kubelet_stopped();
    let id = ProviderId { host: scene.host.name.clone(), machine_uid: claim.machine_uid.clone() };
    is_due.then_some(HostStep::DeleteNode(id))
}

pub(super) fn plan(scene: &HostScene, claim: Option<&ClaimView>, now: Timestamp) -> HostLifePlan {
    if scene.host.silent_since.is_some() {
        return silent(scene, claim, now);
    }
    if scene.host.state != HostState::Resetting {
        return begin(scene);
    }
    let done = |job| scene.host.done.contains(&job);
    if !done(HostJob::StopKubelet) {
        return job(scene, claim, HostJob::StopKubelet, now);
    }
    if !done(HostJob::Reset) {
        return job(scene, claim, HostJob::Reset, now);
    }
    match claim.and_then(|claim| node_deletion(scene, claim)) {
        Some(step) => HostLifePlan::of(HostState::Resetting, HostReason::Resetting).step(step),
        None => release(scene),
    }
}

/// It cannot be reset now.
fn silent(scene: &HostScene, claim: Option<&ClaimView>, now: Timestamp) -> HostLifePlan {
    let host = &scene.host;
    if host.is_off() {
        let reason = HostReason::PoweredOff;
        return match claim.and_then(|claim| node_deletion(scene, claim)) {
            Some(step) => HostLifePlan::of(host.state, reason).step(step),
            None => HostLifePlan::of(HostState::Quarantined, reason).step(HostStep::Quarantine),
        };
    }
    let since = host.silent_since.unwrap_or(now);
    let deadline = since.checked_add(UNREACHABLE_TIMEOUT).unwrap_or(Timestamp::MAX);
    if now >= deadline {
        let quarantined = HostLifePlan::of(HostState::Quarantined, HostReason::ResetUnreachable);
        return quarantined.step(HostStep::Quarantine);
    }
    let plan = match claim {
        Some(claim) if host.is_unreachable(now) => {
            let plan = HostLifePlan::of(HostState::Unreachable, HostReason::NoAnswer);
            power::confirm_off(scene, claim, plan.entered_from(host.state), now)
        }
        _ => HostLifePlan::of(host.state, HostReason::NoAnswer),
    };
    plan.until(deadline)
}

fn job(scene: &HostScene, claim: Option<&ClaimView>, expected: HostJob, now: Timestamp) -> HostLifePlan {
    let host = &scene.host;
    let plan = HostLifePlan::of(HostState::Resetting, HostReason::Resetting);
    if let HostWork::Running { job, token, .. } = scene.work {
        let is_expected = job == expected && token == host.last_token;
        return if is_expected { plan } else { plan.step(HostStep::Cancel(job)) };
    }
    let machine = claim.map(|claim| claim.machine_uid.clone());
    let fence = JobFence { host: host.name.clone(), machine, token: host.last_token };
    let Some(failure) = host.failure.as_ref().filter(|failure| failure.job == expected) else {
        return plan.step(HostStep::Begin(expected, fence));
    };
    let reason = HostReason::ResetFailed { attempts: failure.attempts, message: failure.message.clone() };
    if failure.attempts >= RESET_ATTEMPTS {
        return HostLifePlan::of(HostState::Quarantined, reason).step(HostStep::Quarantine);
    }
    let plan = HostLifePlan { reason, ..plan };
    if now < failure.retry_at() {
        plan.until(failure.retry_at())
    } else {
        plan.step(HostStep::Begin(expected, fence))
    }
}

/// It is clean, and its Node is gone.
fn release(scene: &HostScene) -> HostLifePlan {
    let host = &scene.host;
    let failures = match scene.claimant {
        _ if host.claim.is_none() => 0,
        Claimant::Present { joined: true, .. } => 0,
        Claimant::Present { .. } | Claimant::Gone => host.failures,
    };
    let (state, reason) = if host.orders.quarantine {
        (HostState::Quarantined, HostReason::QuarantineOrdered)
    } else if fate_of_host(failures, scene.failed_joins) == HostFate::Quarantine {
        (HostState::Quarantined, HostReason::JoinsFailed(failures))
    } else {
        (HostState::Available, HostReason::Clean)
    };
    HostLifePlan::of(state, reason).step(HostStep::Release { state, failures })
}
