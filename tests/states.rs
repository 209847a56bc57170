//! What nodes come to: every combination of roles that matters, on every sort of host. The snapshots say which
//! resources there are, in order, and the text of everything that is rendered.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "all of it is test code; clippy knows only test functions"
)]

#[path = "support/values.rs"]
mod cluster_values;
#[path = "support/given.rs"]
mod given;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use metalform::engine::Desired;
use metalform::engine::states::HostStates;
use metalform::etcd::member::{Health, Member, Membership};
use metalform::expand::layer::Layer;
use metalform::expand::phases::control_plane::API_SERVER;
use metalform::expand::survey::Survey;
use metalform::expand::values::{Given, values};
use metalform::expand::world::{NodeView, Peer, World};
use metalform::model::node::Taint;
use metalform::model::role::Role;
use metalform::render::{Value, values_of};
use metalform::resource;
use metalform::state::{Compiled, Library, StateName, Tree, compile};
use serde_json::Value as Json;

const FLAVOURS: [&str; 3] = ["debian-12-machine", "debian-13-container", "debian-13-machine"];

/// What a node is for, and what it is called here.
const NODES: [(&str, &[Role]); 6] = [
    ("bootstrap", &[Role::Bootstrap, Role::Master, Role::Etcd, Role::Infra]),
    ("master-and-etcd", &[Role::Master, Role::Etcd]),
    ("master-alone", &[Role::Master]),
    ("etcd-alone", &[Role::Etcd]),
    ("infra", &[Role::Infra]),
    ("node", &[Role::Node]),
];

/// The layers of a node, in the order of its phases, and whether its kubelet has joined by then.
fn layers(first: bool) -> Vec<(Layer, bool)> {
    let flags = |state: &str| ("node=https://192.0.2.11:2380".to_owned(), state.to_owned());
    let begin = if first {
        let (initial_cluster, initial_cluster_state) = flags("new");
        vec![(Layer::Serving, false), (Layer::First { initial_cluster, initial_cluster_state }, false)]
    } else {
        Vec::new()
    };
    let (initial_cluster, initial_cluster_state) = flags("existing");
    let deploy = [
        (Layer::Base, false),
        (Layer::Joined, true),
        (Layer::Etcd, true),
        (Layer::EtcdMember { initial_cluster, initial_cluster_state }, true),
        (Layer::ControlPlane, true),
        (Layer::Proxy, true),
    ];
    begin.into_iter().chain(deploy).collect()
}

/// As it is when all phases before have held: one other master, two voters.
fn world(joined: bool) -> World {
    let voter = |id: u64, name: &str, address: &str| Member {
        id,
        name: name.to_owned(),
        peer_urls: vec![format!("https://{address}:2380")],
        client_urls: vec![format!("https://{address}:2379")],
        is_learner: false,
        health: Health::Unknown { reason: "was not asked".to_owned() },
    };
    let other = Peer {
        machine_id: "other".to_owned(),
        control_plane_ip: Some("192.0.2.12".parse().unwrap()),
        api_server: true,
        ready: true,
    };
    World {
        survey: Some(Survey { joined, ..Survey::default() }),
        node: Some(Some(NodeView {
            pod_cidr: Some("10.233.1.0/24".to_owned()),
            annotations: BTreeMap::from([(API_SERVER.to_owned(), "ready".to_owned())]),
            ..NodeView::default()
        })),
        peers: Some(BTreeMap::from([("other".to_owned(), other)])),
        membership: Some(Membership {
            cluster_id: 1,
            members: vec![voter(1, "a", "192.0.2.13"), voter(2, "b", "192.0.2.14")],
            alarms: Vec::new(),
        }),
        ..World::default()
    }
}

struct Node {
    flavour: &'static str,
    title: &'static str,
    roles: BTreeSet<Role>,
}

impl Node {
    fn all() -> Vec<Self> {
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

    fn values(&self, layer: &Layer, joined: bool) -> Value {
        let goal = given::goal("node", &self.roles, 1);
        let (facts, cluster) = (given::facts(self.flavour), cluster_values::cluster());
        let taint = Taint {
            key: "node-role.kubernetes.io/infra".to_owned(),
            value: String::new(),
            effect: "NoSchedule".to_owned(),
        };
        let given = Given { cluster: &cluster, taints: &[taint], join_token: "SECRET.TOKEN" };
        values_of(&values(&goal, &facts, &world(joined), layer, given))
    }

    /// Each layer that is not empty, with its resources; each was taken by its kind.
    fn compiled(&self, library: &Library) -> Vec<(&'static str, Vec<Compiled>)> {
        let roles: Vec<&str> = self.roles.iter().map(|role| role.as_str()).collect();
        let all: Vec<String> = library.states_of(&roles).unwrap().iter().map(ToString::to_string).collect();
        let first = self.roles.contains(&Role::Bootstrap);
        let mut found = Vec::new();
        for (layer, joined) in layers(first) {
            let states: Vec<StateName> =
                layer.states(&all).iter().map(|name| name.parse().unwrap()).collect();
            let compiled = compile(library, &states, &resource::fields, &self.values(&layer, joined))
                .unwrap_or_else(|errors| panic!("{}: {}: {errors:#?}", self.title, layer.title()));
            let taken = HostStates::new(
                compiled.clone(),
                cluster_values::cluster().authorities,
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

fn library() -> Library {
    Library::read(&Tree::embedded().unwrap()).unwrap()
}

fn assert_snapshot(name: &str, text: &str) {
    insta::with_settings!({ snapshot_path => "states/snapshots", prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!(name, text);
    });
}

/// The text that a resource writes, if it was rendered from a template.
fn rendered(compiled: &Compiled) -> Option<&str> {
    let from_template = ["static_pod", "template", "unit"].contains(&compiled.id.kind.as_str());
    compiled.fields.get("content").filter(|_| from_template)?.as_str()
}

/// Every rendered text: the id of its resource → the text → on which nodes it is so.
fn texts() -> BTreeMap<String, BTreeMap<String, BTreeMap<&'static str, BTreeSet<&'static str>>>> {
    let library = library();
    let mut texts: BTreeMap<String, BTreeMap<String, BTreeMap<_, BTreeSet<_>>>> = BTreeMap::new();
    for node in Node::all() {
        for (_, compiled) in node.compiled(&library) {
            for one in &compiled {
                let Some(text) = rendered(one) else { continue };
                let nodes = texts.entry(one.id.to_string()).or_default().entry(text.to_owned()).or_default();
                nodes.entry(node.flavour).or_default().insert(node.title);
            }
        }
        for name in ["cluster/access.yaml.j2", "cluster/coredns.yaml.j2", "cluster/reachability.yaml.j2"] {
            let text = library.template(name, &node.values(&Layer::Base, true)).unwrap();
            let nodes = texts.entry(name.to_owned()).or_default().entry(text).or_default();
            nodes.entry(node.flavour).or_default().insert(node.title);
        }
    }
    texts
}

#[test]
fn each_node_has_its_resources_in_order() {
    let library = library();
    let mut by_title: BTreeMap<&str, BTreeMap<String, Vec<&str>>> = BTreeMap::new();
    for node in Node::all() {
        let mut text = String::new();
        for (layer, compiled) in node.compiled(&library) {
            text.push_str(&format!("{layer}\n"));
            compiled.iter().for_each(|one| text.push_str(&format!("  {}\n", one.id)));
        }
        by_title.entry(node.title).or_default().entry(text).or_default().push(node.flavour);
    }
    for (title, texts) in by_title {
        let texts = texts.iter().map(|(text, flavours)| format!("# {}\n{text}", flavours.join(", ")));
        assert_snapshot(&format!("resources-of-{title}"), &texts.collect::<Vec<_>>().join("\n"));
    }
}

#[test]
fn every_text_is_rendered_as_it_was() {
    for (id, texts) in texts() {
        let mut shown: Vec<String> = texts
            .iter()
            .map(|(text, nodes)| {
                let on = nodes.iter().map(|(flavour, titles)| {
                    format!("##### {flavour}: {}\n", titles.iter().copied().collect::<Vec<_>>().join(", "))
                });
                format!("{}{text}", on.collect::<String>())
            })
            .collect();
        shown.sort();
        assert_snapshot(&id.replace(":/", "-").replace(['/', ':', '_'], "-"), &shown.join("\n"));
    }
}

#[test]
fn what_is_meant_to_be_yaml_or_json_is() {
    let mut yaml = 0;
    for (id, texts) in texts() {
        for text in texts.keys() {
            if id.ends_with(".conflist") {
                serde_json::from_str::<Json>(text).unwrap_or_else(|error| panic!("{id}: {error}\n{text}"));
            } else if id.starts_with("static_pod:") || id.contains(".yaml") || text.starts_with("apiVersion:")
            {
                yaml += 1;
                let documents: Vec<Json> =
                    serde_saphyr::from_multiple(text).unwrap_or_else(|error| panic!("{id}: {error}\n{text}"));
                assert!(documents.iter().all(Json::is_object), "{id}: not an object\n{text}");
            }
        }
    }
    assert!(yaml > 20, "the texts were not found");
}

/// A field that is misspelt would be dropped without a word.
#[test]
fn a_static_pod_is_a_pod_and_every_field_of_it_is_known() {
    let mut pods = 0;
    for (id, texts) in texts() {
        for text in texts.keys().filter(|_| id.starts_with("static_pod:")) {
            pods += 1;
            let written: Json = serde_saphyr::from_str(text).unwrap();
            let pod: Pod =
                serde_json::from_value(written.clone()).unwrap_or_else(|error| panic!("{id}: {error}"));
            let known = serde_json::to_value(&pod).unwrap();
            assert_eq!(lost(&written, &known, ""), Vec::<String>::new(), "{id}");
        }
    }
    assert!(pods >= 4);
}

/// Paths of what is in one and not in the other.
fn lost(written: &Json, known: &Json, path: &str) -> Vec<String> {
    match (written, known) {
        (Json::Object(written), Json::Object(known)) => written
            .iter()
            .flat_map(|(key, value)| {
                let path = format!("{path}.{key}");
                known.get(key).map_or_else(|| vec![path.clone()], |known| lost(value, known, &path))
            })
            .collect(),
        (Json::Array(written), Json::Array(known)) => written
            .iter()
            .zip(known)
            .flat_map(|(one, other)| lost(one, other, &format!("{path}[]")))
            .collect(),
        (one, other) if one == other => Vec::new(),
        _ => vec![path.to_owned()],
    }
}

#[test]
fn a_unit_names_its_sections_and_no_field_twice() {
    for (id, texts) in texts() {
        for text in texts.keys().filter(|_| id.starts_with("unit:")) {
            let sections: Vec<&str> = text.lines().filter(|line| line.starts_with('[')).collect();
            assert_eq!(sections, ["[Unit]", "[Service]", "[Install]"], "{id}");
            let fields = text.lines().filter(|line| !line.starts_with(['[', '#']) && !line.is_empty());
            assert!(fields.clone().all(|line| line.contains('=')), "{id}\n{text}");
        }
    }
}

#[test]
fn no_state_is_unreachable_from_the_roles() {
    let roles: Vec<&str> = Role::ALL.iter().map(|role| role.as_str()).collect();
    let reached: BTreeSet<String> =
        library().states_of(&roles).unwrap().iter().map(|state| format!("{state}.yaml")).collect();
    let tree = Tree::embedded().unwrap();
    let there: BTreeSet<String> =
        tree.states().map(|(path, _)| path.to_owned()).filter(|path| path != "top.yaml").collect();
    assert_eq!(reached, there);
}

#[test]
fn every_state_of_a_node_is_in_a_layer() {
    let library = library();
    for node in Node::all() {
        let roles: Vec<&str> = node.roles.iter().map(|role| role.as_str()).collect();
        let all: BTreeSet<String> =
            library.states_of(&roles).unwrap().iter().map(ToString::to_string).collect();
        let names: Vec<String> = library.states_of(&roles).unwrap().iter().map(ToString::to_string).collect();
        let layers = layers(node.roles.contains(&Role::Bootstrap));
        let layered: BTreeSet<String> = layers.iter().flat_map(|(layer, _)| layer.states(&names)).collect();
        assert_eq!(all.difference(&layered).collect::<Vec<_>>(), Vec::<&String>::new(), "{}", node.title);
    }
}

#[test]
fn no_template_is_unused() {
    let tree = Tree::embedded().unwrap();
    let states: String = tree.states().map(|(_, text)| text).collect();
    let unused: Vec<&str> = tree
        .templates()
        .map(|(path, _)| path)
        .filter(|path| !path.starts_with("cluster/") && !states.contains(&format!("source: {path}")))
        .collect();
    assert_eq!(unused, Vec::<&str>::new());
}

#[test]
fn a_state_is_short_and_has_no_logic_in_it() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("states");
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(!text.contains("{%"), "{}: {{% belongs in templates/", path.display());
        assert!(text.lines().count() <= 120, "{} is too long to be read", path.display());
    }
}

/// Secrets are marked, so that no difference shows them.
#[test]
fn whatever_holds_a_secret_is_sensitive() {
    let library = library();
    let secrets = ["SECRET.TOKEN", "SECRET KEY", "U0VDUkVU"];
    for node in Node::all() {
        for (_, compiled) in node.compiled(&library) {
            for one in compiled {
                let text = serde_json::to_string(&one.fields).unwrap();
                let secret = secrets.iter().any(|secret| text.contains(secret));
                assert!(!secret || one.sensitive, "{} shows a secret", one.id);
            }
        }
    }
}
