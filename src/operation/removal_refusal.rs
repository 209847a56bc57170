//! Why a node must not be removed.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::goal::NodeGoal;
use super::observed::node::{NodeView, Peer};
use super::removal_goal::RemoveGoal;
use super::survey::Survey;
use crate::etcd::member::Membership;
use crate::etcd::removal::{LeavingMember, RemovalObstacle};
use crate::model::api_contract::API_SERVER;
use crate::model::facts::Facts;
use crate::model::name::HostName;
use crate::model::role::Role;

/// Why a node must not be removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum RemovalRefusal {
    /// It is the bootstrap node.
    #[error(
        "it is the bootstrap node: only it has the CA keys, the package repository and the image registry"
    )]
    Bootstrap,
    /// No API server would be left.
    #[error("it has the last API server{}", removed_too(*masters, *removed))]
    LastMaster {
        /// The other masters.
        masters: usize,
        /// Those of them that the same command removes.
        removed: usize,
    },
    /// etcd needs its member.
    #[error("{0}")]
    Etcd(RemovalObstacle),
    /// An API server would have no etcd member.
    #[error("the API server of {0} would have no etcd member: it lists no other one that is healthy")]
    ApiServerMember(String),
    /// It is not known which etcd members an API server has.
    #[error("the API server of {node} may have no other etcd member: {reason}")]
    UnknownMembers {
        /// Its node, which is Ready.
        node: String,
        /// Why its static pod is not read.
        reason: String,
    },
    /// No voter would be left of several.
    #[error("no voter of etcd would be left: this command removes all {0}")]
    EveryVoter(usize),
    /// The host of an offline removal is not gone.
    #[error("it is Ready: its host has not gone, and would run its pods unknown to the cluster")]
    Ready,
    /// The host that would be reset is in use.
    #[error("it is Ready: it is a node of this cluster")]
    InUse,
    /// Another Node has the host.
    #[error("its host is that of the Node {0}")]
    HostOf(String),
    /// What answers at the address of the node is another machine.
    #[error("the host that answers has the name {0}, and its machine ID is not the Node's")]
    OtherHost(String),
    /// etcd has its member.
    #[error("etcd has its member, by the peer URL {0}")]
    Member(String),
    /// The nodes use its API server.
    #[error("its API server serves the cluster: the proxies of the nodes have its address")]
    ApiServer,
    /// The host has the CA of another cluster.
    #[error("it is a node of another cluster: the CA in /etc/kubernetes/pki/ca.crt is another one")]
    OtherCluster,
    /// Pods that no controller creates again.
    #[error("no controller creates these pods again elsewhere: {}", .0.join(", "))]
    Unmanaged(Vec<String>),
}

/// Of the other masters, where there are any.
fn removed_too(masters: usize, removed: usize) -> String {
    match masters {
        0 => String::new(),
        1 => ": the only other one is removed too".to_owned(),
        _ => format!(": of the {masters} other masters, {removed} are removed too, and no other has one"),
    }
}

impl RemovalRefusal {
    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Bootstrap => {
                "to give up the whole cluster, remove the other nodes first and reinstall this one"
            }
            Self::LastMaster { .. } => "deploy another master first: `metalform deploy-node NAME`",
            Self::Etcd(RemovalObstacle::OnlyVoter { .. }) | Self::EveryVoter(_) => {
                "deploy another node with the role etcd first: `metalform deploy-node NAME`"
            }
            Self::Etcd(RemovalObstacle::NoQuorum { .. }) => {
                "bring the other members back, or remove the one that is gone first; `metalform etcd health` shows every member"
            }
            Self::ApiServerMember(_) => {
                "run `metalform expand`, which gives API servers the present members; then run this command again"
            }
            Self::UnknownMembers { .. } => "make its host reachable, then run this command again",
            Self::Ready => "remove it without --offline",
            Self::InUse | Self::Member(_) | Self::ApiServer => {
                "`metalform remove-node NAME` removes a node and resets its host; if its Node was deleted, apply its manifest \
                 again first (kubectl apply -f)"
            }
            Self::HostOf(_) | Self::OtherHost(_) => {
                "compare metalform.dev/ssh-host in the manifests; `metalform remove-node NAME --offline` removes a Node without its host"
            }
            Self::OtherCluster => "run `metalform remove-node NAME` on the bootstrap node of that cluster",
            Self::Unmanaged(_) => "delete these pods yourself, or add --force to delete them with the node",
        }
    }
}

/// Every reason that the Node and its peers show: what it is counts, also where its labels say it no more. Pure.
pub fn refusals<'a>(
    goal: &RemoveGoal,
    node: &NodeView,
    peers: impl Iterator<Item = (&'a String, &'a Peer)> + Clone,
) -> Vec<RemovalRefusal> {
    let mut found = Vec::new();
    if goal.node.first || goal.node.has(Role::Bootstrap) {
        found.push(RemovalRefusal::Bootstrap);
    }
    if goal.node.has(Role::Master) || node.annotations.contains_key(API_SERVER) {
        let masters = peers.filter(|(_, peer)| peer.api_server_address().is_some());
        let (removed, left): (Vec<_>, Vec<_>) = masters.partition(|(name, _)| goal.together.contains(*name));
        if left.is_empty() {
            let (masters, removed) = (removed.len(), removed.len());
            found.push(RemovalRefusal::LastMaster { masters, removed });
        }
    }
    if goal.offline && node.ready {
        found.push(RemovalRefusal::Ready);
    }
    found
}

/// Whether the same command removes every voter of several, the node's own among them. Pure.
pub fn every_voter(
    leaving: &LeavingMember,
    together: &BTreeSet<String>,
    observed: &Membership,
) -> Option<RemovalRefusal> {
    let (own, others): (Vec<_>, Vec<_>) = observed.voters().partition(|voter| leaving.is(voter));
    let all = !own.is_empty() && others.iter().all(|voter| together.contains(&voter.name));
    // The only one is refused by etcd's own rule.
    (all && !others.is_empty()).then_some(RemovalRefusal::EveryVoter(own.len() + others.len()))
}

/// Whose host it is, where it is not that of the Node `node`: by the CA on it and by the machine ID. Pure.
pub fn of_another<'a>(
    goal: &NodeGoal,
    (facts, survey): (&Facts, &Survey),
    node: Option<&NodeView>,
    mut peers: impl Iterator<Item = (&'a String, &'a Peer)>,
) -> Vec<RemovalRefusal> {
    let mut found = Vec::new();
    let [theirs, ours] =
        [&survey.authority, &goal.authority].map(|authority| authority.as_deref().map(str::trim));
    if theirs.is_some() && theirs != ours {
        found.push(RemovalRefusal::OtherCluster);
    }
    // Of a machine that has another's name, the ID alone is not enough: it may be a copy.
    let is_own = facts.hostname == goal.name.as_str() && node.is_some_and(|node| node.is_of(facts));
    let same = peers.find(|(_, peer)| !is_own && peer.claims(facts));
    found.extend(same.map(|(name, _)| RemovalRefusal::HostOf(name.clone())));
    found
}

/// Whether what answers at the address of the node is another machine: a host that was installed again has another machine
/// ID, and its name. Pure.
pub fn other_host(node: &NodeView, facts: &Facts, name: &HostName) -> Option<RemovalRefusal> {
    let other = !node.is_of(facts) && facts.hostname != name.as_str();
    other.then(|| RemovalRefusal::OtherHost(facts.hostname.clone()))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use super::*;
    use crate::etcd::simulation::{down, leading, learner, membership, voter};
    use crate::model::api_contract::ROLE_LABEL_PREFIX;
    use crate::operation::effect::KeepData;

    fn master(number: u8) -> (String, Peer) {
        let peer = Peer {
            labels: BTreeMap::from([(format!("{ROLE_LABEL_PREFIX}master"), String::new())]),
            control_plane_ip: Some([192, 0, 2, number].into()),
            api_server: true,
            ..Peer::default()
        };
        (format!("master-{number}"), peer)
    }

    #[test]
    fn a_machine_that_its_own_node_reports_is_not_that_of_another_that_reports_it_too() {
        let goal = crate::operation::tests::goal([Role::Node]);
        let facts = Facts { hostname: goal.name.as_str().to_owned(), ..Facts::examples()[0].clone() };
        let node = |machine_id: &str| NodeView { machine_id: machine_id.to_owned(), ..NodeView::default() };
        let peer = Peer { machine_id: facts.machine_id.clone(), ..Peer::default() };
        let peers = BTreeMap::from([("other".to_owned(), peer)]);
        let check = |facts: &Facts, node: Option<NodeView>| {
            of_another(&goal, (facts, &Survey::default()), node.as_ref(), peers.iter())
        };
        let refused = [RemovalRefusal::HostOf("other".to_owned())];
        assert_eq!(check(&facts, Some(node(&facts.machine_id))), []);
        assert_eq!(check(&facts, Some(node("another"))), refused);
        assert_eq!(check(&facts, Some(node(""))), refused);
        assert_eq!(check(&facts, None), refused);
        // Two clones, and a Node whose address leads to the other one.
        let clone = Facts { hostname: "other".to_owned(), ..facts.clone() };
        assert_eq!(check(&clone, Some(node(&facts.machine_id))), refused);
        let unknown = Facts { machine_id: String::new(), ..facts };
        assert_eq!(check(&unknown, Some(node(""))), []);
    }

    #[test]
    fn what_the_cluster_cannot_lose_stays() {
        let (ready, gone) = (NodeView { ready: true, ..NodeView::default() }, NodeView::default());
        let none = BTreeMap::new();
        let two = BTreeMap::from([master(2), master(3)]);
        let waiting = BTreeMap::from([("master-2".to_owned(), Peer { api_server: false, ..master(2).1 })]);
        let lone = |removed| RemovalRefusal::LastMaster { masters: removed, removed };
        let check =
            |roles: &[Role], offline, node: &NodeView, peers: &BTreeMap<String, Peer>, together: &[&str]| {
                let goal = RemoveGoal {
                    node: crate::operation::tests::goal(roles.iter().copied()),
                    offline,
                    force: false,
                    kubelet_stopped: false,
                    dedicated: false,
                    keep_data: KeepData(false),
                    drain_limit: Duration::ZERO,
                    together: together.iter().map(|&name| name.to_owned()).collect::<BTreeSet<_>>(),
                };
                refusals(&goal, node, peers.iter())
            };
        assert_eq!(check(&[Role::Node], false, &ready, &none, &[]), []);
        assert_eq!(check(&[Role::Node], true, &ready, &none, &[]), [RemovalRefusal::Ready]);
        assert_eq!(check(&[Role::Node], true, &gone, &none, &[]), []);
        assert_eq!(check(&[Role::Master], false, &ready, &two, &[]), []);
        assert_eq!(check(&[Role::Master], false, &ready, &two, &["master-2"]), []);
        assert_eq!(check(&[Role::Master], false, &ready, &two, &["master-2", "master-3"]), [lone(2)]);
        assert_eq!(check(&[Role::Master], false, &ready, &waiting, &[]), [lone(0)]);
        let first = check(&[Role::Bootstrap, Role::Master], false, &ready, &none, &[]);
        assert_eq!(first, [RemovalRefusal::Bootstrap, lone(0)]);
        assert_eq!(lone(0).to_string(), "it has the last API server");
        assert_eq!(lone(1).to_string(), "it has the last API server: the only other one is removed too");
        assert!(lone(2).to_string().contains("of the 2 other masters, 2 are removed too"));
    }

    #[test]
    fn one_command_does_not_remove_every_voter() {
        let members = || membership(vec![leading(voter(1, "a")), voter(2, "b"), down(voter(3, "c"))]);
        let sole = membership(vec![leading(voter(1, "a")), learner(2, "b")]);
        for (name, together, observed, expected) in [
            ("a", vec!["b", "c"], members(), Some(RemovalRefusal::EveryVoter(3))),
            ("c", vec!["a", "b", "worker"], members(), Some(RemovalRefusal::EveryVoter(3))),
            ("a", vec!["b"], members(), None),
            ("worker", vec!["a", "b", "c"], members(), None),
            ("a", vec!["b"], sole.clone(), None),
            ("b", vec!["a"], sole, None),
        ] {
            let leaving = LeavingMember { name: name.to_owned(), peer_url: None };
            let together = together.into_iter().map(str::to_owned).collect();
            assert_eq!(every_voter(&leaving, &together, &observed), expected, "{name} {together:?}");
        }
        let refusal = RemovalRefusal::EveryVoter(3);
        assert_eq!(refusal.to_string(), "no voter of etcd would be left: this command removes all 3");
        assert!(refusal.hint().contains("role etcd"));
    }
}
