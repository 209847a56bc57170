//! Nothing is left of roles that the node had and has no more.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::another_api_server::{another_left, another_ready};
use super::apiserver_proxies::{all_nodes, proxies_current};
use super::control_plane::own_member_unused;
use super::layer_applied::applied;
use super::member_removed::{leave, leaving};
use super::member_wait::{COPY_LIMIT, QUEUE_LIMIT};
use super::membership::members;
use crate::model::api_contract::API_SERVER;
use crate::model::node::roles_of;
use crate::model::role::Role;
use crate::operation::class::FailureClass;
use crate::operation::condition::Condition;
use crate::operation::contract::{NodeOperation, Phase, PhaseStatus, Scene, seen};
use crate::operation::effect::{Action, Look, LookKey};
use crate::operation::layer::Layer;
use crate::operation::observed::node::{NodeView, Peer, RunState};

/// As when the node is removed: its API server leaves the proxies before it stops, while another one is ready, and its
/// etcd member leaves through the others; the other nodes forget its mirror. Files and keys of the roles go last. An API
/// server that stays uses the other members before its own leaves.
#[derive(Debug)]
pub struct RolesWithdrawn;

impl<O: NodeOperation> Phase<O> for RolesWithdrawn {
    fn title(&self) -> &'static str {
        "Roles withdrawn"
    }

    fn status(&self, scene: &Scene<'_, O>) -> PhaseStatus {
        let survey = seen!(scene.host().survey, Look::Survey);
        let node = seen!(scene.node().node, Look::Node);
        let (master, etcd) = (scene.node_goal().has(Role::Master), scene.node_goal().has(Role::Etcd));
        let marked = node.as_ref().filter(|node| node.annotations.contains_key(API_SERVER));
        // Of a machine that is gone nothing is on this host.
        let replaces = scene.node_goal().replace_machine;
        if !master && (survey.control_plane || marked.is_some() || replaces) {
            match withdrawn(scene, marked) {
                PhaseStatus::Holds if survey.control_plane => {
                    return PhaseStatus::Act(Action::StopControlPlane);
                }
                PhaseStatus::Holds => {}
                first => return first,
            }
        }
        // Its keys are there before it is in the list of members, and go last: a run that was killed may have left no more.
        if !etcd && (survey.has_member() || survey.member_files || replaces) {
            // Its own member may be the only one that could be asked without them.
            let peers = seen!(scene.node().peers, Look::Peers);
            if let Err(first) = others_joined(scene, peers) {
                return first;
            }
            let left = match leave(scene) {
                // Nothing is changed for a member that has to stay, or before it is known what other API servers use.
                Err(first @ (PhaseStatus::Blocked(_) | PhaseStatus::All(_))) => return first,
                // One that has left serves no API server any more.
                Err(first) if master && survey.control_plane => own_member_unused(scene).and(Err(first)),
                left => left,
            };
            match left {
                Ok(()) if survey.has_member() => return PhaseStatus::Act(Action::SetAsideMemberData),
                Ok(()) => {}
                Err(first) => return first,
            }
        }
        let mirror_left = !scene.node_goal().has(Role::Mirror) && survey.mirror_files;
        if mirror_left {
            let peers = seen!(scene.node().peers, Look::Peers);
            // A master that stays one stays in the proxies.
            let nodes = if master { all_nodes(scene, peers) } else { Ok(Arc::new(peers.clone())) };
            match nodes.map(|nodes| proxies_current(scene, peers, &nodes)) {
                Ok(PhaseStatus::Holds) => {}
                Ok(first) | Err(first) => return first,
            }
        }
        let left = !master && survey.master_files || !etcd && survey.member_files || mirror_left;
        match left.then(|| applied(scene, Layer::OtherRoles)) {
            Some(Err(first)) => first,
            None | Some(Ok(())) => PhaseStatus::Holds,
        }
    }
}

/// The members that the same command adds vote, and API servers beside them list them: etcd is not made smaller before it
/// grows. A run that has ended, or takes too long, holds none up but the only voter, and a member that does not work
/// leaves at once: none is added beside it.
fn others_joined<O: NodeOperation>(
    scene: &Scene<'_, O>,
    peers: &BTreeMap<String, Peer>,
) -> Result<(), PhaseStatus> {
    let (membership, leaving) = (members(scene)?, leaving(scene));
    let Some(own) = membership.voters().find(|voter| leaving.is(voter)) else { return Ok(()) };
    let alone = membership.voters().count() == 1;
    let limit = if alone { COPY_LIMIT } else { QUEUE_LIMIT };
    if own.status().is_none() || scene.etcd_begun().lease || scene.now >= QUEUE_LIMIT && !alone {
        return Ok(());
    }
    let (beside, servers) = (&scene.node_goal().beside, &scene.cluster().etcd_servers);
    let joins = |name: &str, peer: &Peer| {
        let deployed = match peer.run {
            RunState::Runs => true,
            // A dry run cannot show what a list will be.
            RunState::Foreseen => alone || servers.get(name).is_some_and(|servers| servers.lists(own)),
            RunState::Ended => false,
        };
        let votes = membership.voters().any(|voter| voter.name == name);
        let roles = roles_of(&peer.labels);
        let joins = roles.contains(&Role::Etcd) && (!votes || roles.contains(&Role::Master));
        deployed && joins && beside.iter().any(|node| node.as_str() == name)
    };
    let joining = peers.iter().filter(|(name, peer)| joins(name, peer));
    let joining: Vec<&str> = joining.map(|(name, _)| name.as_str()).collect();
    if joining.is_empty() {
        return Ok(());
    }
    Err(PhaseStatus::wait(Condition {
        sentence: "the etcd members that this command adds, before this node's leaves".to_owned(),
        class: FailureClass::Etcd,
        last_seen: format!("not done: {}", joining.join(", ")),
        limit,
        looks: vec![LookKey::Membership, LookKey::Peers],
        causes: Vec::new(),
        hopeless: None,
    }))
}

/// No proxy uses the node's API server.
fn withdrawn<O: NodeOperation>(scene: &Scene<'_, O>, marked: Option<&NodeView>) -> PhaseStatus {
    let peers = seen!(scene.node().peers, Look::Peers);
    if let Err(last) = another_left(peers) {
        return last;
    }
    if marked.is_some() {
        return match another_ready(scene, peers) {
            Ok(()) => PhaseStatus::Act(Action::WithdrawApiServer),
            Err(first) => first,
        };
    }
    match proxies_current(scene, peers, &Arc::new(peers.clone())) {
        // The one that was ready when this one was withdrawn may have failed since.
        PhaseStatus::Holds => another_ready(scene, peers).map_or_else(|first| first, |()| PhaseStatus::Holds),
        first => first,
    }
}
