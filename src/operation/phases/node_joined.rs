//! The kubelet has a certificate of its own and reports for this very machine.

use std::time::Duration;

use super::layer_applied::applied;
use crate::operation::goal::{Goal, address_in};
use crate::operation::layer::Layer;
use crate::operation::phase::{Action, Condition, Look, Next, Phase};
use crate::operation::world::World;
use crate::seen;

/// Annotation: the node's address on the control plane.
pub const CONTROL_PLANE_IP: &str = crate::model::api_contract::CONTROL_PLANE_IP;
/// Annotation: the node's address on the workload plane.
pub const WORKLOAD_PLANE_IP: &str = crate::model::api_contract::WORKLOAD_PLANE_IP;

/// Ends with the token gone, from the API and from the host.
#[derive(Debug)]
pub struct NodeJoined;

impl Phase for NodeJoined {
    fn title(&self) -> &'static str {
        "Node joined"
    }

    fn next(&self, goal: &Goal, world: &World) -> Next {
        let facts = seen!(world.facts, Look::Facts);
        let node = seen!(world.node, Look::Node).clone().unwrap_or_default();
        let addresses: Vec<(String, String)> = [
            (CONTROL_PLANE_IP, &goal.networks.control_plane),
            (WORKLOAD_PLANE_IP, &goal.networks.workload_plane.cidrs),
        ]
        .into_iter()
        .filter_map(|(key, networks)| Some((key.to_owned(), address_in(facts, networks)?.1.to_string())))
        .collect();
        // The signer of serving certificates reads the addresses: they must be there before it is asked.
        if addresses.iter().any(|(key, value)| node.annotations.get(key) != Some(value)) {
            return Next::Act(Action::Annotate(addresses));
        }
        if node.machine_id != facts.machine_id || node.internal_ip.is_none() {
            return Next::Wait(Condition {
                sentence: format!("the kubelet of {} to register", goal.name),
                last_seen: if node.machine_id.is_empty() {
                    "no kubelet has reported for this Node".to_owned()
                } else {
                    format!("the Node is reported by machine {}", node.machine_id)
                },
                limit: Duration::from_secs(120),
                looks: vec![Look::Node],
            });
        }
        if !seen!(world.survey, Look::Survey).joined {
            return Next::Wait(Condition {
                sentence: format!("the kubelet of {} to have its certificate", goal.name),
                last_seen: "it has none that this cluster's authority signed".to_owned(),
                limit: Duration::from_secs(60),
                looks: vec![Look::Survey],
            });
        }
        if *seen!(world.join_tokens, Look::JoinTokens) > 0 {
            return Next::Act(Action::DeleteJoinToken);
        }
        match applied(world, Layer::Joined) {
            Ok(()) => Next::Holds,
            Err(next) => next,
        }
    }
}
