//! A Machine whose host is deployed: its Node.

use jiff::Timestamp;

use super::conditions::MachineConditionKind as Kind;
use super::job::run;
use super::machine_node::MachineNode;
use super::observed::MachineScene;
use super::reason::MachineReason;
use super::step::{MachineLifePlan, MachineStep};
use crate::machine::host_job::HostJob;
use crate::machine::host_state::HostView;
use crate::model::api_contract::NOT_READY_TAINT;

pub(super) fn plan(
    scene: &MachineScene,
    host: &HostView,
    plan: MachineLifePlan,
    now: Timestamp,
) -> MachineLifePlan {
    let id = scene.provider_id(&host.name);
    let missing = MachineReason::NodeNotFound(host.name.clone());
    if scene.machine.provider_id.as_ref() != Some(&id) {
        let plan = plan.set(Kind::NodeLinked, false, missing);
        return plan.step(MachineStep::SetProviderId(id));
    }
    match (scene.own_node(), &scene.node) {
        (Some(node), _) => {
            let linked = linked(scene, host, node, plan.clone());
            // A Node that is Ready accepts pods by the time that it is linked: both are told by one write.
            if scene.machine.joined || (node.admitted() && linked.step.is_some()) {
                return linked;
            }
            plan.set(Kind::NodeLinked, false, missing).step(MachineStep::LinkNode)
        }
        (None, Some(foreign)) => {
            let provider_id = foreign.provider_id.clone().unwrap_or_default();
            let reason = MachineReason::ForeignNode { node: host.name.clone(), provider_id };
            let not_ready = plan.set(Kind::Ready, false, reason.clone());
            gone(scene, host, not_ready.set(Kind::NodeLinked, false, reason), now)
        }
        (None, None) if !scene.machine.joined => {
            plan.set(Kind::Ready, false, missing.clone()).set(Kind::NodeLinked, false, missing)
        }
        (None, None) => {
            let reason = MachineReason::NodeMissing(host.name.clone());
            let not_ready = plan.set(Kind::Ready, false, reason.clone());
            gone(scene, host, not_ready.set(Kind::NodeLinked, false, reason), now)
        }
    }
}

/// Its Node has existed, and no longer exists.
fn gone(scene: &MachineScene, host: &HostView, plan: MachineLifePlan, now: Timestamp) -> MachineLifePlan {
    // The clock starts with the condition, which is written with this plan.
    let Some(since) = scene.machine.unlinked_since.filter(|_| scene.machine.joined) else { return plan };
    let lost_at = since.checked_add(scene.limits.node_timeout).unwrap_or(Timestamp::MAX);
    let restart_at = since.checked_add(scene.limits.node_grace).unwrap_or(Timestamp::MAX);
    if now >= lost_at {
        let reason = MachineReason::NodeLost(host.name.clone());
        return MachineLifePlan { lost: true, ..plan.set(Kind::NodeLinked, false, reason) };
    }
    if now < restart_at {
        return plan.wake_at(restart_at);
    }
    // Under a token once: a kubelet that does not register again after it will not.
    let tried = host.failure.as_ref().is_some_and(|failure| failure.job == HostJob::RestartKubelet);
    if tried || host.done.contains(&HostJob::RestartKubelet) {
        return plan.wake_at(lost_at);
    }
    run(scene, host, plan, (HostJob::RestartKubelet, Kind::Ready), now).wake_at(lost_at)
}

fn linked(
    scene: &MachineScene,
    host: &HostView,
    node: &MachineNode,
    plan: MachineLifePlan,
) -> MachineLifePlan {
    let plan = plan.set(Kind::NodeLinked, true, MachineReason::NodeLinked(host.name.clone()));
    let change = scene.machine.settings.change(node, node.admitted());
    let plan = if change.is_empty() { plan } else { plan.step(MachineStep::ChangeNode(change)) };
    let not_ready = if !node.ready {
        MachineReason::NodeNotReady(node.message.clone())
    } else if node.taints.iter().any(|taint| taint.key == NOT_READY_TAINT) {
        if node.pod_network { MachineReason::NodeChanging } else { MachineReason::NoPodNetwork }
    } else {
        return plan.set(Kind::Ready, true, MachineReason::NodeReady);
    };
    plan.set(Kind::Ready, false, not_ready)
}
