//! The first etcd member and the first control plane run.

use std::time::Duration;

use super::layer_applied::applied;
use crate::expand::goal::Goal;
use crate::expand::layer::Layer;
use crate::expand::phase::{Condition, Look, Next, Phase};
use crate::expand::survey::Survey;
use crate::expand::world::World;
use crate::seen;

/// The only place that ever starts a new etcd cluster.
#[derive(Debug)]
pub struct FirstControlPlane;

impl Phase for FirstControlPlane {
    fn title(&self) -> &'static str {
        "First control plane"
    }

    fn next(&self, goal: &Goal, world: &World) -> Next {
        let survey = seen!(world.survey, Look::Survey);
        // Once there is a cluster, the proxy must not forget its other API servers.
        if survey.joined {
            seen!(world.peers, Look::Peers);
        }
        if let Err(first) = applied(world, first_layer(goal, survey)) {
            return first;
        }
        match seen!(world.api, Look::Api) {
            None => Next::Holds,
            Some(complaint) => Next::Wait(Condition {
                sentence: "the first API server to be ready".to_owned(),
                last_seen: complaint.clone(),
                limit: Duration::from_secs(300),
                looks: vec![Look::Api],
            }),
        }
    }
}

/// A cluster begins with its first member alone. Flags that are there already stay: "new" is said once.
fn first_layer(goal: &Goal, survey: &Survey) -> Layer {
    let flag = |name: &str, or: String| {
        survey.etcd_flags.as_ref().and_then(|flags| flags.get(name)).cloned().unwrap_or(or)
    };
    Layer::First {
        initial_cluster: flag("initial-cluster", format!("{}={}", goal.name, goal.peer_url())),
        initial_cluster_state: flag("initial-cluster-state", "new".to_owned()),
    }
}
