//! Nodes of every role on every type of host, and their compiled states.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use metalform::engine::Desired;
use metalform::engine::states::HostStates;
use metalform::etcd::member::{Health, Member, Membership};
use metalform::model::api_contract::{API_SERVER, SSH_HOST};
use metalform::model::cluster::{Cluster, Repository};
use metalform::model::facts::Facts;
use metalform::model::node::{NodeManifest, NodeMetadata, NodeSpec, NodeTaints, Taint};
use metalform::model::platform::PackageFormat;
use metalform::model::role::Role;
use metalform::operation::goal::NodeGoal;
use metalform::operation::inputs::NodeInputs;
use metalform::operation::layer::Layer;
use metalform::operation::observed::node::{NodeView, Peer};
use metalform::operation::values::{ClusterInputs, values};
use metalform::render::{Value, values_of};
use metalform::resource;
use metalform::state::{Compiled, Library, StateName, compile};

const FLAVOURS: [&str; 4] =
    ["debian-12-machine", "debian-13-container", "debian-13-machine", "rocky-9-machine"];

/// Roles, and the name of the combination in snapshots.
const NODES: [(&str, &[Role]); 7] = [
    ("bootstrap", &[Role::Bootstrap, Role::Master, Role::Etcd, Role::Infra]),
    ("master-and-etcd", &[Role::Master, Role::Etcd]),
    ("master-alone", &[Role::Master]),
    ("etcd-alone", &[Role::Etcd]),
    ("infra", &[Role::Infra]),
    ("infra-and-mirror", &[Role::Infra, Role::Mirror]),
    ("node", &[Role::Node]),
];

/// The layers of a node, in the order of its phases, and whether its kubelet has joined by then.
pub fn layers(first: bool) -> Vec<(Layer, bool)> {
    let begin = if first {
        vec![(Layer::Serving, false), (Layer::Registry, false), (Layer::First, false)]
    } else {
        Vec::new()
    };
    let initial_cluster = "node=https://192.0.2.11:2380".to_owned();
    let deploy = [
        (Layer::Base, false),
        (Layer::Joined, true),
        (Layer::Etcd, true),
        (Layer::EtcdMember { initial_cluster, first_start: true }, true),
        (Layer::ControlPlaneFiles, true),
        (Layer::ControlPlane, true),
        (Layer::Proxy, true),
    ];
    begin.into_iter().chain(deploy).collect()
}

/// As it is when all phases before have held: one other master, two voters.
fn inputs(goal: NodeGoal, facts: Facts, joined: bool) -> NodeInputs {
    let voter = |id: u64, name: &str, address: &str| Member {
        id,
        name: name.to_owned(),
        peer_urls: vec![format!("https://{address}:2380")],
        client_urls: vec![format!("https://{address}:2379")],
        is_learner: false,
        health: Health::Unknown { reason: "was not asked".to_owned() },
    };
    let other = Peer {
        labels: BTreeMap::from([("node-role.kubernetes.io/master".to_owned(), String::new())]),
        machine_id: "other".to_owned(),
        control_plane_ip: Some("192.0.2.12".parse().unwrap()),
        api_server: true,
        ..Peer::default()
    };
    let address = goal.address(&facts, None).unwrap_or("192.0.2.11".parse().unwrap());
    NodeInputs {
        goal,
        address,
        facts,
        joined,
        node: Some(NodeView {
            pod_cidr: Some("10.233.1.0/24".to_owned()),
            annotations: BTreeMap::from([(API_SERVER.to_owned(), "ready".to_owned())]),
            ..NodeView::default()
        }),
        peers: BTreeMap::from([("other".to_owned(), other)]),
        membership: Some(Membership {
            cluster_id: 1,
            members: vec![voter(1, "a", "192.0.2.13"), voter(2, "b", "192.0.2.14")],
            alarms: Vec::new(),
        }),
    }
}

/// The same repository for a host with dnf.
fn rpm_repository(of: &Repository) -> Repository {
    let uri = of.uri.replace("/apt", "/rpm/rocky-9-amd64");
    Repository { format: PackageFormat::Rpm, uri, suite: String::new(), ..of.clone() }
}

/// A node on a sort of host.
pub struct Node {
    pub flavour: &'static str,
    pub title: &'static str,
    pub roles: BTreeSet<Role>,
}

impl Node {
    pub fn all() -> Vec<Self> {
        FLAVOURS
            .iter()
            .flat_map(|flavour| {
                NODES.iter().map(move |(title, roles)| Self {
                    flavour,
                    title,
                    roles: roles.iter().copied().collect(),
                })
            })
            .collect()
    }

    pub fn values(&self, layer: &Layer, joined: bool) -> Value {
        self.values_after(|_| {}, layer, joined)
    }

    /// In a cluster of which something has changed.
    pub fn values_after(&self, change: fn(&mut Cluster), layer: &Layer, joined: bool) -> Value {
        let goal = crate::given::goal("node", &self.roles);
        let (facts, mut cluster) = (crate::given::facts(self.flavour), crate::cluster_values::cluster());
        change(&mut cluster);
        if facts.os.family == "redhat" {
            cluster.repository = rpm_repository(&cluster.repository);
        }
        let taint = Taint {
            key: "node-role.kubernetes.io/infra".to_owned(),
            value: String::new(),
            effect: "NoSchedule".to_owned(),
        };
        let annotations = [(SSH_HOST.to_owned(), "192.0.2.11".to_owned())].into();
        let metadata = NodeMetadata { name: Some("node".to_owned()), annotations, ..NodeMetadata::default() };
        let manifest = NodeManifest { metadata, spec: NodeTaints { taints: vec![taint], provider_id: None } };
        let spec = NodeSpec::parse(&manifest).unwrap();
        let given = ClusterInputs { cluster: &cluster, spec: &spec, join_token: "SECRET.TOKEN" };
        values_of(&values(&inputs(goal, facts, joined), layer, given))
    }

    /// Each layer that is not empty, with its resources; each was taken by its kind.
    pub fn compiled(&self, library: &Library) -> Vec<(&'static str, Vec<Compiled>)> {
        let roles: Vec<&str> = self.roles.iter().map(|role| role.as_str()).collect();
        let all = library.staged(&roles).unwrap();
        let first = self.roles.contains(&Role::Bootstrap);
        let mut found = Vec::new();
        for (layer, joined) in layers(first) {
            let own: BTreeSet<StateName> = layer.states(&all).into_iter().collect();
            let states = layer.states_referred_to(&all);
            let mut compiled = compile(library, &states, resource::kinds(), &self.values(&layer, joined))
                .unwrap_or_else(|errors| panic!("{}: {}: {errors:#?}", self.title, layer.title()));
            compiled.retain(|resource| own.contains(&resource.state));
            let taken = HostStates::new(
                compiled.clone(),
                crate::cluster_values::cluster().authorities,
                Timestamp::UNIX_EPOCH,
            )
            .unwrap_or_else(|errors| panic!("{}: {}: {errors:#?}", self.title, layer.title()));
            assert_eq!(taken.items().len(), compiled.len());
            if !compiled.is_empty() {
                found.push((layer.title(), compiled));
            }
        }
        found
    }
}
