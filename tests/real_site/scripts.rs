//! The scripts of `tests/expansion` against the real site over the stage. The steps of each run are the same as the
//! model's; what depends only on time (waits, and how phases that run side by side interleave) is not compared.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex};

use jiff::Timestamp;
use metalform::bundle::manifest::Bundle;
use metalform::engine::cancel::{self, Cancel, CancelLevel};
use metalform::model::bootstrap_configuration::BootstrapConfiguration;
use metalform::model::document::Document;
use metalform::model::event::Event;
use metalform::model::facts::Facts;
use metalform::model::node::NodeSpec;
use metalform::operation::bootstrap::{BootstrapGoal, BootstrapOperation};
use metalform::operation::cluster_site::{ApiPort, ClusterSite, EtcdPort, OBJECTS, Ports, Workspace};
use metalform::operation::deploy::DeployOperation;
use metalform::operation::goal::NodeGoal;
use metalform::operation::run::{RunContext, run};
use metalform::state::{Library, Tree};
use metalform::transport::pool::ConnectionPool;
use metalform::transport::ssh::SshClient;
use metalform::workspace::layout::Layout;
use metalform::workspace::trust::Subject;
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::connections::{StageEtcd, StageHost, StageNetwork, StagePeers, StageRegistry};
use crate::faulty_site::FaultySite;
use crate::host::packages::Offer;
use crate::host::{Link, ScriptedHost};
use crate::script::{Named, faults, no_faults};
use crate::stage::Stage;
use crate::support::attempt::{Ended, line, outcome};
use crate::support::fault::{Fault, Faults};
use crate::support::host::Host;
use crate::support::values;

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

fn now() -> Timestamp {
    Timestamp::from_second(CLOCK).unwrap()
}

/// A bundle of what the model's templates see.
fn bundle() -> Bundle {
    let digest = "0".repeat(64);
    let model = values::cluster();
    let images: BTreeMap<&String, &String> = model.images.values().map(|image| (image, &digest)).collect();
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

struct Play {
    stage: Stage,
    workspace: Arc<Workspace>,
    registry: StageRegistry,
    hosts: usize,
    _root: tempfile::TempDir,
}

/// Lines of what a command did.
type Lines = Vec<String>;

impl Play {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let document = Document { file: "bootstrap.yaml", text: CONFIGURATION };
        let subject = Subject {
            name: "bootstrap".parse().unwrap(),
            address: "192.0.2.11".parse().unwrap(),
            indexes: Vec::new(),
        };
        let ssh = SshClient::new(root.path().join("known_hosts"));
        let workspace = Workspace {
            layout: Layout::below(root.path()),
            configuration: BootstrapConfiguration::parse(&document).unwrap(),
            bundle: bundle(),
            bundle_directory: root.path().to_owned(),
            library: Library::read(&Tree::embedded()).unwrap(),
            subject,
            metalform: "/usr/local/bin/metalform".into(),
            pool: Arc::new(ConnectionPool::new(ssh, None)),
            now,
            report: Arc::new(|_| {}),
        };
        Self {
            stage: Stage::new(),
            workspace: Arc::new(workspace),
            registry: StageRegistry::default(),
            hosts: 0,
            _root: root,
        }
    }

    async fn prepare(&mut self, line: &str) -> Result<(), String> {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["host", name, roles @ ..] => {
                self.hosts += 1;
                let roles: BTreeSet<_> = roles.iter().map(|role| role.parse().unwrap()).collect();
                let model = Host::new(name, roles, self.hosts);
                let address = crate::support::host::address(self.hosts);
                self.stage.add(name, machine(model.facts), address);
                if *name != "bootstrap" {
                    let node = node(name, &model.roles.iter().map(|role| role.as_str()).collect::<Vec<_>>());
                    self.stage.api.lock().store.insert("nodes", "", node);
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

    async fn play(&mut self, command: &str) -> Result<Lines, String> {
        let (what, how) = command.split_once(", ").unwrap_or((command, ""));
        let words: Vec<&str> = what.split_whitespace().collect();
        match words.as_slice() {
            ["bootstrap"] => return Ok(self.operate("bootstrap", true, faults(how), Cancel::never()).await),
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
                    Some((which, action)) if which == "which loses power" || which.ends_with(" goes off") => {
                        let name = which.strip_suffix(" goes off").unwrap_or(name);
                        let session = self.stage.session(name).unwrap();
                        meanwhile(action, move || session.lock().on = false)
                    }
                    Some(("whose etcd crashes", _)) => return Err("etcd that crashes".to_owned()),
                    _ => faults(how),
                };
                return Ok(self.operate(name, false, faults, Cancel::never()).await);
            }
            ["deploy", name, "--replace-member"] => {
                return Ok(self.operate_with(name, false, faults(how), Cancel::never(), true).await);
            }
            ["deploy", one, "and", other] => {
                let deploy = |name| self.operate(name, false, no_faults(), Cancel::never());
                let (first, second) = tokio::join!(deploy(one), deploy(other));
                let lines = |name: &str, lines: Lines| -> Lines {
                    lines.into_iter().map(|line| format!("{name} | {line}")).collect()
                };
                return Ok([lines(one, first), lines(other, second)].concat());
            }
            ["etcd", "on", name, can @ ("can" | "cannot"), "start"] => {
                self.stage.machine(name, |machine| machine.etcd_works = *can == "can");
            }
            ["the", "manifest", "of", "etcd", "on", name, "is", "lost"] => {
                self.host(name, |host| host.tree.remove("/etc/kubernetes/manifests/etcd.yaml"));
            }
            ["the", "data", "of", "etcd", "on", name, "is", "lost"] => {
                self.host(name, |host| host.tree.remove("/var/lib/etcd/member"));
            }
            ["the", "disk", "of", "etcd", "on", name, "is", "not", "mounted"] => {
                self.host(name, |host| host.tree.rename("/var/lib/etcd/member", "/unmounted"));
            }
            ["the", "disk", "of", "etcd", "on", name, "is", "mounted"] => {
                self.host(name, |host| host.tree.rename("/unmounted", "/var/lib/etcd/member"));
            }
            ["the", "kubelet", "of", name, "stops"] => {
                self.host(name, |host| host.units.set_active("kubelet.service", "inactive", "dead"));
            }
            [name, "belongs", "to", "another", "cluster"] => self.host(name, |host| {
                let access = crate::host::tree::of_root(0o644);
                host.tree.write("/etc/kubernetes/pki/ca.crt", "CA OF ANOTHER CLUSTER".into(), access, 1);
            }),
            ["the", "API", "is", "away", "for", seconds, "s"] => {
                let time = std::time::Duration::from_secs(seconds.parse().unwrap());
                self.stage.api.lock().rules.away_for(time);
            }
            ["show"] => return Ok(self.show()),
            ["power-off", name] => self.host(name, |host| host.on = false),
            ["power-on", name] => self.host(name, ScriptedHost::boot),
            ["cut", name] => {
                self.host(name, |host| host.link = Link::Unreachable("no route to host".to_owned()));
            }
            ["heal", name] => self.host(name, |host| host.link = Link::Up),
            ["wait", seconds, "s"] => {
                tokio::time::sleep(std::time::Duration::from_secs(seconds.parse().unwrap())).await;
            }
            _ => return Err(format!("unknown command: {command}")),
        }
        Ok(Lines::new())
    }

    fn host(&self, name: &str, change: impl FnOnce(&mut ScriptedHost)) {
        change(&mut self.stage.session(name).unwrap().lock());
    }

    async fn operate(&self, name: &str, bootstrap: bool, faults: Faults, cancel: Cancel) -> Lines {
        self.operate_with(name, bootstrap, faults, cancel, false).await
    }

    async fn operate_with(
        &self,
        name: &str,
        bootstrap: bool,
        faults: Faults,
        cancel: Cancel,
        replace_member: bool,
    ) -> Lines {
        let spec = match self.stage.api.lock().store.get("nodes", name) {
            Some(node) if !bootstrap => node.clone(),
            _ => node(name, &["bootstrap", "master", "etcd", "infra"]),
        };
        let spec = NodeSpec::from_node(&serde_json::from_value(spec).unwrap()).unwrap();
        let goal = metalform::service::workspace::goal(&self.workspace, &spec);
        let goal = NodeGoal { replace_member, ..goal };
        let session = self.stage.session(name).unwrap();
        let ports = Ports {
            host: Arc::new(StageHost { session: session.clone(), stage: self.stage.clone(), clock: CLOCK }),
            peers: Arc::new(StagePeers { stage: self.stage.clone(), clock: CLOCK }),
            api: ApiPort::Client(self.stage.api.client()),
            etcd: EtcdPort::Connector(Arc::new(StageEtcd(self.stage.clone()))),
            network: Arc::new(StageNetwork),
            registry: Arc::new(self.registry.clone()),
        };
        let site = ClusterSite::new(self.workspace.clone(), goal.clone(), spec, ports);
        let site = FaultySite { site, session, faults: Mutex::new(faults), killed: Notify::new() };
        let (lines, waited) = (Mutex::new(Vec::new()), Mutex::new(BTreeSet::new()));
        let report = |event: Event| {
            if let Some(line) = line(&event, &mut waited.lock().unwrap()) {
                lines.lock().unwrap().push(line);
            }
        };
        let context = RunContext { host: goal.name.clone(), report: &report, cancel };
        let running = async {
            if bootstrap {
                let images = self.workspace.bundle.images.keys().cloned().collect();
                let goal = BootstrapGoal { node: goal, images, objects: OBJECTS.map(str::to_owned).into() };
                run::<BootstrapOperation>(&goal, &site, context).await
            } else {
                run::<DeployOperation>(&goal, &site, context).await
            }
        };
        let ended = tokio::select! {
            biased;
            () = site.killed.notified() => Ended::Killed,
            ended = running => ended.map_or_else(Ended::Failed, Ended::Held),
        };
        let mut lines = lines.into_inner().unwrap();
        lines.extend(outcome(&ended));
        lines
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
        let holder =
            |lease: &&Value| lease["spec"]["holderIdentity"].as_str().is_some_and(|one| !one.is_empty());
        let held = api.store.all("leases").iter().any(holder);
        lines.push(format!("lease: {}", if held { "held" } else { "free" }));
        let machines = self.stage.machines();
        for (name, machine) in &machines {
            let Some(proxy) = machine.session.lock().tree.text("/etc/haproxy/haproxy.cfg") else { continue };
            let used = machines.iter().filter(|(_, one)| proxy.contains(&format!("{}:6443", one.address)));
            let used: Vec<&str> = used.map(|(name, _)| name.as_str()).collect();
            let ready = api.store.get("nodes", name).is_some_and(|node| {
                let conditions = node["status"]["conditions"].as_array().cloned().unwrap_or_default();
                conditions.iter().any(|one| one["type"] == "Ready" && one["status"] == "True")
            });
            let ready = if ready { "Ready" } else { "not Ready" };
            lines.push(format!("{name}: {ready}, proxy to {}", used.join(" ")));
        }
        lines
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

/// A machine whose repositories offer the packages of a node.
fn machine(facts: Facts) -> ScriptedHost {
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

/// Commands with their lines, as far as they do not depend on time: no waits, no counts, and lines in their order of
/// names.
fn comparable(command: &str, lines: &[String]) -> String {
    let mut lines: Vec<String> = lines.iter().filter_map(|line| without_time(line)).collect();
    lines.sort();
    format!("> {command}\n{}\n", lines.join("\n"))
}

fn without_time(line: &str) -> Option<String> {
    let before = |mark: &str| line.split_once(mark).map(|(before, _)| before.to_owned());
    if line.contains("  wait for ") {
        return None;
    }
    if line.contains("all hold, ") && !line.ends_with(", 0 changed") {
        return before("all hold, ").map(|who| format!("{who}all hold, some changed"));
    }
    // Why a connection is refused is worded by the connection.
    let cut = ["; last seen: ", "could not be promoted in 300 s: "].into_iter().find_map(before);
    let abandoned = line.starts_with("lease: abandoned by ").then(|| "lease: held".to_owned());
    Some(cut.or(abandoned).unwrap_or_else(|| line.to_owned()))
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

/// Scripts that the real site does not play yet, and why.
const NOT_YET: &[(&str, &str)] = &[
    ("api-away", "the stage cannot take the API away after each change of members"),
    ("api-away-for-good", "the stage cannot take the API away after each change of members"),
    (
        "bootstrap-killed",
        "after the lost answer the kubelet of the stage has its certificate later than the model's, so a token is created again",
    ),
    ("container-crashes", "a container of the stage cannot crash by a script yet"),
    ("learners-manifest-lost", "the clock stands still, so the lease of a failed run does not expire"),
    ("proof-pod-ended", "the stage cannot end the reachability pod"),
    ("side-by-side", "which of the two runs takes the lease first depends on time"),
    ("stale-data", "a host of the stage cannot have held a member that was removed"),
    ("unfit", "a host of the stage cannot be made unfit by a script yet"),
];

#[test]
fn scripts_do_the_same_on_the_real_site() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/expansion");
    let mut failures = Vec::new();
    let not_yet: BTreeMap<&str, &str> = NOT_YET.iter().copied().collect();
    let mut names: Vec<String> = std::fs::read_dir(&folder)
        .unwrap()
        .filter_map(|entry| Some(entry.unwrap().file_name().to_str()?.strip_suffix(".txt")?.to_owned()))
        .collect();
    names.sort();
    for name in not_yet.keys() {
        assert!(names.iter().any(|one| one == name), "there is no script {name}");
    }
    for name in names.iter().filter(|name| !not_yet.contains_key(name.as_str())) {
        if let Err(difference) = std::panic::catch_unwind(|| play(&folder.join(format!("{name}.txt"))))
            .unwrap_or(Err("panics".to_owned()))
        {
            failures.push(format!("{name}: {difference}"));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
