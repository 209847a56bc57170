//! The scripts of `tests/expansion` against the real site over the stage. The steps of each run are the same as the
//! model's; what depends only on time (waits, and how phases that run side by side interleave) is not compared.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::LeaseSpec;
use k8s_openapi::api::core::v1::Node;
use metalform::bundle::cluster_bundles::ClusterBundles;
use metalform::bundle::manifest::Bundle;
use metalform::bundle::program_needs::ProgramNeeds;
use metalform::engine::cancel::{self, Cancel, CancelLevel};
use metalform::kube_api::lease::{self, LeaseState};
use metalform::model::api_contract::API_SERVER;
use metalform::model::bootstrap_configuration::BootstrapConfiguration;
use metalform::model::document::Document;
use metalform::model::event::Event;
use metalform::model::facts::Facts;
use metalform::model::node::{NodeManifest, NodeSpec};
use metalform::model::role::Role;
use metalform::operation::bootstrap::{BootstrapGoal, BootstrapOperation};
use metalform::operation::cluster_site::{
    ApiPort, ClusterSite, EtcdPort, OBJECTS, Ports, ProgramDigest, RunMachines, Workspace,
};
use metalform::operation::deploy::DeployOperation;
use metalform::operation::dry_run::dry_run;
use metalform::operation::foreseen_changes::ForeseenChanges;
use metalform::operation::goal::NodeGoal;
use metalform::operation::remove::RemoveOperation;
use metalform::operation::reset::ResetOperation;
use metalform::operation::run::{RunContext, RunError, run};
use metalform::service::bootstrap;
use metalform::service::foreseen_deployment::ForeseenDeployment;
use metalform::state::{Library, Tree};
use metalform::transport::pool::ConnectionPool;
use metalform::transport::ssh::SshClient;
use metalform::workspace::layout::Layout;
use metalform::workspace::node_records;
use metalform::workspace::trust::Subject;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::connections::{StageEtcd, StageHost, StageNetwork, StagePeers, StageRegistry};
use crate::faulty_site::FaultySite;
use crate::host::ScriptedHost;
use crate::host::packages::Offer;
use crate::script::{Named, faults, no_faults, outage, withdrawn};
use crate::stage::Stage;
use crate::support::attempt::{Ended, Recipe, line, outcome, removal};
use crate::support::fault::{Fault, Faults};
use crate::support::foreseen::{deployment, planned, refused};
use crate::support::host::{Host, address, interfaces};
use crate::support::side_by_side::side_by_side;
use crate::support::values;
use crate::transcript::comparable;

pub const CONFIGURATION: &str = "\
apiVersion: metalform.dev/v1alpha1
kind: BootstrapConfiguration
networks:
  controlPlane: { cidr: 192.0.2.0/24 }
  workloadPlane: { cidr: 198.51.100.0/24 }
bundles: [/nowhere]
";

/// As the goals of the model.
const CLOCK: i64 = 1_767_225_600;
const PLATFORM: &str = "debian-13-amd64";
/// By how much the first of two runs is ahead.
const HEAD_START: Duration = Duration::from_millis(100);

thread_local! {
    /// When the play began: its runtime has one thread, whose clock is virtual.
    static BEGAN: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// The clock of this thread begins.
pub fn begin_clock() {
    BEGAN.set(Some(Instant::now()));
}

/// As much later than [`CLOCK`] as the play lasts: leases expire.
pub fn now() -> Timestamp {
    let lasted = BEGAN.get().map_or(Duration::ZERO, |began| began.elapsed());
    Timestamp::from_second(CLOCK).unwrap() + lasted
}

/// A bundle of what the model's templates see.
fn bundle() -> Bundle {
    let digest = "0".repeat(64);
    let model = values::cluster();
    let images: BTreeMap<&str, &str> =
        model.images.values().filter_map(|image| image.split_once("@sha256:")).collect();
    let packages: Vec<Value> = model
        .packages
        .iter()
        .map(|(name, version)| {
            json!({ "name": name, "platforms": [PLATFORM], "version": version, "architecture": "amd64", "path": name })
        })
        .collect();
    let bundle = json!({
        "apiVersion": "metalform.dev/v1alpha1", "kind": "Bundle", "inputs": digest, "architectures": ["amd64"],
        "platforms": [PLATFORM], "versions": model.versions, "provenance": {}, "images": images,
        "packages": packages, "files": {},
    });
    serde_json::from_value(bundle).unwrap()
}

pub struct Play {
    pub stage: Stage,
    /// How long the API is away after each change of etcd's members.
    pub away_after_change: Duration,
    pub workspace: Arc<Workspace>,
    /// How often the operator has changed what etcd and the API servers run with.
    pub configuration: u32,
    registry: StageRegistry,
    /// The plan of the last `plan`.
    saved: ForeseenDeployment,
    /// By name, in their order.
    hosts: Vec<(String, BTreeSet<Role>)>,
    _root: tempfile::TempDir,
}

/// Lines of what a command did.
type Lines = Vec<String>;

impl Play {
    pub fn new() -> Self {
        begin_clock();
        let root = tempfile::tempdir().unwrap();
        let document = Document { file: "bootstrap.yaml", text: CONFIGURATION };
        let subject = Subject {
            name: "bootstrap".parse().unwrap(),
            address: "192.0.2.11".parse().unwrap(),
            indexes: Vec::new(),
        };
        let metalform = root.path().join("metalform");
        std::fs::write(&metalform, "program").unwrap();
        let ssh = SshClient::new(root.path().join("known_hosts"));
        let workspace = Workspace {
            layout: Layout::below(root.path()),
            configuration: BootstrapConfiguration::parse(&document).unwrap(),
            bundles: ClusterBundles::new(vec![(root.path().to_owned(), bundle())]).unwrap(),
            library: Library::read(&Tree::embedded()).unwrap(),
            subject,
            record: None,
            metalform,
            metalform_digest: ProgramDigest::default(),
            metalform_needs: ProgramNeeds { architecture: "amd64", c_library: None },
            pool: Arc::new(ConnectionPool::new(ssh, None)),
            now,
            report: Arc::new(|_| {}),
        };
        Self {
            stage: Stage::new(),
            away_after_change: Duration::ZERO,
            workspace: Arc::new(workspace),
            configuration: 0,
            registry: StageRegistry::default(),
            saved: ForeseenDeployment::default(),
            hosts: Vec::new(),
            _root: root,
        }
    }

    /// A line of a script before its first command.
    ///
    /// # Errors
    /// When a deployment fails.
    pub async fn prepare(&mut self, line: &str) -> Result<(), String> {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["host", name, roles @ ..] => {
                let roles: BTreeSet<Role> = roles.iter().map(|role| role.parse().unwrap()).collect();
                self.hosts.push(((*name).to_owned(), roles.clone()));
                let number = self.hosts.len();
                let model = Host::new(name, roles, number);
                self.stage.add(name, machine(model.facts), address(number));
                if *name != "bootstrap" {
                    self.apply_node(name);
                }
            }
            ["deployed", names @ ..] => {
                for name in names {
                    let lines = self.operate(name, *name == "bootstrap", no_faults(), Cancel::never()).await;
                    if !lines.last().is_some_and(|last| last.starts_with("all hold")) {
                        return Err(format!("deploying {name} fails:\n{}", lines.join("\n")));
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// The API is away for so long from just before an action on.
    fn without_api(&self, how: &str) -> Option<Faults> {
        let (time, action) = outage(how)?;
        let stage = self.stage.clone();
        Some(meanwhile(action, move || stage.api.lock().rules.away_for(time)))
    }

    /// The Node of a host, as an operator writes it.
    pub fn apply_node(&self, name: &str) {
        let (_, roles) = self.hosts.iter().find(|(host, _)| host == name).unwrap();
        let node = node(name, &roles.iter().map(|role| role.as_str()).collect::<Vec<_>>());
        self.stage.api.lock().store.insert("nodes", "", node);
    }

    /// A command of a script, and what it did.
    ///
    /// # Errors
    /// When there is no such command.
    pub async fn play(&mut self, command: &str) -> Result<Lines, String> {
        let (what, how) = command.split_once(", ").unwrap_or((command, ""));
        let words: Vec<&str> = what.split_whitespace().collect();
        match words.as_slice() {
            ["bootstrap"] => {
                let faults = self.without_api(how).unwrap_or_else(|| faults(how));
                return Ok(self.operate("bootstrap", true, faults, Cancel::never()).await);
            }
            ["deploy", name] => {
                if let Some(action) = how.strip_prefix("interrupted during ") {
                    let (handle, cancel) = cancel::channel();
                    let faults = meanwhile(action, move || handle.cancel(CancelLevel::AfterResource));
                    return Ok(self.operate(name, false, faults, cancel).await);
                }
                let faults = match how.split_once(" before ") {
                    Some(("whose etcd stops", action)) => {
                        let (stage, name) = (self.stage.clone(), (*name).to_owned());
                        meanwhile(action, move || stage.machine(&name, |machine| machine.etcd_works = false))
                    }
                    Some(("whose etcd crashes", action)) => {
                        let (stage, name) = (self.stage.clone(), (*name).to_owned());
                        meanwhile(action, move || {
                            stage.machine(&name, |machine| machine.etcd_crashes = true);
                        })
                    }
                    Some((which, action)) if which == "which loses power" || which.ends_with(" goes off") => {
                        let name = which.strip_suffix(" goes off").unwrap_or(name);
                        let session = self.stage.session(name).unwrap();
                        meanwhile(action, move || session.lock().on = false)
                    }
                    _ => self.without_api(how).unwrap_or_else(|| faults(how)),
                };
                return Ok(self.operate(name, false, faults, Cancel::never()).await);
            }
            ["plan", name] => {
                return Ok(match self.foresee(name).await {
                    Ok((foreseen, _)) => {
                        self.saved = foreseen;
                        planned(&self.saved)
                    }
                    Err(error) => outcome(&Ended::Failed(error)),
                });
            }
            ["deploy", name, "--plan"] => {
                return Ok(match self.foresee(name).await {
                    Ok((now, _)) if now != self.saved => refused(&self.saved, &now),
                    Ok((_, changes)) => {
                        let how = faults(how);
                        let planned = NodeRun { foreseen: Some(changes), ..NodeRun::of(name) };
                        self.run_with(planned, Recipe::Deploy, how, Cancel::never()).await
                    }
                    Err(error) => outcome(&Ended::Failed(error)),
                });
            }
            ["deploy", name, "--replace-member"] => {
                return Ok(self
                    .run_with(
                        NodeRun { replace: Replace::Member, ..NodeRun::of(name) },
                        Recipe::Deploy,
                        faults(how),
                        Cancel::never(),
                    )
                    .await);
            }
            ["remove", name, options @ ..] => {
                let faults = match how.split_once(" before ") {
                    Some((which, action)) if which.ends_with(" goes off") => {
                        let session = self.stage.session(which.trim_end_matches(" goes off")).unwrap();
                        meanwhile(action, move || session.lock().on = false)
                    }
                    Some((event, action)) if withdrawn(event).is_some() => {
                        let (stage, name) = (self.stage.clone(), withdrawn(event).unwrap().to_owned());
                        meanwhile(action, move || {
                            stage.api.lock().store.change("nodes", "", &name, |node| {
                                node["metadata"]["annotations"].as_object_mut().unwrap().remove(API_SERVER);
                            });
                        })
                    }
                    _ => faults(how),
                };
                let offline = match options {
                    [] => false,
                    ["--offline"] => true,
                    other => panic!("what is {other:?}?"),
                };
                return Ok(self.run(name, Recipe::Remove { offline }, faults, Cancel::never()).await);
            }
            ["reset", name] => return Ok(self.run(name, Recipe::Reset, faults(how), Cancel::never()).await),
            ["deploy", one, "and", other, options @ ..] => {
                let replace = match options {
                    [] => Replace::Nothing,
                    ["--replace-member"] => Replace::Member,
                    other => panic!("what is {other:?}?"),
                };
                let machines: Arc<RunMachines> = Arc::default();
                let deploy = |name, beside| {
                    let machines = machines.clone();
                    let node = NodeRun { beside: Some(beside), machines, replace, ..NodeRun::of(name) };
                    self.run_with(node, Recipe::Deploy, no_faults(), Cancel::never())
                };
                let second = async {
                    // Which of the two is first at the lease must not depend on time.
                    tokio::time::sleep(HEAD_START).await;
                    deploy(other, *one).await
                };
                let (first, second) = tokio::join!(deploy(one, *other), second);
                let lines = |name: &str, lines: Lines| -> Lines {
                    lines.into_iter().map(|line| format!("{name} | {line}")).collect()
                };
                return Ok([lines(one, first), lines(other, second)].concat());
            }
            ["deploy", name, "--replace"] => {
                return Ok(self
                    .run_with(
                        NodeRun { replace: Replace::Machine, ..NodeRun::of(name) },
                        Recipe::Deploy,
                        faults(how),
                        Cancel::never(),
                    )
                    .await);
            }
            ["another", "machine", "takes", "the", "place", "of", name] => {
                let session = self.stage.session(name).unwrap();
                let mut host = session.lock();
                let machine_id = format!("{} again", host.facts.machine_id);
                *host = machine(Facts { machine_id, ..host.facts.clone() });
            }
            ["another", "machine", "takes", "the", "place", "of", name, "at", "another", "address"] => {
                let number = self.hosts.len() + 1;
                let session = self.stage.session(name).unwrap();
                let mut host = session.lock();
                let machine_id = format!("{} again", host.facts.machine_id);
                let mut facts = Facts { machine_id, ..host.facts.clone() };
                facts.addresses.extend(interfaces(number));
                *host = machine(facts);
                drop(host);
                self.stage.machine(name, |machine| machine.address = address(number));
            }
            ["show"] => return Ok(self.show()),
            ["wait", seconds, "s"] => {
                tokio::time::sleep(Duration::from_secs(seconds.parse().unwrap())).await;
            }
            words => self.happen(words)?,
        }
        Ok(Lines::new())
    }

    async fn operate(&self, name: &str, bootstrap: bool, faults: Faults, cancel: Cancel) -> Lines {
        let recipe = if bootstrap { Recipe::Bootstrap } else { Recipe::Deploy };
        self.run(name, recipe, faults, cancel).await
    }

    async fn run(&self, name: &str, recipe: Recipe, faults: Faults, cancel: Cancel) -> Lines {
        self.run_with(NodeRun::of(name), recipe, faults, cancel).await
    }

    async fn run_with(
        &self,
        NodeRun { name, replace, foreseen, beside, machines }: NodeRun<'_>,
        recipe: Recipe,
        faults: Faults,
        cancel: Cancel,
    ) -> Lines {
        let spec = self.spec(name, recipe);
        let goal = metalform::service::workspace::goal(&self.workspace, &spec);
        let replace_machine = replace == Replace::Machine;
        let beside = Arc::new(beside.iter().map(|name| name.parse().unwrap()).collect());
        let replace_member = replace != Replace::Nothing;
        let goal = NodeGoal { replace_member, replace_machine, foreseen, beside, ..goal };
        let session = self.stage.session(name).unwrap();
        let site = FaultySite {
            site: self.site(&goal, spec).among(machines),
            session,
            stage: self.stage.clone(),
            away_after_change: self.away_after_change,
            faults: Mutex::new(faults),
            killed: Notify::new(),
        };
        let (lines, waited) = (Mutex::new(Vec::new()), Mutex::new(BTreeSet::new()));
        let report = |event: Event| {
            if let Some(line) = line(&event, &mut waited.lock().unwrap()) {
                lines.lock().unwrap().push(line);
            }
        };
        let context = RunContext { host: goal.name.clone(), report: &report, cancel };
        let running = async {
            match recipe {
                Recipe::Bootstrap => {
                    let images = self.workspace.bundles.first().manifest.images.keys().cloned().collect();
                    let objects = OBJECTS.map(str::to_owned).into();
                    let goal = BootstrapGoal { node: goal, images, objects };
                    run::<BootstrapOperation>(&goal, &site, context).await
                }
                Recipe::Deploy => run::<DeployOperation>(&goal, &site, context).await,
                Recipe::Remove { offline } => {
                    run::<RemoveOperation>(&removal(&goal, offline), &site, context).await
                }
                Recipe::Reset => run::<ResetOperation>(&removal(&goal, false), &site, context).await,
            }
        };
        let ended = tokio::select! {
            biased;
            () = site.killed.notified() => Ended::Killed,
            ended = running => ended.map_or_else(Ended::Failed, Ended::Held),
        };
        if matches!(ended, Ended::Held(_)) {
            self.record_nodes();
        }
        let mut lines = lines.into_inner().unwrap();
        lines.extend(outcome(&ended));
        lines
    }

    /// As a command does at its end.
    fn record_nodes(&self) {
        let nodes = self.stage.api.lock().store.all("nodes").into_iter().cloned().collect();
        let nodes: Vec<Node> = serde_json::from_value(Value::Array(nodes)).unwrap();
        let manifests: Vec<NodeManifest> = nodes.iter().map(NodeManifest::from).collect();
        let layout = &self.workspace.layout;
        std::fs::create_dir_all(layout.node_records().parent().unwrap()).unwrap();
        node_records::save(layout, &manifests).unwrap();
    }

    fn spec(&self, name: &str, recipe: Recipe) -> NodeSpec {
        let stored = self.stage.api.lock().store.get("nodes", name).cloned();
        let known = stored.map(|node| NodeSpec::from_node(&serde_json::from_value(node).unwrap()).unwrap());
        match (recipe, known) {
            (Recipe::Bootstrap, known) => bootstrap::spec(&self.workspace, known.as_ref()),
            (_, Some(known)) => known,
            (_, None) => panic!("there is no Node {name}"),
        }
    }

    fn site(&self, goal: &NodeGoal, spec: NodeSpec) -> ClusterSite {
        let ports = ports(&self.stage, &self.registry, goal.name.as_str());
        ClusterSite::new(self.workspace.clone(), goal.clone(), spec, ports)
    }

    async fn foresee(&self, name: &str) -> Result<(ForeseenDeployment, Arc<ForeseenChanges>), RunError> {
        let spec = self.spec(name, Recipe::Deploy);
        let goal = metalform::service::workspace::goal(&self.workspace, &spec);
        let preview = dry_run::<DeployOperation>(&goal, &self.site(&goal, spec.clone()).dry()).await?;
        Ok((deployment(&spec, &preview), Arc::new(preview.foreseen)))
    }

    /// As the model shows itself.
    fn show(&self) -> Lines {
        let _ = self.stage.pass();
        let mut lines = Lines::new();
        for member in &self.stage.etcd.lock().unwrap().members {
            let name = if member.name.is_empty() { &member.peer_url } else { &member.name };
            let vote = if member.learner { "learner" } else { "voter" };
            let health = if member.running { "runs" } else { "does not run" };
            lines.push(format!("etcd {name}: {vote}, {health}"));
        }
        let api = self.stage.api.lock();
        let is_held = |lease: &&Value| {
            let spec: LeaseSpec = serde_json::from_value(lease["spec"].clone()).unwrap();
            lease::state_of(&spec, "another process", now()) != LeaseState::Free
        };
        let held = api.store.all("leases").iter().any(is_held);
        lines.push(format!("lease: {}", if held { "held" } else { "free" }));
        let machines = self.stage.machines();
        for (name, machine) in &machines {
            let Some(proxy) = machine.session.lock().tree.text("/etc/haproxy/haproxy.cfg") else { continue };
            let used = machines.iter().filter(|(_, one)| proxy.contains(&format!("{}:6443", one.address)));
            let used: Vec<&str> = used.map(|(name, _)| name.as_str()).collect();
            let node = api.store.get("nodes", name);
            let ready = node.is_some_and(|node| {
                let conditions = node["status"]["conditions"].as_array().cloned().unwrap_or_default();
                conditions.iter().any(|one| one["type"] == "Ready" && one["status"] == "True")
            });
            let state = match (node, ready) {
                (None, _) => "no Node",
                (_, true) => "Ready",
                (_, false) => "not Ready",
            };
            let cordoned = node.is_some_and(|node| node["spec"]["unschedulable"] == true);
            let cordoned = if cordoned { ", cordoned" } else { "" };
            lines.push(format!("{name}: {state}{cordoned}, proxy to {}", used.join(" ")));
        }
        lines
    }
}

/// How a site of this host reaches everything.
pub fn ports(stage: &Stage, registry: &StageRegistry, host: &str) -> Ports {
    let session = stage.session(host).unwrap();
    Ports {
        host: Arc::new(StageHost { session, stage: stage.clone(), now }),
        peers: Arc::new(StagePeers { stage: stage.clone(), now }),
        api: ApiPort::Client(stage.api.client()),
        etcd: EtcdPort::Connector(Arc::new(StageEtcd(stage.clone()))),
        network: Arc::new(StageNetwork),
        registry: Arc::new(registry.clone()),
    }
}

/// Something happens just before an action.
fn meanwhile(action: &str, mut happens: impl FnMut() + Send + Sync + 'static) -> Faults {
    let mut action = Named::new(action);
    Box::new(move |next| {
        if action.is(next) {
            happens();
        }
        Fault::None
    })
}

/// A run of an operation on one node.
struct NodeRun<'a> {
    name: &'a str,
    replace: Replace,
    /// What a saved plan foresees.
    foreseen: Option<Arc<ForeseenChanges>>,
    /// The other node that the same command deploys.
    beside: Option<&'a str>,
    /// What the hosts of that command report.
    machines: Arc<RunMachines>,
}

impl<'a> NodeRun<'a> {
    fn of(name: &'a str) -> Self {
        Self { name, replace: Replace::Nothing, foreseen: None, beside: None, machines: Arc::default() }
    }
}

/// What a deployment may replace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Replace {
    Nothing,
    Member,
    Machine,
}

/// A machine whose repositories offer the packages of a node.
pub fn machine(facts: Facts) -> ScriptedHost {
    let mut host = ScriptedHost::new(facts);
    host.sysctls.insert("net.ipv4.conf.all.rp_filter".to_owned(), "2".to_owned());
    for (package, unit) in [("bird2", "bird"), ("haproxy", "haproxy"), ("containerd", "containerd")] {
        let units = vec![format!("{unit}.service")];
        let offer = Offer { version: "1.0".to_owned(), units, ..Offer::default() };
        host.packages.offers.insert(package.to_owned(), offer);
    }
    host
}

fn node(name: &str, roles: &[&str]) -> Value {
    let labels: BTreeMap<String, &str> =
        roles.iter().map(|role| (format!("node-role.kubernetes.io/{role}"), "")).collect();
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": { "name": name, "labels": labels, "annotations": { "metalform.dev/ssh-host": "192.0.2.11" } },
    })
}

/// A script's transcript, as it is written and as it happens.
async fn transcripts(script: &str) -> Result<(String, String), String> {
    let (mut play, mut written, mut happened) = (Play::new(), String::new(), String::new());
    let mut commands: Vec<(&str, Lines)> = Vec::new();
    for line in script.lines() {
        match (line.strip_prefix("> "), commands.last_mut()) {
            (Some(command), _) => commands.push((command, Lines::new())),
            (None, Some((_, lines))) if !line.is_empty() => lines.push(line.to_owned()),
            (None, None) => play.prepare(line).await?,
            _ => {}
        }
    }
    for (command, lines) in commands {
        written.push_str(&comparable(command, &lines));
        happened.push_str(&comparable(command, &play.play(command).await?));
    }
    Ok((written, happened))
}

fn play(path: &Path) -> Result<(), String> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    let script = std::fs::read_to_string(path).unwrap();
    let limit = std::time::Duration::from_secs(100_000);
    let (written, happened) = runtime.block_on(async {
        let played = tokio::time::timeout(limit, transcripts(&script)).await;
        played.unwrap_or_else(|_| Err("it does not end".to_owned()))
    })?;
    if written == happened {
        return Ok(());
    }
    let difference = similar::TextDiff::from_lines(&written, &happened);
    Err(difference.unified_diff().header("written", "happened").to_string())
}

#[test]
fn scripts_do_the_same_on_the_real_site() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/expansion");
    let names: Vec<String> = std::fs::read_dir(&folder)
        .unwrap()
        .filter_map(|entry| Some(entry.unwrap().file_name().to_str()?.strip_suffix(".txt")?.to_owned()))
        .collect();
    let failures = Mutex::new(BTreeSet::new());
    side_by_side(names.iter(), |name| {
        let script = folder.join(format!("{name}.txt"));
        let played = std::panic::catch_unwind(|| play(&script));
        if let Err(difference) = played.unwrap_or(Err("panics".to_owned())) {
            failures.lock().unwrap().insert(format!("{name}: {difference}"));
        }
    });
    let failures = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "{}", failures.into_iter().collect::<Vec<_>>().join("\n"));
}
