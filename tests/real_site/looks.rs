//! Looking changes nothing: each look of the real site, on an empty root and on one with all CAs, leaves every file as it
//! was.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;
use metalform::bundle::cluster_bundles::ClusterBundles;
use metalform::bundle::format::{IndexSignature, RepositoryIndex};
use metalform::bundle::manifest::Bundle;
use metalform::bundle::program_needs::ProgramNeeds;
use metalform::engine::share::Share;
use metalform::model::bootstrap_configuration::BootstrapConfiguration;
use metalform::model::document::Document;
use metalform::model::event::Event;
use metalform::model::facts::Facts;
use metalform::model::node::NodeSpec;
use metalform::operation::cluster_site::{
    ApiPort, ClusterSite, EtcdPort, LocalRegistry, PeerHosts, Ports, ProgramDigest, TcpNetwork, Workspace,
};
use metalform::operation::effect::{KeepData, Look};
use metalform::operation::goal::NodeGoal;
use metalform::operation::host_access::{EngineHost, HostAccess};
use metalform::operation::inputs::NodeInputs;
use metalform::operation::layer::Layer;
use metalform::operation::present_networks::PresentNetworks;
use metalform::operation::site::Site;
use metalform::state::{Library, Tree};
use metalform::transport::error::TransportError;
use metalform::transport::fake::FakeTransport;
use metalform::transport::pool::ConnectionPool;
use metalform::transport::ssh::SshClient;
use metalform::workspace::layout::Layout;
use metalform::workspace::trust::{self, Subject};
use serde_json::json;

use crate::scripts::CONFIGURATION;

pub fn now() -> Timestamp {
    "2026-11-21T09:00:00Z".parse().unwrap()
}

fn subject() -> Subject {
    Subject {
        name: "bootstrap".parse().unwrap(),
        address: "127.0.0.1".parse().unwrap(),
        indexes: vec![RepositoryIndex {
            signed_path: "debian-13-amd64/InRelease".to_owned(),
            text: "Origin: metalform
"
            .to_owned(),
            signature: IndexSignature::Clear,
        }],
    }
}

pub fn workspace(root: &Path, report: Arc<dyn Fn(Event) + Send + Sync>) -> Arc<Workspace> {
    let document = Document { file: "bootstrap.yaml", text: CONFIGURATION };
    let digest = json!("0".repeat(64));
    let bundle = json!({
        "apiVersion": "metalform.dev/v1alpha1", "kind": "Bundle", "inputs": digest,
        "architectures": ["amd64"], "platforms": ["debian-13-amd64"], "versions": { "kubernetes": "1.35.4" }, "provenance": {}, "images": {}, "packages": [],
        "files": {},
    });
    let bundle: Bundle = serde_json::from_value(bundle).unwrap();
    Arc::new(Workspace {
        layout: Layout::below(root),
        configuration: BootstrapConfiguration::parse(&document).unwrap(),
        bundles: ClusterBundles::new(vec![(root.to_owned(), bundle)]).unwrap(),
        library: Library::read(&Tree::embedded()).unwrap(),
        subject: subject(),
        record: None,
        // Any file: its content is part of units.
        metalform: concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml").into(),
        metalform_digest: ProgramDigest::default(),
        metalform_needs: ProgramNeeds { architecture: "amd64", c_library: None },
        pool: Arc::new(ConnectionPool::new(SshClient::new(root.join("known_hosts")), None)),
        now,
        report,
    })
}

fn site(root: &Path) -> (NodeGoal, ClusterSite) {
    let node = json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {
            "name": "bootstrap",
            "labels": { "node-role.kubernetes.io/bootstrap": "", "node-role.kubernetes.io/master": "", "node-role.kubernetes.io/etcd": "" },
            "annotations": { "metalform.dev/ssh-host": "192.0.2.11" },
        },
    });
    let spec = NodeSpec::from_node(&serde_json::from_value(node).unwrap()).unwrap();
    let workspace = workspace(root, Arc::new(|_| {}));
    let goal = NodeGoal {
        name: spec.name.clone(),
        roles: spec.roles.clone(),
        first: true,
        networks: workspace.configuration.networks.clone(),
        present_networks: PresentNetworks::default(),
        recorded_address: None,
        recorded_workload_address: None,
        platforms: BTreeSet::new(),
        versions: BTreeMap::new(),
        authority: None,
        max_pods: 110,
        program: workspace.metalform_needs.clone(),
        replace_member: false,
        replace_machine: false,
        beside: Arc::default(),
        foreseen: None,
        leaves: false,
    };
    let api = ApiPort::Kubeconfig(workspace.layout.admin_conf());
    let ports = Ports {
        host: away(),
        peers: Arc::new(NoHosts),
        api,
        etcd: EtcdPort::Credentials,
        network: Arc::new(TcpNetwork),
        registry: Arc::new(LocalRegistry(root.join("registry.sock"))),
    };
    (goal.clone(), ClusterSite::new(workspace, goal, spec, ports))
}

/// A host that does not answer.
fn away() -> Arc<dyn HostAccess> {
    let away =
        |_: &_| Err(TransportError::Unreachable { host: "bootstrap".to_owned(), reason: "away".to_owned() });
    let transport = Arc::new(FakeTransport::new(away));
    Arc::new(EngineHost::new("bootstrap".parse().unwrap(), transport, Share::default()))
}

struct NoHosts;

impl PeerHosts for NoHosts {
    fn host(&self, _: &NodeSpec) -> Arc<dyn HostAccess> {
        away()
    }
}

/// All looks. The match is here so that a new one does not compile before it is among them.
fn looks(goal: &NodeGoal) -> Vec<Look> {
    let inputs = Arc::new(NodeInputs {
        goal: goal.clone(),
        address: subject().address,
        facts: Facts::examples()[0].clone(),
        joined: false,
        node: None,
        peers: BTreeMap::new(),
        membership: None,
    });
    let member = Layer::EtcdMember { initial_cluster: String::new(), first_start: true };
    let layers = [
        Layer::Serving,
        Layer::Registry,
        Layer::First,
        Layer::Base,
        Layer::Joined,
        Layer::Etcd,
        member,
        Layer::ControlPlaneFiles,
        Layer::ControlPlane,
        Layer::Proxy,
        Layer::Removed,
        Layer::OtherRoles,
    ];
    let mut all: Vec<Look> = layers.into_iter().map(|layer| Look::Plan(layer, inputs.clone())).collect();
    all.extend([
        Look::Facts,
        Look::Survey,
        Look::Unit("kubelet.service".to_owned()),
        Look::Container("etcd".to_owned()),
        Look::Node,
        Look::Peers,
        Look::Pods(goal.pods()),
        Look::PodsToDrain,
        Look::ApiServers([("node-1".to_owned(), subject().address)].into()),
        Look::JoinTokens,
        Look::Reachability,
        Look::PodGateway,
        Look::Membership(vec!["https://127.0.0.1:2379".to_owned()]),
        Look::OwnMember,
        Look::Lease,
        Look::Api,
        Look::Proxy("node-1".to_owned(), Arc::default()),
        Look::EtcdServers("node-1".to_owned()),
        Look::Trust,
        Look::NewClusterMark,
        Look::PackageService,
        Look::Registry,
        Look::Images,
        Look::Objects(inputs.clone()),
        Look::HostDifferences(inputs, KeepData(false)),
    ]);
    for look in &all {
        match look {
            Look::Facts
            | Look::Survey
            | Look::Plan(..)
            | Look::Unit(_)
            | Look::Container(_)
            | Look::HostDifferences(..)
            | Look::Node
            | Look::Peers
            | Look::Pods(_)
            | Look::PodsToDrain
            | Look::ApiServers(_)
            | Look::JoinTokens
            | Look::Reachability
            | Look::PodGateway
            | Look::Membership(_)
            | Look::OwnMember
            | Look::Lease
            | Look::Api
            | Look::Proxy(..)
            | Look::EtcdServers(_)
            | Look::Trust
            | Look::NewClusterMark
            | Look::PackageService
            | Look::Registry
            | Look::Images
            | Look::Objects(_) => {}
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

/// The looks that changed a file below a root that `prepare` filled.
async fn writing(prepare: impl Fn(&Path)) -> Vec<String> {
    let mut writing = Vec::new();
    for number in 0.. {
        let root = tempfile::tempdir().unwrap();
        prepare(root.path());
        let before = files(root.path());
        let (goal, site) = site(root.path());
        let Some(look) = looks(&goal).into_iter().nth(number) else { break };
        // Whether it succeeds does not matter.
        let _ = site.look(&look).await;
        if files(root.path()) != before {
            writing.push(look.sentence());
        }
    }
    writing
}

#[tokio::test(start_paused = true)]
async fn a_look_leaves_an_empty_root_empty() {
    assert_eq!(writing(|_| {}).await, Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_look_leaves_a_root_with_all_cas_as_it_was() {
    let prepare = |root: &Path| {
        trust::create(&Layout::below(root), &subject(), now(), &mut rand::rng()).map(drop).unwrap();
    };
    assert_eq!(writing(prepare).await, Vec::<String>::new());
}
