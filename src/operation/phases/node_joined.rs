//! The kubelet has a certificate of its own and reports for this machine.

use std::time::Duration;

use super::addresses_recorded::addresses_recorded;
use super::layer_applied::applied;
use crate::operation::cause::Cause;
use crate::operation::class::FailureClass;
use crate::operation::condition::Condition;
use crate::operation::contract::{NodeOperation, Phase, PhaseStatus, Scene, seen};
use crate::operation::effect::{Action, Look, LookKey};
use crate::operation::layer::Layer;

/// Ends with the token deleted, from the API and from the host.
#[derive(Debug)]
pub struct NodeJoined;

impl<O: NodeOperation> Phase<O> for NodeJoined {
    fn title(&self) -> &'static str {
        "Node joined"
    }

    fn status(&self, scene: &Scene<'_, O>) -> PhaseStatus {
        let goal = scene.node_goal();
        // Recorded before the kubelet started, and changed since.
        if let Err(first) = addresses_recorded(scene) {
            return first;
        }
        let facts = seen!(scene.host().facts, Look::Facts);
        let node = seen!(scene.node().node, Look::Node).clone().unwrap_or_default();
        if node.uninitialized {
            return PhaseStatus::Act(Action::RemoveUninitializedTaint);
        }
        let causes = vec![Cause::kubelet(), Cause::Unit("containerd.service".to_owned())];
        if node.machine_id != facts.machine_id {
            let last_seen = if node.machine_id.is_empty() {
                "no kubelet has reported for this Node".to_owned()
            } else {
                format!("the Node is reported by machine {}", node.machine_id)
            };
            let condition = Condition {
                sentence: format!("the kubelet of {} to register", goal.name),
                class: FailureClass::Host,
                last_seen,
                limit: Duration::from_secs(120),
                looks: vec![LookKey::Node],
                causes: Vec::new(),
                hopeless: None,
            };
            return PhaseStatus::wait(condition.caused_by(scene.host(), causes));
        }
        if !seen!(scene.host().survey, Look::Survey).joined {
            let condition = Condition {
                sentence: format!("the kubelet of {} to have its certificate", goal.name),
                class: FailureClass::Host,
                last_seen: "it has none that the CA of this cluster signed".to_owned(),
                limit: Duration::from_secs(60),
                looks: vec![LookKey::Survey],
                causes: Vec::new(),
                hopeless: None,
            };
            return PhaseStatus::wait(condition.caused_by(scene.host(), causes));
        }
        if *seen!(scene.node().join_tokens, Look::JoinTokens) > 0 {
            return PhaseStatus::Act(Action::DeleteJoinTokens);
        }
        match applied(scene, Layer::Joined) {
            Ok(()) => PhaseStatus::Holds,
            Err(first) => first,
        }
    }
}
