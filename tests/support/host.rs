//! A simulated machine: things with ids and contents, and what runs because they are there.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use metalform::engine::host::Looked;
use metalform::engine::{Desired, Item};
use metalform::model::cluster::Cluster;
use metalform::model::facts::{Cidr, Facts};
use metalform::model::role::Role;
use metalform::model::values::Values;
use metalform::operation::foreseen_changes::ForeseenChanges;
use metalform::operation::host_access::HostPlan;
use metalform::operation::host_reset::inventory::HostDifference;
use metalform::operation::host_reset::section::Section;
use metalform::operation::layer::Layer;
use metalform::operation::observed::report::{ContainerReport, UnitReport};
use metalform::operation::resource_change::ResourceChange;
use metalform::operation::survey::Survey;
use metalform::resource::contract::change::{Change, Difference, Verdict};
use metalform::resource::contract::probe::Observed;
use metalform::state::{Library, Stage, StateName, Tree};
use tokio::time::Instant;

use super::given;

/// Its content is `--initial-cluster`.
pub const ETCD: &str = "static_pod:etcd";
/// The directory without which the static pod of etcd does not start.
pub const MEMBER: &str = "directory:/var/lib/etcd/member";
pub const APISERVER: &str = "static_pod:kube-apiserver";
/// What a pod runs with, once an operator has changed it.
pub const ETCD_CONFIGURATION: &str = "configuration:etcd";
pub const APISERVER_CONFIGURATION: &str = "configuration:kube-apiserver";
pub const CONTROLLER_MANAGER: &str = "static_pod:kube-controller-manager";
pub const KUBELET: &str = "service:kubelet";
pub const TOKEN: &str = "template:bootstrap-kubelet.conf";
pub const PROXY: &str = "template:haproxy.cfg";
pub const MIRRORS: &str = "host_entry:mirror.metalform.internal";
pub const NETWORK: &str = "template:bird.conf";
const AUTHORITY: &str = "file:ca.crt";
/// Of a master, of an etcd member, and of a mirror.
const ROLE_FILES: [&str; 3] = ["state:control-plane-files", "state:etcd", "state:mirror"];

/// A gigabit, in bytes a second.
pub const SPEED: u64 = 100 << 20;

/// The address on the control plane.
pub fn address(number: usize) -> IpAddr {
    format!("192.0.2.{}", 10 + number).parse().unwrap()
}

/// The interfaces of a machine: on the control plane and on the workload plane.
pub fn interfaces(number: usize) -> [(String, Vec<Cidr>); 2] {
    let workload: IpAddr = format!("198.51.100.{}", 10 + number).parse().unwrap();
    [("eth0", address(number)), ("eth1", workload)]
        .map(|(interface, address)| (interface.to_owned(), vec![Cidr { address, prefix: 24 }]))
}

pub struct Host {
    pub roles: BTreeSet<Role>,
    pub number: usize,
    pub facts: Facts,
    /// What is on it that is not ours.
    pub found: Survey,
    pub on: bool,
    /// Whether SSH reaches it.
    pub reached: bool,
    /// How many times as long everything takes that is applied to it.
    pub slowness: u32,
    /// Whether nothing can be written to it.
    pub full: bool,
    /// Whether no other host reaches it.
    pub cut: bool,
    /// Whether its etcd member does not reach any other.
    pub peers_cut: bool,
    /// Whether its disk is too slow for etcd's entries.
    pub lags: bool,
    /// What it receives in a second, in bytes.
    pub speed: u64,
    /// Whether etcd starts on it at all.
    pub etcd_works: bool,
    /// Whether it exits at once whenever it is started.
    pub etcd_crashes: bool,
    /// Of which member there is data.
    pub etcd_data: Option<u64>,
    /// Of which members there is data that was set aside.
    pub aside: Vec<u64>,
    /// Of which members it had data that is lost.
    pub destroyed: Vec<u64>,
    /// The member that a recovery has made the only one, and not put in its place yet.
    pub sole: Option<u64>,
    /// Whether it never comes back.
    pub gone: bool,
    /// Whether its lost member may be replaced.
    pub replace_member: bool,
    /// Whether it may take the place of another machine.
    pub replace_machine: bool,
    /// What a saved plan foresees on it.
    pub foreseen: Option<Arc<ForeseenChanges>>,
    /// Whether the kubelet has its certificate.
    pub joined: bool,
    /// Whether its kubelet has registered, and has its serving certificate.
    pub registered: bool,
    /// Whether there is a record of what was on it before.
    pub recorded: bool,
    pub things: BTreeMap<String, String>,
    since: BTreeMap<String, Instant>,
    states: Vec<(Stage, StateName)>,
}

/// What a layer results in, as it was planned: ids, and contents before and after.
struct Wanted(Vec<(String, Option<String>, Option<String>)>);

impl Desired for Wanted {
    fn items(&self) -> Vec<Item> {
        self.0.iter().map(|(id, _, _)| Item { id: id.clone(), probes: Vec::new() }).collect()
    }

    fn verdicts(&self, _observed: &Observed) -> Vec<(String, Verdict)> {
        let verdict = |before: &Option<String>, after: &Option<String>| {
            if before == after {
                return Verdict::NoChange { reason: "it is so".to_owned() };
            }
            let (before, after) = (before.clone(), after.clone());
            let difference = Difference::Field { name: "content".to_owned(), before, after };
            Verdict::Change(Change { differences: vec![difference], steps: Vec::new() })
        };
        self.0.iter().map(|(id, before, after)| (id.clone(), verdict(before, after))).collect()
    }
}

impl Host {
    pub fn new(name: &str, roles: BTreeSet<Role>, number: usize) -> Self {
        let mut facts = given::facts("debian-13-container");
        facts.hostname = name.to_owned();
        facts.machine_id = format!("machine-{number}");
        facts.addresses.extend(interfaces(number));
        let names: Vec<&str> = roles.iter().map(|role| role.as_str()).collect();
        let states = LIBRARY.with(|library| library.staged(&names).unwrap());
        Self {
            roles,
            number,
            facts,
            found: Survey { openssl: true, ..Survey::default() },
            on: true,
            reached: true,
            slowness: 1,
            full: false,
            cut: false,
            peers_cut: false,
            lags: false,
            speed: SPEED,
            etcd_works: true,
            etcd_crashes: false,
            etcd_data: None,
            aside: Vec::new(),
            destroyed: Vec::new(),
            sole: None,
            gone: false,
            replace_member: false,
            replace_machine: false,
            foreseen: None,
            joined: false,
            registered: false,
            recorded: false,
            things: BTreeMap::new(),
            since: BTreeMap::new(),
            states,
        }
    }

    /// Whether it is there for other hosts.
    pub fn is_connected(&self) -> bool {
        self.on && !self.cut
    }

    pub fn survey(&self) -> Survey {
        let authority = self.things.get(AUTHORITY).cloned();
        Survey {
            authority: authority.or_else(|| self.found.authority.clone()),
            joined: self.joined,
            etcd_flags: self
                .things
                .get(ETCD)
                .map(|cluster| BTreeMap::from([("initial-cluster".to_owned(), cluster.clone())])),
            etcd_data: self.etcd_data.is_some(),
            master_files: self.things.contains_key(ROLE_FILES[0]),
            member_files: self.things.contains_key(ROLE_FILES[1]),
            mirror_files: self.things.contains_key(ROLE_FILES[2]),
            untouched: !self.recorded,
            control_plane: self.things.keys().any(|id| id.starts_with("static_pod:kube-")),
            ..self.found.clone()
        }
    }

    pub fn runs(&self, thing: &str) -> bool {
        self.on && self.things.contains_key(KUBELET) && self.things.contains_key(thing)
    }

    /// Whether the kubelet starts etcd.
    pub fn starts_etcd(&self) -> bool {
        self.runs(ETCD) && self.things.contains_key(MEMBER)
    }

    /// There is data of a member, and the directory that has it.
    pub fn gain_data(&mut self, member: u64, now: Instant) {
        self.etcd_data = Some(member);
        self.things.insert(MEMBER.to_owned(), String::new());
        self.since.insert(MEMBER.to_owned(), now);
    }

    /// The member's data and its directory are gone.
    pub fn lose_data(&mut self) -> Option<u64> {
        self.things.remove(MEMBER);
        let data = self.etcd_data.take();
        self.destroyed.extend(data);
        data
    }

    /// The member's data is moved away.
    pub fn set_aside(&mut self) -> Option<u64> {
        self.things.remove(MEMBER);
        let data = self.etcd_data.take();
        self.aside.extend(data);
        data
    }

    /// A script ends the containers of these static pods; the kubelet starts those again that still have a manifest.
    pub fn end_pods(&mut self, ids: &[&str], now: Instant) {
        self.since.extend(ids.iter().map(|id| ((*id).to_owned(), now)));
    }

    /// Nothing of Kubernetes runs on it any more.
    pub fn stop_node(&mut self) {
        self.lose_data();
        (self.joined, self.registered) = (false, false);
        self.things.retain(|id, _| !id.starts_with("static_pod:") && id != KUBELET && id != TOKEN);
    }

    /// What is on it that an operation has put there.
    pub fn left(&self) -> Vec<HostDifference> {
        let left = |id: &String| HostDifference {
            section: Section::File,
            name: id.clone(),
            before: None,
            now: Some(String::new()),
            ours: true,
        };
        self.things.keys().map(left).collect()
    }

    /// An operator changes its labels.
    pub fn change_roles(&mut self, roles: BTreeSet<Role>) {
        let names: Vec<&str> = roles.iter().map(|role| role.as_str()).collect();
        self.states = LIBRARY.with(|library| library.staged(&names).unwrap());
        self.roles = roles;
    }

    /// Another machine has its place.
    pub fn reinstall(&mut self) {
        self.lose_data();
        self.destroyed.append(&mut self.aside);
        self.sole = None;
        self.things.clear();
        (self.joined, self.registered, self.recorded) = (false, false, false);
        self.facts.machine_id.push_str(" again");
    }

    /// It has the addresses of this number, which no other host has.
    pub fn move_to(&mut self, number: usize) {
        self.number = number;
        self.facts.addresses.extend(interfaces(number));
    }

    /// Since when a thing is as it is.
    pub fn since(&self, thing: &str) -> Option<Instant> {
        self.since.get(thing).copied()
    }

    pub fn plan(&self, layer: &Layer, values: &Values<'_, Cluster>) -> HostPlan {
        let wanted = match layer {
            Layer::Removed => self.things.keys().map(|id| (id.clone(), None)).collect(),
            Layer::OtherRoles => {
                let other = |id: &&&str| !self.states.iter().any(|(_, state)| id.ends_with(state.as_str()));
                ROLE_FILES.iter().filter(other).map(|id| ((*id).to_owned(), None)).collect()
            }
            _ => self.wanted(layer, values),
        };
        let before = |id: &str| self.things.get(id).cloned();
        self.plan_of(wanted.into_iter().map(|(id, after)| (id.clone(), before(&id), after)).collect())
    }

    /// The plan for these things alone.
    pub fn plan_things(&self, things: Vec<(&str, String)>) -> HostPlan {
        let before = |id: &str| self.things.get(id).cloned();
        self.plan_of(things.into_iter().map(|(id, after)| (id.to_owned(), before(id), Some(after))).collect())
    }

    fn plan_of(&self, wanted: Vec<(String, Option<String>, Option<String>)>) -> HostPlan {
        let facts = Some(self.facts.clone());
        HostPlan(Looked { desired: Arc::new(Wanted(wanted)), facts, observed: Observed::default() })
    }

    /// Carries out a plan, to the end or until `only` things were changed.
    pub fn apply(&mut self, plan: &HostPlan, only: Option<usize>, now: Instant) -> usize {
        let mut changed = 0;
        for ResourceChange { id, differences, .. } in plan.changes() {
            if only.is_some_and(|only| changed >= only) {
                break;
            }
            let after = differences.into_iter().find_map(|difference| match difference {
                Difference::Field { after, .. } => after,
                _ => None,
            });
            changed += 1;
            self.since.insert(id.clone(), now);
            if let Some(pod) = id.strip_prefix("configuration:") {
                self.since.insert(format!("static_pod:{pod}"), now);
            }
            match after {
                Some(content) => {
                    self.recorded = true;
                    self.things.insert(id, content)
                }
                None => self.things.remove(&id),
            };
        }
        changed
    }

    /// A unit as systemd reports it.
    pub fn unit(&self, name: &str) -> UnitReport {
        let active = name != "kubelet.service" || self.things.contains_key(KUBELET);
        let (active, sub) = if active { ("active", "running") } else { ("inactive", "dead") };
        UnitReport { active: active.to_owned(), sub: sub.to_owned(), ..UnitReport::default() }
    }

    /// The container of a static pod.
    pub fn container(&self, name: &str, running: bool) -> ContainerReport {
        if !self.runs(&format!("static_pod:{name}")) || name == "etcd" && !self.starts_etcd() {
            return ContainerReport::default();
        }
        let crashes = name == "etcd" && self.etcd_crashes;
        ContainerReport {
            running: Some(running),
            exits: if crashes { 3 } else { u32::from(!running) },
            last_line: if crashes { "unknown flag: --bogus".to_owned() } else { String::new() },
            ..ContainerReport::default()
        }
    }

    fn wanted(&self, layer: &Layer, values: &Values<'_, Cluster>) -> Vec<(String, Option<String>)> {
        let mut wanted: Vec<(String, Option<String>)> = Vec::new();
        for (id, content) in
            layer.states(&self.states).iter().flat_map(|state| things(state.as_str(), values))
        {
            if wanted.iter().all(|(other, _)| *other != id) {
                wanted.push((id, content));
            }
        }
        wanted
    }
}

/// The nodes whose API server a proxy uses, with their addresses, as in `templates/haproxy`.
pub fn api_servers(values: &Values<'_, Cluster>) -> String {
    let nodes = values.peers.values().chain([&values.node.node]);
    let servers: BTreeMap<&str, Option<IpAddr>> = nodes
        .filter(|node| node.api_server)
        .map(|node| (node.name.as_str(), node.control_plane_ip))
        .collect();
    let server = |(name, address): (&str, Option<IpAddr>)| {
        format!("{name}={}", address.map_or_else(String::new, |address| address.to_string()))
    };
    servers.into_iter().map(server).collect::<Vec<_>>().join(" ")
}

/// The nodes among these API servers.
pub fn nodes_of(api_servers: &str) -> Vec<&str> {
    let servers = api_servers.split_whitespace();
    servers.map(|server| server.split_once('=').map_or(server, |(name, _)| name)).collect()
}

/// Where packages and images are served.
pub fn mirrors(values: &Values<'_, Cluster>) -> String {
    let addresses = values.node.mirrors.iter().flatten();
    addresses.map(ToString::to_string).collect::<Vec<_>>().join(" ")
}

/// What a state results in, as far as anything here depends on it.
fn things(state: &str, values: &Values<'_, Cluster>) -> Vec<(String, Option<String>)> {
    let thing = |id: &str, content: &str| (id.to_owned(), Some(content.to_owned()));
    let node = &values.node;
    match state {
        "node-packages" => vec![thing(AUTHORITY, given::AUTHORITY)],
        "apiserver-proxy" => vec![thing(PROXY, &api_servers(values))],
        "mirrors" => vec![thing(MIRRORS, &mirrors(values))],
        "pod-network" => vec![thing(NETWORK, node.pod_cidr.as_deref().unwrap_or_default())],
        "kubelet" => {
            let token = node.join_token.as_ref().map(|token| thing(TOKEN, token));
            token.into_iter().chain([thing(KUBELET, "")]).collect()
        }
        "kubelet-joined" if node.join_token.is_none() => vec![(TOKEN.to_owned(), None)],
        "kubelet-joined" => Vec::new(),
        "etcd-member" => {
            let etcd = node.etcd.as_ref().unwrap();
            let directory = etcd.first_start.then(|| thing(MEMBER, ""));
            let configuration = configuration(ETCD_CONFIGURATION, values, "etcd");
            let member = thing(ETCD, &etcd.initial_cluster);
            directory.into_iter().chain([member]).chain(configuration).collect()
        }
        "kube-apiserver" => {
            let server = thing(APISERVER, &node.etcd.as_ref().unwrap().endpoints.join(" "));
            [server].into_iter().chain(configuration(APISERVER_CONFIGURATION, values, "kubernetes")).collect()
        }
        "kube-controller-manager" | "kube-scheduler" => vec![thing(&format!("static_pod:{state}"), "")],
        other => vec![thing(&format!("state:{other}"), "")],
    }
}

/// Nothing, as long as no operator has changed it: the versions are plain then.
fn configuration(
    id: &str,
    values: &Values<'_, Cluster>,
    component: &str,
) -> Option<(String, Option<String>)> {
    let version = &values.cluster.versions[component];
    version.contains('-').then(|| (id.to_owned(), Some(version.clone())))
}

thread_local! {
    static LIBRARY: Library = Library::read(&Tree::embedded()).unwrap();
}
