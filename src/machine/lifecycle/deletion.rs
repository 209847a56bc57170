//! A Machine that is being deleted.

use jiff::Timestamp;

use super::claimed;
use super::conditions::MachineConditionKind as Kind;
use super::observed::MachineScene;
use super::reason::MachineReason;
use super::step::{MachineLifePlan, MachineStep};
use crate::machine::drain::{self, DrainEnd, DrainScene, DrainStep};
use crate::machine::host_job::{HostJob, HostWork};
use crate::machine::host_state::{Claimant, HostScene, HostView};
use crate::machine::join_deadline::FAILED_JOINS;

pub(super) fn plan(scene: &MachineScene, now: Timestamp) -> MachineLifePlan {
    let plan = MachineLifePlan::default().set(Kind::Ready, false, MachineReason::Deleting);
    if !scene.machine.finalizers {
        return plan;
    }
    let Some((host, _)) = claimed(scene) else {
        return plan
            .set(Kind::HostReleased, true, MachineReason::Released)
            .step(MachineStep::RemoveFinalizers);
    };
    if host.is_given_up() {
        // Its Node is deleted first where it may be.
        let waits = scene.own_node().is_some() && host.is_kubelet_stopped();
        let plan = plan.set(Kind::HostReleased, true, MachineReason::HostQuarantined(host.name.clone()));
        return if waits { plan } else { plan.step(MachineStep::RemoveFinalizers) };
    }
    if scene.machine.drained {
        return cleaning(scene, host, plan, now);
    }
    let plan = plan.set(Kind::HostReleased, false, MachineReason::DrainPending);
    match &scene.work {
        HostWork::Running { job: HostJob::StopKubelet | HostJob::Reset, .. } | HostWork::Idle => {}
        HostWork::Running { job, phase, .. } => {
            let plan = plan.set(Kind::Drained, false, MachineReason::InProgress(*job, phase.clone()));
            return plan.step(MachineStep::Cancel(*job));
        }
    }
    draining(scene, host, plan, now)
}

fn draining(scene: &MachineScene, host: &HostView, plan: MachineLifePlan, now: Timestamp) -> MachineLifePlan {
    let node = scene.own_node();
    let step = drain::next(
        &DrainScene {
            node_exists: node.is_some(),
            node_ready: node.is_some_and(|node| node.ready),
            cordoned: node.is_some_and(|node| node.unschedulable),
            host_off: host.is_off(),
            elsewhere: scene.elsewhere,
            pods: scene.pods.as_deref(),
            deleting_since: scene.machine.deleting_since.unwrap_or(now),
            timeout: scene.machine.drain_timeout.unwrap_or(scene.limits.drain_timeout),
            announced: scene.machine.deletion_announced,
        },
        now,
    );
    let pods = || scene.pods.clone().unwrap_or_default();
    let plan = plan.set(Kind::Drained, false, MachineReason::Draining(pods()));
    match step {
        DrainStep::Done(end) => ended(plan, end).step(MachineStep::MarkDrained(end)),
        DrainStep::Cordon => plan.step(MachineStep::Cordon),
        DrainStep::ListPods => plan.step(MachineStep::ListPods),
        DrainStep::Evict(pods) => plan.step(MachineStep::Evict(pods)),
        DrainStep::Announce(when) => {
            let plan = plan.set(Kind::Drained, false, MachineReason::DrainTimeout(pods(), when));
            plan.step(MachineStep::AnnounceDeletion(when))
        }
        DrainStep::Delete(pods) => plan.step(MachineStep::DeletePods(pods)),
        DrainStep::Wait { until, deleted_at: None } => plan.wake_at(until),
        DrainStep::Wait { until, deleted_at: Some(when) } => {
            plan.set(Kind::Drained, false, MachineReason::DrainTimeout(pods(), when)).wake_at(until)
        }
    }
}

fn ended(plan: MachineLifePlan, end: DrainEnd) -> MachineLifePlan {
    plan.set(Kind::Drained, true, MachineReason::DrainEnded(end))
}

/// What its host does, in the words of the host. The condition Drained stays as it was written.
fn cleaning(scene: &MachineScene, host: &HostView, plan: MachineLifePlan, now: Timestamp) -> MachineLifePlan {
    let claimant =
        Claimant::Present { deleting: true, drained: true, joined: scene.machine.joined, join_failed: false };
    let life = crate::machine::host_state::next(
        &HostScene {
            host: host.clone(),
            claimant,
            node_exists: scene.own_node().is_some(),
            conflict: None,
            work: scene.work.clone(),
            failed_joins: FAILED_JOINS,
        },
        now,
    );
    let plan =
        plan.set(Kind::HostReleased, false, MachineReason::HostCleanup(host.name.clone(), life.reason));
    match life.wake {
        Some(wake) => plan.wake_at(wake),
        None => plan,
    }
}
