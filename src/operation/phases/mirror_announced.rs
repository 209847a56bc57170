//! The other nodes know the mirror.

use super::apiserver_proxies::others_current;
use crate::model::role::Role;
use crate::operation::contract::{NodeOperation, Phase, PhaseStatus, Scene};
use crate::operation::effect::LookKey;

/// As with an API server: a node that cannot be reached does not stop it. That of a master is announced with its API
/// server.
#[derive(Debug)]
pub struct MirrorAnnounced;

impl<O: NodeOperation> Phase<O> for MirrorAnnounced {
    fn title(&self) -> &'static str {
        "Mirror announced"
    }

    fn applies(&self, goal: &O::Goal) -> bool {
        goal.as_ref().has(Role::Mirror) && !goal.as_ref().has(Role::Master)
    }

    /// Where a role was withdrawn, they were looked at before the node had what it has now.
    fn looks_again(&self) -> Vec<LookKey> {
        vec![LookKey::Proxies]
    }

    fn status(&self, scene: &Scene<'_, O>) -> PhaseStatus {
        others_current(scene)
    }
}
