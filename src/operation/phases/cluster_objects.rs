//! The API has the objects that every cluster has, and the bootstrap node's own Node.

use super::control_plane::API_SERVER;
use crate::operation::goal::Goal;
use crate::operation::phase::{Action, Look, Next, Phase};
use crate::operation::world::World;
use crate::seen;

/// Ends with the kubelet able to ask for its certificate.
#[derive(Debug)]
pub struct ClusterObjects;

impl Phase for ClusterObjects {
    fn title(&self) -> &'static str {
        "Cluster objects"
    }

    fn next(&self, _goal: &Goal, world: &World) -> Next {
        let survey = seen!(world.survey, Look::Survey);
        let Some(node) = seen!(world.node, Look::Node) else { return Next::Act(Action::RegisterNode) };
        if !node.annotations.contains_key(API_SERVER) {
            return Next::Act(Action::Annotate(vec![(API_SERVER.to_owned(), "ready".to_owned())]));
        }
        if !seen!(world.missing_objects, Look::ClusterObjects).is_empty() {
            return Next::Act(Action::ApplyClusterObjects);
        }
        if !survey.joined && !world.join_token {
            return Next::Act(Action::CreateJoinToken);
        }
        if !survey.joined && !world.kubelet_restarted {
            return Next::Act(Action::RestartKubelet);
        }
        Next::Holds
    }
}
