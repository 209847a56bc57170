//! The first etcd member and the first control plane run.

use std::time::Duration;

use super::layer_applied::applied;
use crate::operation::goal::Goal;
use crate::operation::layer::Layer;
use crate::operation::phase::{Condition, Look, Next, Phase};
use crate::operation::survey::Survey;
use crate::operation::world::World;
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
        // Once there is a cluster, the proxy must not forget its other API servers. But the API may be away
        // because of what is wrong here: that comes first then.
        if survey.joined && world.peers.is_none() {
            if seen!(world.api, Look::Api).is_none() {
                return Next::Look(Look::Peers);
            }
            for layer in [Layer::Etcd, first_member(goal, survey), Layer::ControlPlane] {
                if let Err(first) = applied(world, layer) {
                    return first;
                }
            }
        } else {
            let (initial_cluster, initial_cluster_state) = flags(goal, survey);
            if let Err(first) = applied(world, Layer::First { initial_cluster, initial_cluster_state }) {
                return first;
            }
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

fn first_member(goal: &Goal, survey: &Survey) -> Layer {
    let (initial_cluster, initial_cluster_state) = flags(goal, survey);
    Layer::EtcdMember { initial_cluster, initial_cluster_state }
}

/// A cluster begins with its first member alone. Flags that are there already stay: "new" is said once, and not
/// again where the manifest is lost. etcd then goes on with its data, or refuses to begin a second cluster.
fn flags(goal: &Goal, survey: &Survey) -> (String, String) {
    let flag = |name: &str, or: String| {
        survey.etcd_flags.as_ref().and_then(|flags| flags.get(name)).cloned().unwrap_or(or)
    };
    let state = if survey.joined || survey.etcd_data { "existing" } else { "new" };
    (
        flag("initial-cluster", format!("{}={}", goal.name, goal.peer_url())),
        flag("initial-cluster-state", state.to_owned()),
    )
}
