//! The node's API server, controller manager and scheduler are ready.

use std::time::Duration;

use super::layer_applied::applied;
use crate::model::role::Role;
use crate::operation::goal::Goal;
use crate::operation::layer::Layer;
use crate::operation::phase::{Action, Condition, Look, Next, Phase};
use crate::operation::world::World;
use crate::seen;

/// Annotation: the node's API server was proved once, so proxies may use it.
pub const API_SERVER: &str = crate::model::api_contract::API_SERVER;

/// Ends with the API server on record, so that proxies learn of it.
#[derive(Debug)]
pub struct ControlPlane;

impl Phase for ControlPlane {
    fn title(&self) -> &'static str {
        "Control plane"
    }

    fn applies(&self, goal: &Goal) -> bool {
        goal.has(Role::Master)
    }

    fn next(&self, goal: &Goal, world: &World) -> Next {
        // An API server without a member beside it is given all voters.
        if !goal.has(Role::Etcd) {
            seen!(world.membership, Look::Membership);
        }
        if let Err(first) = applied(world, Layer::ControlPlane) {
            return first;
        }
        if let Err(first) = pods_ready(goal, world) {
            return first;
        }
        let node = seen!(world.node, Look::Node);
        if node.as_ref().is_none_or(|node| !node.annotations.contains_key(API_SERVER)) {
            return Next::Act(Action::Annotate(vec![(API_SERVER.to_owned(), "ready".to_owned())]));
        }
        Next::Holds
    }
}

/// Every pod that the node's roles bring is Ready; `Err` is what has to come first.
pub fn pods_ready(goal: &Goal, world: &World) -> Result<(), Next> {
    let Some(missing) = &world.missing_pods else { return Err(Next::Look(Look::Pods)) };
    if missing.is_empty() {
        return Ok(());
    }
    Err(Next::Wait(Condition {
        sentence: format!("the pods of {} to be ready", goal.name),
        last_seen: missing.join("; "),
        limit: Duration::from_secs(300),
        looks: vec![Look::Pods],
    }))
}
