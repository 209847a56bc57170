//! The first etcd member and the first control plane run; of a cluster that has begun, what this node has of both.
//!
//! # How an etcd cluster begins
//! The action that creates the CAs of a new cluster leaves a mark ([`crate::workspace::trust`]). With the mark, and only
//! with it, the data of a new cluster is created, beside the data directory and then moved there as a whole; once it is
//! there, the mark is removed. The static pod is written after that. As that of every other member it says `existing`:
//! no file on any host could begin a second cluster. Each step is decided from what is observed: a run that is killed
//! anywhere resumes.
//!
//! # In a cluster that exists
//! What other nodes share with this one restarts as when a node is deployed: under the lease on etcd membership, while the
//! other voters are healthy and another API server is ready. Where no API server answers there is no lease: what is wrong
//! may be here, and is repaired at once, unless etcd would lose its quorum by that. Nor is there one before the kubelet
//! has joined.

use std::collections::BTreeMap;
use std::time::Duration;

use super::cluster_objects::registered;
use super::control_plane::in_turn;
use super::layer_applied::{address, applied};
use super::member_wait::wait;
use super::membership::{api_server_endpoints, member_goal, members, restarted, unhealthy_others};
use super::pods_ready::these_ready;
use crate::etcd::membership::{Move, Obstacle};
use crate::kube_api::pods::ExpectedPod;
use crate::model::role::Role;
use crate::operation::cause::Cause;
use crate::operation::class::FailureClass;
use crate::operation::condition::Condition;
use crate::operation::contract::{Blocker, BootstrapNodeOperation, Phase, PhaseStatus, Scene, seen};
use crate::operation::effect::{Action, Look, LookKey};
use crate::operation::goal::peer_url;
use crate::operation::layer::Layer;
use crate::operation::observed::node::Peer;
use crate::operation::survey::Survey;

/// The only place that ever starts a new etcd cluster.
#[derive(Debug)]
pub struct FirstControlPlane;

impl<O: BootstrapNodeOperation> Phase<O> for FirstControlPlane {
    fn title(&self) -> &'static str {
        "First control plane"
    }

    fn status(&self, scene: &Scene<'_, O>) -> PhaseStatus {
        let survey = seen!(scene.host().survey, Look::Survey);
        let new = *seen!(scene.bootstrap().new_cluster, Look::NewClusterMark);
        let started = if new { begin(scene, survey) } else { resume(scene, survey) };
        if let Err(first) = started {
            return first;
        }
        match seen!(scene.cluster().api, Look::Api) {
            None => PhaseStatus::Holds,
            Some(complaint) => {
                let which = if survey.joined { "an" } else { "the first" };
                let condition = Condition {
                    sentence: format!("{which} API server to be ready"),
                    class: FailureClass::Api,
                    last_seen: complaint.clone(),
                    limit: Duration::from_secs(300),
                    looks: vec![LookKey::Api],
                    causes: Vec::new(),
                    hopeless: None,
                };
                PhaseStatus::wait(condition.caused_by(scene.host(), causes(scene)))
            }
        }
    }
}

/// The cluster has yet to begin, or has begun a moment ago.
fn begin<O: BootstrapNodeOperation>(scene: &Scene<'_, O>, survey: &Survey) -> Result<(), PhaseStatus> {
    applied(scene, Layer::First)?;
    Err(PhaseStatus::Act(if survey.etcd_data {
        Action::RemoveNewClusterMark
    } else {
        Action::BeginCluster(address(scene)?)
    }))
}

/// What on this host an API server needs that is waited for.
fn causes<O: BootstrapNodeOperation>(scene: &Scene<'_, O>) -> Vec<Cause> {
    let container = |role, name| scene.node_goal().has(role).then(|| Cause::container(name));
    let containers = [container(Role::Etcd, "etcd"), container(Role::Master, "kube-apiserver")];
    std::iter::once(Cause::kubelet()).chain(containers.into_iter().flatten()).collect()
}

/// The cluster has begun: the member of this node starts with its data, or not at all.
fn resume<O: BootstrapNodeOperation>(scene: &Scene<'_, O>, survey: &Survey) -> Result<(), PhaseStatus> {
    let (master, etcd) = (scene.node_goal().has(Role::Master), scene.node_goal().has(Role::Etcd));
    if etcd && !survey.etcd_data {
        let name = scene.node_goal().name.to_string();
        return Err(PhaseStatus::Blocked(Blocker::Etcd(Obstacle::FirstDataLost { name })));
    }
    let flags = survey.etcd_flags.as_ref();
    let initial_cluster = match flags.and_then(|flags| flags.get("initial-cluster")) {
        Some(flag) => flag.clone(),
        // A cluster begins with its first member alone.
        None => format!("{}={}", scene.node_goal().name, peer_url(address(scene)?)),
    };
    // Once there is a cluster, the proxy must not forget its other API servers. But the API may be away because of
    // what is wrong here: that comes first then.
    let peers = known_peers(scene, survey)?;
    let shared = peers.is_some_and(|peers| peers.values().any(takes_part));
    if shared {
        // Without its Node no pod of it is listed, and none becomes ready.
        registered(scene)?;
    }
    applied(scene, if peers.is_some() { Layer::First } else { Layer::Etcd })?;
    if etcd {
        let layer = Layer::EtcdMember { initial_cluster, first_start: false };
        if shared {
            let goal = member_goal(scene)?;
            restarted(scene, layer, &goal, members(scene)?)?;
        } else {
            restarted_without_lease(scene, survey, layer)?;
        }
    }
    if master {
        api_server_endpoints(scene)?;
        applied(scene, Layer::ControlPlaneFiles)?;
        if peers.is_some_and(|peers| peers.values().any(|peer| peer.api_server_address().is_some())) {
            in_turn(scene)?;
        } else {
            // The only API server is away while it restarts, and could not renew the lease.
            released(scene)?;
            applied(scene, Layer::ControlPlane)?;
        }
    }
    if master && scene.etcd_begun().lease {
        these_ready(scene, vec![ExpectedPod::Static("kube-apiserver".to_owned())])?;
    }
    released(scene)
}

fn released<O: BootstrapNodeOperation>(scene: &Scene<'_, O>) -> Result<(), PhaseStatus> {
    if scene.etcd_begun().lease { Err(PhaseStatus::Act(Action::ReleaseLease)) } else { Ok(()) }
}

/// The other nodes; `None` where no API server answers, or this node has yet to join. A run that has seen its Node has
/// known them, and looks again.
fn known_peers<'a, O: BootstrapNodeOperation>(
    scene: &Scene<'a, O>,
    survey: &Survey,
) -> Result<Option<&'a BTreeMap<String, Peer>>, PhaseStatus> {
    if !survey.joined {
        return Ok(None);
    }
    let peers = scene.node().peers.as_ref();
    if peers.is_some() {
        return Ok(peers);
    }
    match scene.cluster().api.as_ref() {
        _ if scene.node().node.is_some() => Err(PhaseStatus::Look(Look::Peers)),
        None => Err(PhaseStatus::Look(Look::Api)),
        Some(None) => Err(PhaseStatus::Look(Look::Peers)),
        Some(Some(_)) => Ok(None),
    }
}

/// Whether a node has an etcd member or an API server, or is about to.
fn takes_part(peer: &Peer) -> bool {
    peer.etcd_address().or(peer.api_server_address()).is_some()
}

/// A member that answers has quorum: it stays where that needs it. One that does not answer is what may be repaired.
fn restarted_without_lease<O: BootstrapNodeOperation>(
    scene: &Scene<'_, O>,
    survey: &Survey,
    layer: Layer,
) -> Result<(), PhaseStatus> {
    let action = match applied(scene, layer) {
        // Without its static pod it does not run.
        Err(PhaseStatus::Act(action)) if survey.etcd_flags.is_some() => action,
        other => return other,
    };
    let answer = scene.etcd().own_member.as_ref().ok_or(PhaseStatus::Look(Look::OwnMember))?;
    let complaints = match answer {
        Some(membership) => unhealthy_others(&member_goal(scene)?, membership),
        None => Vec::new(),
    };
    if complaints.is_empty() {
        return Err(PhaseStatus::Act(action));
    }
    // An API server that is away comes first: through it a member that is gone for good is removed.
    let away = scene.cluster().api.as_ref().ok_or(PhaseStatus::Look(Look::Api))?.is_some();
    if away && scene.node_goal().has(Role::Master) {
        return Ok(());
    }
    Err(PhaseStatus::wait(Condition {
        looks: vec![LookKey::OwnMember, LookKey::Api],
        ..wait(scene, &Move::WaitForVoters { complaints })
    }))
}
