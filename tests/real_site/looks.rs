//! Looking changes nothing: each look of the real site, on an empty root and on one with all CAs, leaves every file as it
//! was.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;
use metalform::bundle::component::Architecture;
use metalform::bundle::manifest::Bundle;
use metalform::model::bootstrap_configuration::BootstrapConfiguration;
use metalform::model::document::Document;
use metalform::model::facts::Facts;
use metalform::model::node::NodeSpec;
use metalform::operation::cluster_site::{ClusterSite, Setting};
use metalform::operation::goal::Goal;
use metalform::operation::layer::Layer;
use metalform::operation::phase::Look;
use metalform::operation::site::Site;
use metalform::operation::world::World;
use metalform::state::{Library, Tree};
use metalform::transport::error::TransportError;
use metalform::transport::fake::FakeTransport;
use metalform::workspace::layout::Layout;
use metalform::workspace::trust::{self, Subject};
use serde_json::json;

const CONFIGURATION: &str = "\
apiVersion: metalform.dev/v1alpha1
kind: BootstrapConfiguration
networks:
  controlPlane: { cidr: 192.0.2.0/24 }
  workloadPlane: { cidr: 198.51.100.0/24 }
bundles: [/nowhere]
";

/// Looks that write, and must not: [`trust::load`] creates the CAs that are missing. Empty once it does not.
const WRITING: &[&str] = &["Plan"];

fn now() -> Timestamp {
    "2026-11-21T09:00:00Z".parse().unwrap()
}

fn subject() -> Subject {
    Subject {
        name: "bootstrap".parse().unwrap(),
        address: "127.0.0.1".parse().unwrap(),
        indexes: BTreeMap::from([("trixie".to_owned(), "Origin: metalform\n".to_owned())]),
    }
}

fn setting(root: &Path) -> Arc<Setting> {
    let document = Document { file: "bootstrap.yaml", text: CONFIGURATION };
    let digest = json!("0".repeat(64));
    let bundle = json!({
        "apiVersion": "metalform.dev/v1alpha1", "kind": "Bundle", "inputs": digest,
        "architecture": Architecture::Amd64, "versions": {}, "provenance": {}, "images": {}, "packages": [],
        "files": {},
    });
    let bundle: Bundle = serde_json::from_value(bundle).unwrap();
    Arc::new(Setting {
        layout: Layout::below(root),
        configuration: BootstrapConfiguration::parse(&document).unwrap(),
        bundle,
        bundle_directory: root.to_owned(),
        library: Library::read(&Tree::embedded()).unwrap(),
        subject: subject(),
        metalform: "/usr/local/bin/metalform".into(),
        now,
        report: Arc::new(|_| {}),
    })
}

fn site(root: &Path) -> ClusterSite {
    let node = json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {
            "name": "bootstrap",
            "labels": { "node-role.kubernetes.io/bootstrap": "", "node-role.kubernetes.io/master": "", "node-role.kubernetes.io/etcd": "" },
            "annotations": { "metalform.dev/ssh-host": "192.0.2.11" },
        },
    });
    let spec = NodeSpec::from_node(&serde_json::from_value(node).unwrap()).unwrap();
    let setting = setting(root);
    let goal = Goal {
        name: spec.name.clone(),
        roles: spec.roles.clone(),
        first: true,
        control_plane_ip: "192.0.2.11".parse().unwrap(),
        networks: setting.configuration.networks.clone(),
        codenames: BTreeSet::new(),
        architectures: BTreeSet::new(),
        authority: None,
        clock: now().as_second(),
    };
    let away =
        |_: &_| Err(TransportError::Unreachable { host: "bootstrap".to_owned(), reason: "away".to_owned() });
    ClusterSite::new(setting, goal, spec, Box::new(FakeTransport::new(away)))
}

/// All looks. The match is here so that a new one does not compile before it is among them.
fn looks() -> Vec<Look> {
    let (initial_cluster, initial_cluster_state) = (String::new(), "new".to_owned());
    let member = Layer::EtcdMember {
        initial_cluster: initial_cluster.clone(),
        initial_cluster_state: initial_cluster_state.clone(),
    };
    let first = Layer::First { initial_cluster, initial_cluster_state };
    let all = vec![
        Look::Facts,
        Look::Survey,
        Look::Plan(Layer::Serving),
        Look::Plan(first),
        Look::Plan(Layer::Base),
        Look::Plan(Layer::Joined),
        Look::Plan(Layer::Etcd),
        Look::Plan(member),
        Look::Plan(Layer::ControlPlane),
        Look::Plan(Layer::Proxy),
        Look::Node,
        Look::Peers,
        Look::Membership,
        Look::Pods,
        Look::Api,
        Look::PackageService,
        Look::Trust,
        Look::Images,
        Look::ClusterObjects,
        Look::Proxies,
        Look::JoinTokens,
        Look::Reach,
    ];
    for look in &all {
        match look {
            Look::Facts
            | Look::Survey
            | Look::Plan(_)
            | Look::Node
            | Look::Peers
            | Look::Membership
            | Look::Pods
            | Look::Api
            | Look::PackageService
            | Look::Trust
            | Look::Images
            | Look::ClusterObjects
            | Look::Proxies
            | Look::JoinTokens
            | Look::Reach => {}
        }
    }
    all
}

/// Every file below a directory with its content, and every directory.
fn files(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.display().to_string();
        if path.is_dir() {
            files.insert(format!("{name}/"), Vec::new());
            files.extend(self::files(&path));
        } else {
            files.insert(name, std::fs::read(&path).unwrap());
        }
    }
    files
}

/// The looks that changed a file below a root that `prepare` made.
async fn writing(prepare: impl Fn(&Path)) -> Vec<String> {
    let mut writing = Vec::new();
    for look in looks() {
        let root = tempfile::tempdir().unwrap();
        prepare(root.path());
        let before = files(root.path());
        let world = World { facts: Some(Facts::examples()[0].clone()), ..World::default() };
        // Whether it can be seen is not the question.
        let _ = site(root.path()).look(&look, &world).await;
        if files(root.path()) != before {
            let name = format!("{look:?}");
            let name = name.split('(').next().unwrap_or_default().to_owned();
            if !writing.contains(&name) {
                writing.push(name);
            }
        }
    }
    writing
}

#[tokio::test(start_paused = true)]
async fn a_look_leaves_an_empty_root_empty() {
    assert_eq!(writing(|_| {}).await, WRITING);
}

#[tokio::test(start_paused = true)]
async fn a_look_leaves_a_root_with_all_cas_as_it_was() {
    let prepare = |root: &Path| {
        trust::create(&Layout::below(root), &subject(), now(), &mut rand::rng()).map(drop).unwrap();
    };
    assert_eq!(writing(prepare).await, Vec::<String>::new());
}
