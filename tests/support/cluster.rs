//! Hosts, the API's objects and etcd together, and what happens by itself while time passes.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;

use metalform::kube_api::eviction::DrainPod;
use metalform::kube_api::pod_name::PodName;
use metalform::kube_api::pods::ExpectedPod;
use metalform::model::api_contract::{ADDRESSES, API_SERVER, CONTROL_PLANE_IP, SSH_HOST, WORKLOAD_PLANE_IP};
use metalform::model::node::{NodeManifest, NodeMetadata, NodeSpec};
use metalform::model::role::Role;
use metalform::operation::goal::client_url;
use metalform::operation::observed::node::{NodeView, Peer, Reachability};
use metalform::operation::observed::report::ContainerReport;
use tokio::time::Instant;

use super::etcd::{Etcd, Link, SimulatedMember};
use super::host::{
    APISERVER, APISERVER_CONFIGURATION, CONTROLLER_MANAGER, ETCD, ETCD_CONFIGURATION, Host, KUBELET, MEMBER,
    NETWORK, PROXY, TOKEN, address, nodes_of,
};
use super::lease::Lease;

/// How long anything takes that starts.
const START: Duration = Duration::from_millis(400);

/// A pod for the proof of reachability.
pub enum ReachPod {
    Since(Instant),
    Ended,
}

/// A pod of a user.
#[derive(Clone)]
pub struct UserPod {
    pub node: String,
    /// Whether a controller creates another one elsewhere.
    pub managed: bool,
    /// Whether its budget forbids its eviction.
    pub kept: bool,
    /// Since when it is being deleted.
    pub leaving: Option<Instant>,
}

#[derive(Default)]
pub struct Cluster {
    pub hosts: BTreeMap<String, Host>,
    pub nodes: BTreeMap<String, NodeView>,
    pub etcd: Etcd,
    pub tokens: BTreeMap<String, Instant>,
    pub lease: Option<Lease>,
    pub trust: bool,
    /// The mark of a cluster that has yet to begin.
    pub new_cluster: bool,
    pub images: bool,
    pub objects: bool,
    /// By name, of one namespace.
    pub pods: BTreeMap<String, UserPod>,
    pub reach_pods: BTreeMap<String, ReachPod>,
    /// Machines on which a pod has run.
    pub bridges: BTreeSet<String>,
    /// How often the operator has changed what etcd and the API servers run with.
    pub configuration: u32,
    /// The change with which no API server starts.
    pub broken: Option<u32>,
    /// The API does not answer before.
    pub away_until: Option<Instant>,
    /// How long the API is away after each change of etcd's members.
    pub away_after_change: Duration,
    /// What must never happen, and did.
    pub violations: Vec<String>,
    /// When something last happened to a machine.
    pub disturbed: Option<Instant>,
    seen_without_network: BTreeMap<String, Instant>,
    complaints: BTreeMap<String, &'static str>,
}

impl Cluster {
    /// Tokens of every run for this node.
    pub fn tokens_of(&self, name: &str) -> Vec<String> {
        let ours = format!("token of {name} in ");
        self.tokens.keys().filter(|token| token.starts_with(&ours)).cloned().collect()
    }

    pub fn add_host(&mut self, name: &str, roles: BTreeSet<Role>) {
        let number = self.hosts.len() + 1;
        if !roles.contains(&Role::Bootstrap) {
            self.nodes.insert(name.to_owned(), NodeView::default());
        }
        self.hosts.insert(name.to_owned(), Host::new(name, roles, number));
    }

    pub fn host(&mut self, name: &str) -> &mut Host {
        self.hosts.get_mut(name).unwrap_or_else(|| panic!("there is no host {name}"))
    }

    /// Another machine takes the place of a host, and may.
    pub fn reinstall(&mut self, name: &str) {
        let host = self.host(name);
        host.reinstall();
        host.replace_machine = true;
        if let Some(node) = self.nodes.get_mut(name) {
            node.ready = false;
        }
    }

    /// Everything that happens by itself.
    pub fn pass(&mut self, now: Instant) {
        self.run_etcd(now);
        self.etcd.copy(now);
        self.violations.append(&mut self.etcd.violations);
        // The kubelet of its node confirms its end.
        let hosts = &self.hosts;
        let confirms = |pod: &UserPod| hosts[&pod.node].is_connected() && hosts[&pod.node].runs(KUBELET);
        let ended = |pod: &UserPod| pod.leaving.is_some_and(|since| now >= since + START);
        self.pods.retain(|_, pod| !(ended(pod) && confirms(pod)));
        // The controller manager deletes the pods of a Node that is gone.
        self.pods.retain(|_, pod| self.nodes.contains_key(&pod.node));
        self.reach_pods.retain(|name, _| self.nodes.contains_key(name));
        let up = self.api(now).is_ok();
        if up {
            self.allocate_networks(now);
            self.run_kubelets(now);
        }
        for (name, node) in &mut self.nodes {
            node.ready &= self.hosts[name].is_connected() || !up;
        }
        let writable = up && self.etcd.full.is_none();
        if let Some(lease) = &mut self.lease {
            lease.pass(now, writable);
            if lease.is_expired(now) && !lease.has_keeper() {
                self.lease = None;
            }
        }
    }

    /// Whether metalform, on the first of the hosts, reaches another at all.
    pub fn is_near(&self, name: &str) -> bool {
        let host = &self.hosts[name];
        let first = self.hosts.values().find(|host| host.number == 1);
        host.on && (host.number == 1 || !host.cut && first.is_none_or(|first| !first.cut))
    }

    /// Whether SSH reaches it.
    pub fn reaches(&self, name: &str) -> bool {
        self.hosts[name].reached && self.is_near(name)
    }

    /// The data of a new cluster is created on this host, unless there is data.
    pub fn begin_etcd(&mut self, name: &str, peer_url: &str, now: Instant) {
        let host = self.hosts.get_mut(name).unwrap();
        if host.etcd_data.is_none() {
            host.gain_data(self.etcd.begin(name, peer_url), now);
        }
    }

    fn run_etcd(&mut self, now: Instant) {
        let near: Vec<bool> = self.hosts.keys().map(|name| self.is_near(name)).collect();
        for ((name, host), answers) in self.hosts.iter_mut().zip(near) {
            let url = format!("https://{}:2380", address(host.number));
            if let Some(member) = self.etcd.members.iter_mut().find(|member| member.peer_url == url) {
                let side = if host.cut || host.peers_cut { host.number } else { 0 };
                member.link = Link { side, answers, lags: host.lags, speed: host.speed };
            }
            let running = self.etcd.members.iter().any(|member| member.peer_url == url && member.running);
            let wanted = host.starts_etcd() && host.etcd_works && !host.etcd_crashes;
            // The kubelet tries again until the directory is there.
            let settled = [ETCD, MEMBER].map(|thing| host.since(thing));
            let settled = settled.iter().all(|since| since.is_some_and(|since| now >= since + START));
            // The kubelet ends a static pod whose manifest has changed.
            if running && !(wanted && settled) {
                self.etcd
                    .members
                    .iter_mut()
                    .filter(|one| one.peer_url == url)
                    .for_each(|one| one.running = false);
            }
            if wanted && !running && settled {
                match self.etcd.start(name, &url, &host.things[ETCD], &mut host.etcd_data) {
                    Ok(()) => self.complaints.remove(name),
                    Err(complaint) => self.complaints.insert(name.clone(), complaint),
                };
            }
        }
        if self.etcd.forgot {
            self.violations.push("a member started again without its data".to_owned());
        }
        if self.etcd.begun > 1 {
            self.violations.push("a second etcd cluster was begun".to_owned());
        }
        if self.etcd.has_quorum() && self.former_quorum() {
            self.violations.push("two etcd clusters have a quorum".to_owned());
        }
    }

    /// Whether members that a recovery has left behind agree with each other.
    fn former_quorum(&self) -> bool {
        let starts =
            |host: &&Host| host.is_connected() && host.starts_etcd() && host.etcd_works && !host.etcd_crashes;
        let side = |host: &Host| if host.peers_cut { host.number } else { 0 };
        let running = self.hosts.values().filter(starts);
        let running: Vec<(usize, u64)> =
            running.filter_map(|host| Some((side(host), host.etcd_data?))).collect();
        self.etcd.former_quorum(&running)
    }

    /// Whether an API server answers.
    pub fn api(&self, now: Instant) -> Result<(), String> {
        if self.away_until.is_some_and(|until| now < until) {
            return Err("connection refused".to_owned());
        }
        if self.hosts.iter().any(|(name, host)| self.is_near(name) && self.serves(host, now)) {
            Ok(())
        } else {
            Err("no API server".to_owned())
        }
    }

    fn serves(&self, host: &Host, now: Instant) -> bool {
        let settled = host.since(APISERVER).is_some_and(|since| now >= since + START);
        let endpoints = host.things.get(APISERVER).map(String::as_str).unwrap_or_default();
        let lives = |endpoint: &str| {
            let url = endpoint.replace(":2379", ":2380");
            let here = url.ends_with(&format!("{}:2380", address(host.number)));
            let leads = |member: &SimulatedMember| self.etcd.takes_part(member) && !member.learner;
            let found = self.etcd.members.iter().find(|member| member.peer_url == url);
            found.is_some_and(|member| leads(member) && (here || !host.cut && member.link.answers))
        };
        let starts = self.broken.is_none_or(|change| {
            let version = host.things.get(APISERVER_CONFIGURATION);
            version.is_none_or(|version| !version.ends_with(&format!("-{change}")))
        });
        host.runs(APISERVER) && starts && settled && self.etcd.is_led() && endpoints.split(' ').any(lives)
    }

    fn allocate_networks(&mut self, now: Instant) {
        if !self.hosts.values().any(|host| host.runs(CONTROLLER_MANAGER)) {
            return;
        }
        for (name, node) in self.nodes.iter_mut().filter(|(_, node)| node.pod_cidr.is_none()) {
            let seen = *self.seen_without_network.entry(name.clone()).or_insert(now);
            if now >= seen + START {
                node.pod_cidr = Some(format!("10.233.{}.0/24", self.hosts[name].number));
            }
        }
    }

    fn run_kubelets(&mut self, now: Instant) {
        for (name, host) in &mut self.hosts {
            let knows_an_api_server = host.things.get(PROXY).is_some_and(|masters| !masters.is_empty());
            if !host.runs(KUBELET) || !host.is_connected() || !knows_an_api_server {
                continue;
            }
            let token = host.things.get(TOKEN).and_then(|token| self.tokens.get(token));
            if !host.joined && token.is_some_and(|made| now >= *made + START) {
                host.joined = true;
            }
            let Some(node) = self.nodes.get_mut(name).filter(|_| host.joined) else { continue };
            let own = address(host.number);
            if node.machine_id != host.facts.machine_id {
                // It registers, and requests its serving certificate for the addresses of the status.
                let annotated = [CONTROL_PLANE_IP, ADDRESSES].iter().all(|key| {
                    node.annotations.get(*key).is_some_and(|value| value.starts_with(&own.to_string()))
                });
                // It keeps the certificate that it has where its Node is created again.
                if !host.registered && (!annotated || node.internal_ip() != Some(own)) {
                    self.violations
                        .push(format!("the kubelet of {name} registered before its addresses were recorded"));
                }
                host.registered = true;
                node.machine_id.clone_from(&host.facts.machine_id);
            }
            node.ready = host.things.get(NETWORK).is_some_and(|network| !network.is_empty());
            node.ready_message = "cni plugin not initialized".to_owned();
        }
    }

    /// The Node as an operator and metalform have written it.
    pub fn spec(&self, name: &str) -> NodeSpec {
        let label = |role: &Role| (role.label(), String::new());
        let mut annotations = self.nodes[name].annotations.clone();
        annotations.insert(SSH_HOST.to_owned(), "192.0.2.11".to_owned());
        let labels = self.hosts[name].roles.iter().map(label).collect();
        let metadata = NodeMetadata { name: Some(name.to_owned()), labels, annotations };
        NodeSpec::parse(&NodeManifest { metadata, ..NodeManifest::default() }).unwrap()
    }

    /// The client URLs of the etcd nodes that were deployed, which the first host has recorded.
    pub fn recorded_members(&self) -> Vec<String> {
        let etcd = self.nodes.iter().filter(|(name, _)| self.hosts[*name].roles.contains(&Role::Etcd));
        etcd.filter_map(|(_, node)| node.recorded_address()).map(client_url).collect()
    }

    pub fn peers(&self, of: &str) -> BTreeMap<String, Peer> {
        let others = self.nodes.iter().filter(|(name, _)| *name != of);
        let recorded = |node: &NodeView, key: &str| -> Option<IpAddr> {
            node.annotations.get(key).and_then(|ip| ip.parse().ok())
        };
        others
            .map(|(name, node)| {
                let roles = self.hosts.get(name).map(|host| host.roles.clone()).unwrap_or_default();
                let label = |role: &Role| (role.label(), String::new());
                let peer = Peer {
                    labels: roles.iter().map(label).collect(),
                    machine_id: node.machine_id.clone(),
                    workload_plane_ip: recorded(node, WORKLOAD_PLANE_IP),
                    control_plane_ip: recorded(node, CONTROL_PLANE_IP),
                    api_server: node.annotations.contains_key(API_SERVER),
                    ready: node.ready,
                    ..Peer::default()
                };
                (name.clone(), peer)
            })
            .collect()
    }

    /// A pod of a user starts.
    pub fn run_pod(&mut self, pod: &str, node: &str, managed: bool) {
        let pod_of = UserPod { node: node.to_owned(), managed, kept: false, leaving: None };
        self.pods.insert(pod.to_owned(), pod_of);
    }

    /// The pods that a removal must evict.
    pub fn pods_to_drain(&self, of: &str) -> Vec<DrainPod> {
        let here = self.pods.iter().filter(|(_, pod)| pod.node == of);
        here.map(|(name, pod)| DrainPod {
            name: PodName { namespace: "default".to_owned(), name: name.clone() },
            terminating: pod.leaving.is_some(),
            managed: pod.managed,
            blocked: pod.kept.then(|| "its budget forbids it".to_owned()),
        })
        .collect()
    }

    /// Why the API server of a node is not ready.
    pub fn api_server(&self, of: &str, now: Instant) -> Option<String> {
        let ready = self.is_near(of) && self.serves(&self.hosts[of], now);
        (!ready).then(|| "not ready".to_owned())
    }

    /// It has been withdrawn by then.
    pub fn check_stopping(&mut self, name: &str) {
        if self.nodes.get(name).is_some_and(|node| node.annotations.contains_key(API_SERVER)) {
            self.violations.push(format!("the API server of {name} stops while it is recorded as ready"));
        }
    }

    /// Voters and API servers that serve restart under the lease. `changes` are ids of things.
    pub fn check_restart(&mut self, name: &str, changes: &[String], holds_lease: bool) {
        let changed = |id: &str| changes.iter().any(|one| one == id);
        let votes = self.etcd.voters().any(|voter| voter.name == name && voter.running);
        let serves = self.nodes.get(name).is_some_and(|node| node.annotations.contains_key(API_SERVER));
        let restarts = [
            (changed(ETCD_CONFIGURATION) && votes, "its member"),
            (changed(APISERVER_CONFIGURATION) && serves, "its API server"),
        ];
        for (_, what) in restarts.into_iter().filter(|(restarts, _)| *restarts && !holds_lease) {
            self.violations.push(format!("{name} restarted {what} without the lease"));
        }
    }

    /// The static pods of a node that are not ready, and why.
    pub fn missing_pods(&self, of: &str, expected: &[ExpectedPod], now: Instant) -> Vec<String> {
        let host = &self.hosts[of];
        let mut missing = Vec::new();
        for pod in expected {
            // Others are placed by the API, once the node is Ready.
            let ExpectedPod::Static(name) = pod else { continue };
            let id = format!("static_pod:{name}");
            let fine = match id.as_str() {
                ETCD => self.etcd.members.iter().any(|member| member.name == of && member.running),
                APISERVER => self.serves(host, now),
                _ => host.on && host.since(&id).is_some_and(|since| now >= since + START),
            };
            let complaint = self.complaints.get(of).copied().filter(|_| id == ETCD);
            // A kubelet lists its static pods where there is a Node.
            if !fine || !self.nodes.contains_key(of) {
                missing.push(format!("{name}: {}", complaint.unwrap_or("not ready")));
            }
        }
        missing
    }

    /// The container of a static pod, as its host reports it.
    pub fn container(&self, of: &str, name: &str, now: Instant) -> ContainerReport {
        let host = &self.hosts[of];
        let id = format!("static_pod:{name}");
        let settled = host.since(&id).is_some_and(|since| now >= since + START);
        let running = match id.as_str() {
            ETCD => self.etcd.members.iter().any(|member| member.name == of && member.running),
            _ => settled,
        };
        let files = self.etcd.files(of).filter(|_| running && id == ETCD);
        ContainerReport { files, ..host.container(name, running) }
    }

    pub fn reach(&self, name: &str, now: Instant) -> Reachability {
        match self.reach_pods.get(name) {
            None => Reachability::Ended("the pod is gone".to_owned()),
            Some(ReachPod::Ended) => Reachability::Ended("the pod has ended".to_owned()),
            Some(ReachPod::Since(since)) if now >= *since + START && self.is_near(name) => {
                Reachability::Reached
            }
            Some(ReachPod::Since(_)) => Reachability::NotYet("the pod has no address yet".to_owned()),
        }
    }

    /// Whether the bridge of the node's pods answers, and no run that was killed has left its pod.
    pub fn pod_gateway(&self, name: &str) -> bool {
        self.is_near(name)
            && !self.reach_pods.contains_key(name)
            && self.bridges.contains(&self.hosts[name].facts.machine_id)
    }

    /// Whoever renewed it is gone.
    pub fn abandon_lease(&mut self, holder: &str) {
        if let Some(lease) = self.lease.as_mut().filter(|lease| lease.holder == holder) {
            lease.abandon();
        }
    }

    /// For transcripts.
    pub fn show(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for member in &self.etcd.members {
            let name = if member.name.is_empty() { &member.peer_url } else { &member.name };
            let sort = if member.learner { "learner" } else { "voter" };
            let health = if member.running { "runs" } else { "does not run" };
            lines.push(format!("etcd {name}: {sort}, {health}"));
        }
        match &self.lease {
            None => lines.push("lease: free".to_owned()),
            Some(lease) if lease.has_keeper() => lines.push(format!("lease: held by {}", lease.holder)),
            Some(lease) => lines.push(format!("lease: abandoned by {}", lease.holder)),
        }
        for (name, host) in self.hosts.iter().filter(|(_, host)| !host.things.is_empty()) {
            let proxy =
                host.things.get(PROXY).map_or_else(|| "-".to_owned(), |proxy| nodes_of(proxy).join(" "));
            let node = self.nodes.get(name);
            let state = match node {
                None => "no Node",
                Some(node) if node.ready => "Ready",
                Some(_) => "not Ready",
            };
            let cordoned = if node.is_some_and(|node| node.unschedulable) { ", cordoned" } else { "" };
            lines.push(format!("{name}: {state}{cordoned}, proxy to {proxy}"));
        }
        lines
    }
}
