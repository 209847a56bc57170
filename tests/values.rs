//! The contract of values: the project's own states give a host the same resources, whether its values come from a
//! cluster or from a roster that sets them.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "all of it is test code; clippy knows only test functions"
)]

#[path = "support/values.rs"]
mod cluster_values;
#[path = "support/given.rs"]
mod given;

use std::collections::BTreeMap;

use metalform::engine::roster::{RosterContext, RosterFault, compiled};
use metalform::model::api_contract::{API_SERVER, CONTROL_PLANE_IP, SSH_HOST, WORKLOAD_PLANE_IP};
use metalform::model::node::{NodeManifest, NodeMetadata, NodeSpec};
use metalform::model::role::Role;
use metalform::model::roster::Host;
use metalform::operation::inputs::NodeInputs;
use metalform::operation::layer::Layer;
use metalform::operation::observed::node::{NodeView, Peer};
use metalform::operation::values::{ClusterInputs, values};
use metalform::render::values_of;
use metalform::resource;
use metalform::state::{Compiled, Library, StateName, Tree, compile};
use serde_json::{Value as Json, json};

/// States that issue no certificates.
const STATES: [&str; 12] = [
    "mirrors",
    "node-base",
    "node-packages",
    "containerd",
    "apiserver-proxy",
    "pod-network",
    "kubelet",
    "kubelet-joined",
    "kube-proxy",
    "serve-user",
    "registry",
    "infra",
];

/// A Node as metalform leaves it, with these recorded addresses.
fn spec(name: &str, control_plane_ip: &str, workload_plane_ip: &str) -> NodeSpec {
    let annotations = [
        (SSH_HOST, control_plane_ip),
        (CONTROL_PLANE_IP, control_plane_ip),
        (WORKLOAD_PLANE_IP, workload_plane_ip),
        (API_SERVER, "ready"),
    ];
    let metadata = NodeMetadata {
        name: Some(name.to_owned()),
        labels: [("node-role.kubernetes.io/master".to_owned(), String::new())].into(),
        annotations: annotations.map(|(key, value)| (key.to_owned(), value.to_owned())).into(),
    };
    NodeSpec::parse(&NodeManifest { metadata, ..NodeManifest::default() }).unwrap()
}

/// The other node, which proxies may use.
fn other() -> Peer {
    let other = spec("other", "192.0.2.12", "198.51.100.12");
    Peer {
        labels: other.labels,
        address: other.ssh.host,
        control_plane_ip: other.control_plane_ip,
        workload_plane_ip: other.workload_plane_ip,
        api_server: true,
        ..Peer::default()
    }
}

fn in_a_cluster(library: &Library, states: &[StateName], peer: Peer) -> Vec<Compiled> {
    let spec = spec("node", "192.0.2.11", "198.51.100.11");
    let goal = given::goal("node", &[Role::Master].into());
    let (facts, cluster) = (given::facts("debian-13-machine"), cluster_values::cluster());
    let inputs = NodeInputs {
        goal,
        address: "192.0.2.11".parse().unwrap(),
        facts,
        joined: true,
        node: Some(NodeView {
            pod_cidr: Some("10.233.1.0/24".to_owned()),
            annotations: BTreeMap::from([(API_SERVER.to_owned(), "ready".to_owned())]),
            ..NodeView::default()
        }),
        peers: BTreeMap::from([("other".to_owned(), peer)]),
        membership: None,
    };
    let given = ClusterInputs { cluster: &cluster, spec: &spec, join_token: "" };
    let values = values_of(&values(&inputs, &Layer::Base, given));
    compile(library, states, resource::kinds(), &values).unwrap_or_else(|errors| panic!("{errors:#?}"))
}

fn on_a_roster(
    library: &Library,
    states: &[StateName],
    vars: &[(&str, Json)],
) -> Result<Vec<Compiled>, Vec<RosterFault>> {
    let Json::Object(cluster) = serde_json::to_value(cluster_values::cluster()).unwrap() else { panic!() };
    let cluster: BTreeMap<String, Json> = cluster.into_iter().collect();
    let mut hosts: Vec<Host> =
        [spec("node", "192.0.2.11", "198.51.100.11"), spec("other", "192.0.2.12", "198.51.100.12")]
            .map(Host::from)
            .into();
    hosts[0].vars.extend(vars.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
    let context = RosterContext { library, states, cluster: &cluster, hosts: &hosts };
    compiled(context, &hosts[0], &given::facts("debian-13-machine"))
}

#[test]
fn states_apply_alike_to_a_cluster_and_to_a_roster() {
    let library = Library::read(&Tree::embedded()).unwrap();
    let states: Vec<StateName> = STATES.iter().map(|name| name.parse().unwrap()).collect();
    let expected = in_a_cluster(&library, &states, other());
    let vars = [("pod_cidr", json!("10.233.1.0/24")), ("mirrors", json!(["192.0.2.11"]))];
    let found = on_a_roster(&library, &states, &vars).unwrap();
    assert!(expected.len() > 20);
    assert_eq!(found, expected);
}

/// A kubelet may write annotations of its Node where no policy is enforced; a role label never (NodeRestriction).
#[test]
fn proxies_use_masters_that_are_recorded_and_marked_and_no_other_node() {
    let library = Library::read(&Tree::embedded()).unwrap();
    let states = STATES.map(|name| name.parse().unwrap());
    let servers = |peer: Peer| {
        let compiled = in_a_cluster(&library, &states, peer);
        let haproxy = compiled.iter().find(|one| one.id.name == "/etc/haproxy/haproxy.cfg").unwrap();
        let lines = haproxy.fields["content"].as_str().unwrap().lines();
        let server = |line: &str| {
            let words: Vec<&str> = line.trim().strip_prefix("server ")?.split(' ').collect();
            Some(words[..2].join(" "))
        };
        lines.filter_map(server).collect::<Vec<_>>().join(", ")
    };
    let label = |role: &str| BTreeMap::from([(format!("node-role.kubernetes.io/{role}"), String::new())]);
    let both = "node 192.0.2.11:6443, other 192.0.2.12:6443";
    for role in ["master", "control-plane"] {
        assert_eq!(servers(Peer { labels: label(role), ..other() }), both, "{role}");
    }
    let alone = "node 192.0.2.11:6443";
    for worker in [BTreeMap::new(), label("infra"), label("etcd"), label("bootstrap")] {
        assert_eq!(servers(Peer { labels: worker.clone(), ..other() }), alone, "{worker:?}");
    }
    assert_eq!(servers(Peer { api_server: false, ..other() }), alone);
    assert_eq!(servers(Peer { control_plane_ip: None, ..other() }), alone);
}

#[test]
fn a_value_that_the_roster_does_not_set_is_an_error_that_names_it() {
    let library = Library::read(&Tree::embedded()).unwrap();
    let states = ["pod-network".parse().unwrap()];
    let faults = on_a_roster(&library, &states, &[]).unwrap_err();
    let lines: Vec<String> =
        faults.iter().map(|fault| format!("{fault} | {}", fault.hint().unwrap_or_default())).collect();
    assert!(
        lines.iter().any(|line| {
            line.starts_with("templates/pod-network/cni.conflist.j2:13:")
                && line.contains("`node.pod_cidr` is undefined")
                && line.contains("set pod_cidr in the vars of the host in the roster")
        }),
        "{lines:#?}"
    );
}
