//! A Host that no Machine has.

use jiff::Timestamp;

use super::cleanup;
use super::reason::HostReason;
use super::step::{HostLifePlan, HostStep};
use super::{CONFLICT_KNOWN, HostScene};
use crate::machine::api::host_state::HostState;
use crate::machine::host_job::{HostJob, HostWork, JobFence};

pub(super) fn plan(scene: &HostScene, now: Timestamp) -> HostLifePlan {
    let host = &scene.host;
    let present = host.state;
    if host.deleting {
        let step = match scene.work {
            HostWork::Running { job, .. } => HostStep::Cancel(job),
            HostWork::Idle => HostStep::RemoveFinalizer,
        };
        // Without a finalizer it is gone once this is observed.
        let step = Some(step).filter(|step| *step != HostStep::RemoveFinalizer || host.finalizer);
        return HostLifePlan { step, ..HostLifePlan::of(present, HostReason::NotInspected) };
    }
    if host.orders.lost {
        return HostLifePlan::of(HostState::Lost, HostReason::DeclaredLost).entered_from(present);
    }
    match present {
        HostState::Quarantined => return quarantined(scene),
        HostState::Resetting => return cleanup::plan(scene, None, now),
        _ if host.orders.quarantine => {
            let quarantined = HostLifePlan::of(HostState::Quarantined, HostReason::QuarantineOrdered);
            return quarantined.step(HostStep::Quarantine);
        }
        _ if let Some(conflict) = &scene.conflict => {
            let plan = HostLifePlan::of(HostState::Unknown, HostReason::HostConflict(conflict.clone()));
            let until = now.checked_add(CONFLICT_KNOWN).unwrap_or(Timestamp::MAX);
            return plan.entered_from(present).until(until);
        }
        _ if host.is_unreachable(now) => {
            return HostLifePlan::of(HostState::Unreachable, HostReason::NoAnswer).entered_from(present);
        }
        HostState::Inspecting => return inspecting(scene, now),
        HostState::Available if !host.orders.inspect => {}
        HostState::Unknown => {
            return HostLifePlan::of(HostState::Inspecting, HostReason::Inspecting).entered_from(present);
        }
        // It is inspected again, returns, or has lost its claim without having been reset.
        _ => return HostLifePlan::of(HostState::Unknown, HostReason::NotInspected).entered_from(present),
    }
    HostLifePlan::of(HostState::Available, HostReason::Clean)
}

fn quarantined(scene: &HostScene) -> HostLifePlan {
    let orders = scene.host.orders;
    if orders.release && !orders.quarantine && scene.host.silent_since.is_none() {
        return cleanup::begin(scene);
    }
    // The reason that it was quarantined for stays in its condition.
    let reason = match &scene.host.residue {
        residue if !residue.is_empty() => HostReason::NotClean(residue.clone()),
        _ if scene.host.failures > 0 => HostReason::JoinsFailed(scene.host.failures),
        _ => HostReason::QuarantineOrdered,
    };
    HostLifePlan::of(HostState::Quarantined, reason)
}

fn inspecting(scene: &HostScene, now: Timestamp) -> HostLifePlan {
    let host = &scene.host;
    let plan = HostLifePlan::of(HostState::Inspecting, HostReason::Inspecting);
    if let HostWork::Running { job, token, .. } = scene.work {
        let is_expected = job == HostJob::Inspect && token == host.last_token;
        return if is_expected { plan } else { plan.step(HostStep::Cancel(job)) };
    }
    if host.done.contains(&HostJob::Inspect) {
        if host.residue.is_empty() {
            return HostLifePlan::of(HostState::Available, HostReason::Clean).entered_from(host.state);
        }
        let reason = HostReason::NotClean(host.residue.clone());
        return HostLifePlan::of(HostState::Quarantined, reason).step(HostStep::Quarantine);
    }
    let fence = JobFence { host: host.name.clone(), machine: None, token: host.last_token };
    match host.failure.as_ref().filter(|failure| failure.job == HostJob::Inspect) {
        Some(failure) => {
            let plan = HostLifePlan { reason: HostReason::InspectionFailed(failure.message.clone()), ..plan };
            if now < failure.retry_at() {
                return plan.until(failure.retry_at());
            }
            plan.step(HostStep::Begin(HostJob::Inspect, fence))
        }
        None => plan.step(HostStep::Begin(HostJob::Inspect, fence)),
    }
}
