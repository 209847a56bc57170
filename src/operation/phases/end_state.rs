//! The node is verified to be what its manifest describes (design law 4).

use std::time::Duration;

use super::layer_applied::{address, applied};
use super::member_wait::describe;
use super::membership::{member_goal, members};
use super::pods_ready::pods_ready;
use crate::etcd::membership::{LearnerProgress, Move, next};
use crate::model::api_contract::CORDONED;
use crate::model::role::Role;
use crate::operation::cause::Cause;
use crate::operation::class::FailureClass;
use crate::operation::condition::Condition;
use crate::operation::contract::{NodeOperation, Phase, PhaseStatus, Scene, seen};
use crate::operation::effect::{Action, Look, LookKey};
use crate::operation::layer::Layer;
use crate::operation::observed::node::Reachability;

/// Ready as that machine, its pods ready, its etcd member voting, its proxy with every API server that there is by
/// now, a pod on it reached from this machine. Where this run has done nothing on the host, the gateway of its pods is
/// reached instead, if it answers.
#[derive(Debug)]
pub struct EndState;

impl<O: NodeOperation> Phase<O> for EndState {
    fn title(&self) -> &'static str {
        "End state verified"
    }

    fn looks_again(&self) -> Vec<LookKey> {
        let keys = [LookKey::Node, LookKey::Pods, LookKey::Membership, LookKey::Peers];
        keys.into_iter().chain([LookKey::Plan(Layer::Proxy)]).collect()
    }

    fn status(&self, scene: &Scene<'_, O>) -> PhaseStatus {
        let begun = scene.node_begun();
        let proven = begun.reached
            || !begun.reachability_pod
                && !scene.host_begun().touched
                && *seen!(scene.node().pod_gateway, Look::PodGateway);
        if !proven && !begun.reachability_pod {
            return PhaseStatus::Act(Action::StartReachabilityPod);
        }
        let verified = ready(scene).and_then(|()| pods_ready(scene)).and_then(|()| voting(scene));
        if let Err(first) = verified.and_then(|()| proxied(scene)) {
            return first;
        }
        if proven {
            return if begun.reachability_pod {
                PhaseStatus::Act(Action::DeleteReachabilityPod)
            } else {
                PhaseStatus::Holds
            };
        }
        match seen!(scene.node().reachability, Look::Reachability) {
            // Of an earlier run, usually. Another one is tried once: what ends it may end each.
            Reachability::Ended(_) if !begun.reachability_pod_replaced => {
                PhaseStatus::Act(Action::DeleteReachabilityPod)
            }
            Reachability::NotYet(last_seen) | Reachability::Ended(last_seen) => {
                let condition = Condition {
                    sentence: format!("a pod on {} to answer from this node", scene.node_goal().name),
                    class: FailureClass::Host,
                    last_seen: last_seen.clone(),
                    limit: Duration::from_secs(120),
                    looks: vec![LookKey::Reachability],
                    causes: Vec::new(),
                    hopeless: None,
                };
                PhaseStatus::wait(condition.caused_by(scene.host(), vec![Cause::kubelet()]))
            }
            Reachability::Reached => PhaseStatus::Holds,
        }
    }
}

/// The proxy has the API servers of masters that were deployed beside this node too. A master records its API server
/// and then updates the proxies of the nodes that have registered; this node has registered, and the nodes are listed
/// after that. So one of the two sees the other.
fn proxied<O: NodeOperation>(scene: &Scene<'_, O>) -> Result<(), PhaseStatus> {
    peers_known(scene).and_then(|()| applied(scene, Layer::Proxy))
}

fn peers_known<O: NodeOperation>(scene: &Scene<'_, O>) -> Result<(), PhaseStatus> {
    if scene.node().peers.is_some() { Ok(()) } else { Err(PhaseStatus::Look(Look::Peers)) }
}

fn ready<O: NodeOperation>(scene: &Scene<'_, O>) -> Result<(), PhaseStatus> {
    let Some(facts) = &scene.host().facts else { return Err(PhaseStatus::Look(Look::Facts)) };
    let Some(node) = &scene.node().node else { return Err(PhaseStatus::Look(Look::Node)) };
    let (node, expected) = (node.clone().unwrap_or_default(), address(scene)?);
    // By a removal that was given up.
    if node.annotations.contains_key(CORDONED) {
        return Err(PhaseStatus::Act(Action::Uncordon));
    }
    if node.ready && node.machine_id == facts.machine_id && node.internal_ip() == Some(expected) {
        return Ok(());
    }
    let address = node.internal_ip().map_or_else(|| "no address".to_owned(), |ip| ip.to_string());
    let state = if node.ready { "Ready".to_owned() } else { format!("not ready ({})", node.ready_message) };
    let condition = Condition {
        sentence: format!("{} to be Ready, as this machine, at {expected}", scene.node_goal().name),
        class: FailureClass::Host,
        last_seen: format!("{state} at {address}, machine {}", node.machine_id),
        limit: Duration::from_secs(180),
        looks: vec![LookKey::Node],
        causes: Vec::new(),
        hopeless: None,
    };
    let causes = vec![Cause::kubelet(), Cause::Unit("containerd.service".to_owned())];
    Err(PhaseStatus::wait(condition.caused_by(scene.host(), causes)))
}

fn voting<O: NodeOperation>(scene: &Scene<'_, O>) -> Result<(), PhaseStatus> {
    if !scene.node_goal().has(Role::Etcd) {
        return Ok(());
    }
    // The member of the bootstrap node may be the only one that could be asked without them.
    peers_known(scene)?;
    let (membership, goal) = (members(scene)?, member_goal(scene)?);
    let decided = next(&goal, membership, LearnerProgress::STARTED);
    if decided == Move::Holds {
        return Ok(());
    }
    let condition = Condition {
        sentence: format!("etcd on {} to be a healthy voter", scene.node_goal().name),
        class: FailureClass::Etcd,
        last_seen: describe(&decided),
        limit: Duration::from_secs(60),
        looks: vec![LookKey::Membership],
        causes: Vec::new(),
        hopeless: None,
    };
    let causes = vec![Cause::kubelet(), Cause::container("etcd")];
    Err(PhaseStatus::wait(condition.caused_by(scene.host(), causes)))
}
