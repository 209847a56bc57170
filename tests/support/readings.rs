//! What a run has observed, with what was so in truth at that time: by this, what the run then does is judged.

use std::collections::{BTreeMap, BTreeSet};

use metalform::etcd::member::Membership;
use tokio::time::Instant;

use super::cluster::Cluster;
use super::etcd::SimulatedMember;
use super::host::{Host, PROXY, nodes_of};

#[derive(Default)]
pub struct Readings {
    /// The latest last.
    bases: Vec<Basis>,
    /// The deployed nodes besides its own.
    deployed: BTreeSet<String>,
    /// Those of them whose API server is recorded as ready.
    recorded_servers: BTreeSet<String>,
    servers: Option<ServersReading>,
    proxies: BTreeMap<String, ProxyReading>,
}

/// What a list of members was like in truth when it was observed.
pub struct Basis {
    pub seen: Membership,
    pub at: Instant,
    pub voters: Vec<u64>,
    /// Voters that did not answer, or had no leader.
    pub silent: Vec<u64>,
    pub learners: Vec<u64>,
    /// The member whose database was full.
    pub full: Option<u64>,
}

/// Whether an API server of other nodes was ready.
#[derive(Clone, Copy)]
pub struct ServersReading {
    pub at: Instant,
    pub any_ready: bool,
}

/// Whether the proxy of another node uses the API server of the run's own one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ProxyReading {
    Uses,
    /// If it uses it again, another run has made it so.
    Forgot,
    /// The node did not answer, or its proxy could not be written.
    Unknown,
}

impl Basis {
    pub fn new(seen: Membership, cluster: &Cluster, at: Instant) -> Self {
        let ids = |members: Vec<&SimulatedMember>| members.into_iter().map(|member| member.id).collect();
        let etcd = &cluster.etcd;
        Self {
            seen,
            at,
            voters: ids(etcd.voters().collect()),
            silent: ids(etcd.voters().filter(|voter| !etcd.is_healthy(voter)).collect()),
            learners: ids(etcd.members.iter().filter(|member| member.learner).collect()),
            full: etcd.full,
        }
    }

    /// The voters besides one with which something was wrong.
    pub fn unwell_besides(&self, id: Option<u64>) -> Vec<u64> {
        let unwell = |voter: &&u64| self.silent.contains(voter) || self.full == Some(**voter);
        self.voters.iter().filter(|voter| Some(**voter) != id).filter(unwell).copied().collect()
    }

    /// How many voters besides one were healthy. One whose database is full votes.
    pub fn healthy_besides(&self, id: u64) -> usize {
        self.voters.iter().filter(|voter| **voter != id && !self.silent.contains(voter)).count()
    }
}

impl Readings {
    pub fn take_members(&mut self, basis: Basis) {
        self.bases.push(basis);
    }

    pub fn take_nodes(&mut self, own: &str, cluster: &Cluster) {
        let peers = cluster.peers(own);
        let deployed =
            peers.iter().filter(|(_, peer)| peer.control_plane_ip.is_some() && !peer.machine_id.is_empty());
        self.deployed = deployed.map(|(name, _)| name.clone()).collect();
        let recorded = peers.iter().filter(|(_, peer)| peer.api_server_address().is_some());
        self.recorded_servers = recorded.map(|(name, _)| name.clone()).collect();
    }

    pub fn take_servers<'a>(
        &mut self,
        names: impl Iterator<Item = &'a String>,
        cluster: &Cluster,
        at: Instant,
    ) {
        let mut ready = names.map(|name| cluster.api_server(name, at).is_none());
        self.servers = Some(ServersReading { at, any_ready: ready.any(|ready| ready) });
    }

    /// The proxy of a node is about to be read or written: it may be that no answer comes.
    pub fn ask_proxy(&mut self, node: &str) {
        self.set_proxy(node, ProxyReading::Unknown);
    }

    /// `uses`: whether it uses the API server of the run's own node.
    pub fn take_proxy(&mut self, node: &str, uses: bool) {
        self.set_proxy(node, if uses { ProxyReading::Uses } else { ProxyReading::Forgot });
    }

    fn set_proxy(&mut self, node: &str, reading: ProxyReading) {
        let before = self.proxies.entry(node.to_owned()).or_insert(reading);
        if *before != ProxyReading::Forgot {
            *before = reading;
        }
    }

    /// What was so when this list was observed.
    pub fn basis(&self, seen: &Membership) -> Option<&Basis> {
        self.bases.iter().rev().find(|basis| basis.seen == *seen)
    }

    pub fn basis_before(&self, at: Instant) -> Option<&Basis> {
        self.bases.iter().rev().find(|basis| basis.at < at)
    }

    pub fn last_basis(&self) -> Option<&Basis> {
        self.bases.last()
    }

    /// The API servers of other nodes, where any was recorded.
    pub fn other_servers(&self) -> Option<Option<ServersReading>> {
        (!self.recorded_servers.is_empty()).then_some(self.servers)
    }

    /// The nodes whose proxies the run has let use the API server of its own node, although it could change them.
    pub fn left_using(&self, own: &str, cluster: &Cluster) -> Vec<String> {
        let left = |node: &&String| {
            let reading = self.proxies.get(*node).copied();
            let may_use = reading.is_none_or(|reading| reading == ProxyReading::Uses);
            may_use && cluster.hosts.get(*node).is_some_and(|host| uses(host, own))
        };
        self.deployed.iter().filter(left).cloned().collect()
    }
}

/// Whether the proxy of a host uses the API server of a node.
pub fn uses(host: &Host, api_server: &str) -> bool {
    host.things.get(PROXY).is_some_and(|proxy| nodes_of(proxy).contains(&api_server))
}
