//! Jobs on scripted hosts of the pool, in a cluster of the bootstrap node.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex as StdMutex};

use async_trait::async_trait;
use base64::Engine as _;
use jiff::Timestamp;
use metalform::controller::host_jobs::{PoolPerformer, PoolPorts};
use metalform::controller::job_performer::{JobContext, JobPerformer};
use metalform::engine::cancel::Cancel;
use metalform::engine::host::{CertificateSigner, Convergence, EventSink, HostError};
use metalform::kube_api::tokens::{self, BootstrapToken};
use metalform::machine::api::host::HostObject;
use metalform::machine::api::ssh_public_key::SshPublicKey;
use metalform::machine::host_job::{HostJob, JobFence};
use metalform::machine::job_order::{JobOrder, NodeOrder};
use metalform::machine::job_outcome::{HostFindings, HostPresence, JobError};
use metalform::machine::lifecycle::NodeSettings;
use metalform::model::facts::Facts;
use metalform::model::node::NodeSpec;
use metalform::operation::cluster_site::Ports;
use metalform::operation::host_access::{HostAccess, HostPlan, SharedDesired};
use metalform::resource::contract::probe::{Answer, KeysState, Observed, PathState, Probe};
use metalform::transport::error::{FenceRefusal, TransportError};
use metalform::transport::{Output, Program};
use serde_json::{Value, json};
use tokio::sync::{Mutex, MutexGuard};

use crate::connections::StageRegistry;
use crate::host::session::HostSession;
use crate::host::tree::of_root;
use crate::host::{Link, ScriptedHost};
use crate::scripts::{Play, machine, ports};
use crate::stage::Stage;
use crate::support::host::Host;

const POOL_HOST: &str = "rack-1";
const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFdvrUKgYXnEjtUQ0WqTGVdXE2fVoVzVGyYaPBAMwXv2 ops";

/// Hosts of the stage, each of which compares tokens.
struct StagePool {
    stage: Stage,
}

/// As `engine/fence.sh` has it.
struct FencedHost {
    inner: Arc<dyn HostAccess>,
    session: HostSession,
    name: String,
    token: u64,
}

const FENCE: &str = "/var/lib/metalform/fence";

impl FencedHost {
    fn check(&self) -> Result<(), HostError> {
        let mut host = self.session.lock();
        let largest = host.tree.text(FENCE).map_or(0, |text| text.trim().parse().unwrap());
        if self.token < largest {
            let reason = FenceRefusal::Superseded { largest };
            let (host, token) = (self.name.clone(), self.token);
            return Err(TransportError::Fenced { host, token, reason }.into());
        }
        if self.token > largest {
            host.tree.write(FENCE, format!("{}\n", self.token).as_str().into(), of_root(0o600), 1);
        }
        Ok(())
    }
}

#[async_trait]
impl HostAccess for FencedHost {
    async fn facts(&self) -> Result<Facts, HostError> {
        self.check()?;
        self.inner.facts().await
    }

    async fn observe(&self, probes: &std::collections::BTreeSet<Probe>) -> Result<Observed, HostError> {
        self.check()?;
        self.inner.observe(probes).await
    }

    async fn plan(&self, desired: SharedDesired, facts: &Facts) -> Result<HostPlan, HostError> {
        self.check()?;
        self.inner.plan(desired, facts).await
    }

    async fn apply(
        &self,
        plan: &HostPlan,
        signer: CertificateSigner<'_>,
        events: EventSink<'_>,
    ) -> Result<Convergence, HostError> {
        self.check()?;
        self.inner.apply(plan, signer, events).await
    }

    async fn run(&self, program: &Program) -> Result<Output, HostError> {
        self.check()?;
        self.inner.run(program).await
    }
}

impl PoolPorts for StagePool {
    fn ports(&self, node: &NodeSpec, token: Option<u64>, _: &Cancel) -> Ports {
        let ports = ports(&self.stage, &StageRegistry::default(), node.name.as_str());
        let Some(token) = token else { return ports };
        let name = node.name.to_string();
        let session = self.stage.session(&name).unwrap();
        let host = Arc::new(FencedHost { inner: ports.host.clone(), session, name, token });
        Ports { host, ..ports }
    }
}

/// One test at a time: a program that another one starts has, until it is executed, the locks of this process open.
static TURN: Mutex<()> = Mutex::const_new(());

/// The bootstrap node, deployed, and one host of the pool.
struct Rack {
    _turn: MutexGuard<'static, ()>,
    play: Play,
    performer: PoolPerformer,
    phases: StdMutex<Vec<String>>,
}

impl Rack {
    async fn new() -> Self {
        let turn = TURN.lock().await;
        let mut play = Play::new();
        for line in ["host bootstrap bootstrap master etcd infra", "deployed bootstrap"] {
            play.prepare(line).await.unwrap();
        }
        let model = Host::new(POOL_HOST, [].into(), 2);
        let mut host = machine(model.facts);
        host.seed(&user("ops"));
        play.stage.add(POOL_HOST, host, crate::support::host::address(2));
        let client = play.stage.api.client();
        let ports = Arc::new(StagePool { stage: play.stage.clone() });
        let performer = PoolPerformer { workspace: play.workspace.clone(), client, ports };
        Self { _turn: turn, play, performer, phases: StdMutex::default() }
    }

    fn host(&self, change: impl FnOnce(&mut ScriptedHost)) {
        change(&mut self.play.stage.session(POOL_HOST).unwrap().lock());
    }

    fn node(&self) -> Option<Value> {
        self.play.stage.api.lock().store.get("nodes", POOL_HOST).cloned()
    }

    async fn perform(
        &self,
        job: HostJob,
        token: i64,
        node: Option<NodeOrder>,
    ) -> Result<HostFindings, JobError> {
        self.perform_on(object(), job, token, node).await
    }

    async fn perform_on(
        &self,
        host: HostObject,
        job: HostJob,
        token: i64,
        node: Option<NodeOrder>,
    ) -> Result<HostFindings, JobError> {
        let fence = JobFence { host: POOL_HOST.parse().unwrap(), machine: None, token };
        let order = JobOrder { job, fence, host: Arc::new(host), node };
        let phase = |phase: &str| self.phases.lock().unwrap().push(phase.to_owned());
        let context = JobContext { cancel: Cancel::never(), phase: &phase };
        self.performer.perform(&order, &context).await
    }
}

/// A host has this user.
fn user(name: &str) -> Observed {
    let keys = KeysState {
        home: format!("/home/{name}"),
        home_exists: true,
        directory: PathState::Absent,
        file: PathState::Absent,
    };
    let probe = Probe::AuthorizedKeys { user: name.to_owned() };
    Observed([(probe, Answer::AuthorizedKeys(Some(keys)))].into())
}

fn object() -> HostObject {
    let object = json!({ "metadata": { "name": POOL_HOST }, "spec": { "address": "192.0.2.12", "ssh": { "user": "ops" } } });
    serde_json::from_value(object).unwrap()
}

/// The Host with these fields of its `spec`.
fn object_with(more: Value) -> HostObject {
    let mut host = serde_json::to_value(object()).unwrap();
    host["spec"].as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    serde_json::from_value(host).unwrap()
}

fn secret(name: &str, kind: &str, data: &[(&str, &str)]) -> Value {
    let encode = |text: &str| base64::engine::general_purpose::STANDARD.encode(text);
    let data: BTreeMap<&str, String> = data.iter().map(|(key, value)| (*key, encode(value))).collect();
    json!({ "metadata": { "name": name }, "type": kind, "data": data })
}

fn order(uid: &str) -> NodeOrder {
    let settings =
        NodeSettings { labels: [("tier".to_owned(), "a".to_owned())].into(), ..NodeSettings::default() };
    NodeOrder {
        machine: "kube-system/m-1".to_owned(),
        provider_id: format!("metalform://{POOL_HOST}/{uid}"),
        kubelet: crate::support::values::cluster().versions["kubernetes"].clone(),
        settings: settings.of_machine("kube-system", "m-1", uid),
        ssh_public_keys: vec![SshPublicKey::try_from(KEY.to_owned()).unwrap()],
    }
}

#[tokio::test(start_paused = true)]
async fn an_inspection_finds_what_a_clean_host_does_not_have() {
    let rack = Rack::new().await;
    let found = rack.perform(HostJob::Inspect, 0, None).await.unwrap();
    assert_eq!((found.residue, found.facts.unwrap().operating_system.as_str()), (Vec::new(), "debian"));
    rack.host(|host| {
        for path in ["/etc/cni/net.d/10-metalform.conflist", "/etc/kubernetes/pki/ca.crt"] {
            host.tree.write(path, "of another cluster".into(), of_root(0o644), 1);
        }
    });
    let residue = rack.perform(HostJob::Inspect, 0, None).await.unwrap().residue.join("\n");
    for expected in
        ["path /etc/cni/net.d/10-metalform.conflist: is there", "the host belongs to another cluster"]
    {
        assert!(residue.contains(expected), "{residue}");
    }
    let error = rack.perform(HostJob::Check, 1, Some(order("uid-1"))).await.unwrap_err();
    assert!(error.message.starts_with("the host is not clean: path /etc/cni"), "{error}");
    assert_eq!(error.presence, HostPresence::Answers);
    rack.host(|host| host.link = Link::Unreachable("no route to host".to_owned()));
    let error = rack.perform(HostJob::Inspect, 1, None).await.unwrap_err();
    assert_eq!(error.presence, HostPresence::Silent);
    assert_eq!(rack.performer.probe(&object()).await, HostPresence::Silent);
    rack.host(|host| host.link = Link::Up);
    assert_eq!(rack.performer.probe(&object()).await, HostPresence::Answers);
    assert_eq!(rack.node(), None, "nothing was changed");
}

#[tokio::test(start_paused = true)]
async fn a_reset_cleans_a_host_of_the_pool_that_metalform_has_not_changed() {
    const LEFT: &str = "/etc/cni/net.d/10-metalform.conflist";
    let rack = Rack::new().await;
    rack.host(|host| host.tree.write(LEFT, "of somebody".into(), of_root(0o644), 1));
    let residue = rack.perform(HostJob::Inspect, 0, None).await.unwrap().residue;
    assert!(residue.iter().any(|one| one.starts_with(&format!("path {LEFT}: is there"))), "{residue:?}");
    rack.perform(HostJob::Reset, 1, None).await.unwrap();
    let residue = rack.perform(HostJob::Inspect, 0, None).await.unwrap().residue;
    assert_eq!(residue, Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_host_is_deployed_reset_and_deployed_again() {
    let rack = Rack::new().await;
    for (uid, token) in [("uid-1", 1), ("uid-2", 3)] {
        let facts = rack.perform(HostJob::Check, token, Some(order(uid))).await.unwrap().facts.unwrap();
        assert_eq!(facts.operating_system, "debian");
        rack.perform(HostJob::Deploy, token, Some(order(uid))).await.unwrap();
        let node = rack.node().unwrap();
        assert_eq!(node["spec"]["providerID"], format!("metalform://{POOL_HOST}/{uid}"));
        assert_eq!(node["metadata"]["labels"]["tier"], "a");
        assert_eq!(node["metadata"]["annotations"]["metalform.dev/ssh-user"], "ops");
        assert_eq!(node["spec"]["taints"][0]["key"], "metalform.dev/not-ready");
        assert_eq!(node["status"]["conditions"][0]["status"], "True");
        rack.host(|host| {
            let config = host.tree.text("/var/lib/kubelet/config.yaml").unwrap();
            assert!(config.contains(&format!("providerID: \"metalform://{POOL_HOST}/{uid}\"")), "{config}");
            assert!(!config.contains("metalform.dev/not-ready"), "{config}");
            assert!(host.runs("kubelet.service"));
            assert_eq!(host.tree.text("/home/ops/.ssh/authorized_keys").unwrap().matches(KEY).count(), 1);
        });
        // A repetition changes nothing.
        rack.perform(HostJob::Deploy, token, Some(order(uid))).await.unwrap();

        // As a controller leaves one that is killed.
        let (client, name) = (&rack.performer.client, POOL_HOST.parse().unwrap());
        let left = BootstrapToken::from_random([7; 22]);
        tokens::create(client, &left, &name, Timestamp::MAX).await.unwrap();
        rack.perform(HostJob::StopKubelet, token + 1, None).await.unwrap();
        rack.host(|host| assert!(!host.runs("kubelet.service")));
        assert_eq!(tokens::ids(client, &name).await.unwrap(), Vec::<String>::new());
        rack.perform(HostJob::Reset, token + 1, None).await.unwrap();
        // As of a Host that was deleted and added again.
        let inspected = rack.perform(HostJob::Inspect, 0, None).await.unwrap();
        assert_eq!((inspected.residue, inspected.largest_token), (Vec::new(), token + 1));
        rack.play.stage.api.lock().store.remove("nodes", "", POOL_HOST);
    }
    let phases = rack.phases.lock().unwrap().join(", ");
    for expected in ["Base system", "Node joined", "End state verified", "Host reset"] {
        assert!(phases.contains(expected), "{phases}");
    }
}

#[tokio::test(start_paused = true)]
async fn no_host_gets_networks_that_the_cluster_does_not_have() {
    let rack = Rack::new().await;
    let manifest = rack.play.workspace.layout.static_pod("kube-apiserver");
    std::fs::create_dir_all(manifest.parent().unwrap()).unwrap();
    std::fs::write(&manifest, "- --service-cluster-ip-range=10.112.0.0/12\n").unwrap();
    let expected =
        "networks.services is 10.96.0.0/12, but this cluster has 10.112.0.0/12, which cannot be changed";
    for job in [HostJob::Check, HostJob::Deploy] {
        let error = rack.perform(job, 1, Some(order("uid-1"))).await.unwrap_err();
        assert!(error.message.contains(expected), "{job}: {error}");
        assert_eq!(error.presence, HostPresence::Answers);
    }
    rack.host(|host| assert!(!host.runs("kubelet.service")));
}

#[tokio::test(start_paused = true)]
async fn the_worker_of_an_earlier_claim_is_refused() {
    let rack = Rack::new().await;
    rack.perform(HostJob::StopKubelet, 2, None).await.unwrap();
    let performed = |rack: &Rack| rack.play.stage.session(POOL_HOST).unwrap().lock().performed.len();
    let before = performed(&rack);
    for job in
        [HostJob::Deploy, HostJob::RestartKubelet, HostJob::Reset, HostJob::StopKubelet, HostJob::Check]
    {
        let error = rack.perform(job, 1, Some(order("uid-1"))).await.unwrap_err();
        assert!(
            error.message.contains("refused a program under token 1: it has been given token 2"),
            "{error}"
        );
        assert_eq!(error.presence, HostPresence::Answers);
    }
    assert_eq!(performed(&rack), before);
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_is_not_that_of_its_host_is_left_alone() {
    let rack = Rack::new().await;
    let refused = async |job: HostJob, expected: &str| {
        let error = rack.perform(job, 2, None).await.unwrap_err();
        assert!(error.message.contains(expected), "{job}: {error}");
    };
    // An earlier Host has the address, and became a node.
    let machine_id = "machine-2";
    let other =
        json!({ "metadata": { "name": "rack-0" }, "status": { "nodeInfo": { "machineID": machine_id } } });
    rack.play.stage.api.lock().store.insert("nodes", "", other.clone());
    refused(HostJob::StopKubelet, "its host is that of the Node rack-0").await;
    let cloned = "the host has the machine id of node rack-0";
    let residue = rack.perform(HostJob::Inspect, 1, None).await.unwrap().residue.join("\n");
    assert!(residue.contains(cloned), "{residue}");
    rack.play.stage.api.lock().store.remove("nodes", "", "rack-0");
    rack.perform(HostJob::Deploy, 1, Some(order("uid-1"))).await.unwrap();
    // The kubelet of another node reports this machine, as its own does.
    rack.play.stage.api.lock().store.insert("nodes", "", other);
    let residue = rack.perform(HostJob::Inspect, 1, None).await.unwrap().residue.join("\n");
    assert!(!residue.contains(cloned), "{residue}");
    rack.play.stage.api.lock().store.remove("nodes", "", "rack-0");
    // A node that no Machine has deployed has the name.
    rack.play.stage.api.lock().store.change("nodes", "", POOL_HOST, |node| {
        node["spec"].as_object_mut().unwrap().remove("providerID");
    });
    let foreign = "Node rack-1 exists with provider ID \"\"";
    for job in [HostJob::StopKubelet, HostJob::Reset] {
        refused(job, foreign).await;
    }
    let residue = rack.perform(HostJob::Inspect, 1, None).await.unwrap().residue.join("\n");
    assert!(residue.contains(foreign), "{residue}");
    rack.host(|host| {
        assert!(host.runs("kubelet.service"));
        assert_eq!(host.tree.text(FENCE).unwrap(), "1\n", "it was not given the token");
        "rack-0".clone_into(&mut host.facts.hostname);
    });
    let residue = rack.perform(HostJob::Inspect, 1, None).await.unwrap().residue.join("\n");
    assert!(residue.contains("the hostname is rack-0, not rack-1"), "{residue}");
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_not_the_machines_is_left_alone() {
    let rack = Rack::new().await;
    let foreign =
        json!({ "metadata": { "name": POOL_HOST }, "spec": { "providerID": "metalform://rack-1/uid-9" } });
    rack.play.stage.api.lock().store.insert("nodes", "", foreign);
    let before = rack.node();
    let error = rack.perform(HostJob::Deploy, 1, Some(order("uid-1"))).await.unwrap_err();
    let expected = "Node rack-1 exists with provider ID \"metalform://rack-1/uid-9\", expected \"metalform://rack-1/uid-1\"";
    assert_eq!(error.message, expected);
    let identity = |node: Option<Value>| {
        node.map(|node| (node["metadata"]["uid"].clone(), node["spec"]["providerID"].clone()))
    };
    assert_eq!(identity(rack.node()), identity(before));
    let other = NodeOrder { kubelet: "1.2.3".to_owned(), ..order("uid-1") };
    // A kubelet that is only restarted would get the first bundle's version.
    for job in [HostJob::Deploy, HostJob::RestartKubelet] {
        let error = rack.perform(job, 1, Some(other.clone())).await.unwrap_err();
        assert!(
            error.message.starts_with("versions.kubelet is 1.2.3, but the bundle contains"),
            "{job}: {error}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn packages_are_upgraded_once_under_a_token_with_the_reboot_that_they_require() {
    let rack = Rack::new().await;
    let upgrade = |token: i64| {
        format!(
            "set -e\nexport DEBIAN_FRONTEND=noninteractive\n\
             if test -n \"$(ls -A /var/lib/dpkg/updates)\"; then\n    \
             apt-get -q -o DPkg::Lock::Timeout=120 check || true\n    \
             dpkg --force-confdef --force-confold --configure -a\nfi\napt-get -q update\n\
             apt-get -q -y -o DPkg::Lock::Timeout=120 -o Dpkg::Options::=--force-confdef \
             -o Dpkg::Options::=--force-confold dist-upgrade\n\
             mkdir -p /var/lib/metalform\ntouch /var/lib/metalform/upgraded-{token}\n"
        )
    };
    let boot_id = |rack: &Rack| rack.play.stage.session(POOL_HOST).unwrap().lock().facts.boot_id.clone();
    let performed = |rack: &Rack| rack.play.stage.session(POOL_HOST).unwrap().lock().performed.len();
    rack.host(|host| {
        for token in [1, 2] {
            host.brings.insert(upgrade(token), format!("/var/lib/metalform/upgraded-{token}"));
        }
        host.tree.write("/run/reboot-required", "".into(), of_root(0o644), 1);
    });
    let first = boot_id(&rack);
    rack.perform(HostJob::UpgradePackages, 1, Some(order("uid-1"))).await.unwrap();
    let (second, count) = (boot_id(&rack), performed(&rack));
    assert_ne!(first, second, "it was rebooted");
    rack.perform(HostJob::UpgradePackages, 1, Some(order("uid-1"))).await.unwrap();
    assert_eq!((boot_id(&rack), performed(&rack)), (second.clone(), count), "nothing is left to do");
    rack.perform(HostJob::UpgradePackages, 2, Some(order("uid-2"))).await.unwrap();
    assert_eq!(boot_id(&rack), second, "these packages require no reboot");
    assert!(performed(&rack) > count, "another claim upgrades again");
}

/// What the hook does: it is on until it is switched off, which works the second time.
const HOOK: &str = r#"#!/bin/sh
state=${0%/*}/../state
echo "$*" >>"$state.calls"
grep -q '"secret":{"password":"hunter2"}' || { echo 'no password' >&2; exit 1; }
case $1 in
status) if test -e "$state.2"; then echo off; else echo on; fi ;;
off) if test -e "$state.1"; then : >"$state.2"; else : >"$state.1"; fi ;;
esac
"#;

#[tokio::test]
async fn a_power_hook_switches_off_and_confirms() {
    let rack = Rack::new().await;
    let directory = rack.play.workspace.layout.power_hooks();
    let host = || {
        object_with(json!({
            "power": { "hook": "ipmi", "secretRef": { "namespace": "kube-system", "name": "bmc" } },
        }))
    };
    let perform = || rack.perform_on(host(), HostJob::PowerOff, 1, None);
    let error = perform().await.unwrap_err();
    assert!(error.message.contains("power.d/ipmi: No such file"), "{error}");
    std::fs::create_dir_all(&directory).unwrap();
    let (source, hook) = (directory.join("source"), directory.join("ipmi"));
    std::fs::write(&source, HOOK).unwrap();
    for program in [["cp", "source", "ipmi"], ["chmod", "755", "ipmi"], ["chmod", "755", "."]] {
        let mut command = std::process::Command::new(program[0]);
        assert!(command.args(&program[1..]).current_dir(&directory).status().unwrap().success());
    }
    assert!(hook.exists());
    let error = perform().await.unwrap_err();
    assert!(error.message.contains("cannot get secret/kube-system/bmc"), "{error}");
    let add = |secret: Value| rack.play.stage.api.lock().store.insert("secrets", "kube-system", secret);
    add(secret("bmc", "Opaque", &[("password", "hunter2")]));
    let error = perform().await.unwrap_err();
    let expected = "Secret kube-system/bmc has type \"Opaque\", expected \"metalform.dev/power\"";
    assert_eq!(error.message, expected);
    add(secret("bmc", "metalform.dev/power", &[("password", "hunter2")]));
    let error = perform().await.unwrap_err();
    assert_eq!(error.message, "power hook ipmi: the host is still on after off");
    perform().await.unwrap();
    let calls = std::fs::read_to_string(directory.join("../state.calls")).unwrap();
    let expected = ["status", "off", "status", "status", "off", "status"];
    let expected: String = expected.iter().map(|verb| format!("{verb} rack-1 192.0.2.12\n")).collect();
    assert_eq!(calls, expected);
    // No Host selects another program.
    let other = object_with(json!({ "power": { "hook": "../source" } }));
    let error = rack.perform_on(other, HostJob::PowerOff, 1, None).await.unwrap_err();
    assert!(error.message.contains("expected a name of lowercase letters"), "{error}");
}

fn private_key(passphrase: &str) -> String {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("id");
    let mut command = std::process::Command::new("ssh-keygen");
    command.args(["-q", "-t", "ed25519", "-C", "", "-N", passphrase, "-f"]).arg(&path);
    assert!(command.status().unwrap().success());
    std::fs::read_to_string(&path).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_host_is_entered_with_the_key_of_its_secret_or_not_at_all() {
    let rack = Rack::new().await;
    let ssh = |key: &str| json!({ "user": "ops", "keySecretRef": { "namespace": "kube-system", "name": "ops", "key": key } });
    let inspect = |key: &'static str| {
        rack.perform_on(object_with(json!({ "ssh": ssh(key) })), HostJob::Inspect, 0, None)
    };
    let add = |kind: &str, key: &str| {
        let secret = secret("ops", kind, &[("ssh-privatekey", key)]);
        rack.play.stage.api.lock().store.insert("secrets", "kube-system", secret);
    };
    let auth = "kubernetes.io/ssh-auth";
    let error = inspect("ssh-privatekey").await.unwrap_err();
    assert!(error.message.contains("cannot get secret/kube-system/ops: not found"), "{error}");
    assert_eq!(error.presence, HostPresence::Unknown, "it was not tried");
    let probed = rack.performer.probe(&object_with(json!({ "ssh": ssh("ssh-privatekey") }))).await;
    assert_eq!(probed, HostPresence::Unknown, "it was not tried");
    for (kind, key, expected) in [
        (
            "Opaque",
            private_key(""),
            "Secret kube-system/ops has type \"Opaque\", expected \"kubernetes.io/ssh-auth\"",
        ),
        (
            auth,
            private_key("hunter2"),
            "Secret kube-system/ops: the private key is encrypted; store it without a passphrase (ssh-keygen -p -N '')",
        ),
        (auth, KEY.to_owned(), "Secret kube-system/ops: this is no private key"),
    ] {
        add(kind, &key);
        assert_eq!(inspect("ssh-privatekey").await.unwrap_err().message, expected);
    }
    add(auth, &private_key(""));
    let error = inspect("id").await.unwrap_err();
    assert_eq!(error.message, "Secret kube-system/ops has no key \"id\"");
    inspect("ssh-privatekey").await.unwrap();
}
