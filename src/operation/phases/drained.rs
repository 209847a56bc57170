//! The pods of the node run elsewhere.

use crate::kube_api::eviction::DrainPod;
use crate::operation::class::FailureClass;
use crate::operation::condition::Condition;
use crate::operation::contract::{Blocker, Phase, PhaseStatus, Scene, seen};
use crate::operation::effect::{Action, Look, LookKey};
use crate::operation::removal_goal::RemoveGoal;
use crate::operation::removal_refusal::RemovalRefusal;
use crate::operation::remove::RemoveOperation;

/// PodDisruptionBudgets are honoured, and what they block is shown. The pods of a host that is gone are deleted by the
/// controller manager once its Node is. A kubelet that has no certificate any more is not waited for: it confirms the
/// end of no pod.
#[derive(Debug)]
pub struct Drained;

impl Phase<RemoveOperation> for Drained {
    fn title(&self) -> &'static str {
        "Drained"
    }

    fn applies(&self, goal: &RemoveGoal) -> bool {
        !goal.offline
    }

    fn status(&self, scene: &Scene<'_, RemoveOperation>) -> PhaseStatus {
        let Some(node) = seen!(scene.node().node, Look::Node) else { return PhaseStatus::Holds };
        if !node.unschedulable {
            return PhaseStatus::Act(Action::Cordon);
        }
        let pods = seen!(scene.node().pods_to_drain, Look::PodsToDrain);
        let lost: Vec<String> = pods
            .iter()
            .filter(|pod| !pod.managed && !pod.terminating && !scene.goal.force)
            .map(|pod| pod.name.to_string())
            .collect();
        if !lost.is_empty() {
            return PhaseStatus::Blocked(Blocker::Removal(vec![RemovalRefusal::Unmanaged(lost)]));
        }
        let evictable: Vec<_> = pods
            .iter()
            .filter(|pod| !pod.terminating && pod.blocked.is_none())
            .map(|pod| pod.name.clone())
            .collect();
        if !evictable.is_empty() {
            return PhaseStatus::Act(Action::EvictPods(evictable.into_iter().collect()));
        }
        if pods.is_empty() {
            return PhaseStatus::Holds;
        }
        let survey = seen!(scene.host().survey, Look::Survey);
        // An earlier run has stopped the kubelet for good. What it ran ends with the host's other pods.
        let stopped = survey.openssl && !survey.joined;
        if stopped && !node.ready && pods.iter().all(|pod| pod.terminating) {
            return PhaseStatus::Holds;
        }
        let of_node = stopped.then_some(LookKey::Node);
        PhaseStatus::wait(Condition {
            sentence: format!("the pods of {} to leave", scene.goal.node.name),
            class: FailureClass::Workload,
            last_seen: pods.iter().map(describe).collect::<Vec<_>>().join("; "),
            limit: scene.goal.drain_limit,
            looks: of_node.into_iter().chain([LookKey::PodsToDrain]).collect(),
            causes: Vec::new(),
            hopeless: None,
        })
    }
}

fn describe(pod: &DrainPod) -> String {
    let state = pod.blocked.as_deref().unwrap_or("is terminating");
    format!("{}: {state}", pod.name)
}
