//! The pods of the node's roles.

use std::time::Duration;

use crate::kube_api::pods::ExpectedPod;
use crate::operation::cause::Cause;
use crate::operation::class::FailureClass;
use crate::operation::condition::Condition;
use crate::operation::contract::{NodeOperation, PhaseStatus, Scene};
use crate::operation::effect::{Look, LookKey};

/// Every pod of the node's roles is Ready; `Err` is what comes before.
pub(super) fn pods_ready<O: NodeOperation>(scene: &Scene<'_, O>) -> Result<(), PhaseStatus> {
    these_ready(scene, scene.node_goal().pods())
}

/// These pods of the node are Ready; `Err` is what comes before.
pub(super) fn these_ready<O: NodeOperation>(
    scene: &Scene<'_, O>,
    expected: Vec<ExpectedPod>,
) -> Result<(), PhaseStatus> {
    let Some(missing) = scene.node().missing_pods.get(&expected) else {
        return Err(PhaseStatus::Look(Look::Pods(expected)));
    };
    if missing.is_empty() {
        return Ok(());
    }
    let containers = expected.iter().filter_map(|pod| match pod {
        ExpectedPod::Static(name) => Some(Cause::container(name)),
        ExpectedPod::DaemonSet(_) => None,
    });
    let condition = Condition {
        sentence: format!("the pods of {} to be ready", scene.node_goal().name),
        class: FailureClass::Host,
        last_seen: missing.join("; "),
        limit: Duration::from_secs(300),
        looks: vec![LookKey::Pods],
        causes: Vec::new(),
        hopeless: None,
    };
    let causes = std::iter::once(Cause::kubelet()).chain(containers).collect();
    Err(PhaseStatus::wait(condition.caused_by(scene.host(), causes)))
}
