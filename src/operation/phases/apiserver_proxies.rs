//! Every node's proxy knows every API server.

use super::layer_applied::applied;
use crate::model::role::Role;
use crate::operation::goal::Goal;
use crate::operation::layer::Layer;
use crate::operation::phase::{Action, Look, Next, Phase};
use crate::operation::world::World;
use crate::seen;

/// Nodes that cannot be reached do not stop it: they have a proxy that works, and get the new list when they
/// are next converged.
#[derive(Debug)]
pub struct ApiServerProxies;

impl Phase for ApiServerProxies {
    fn title(&self) -> &'static str {
        "API server proxies"
    }

    fn applies(&self, goal: &Goal) -> bool {
        goal.has(Role::Master)
    }

    fn next(&self, _goal: &Goal, world: &World) -> Next {
        seen!(world.peers, Look::Peers);
        if let Err(first) = applied(world, Layer::Proxy) {
            return first;
        }
        let proxies = seen!(world.proxies, Look::Proxies);
        if proxies.stale.is_empty() {
            Next::Holds
        } else {
            Next::Act(Action::UpdateProxies(proxies.stale.iter().cloned().collect()))
        }
    }
}
