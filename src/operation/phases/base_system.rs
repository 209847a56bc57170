//! Packages, container runtime, pod network, API server proxy and kubelet are installed and run.

use std::time::Duration;

use super::kubelet_token::token;
use super::layer_applied::applied;
use crate::operation::class::FailureClass;
use crate::operation::condition::Condition;
use crate::operation::contract::{NodeOperation, Phase, PhaseStatus, Scene, seen};
use crate::operation::effect::{Action, Look, LookKey};
use crate::operation::layer::Layer;

/// Everything of the node that is neither etcd nor control plane.
#[derive(Debug)]
pub struct BaseSystem;

impl<O: NodeOperation> Phase<O> for BaseSystem {
    fn title(&self) -> &'static str {
        "Base system"
    }

    fn status(&self, scene: &Scene<'_, O>) -> PhaseStatus {
        seen!(scene.host().facts, Look::Facts);
        seen!(scene.host().survey, Look::Survey);
        let node = seen!(scene.node().node, Look::Node);
        if node.as_ref().is_none_or(|node| node.pod_cidr.is_none()) {
            return PhaseStatus::wait(Condition {
                sentence: format!(
                    "the controller manager to assign a pod network to {}",
                    scene.node_goal().name
                ),
                class: FailureClass::Api,
                last_seen: "the Node has no podCIDR".to_owned(),
                limit: Duration::from_secs(60),
                looks: vec![LookKey::Node],
                causes: Vec::new(),
                hopeless: None,
            });
        }
        seen!(scene.node().peers, Look::Peers);
        match token(scene).and_then(|()| applied(scene, Layer::Base)) {
            Ok(()) => PhaseStatus::Holds,
            // The pod whose answer is waited for at the end: the kubelet finds it when it starts.
            Err(PhaseStatus::Act(Action::Apply(layer, plan))) if joins(scene) => PhaseStatus::All(vec![
                PhaseStatus::Act(Action::Apply(layer, plan)),
                PhaseStatus::Act(Action::StartReachabilityPod),
            ]),
            Err(first) => first,
        }
    }
}

/// Whether no kubelet has run on the host, and no pod is started for it yet.
fn joins<O: NodeOperation>(scene: &Scene<'_, O>) -> bool {
    let joined = scene.host().survey.as_ref().is_some_and(|survey| survey.joined);
    !joined && !scene.node_begun().reachability_pod
}
