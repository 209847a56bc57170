//! Machines, Hosts and Nodes of the scripted API, and passes over them.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kube::api::{Api, DeleteParams};
use metalform::controller::host_life_pass::pass_over_host;
use metalform::controller::life_context::LifeContext;
use metalform::controller::machine_life_pass::pass_over_machine;
use metalform::controller::machine_pass::{MachinePass, MachinePassError, NextPass};
use metalform::kube_api::tokens::{self, BootstrapToken};
use metalform::machine::api::machine::Machine;
use metalform::machine::life_rules::LifeRules;
use metalform::machine::object_event::ObjectEvent;
use metalform::machine::pool::Pool;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::workers::ScriptedWorkers;
use crate::api::rules::Fate;
use crate::api::{BUDGET, ScriptedApi};

pub const NAMESPACE: &str = "a";
/// A node that is no Machine's.
const OTHER_NODE: &str = "other";
/// More rounds than any life takes.
const ROUNDS: usize = 200;

/// Where a controller is killed.
pub struct Cut {
    /// After so many writes.
    pub write: usize,
    pub fate: Fate,
}

pub struct ScriptedPool {
    pub api: ScriptedApi,
    pub workers: ScriptedWorkers,
    pub now: Timestamp,
    pub cut: Option<Cut>,
    /// `Host h1 Normal Clean: the host is clean and free`, of every pass of a round.
    pub events: Vec<String>,
    client: kube::Client,
    /// A round at this time may do more than one at an earlier time.
    wake: Option<Timestamp>,
}

impl ScriptedPool {
    pub fn new(hosts: &[&str]) -> Self {
        let api = ScriptedApi::new();
        let client = api.client();
        let now = "2026-01-02T00:00:00Z".parse().unwrap();
        let workers = ScriptedWorkers::default();
        let pool = Self { api, workers, now, cut: None, events: Vec::new(), client, wake: None };
        // Where pods go that are evicted.
        let ready = json!({ "conditions": [{ "type": "Ready", "status": "True" }] });
        let other = json!({ "metadata": { "name": OTHER_NODE }, "status": ready });
        pool.api.lock().store.insert("nodes", "", other);
        for host in hosts {
            pool.add_host(host);
        }
        pool
    }

    pub fn add_host(&self, name: &str) {
        self.workers.add(name, false);
        self.insert_host(name);
    }

    pub fn add_dirty_host(&self, name: &str) {
        self.workers.add(name, true);
        self.insert_host(name);
    }

    /// The Host is another object of the same name; its host is the same.
    pub fn add_again(&self, name: &str) {
        self.api.lock().store.remove("hosts", "", name);
        self.insert_host(name);
    }

    fn insert_host(&self, name: &str) {
        // Of h1 and so on; any other name is there once.
        let number: u8 = name.trim_start_matches('h').parse().unwrap_or(99);
        let spec = json!({ "address": format!("192.0.2.{number}") });
        let host = json!({ "metadata": { "name": name }, "spec": spec });
        self.api.lock().store.insert("hosts", "", host);
    }

    pub fn add_machine(&self, name: &str) {
        let value = json!({ "cloudProvider": "metalform", "operatingSystem": "debian" });
        let taint = json!({ "key": "machine", "effect": "NoSchedule" });
        let machine = json!({
            "metadata": { "name": name, "labels": { "group": "a" } },
            "spec": {
                "providerSpec": { "value": value }, "versions": { "kubelet": "1.35.4" }, "taints": [taint],
            },
        });
        self.api.lock().store.insert("machines", NAMESPACE, machine);
    }

    /// A Machine as a MachineSet creates it, after it has chosen a host.
    pub fn note_host(&self, machine: &str, host: &str) {
        self.change("machines", NAMESPACE, machine, |machine| {
            machine["metadata"]["finalizers"] =
                json!(["metalform.dev/host-released", "metalform.dev/node-deleted"]);
            machine["status"] = json!({ "host": host });
        });
    }

    /// With a budget that forbids its eviction, or without.
    pub fn add_pod(&self, name: &str, node: &str, forbidden: bool) {
        let annotations = if forbidden { json!({ BUDGET: "1" }) } else { json!({}) };
        let pod = json!({
            "metadata": { "name": name, "annotations": annotations },
            "spec": { "nodeName": node, "containers": [] }, "status": { "phase": "Running" },
        });
        self.api.lock().store.insert("pods", NAMESPACE, pod);
    }

    pub async fn delete_machine(&self, name: &str) {
        let api: Api<Machine> = Api::namespaced(self.client.clone(), NAMESPACE);
        api.delete(name, &DeleteParams::default()).await.unwrap();
    }

    pub fn change(&self, plural: &str, namespace: &str, name: &str, change: impl FnOnce(&mut Value)) {
        self.api.lock().store.change(plural, namespace, name, change);
    }

    pub fn all(&self, plural: &str) -> Vec<Value> {
        self.api.lock().store.all(plural).into_iter().cloned().collect()
    }

    pub fn one(&self, plural: &str, name: &str) -> Value {
        self.all(plural).into_iter().find(|one| one["metadata"]["name"] == name).unwrap()
    }

    /// Nodes of Machines, and pods.
    pub fn remains(&self) -> usize {
        self.nodes() + self.all("pods").len()
    }

    /// Nodes of Machines.
    pub fn nodes(&self) -> usize {
        self.all("nodes").iter().filter(|node| node["metadata"]["name"] != OTHER_NODE).count()
    }

    pub fn condition(&self, machine: &str, kind: &str) -> Value {
        let machine = self.one("machines", machine);
        let conditions = machine["status"]["conditions"].as_array().unwrap();
        conditions.iter().find(|one| one["type"] == kind).unwrap().clone()
    }

    pub fn state(&self, host: &str) -> String {
        text(&self.one("hosts", host)["status"]["state"])
    }

    pub fn claimant(&self, host: &str) -> String {
        text(&self.one("hosts", host)["status"]["claim"]["machine"]["name"])
    }

    pub fn requests(&self) -> usize {
        self.api.lock().requests
    }

    pub fn writes(&self) -> Vec<String> {
        self.api.lock().changes.clone()
    }

    /// Hosts with state and claim, Machines with phase, Ready and node.
    pub fn shown(&self) -> String {
        let hosts = self.all("hosts").into_iter().map(|host| {
            let machine = text(&host["status"]["claim"]["machine"]["name"]);
            let machine = if machine.is_empty() { "-".to_owned() } else { machine };
            format!("{} {} {machine}", text(&host["metadata"]["name"]), text(&host["status"]["state"]))
        });
        let machines = self.all("machines").into_iter().map(|machine| {
            let conditions = machine["status"]["conditions"].as_array().cloned().unwrap_or_default();
            let ready = conditions.iter().any(|one| one["type"] == "Ready" && one["status"] == "True");
            let ready = if ready { " Ready" } else { "" };
            let node = text(&machine["status"]["nodeRef"]["name"]);
            let node = if node.is_empty() { node } else { format!(" on {node}") };
            format!(
                "{} {}{ready}{node}",
                text(&machine["metadata"]["name"]),
                text(&machine["status"]["phase"])
            )
        });
        hosts.chain(machines).collect::<Vec<_>>().join(", ")
    }

    fn parsed<T: DeserializeOwned>(&self, plural: &str) -> Vec<Arc<T>> {
        self.all(plural).into_iter().map(|one| Arc::new(serde_json::from_value(one).unwrap())).collect()
    }

    /// What caches show that are up to date.
    pub fn cached(&self) -> Pool {
        Pool::new(
            self.parsed("machines"),
            &self.parsed("hosts").into_iter().collect(),
            self.parsed("nodes"),
            &LifeRules::DEFAULT,
        )
    }

    /// How many writes were accepted, and when the next pass is due.
    pub async fn pass_over_machine(&self, cached: &Pool, name: &str) -> (usize, NextPass) {
        ended(self.try_pass_over_machine(cached, name).await.unwrap())
    }

    pub async fn pass_over_host(&self, cached: &Pool, name: &str) -> (usize, NextPass) {
        ended(self.try_pass_over_host(cached, name).await.unwrap())
    }

    async fn try_pass_over_machine(
        &self,
        cached: &Pool,
        name: &str,
    ) -> Result<MachinePass, MachinePassError> {
        let rules = LifeRules::DEFAULT;
        let context = LifeContext { client: &self.client, workers: &self.workers, rules: &rules };
        let found = self.all("machines").into_iter().find(|one| one["metadata"]["name"] == name);
        let uid = found.map(|machine| text(&machine["metadata"]["uid"])).unwrap_or_default();
        let Some(objects) = cached.machine(&uid) else { return Ok(nothing()) };
        pass_over_machine(context, &objects, self.now).await
    }

    pub async fn try_pass_over_host(
        &self,
        cached: &Pool,
        name: &str,
    ) -> Result<MachinePass, MachinePassError> {
        let rules = LifeRules::DEFAULT;
        let context = LifeContext { client: &self.client, workers: &self.workers, rules: &rules };
        let Some(objects) = cached.host(name) else { return Ok(nothing()) };
        pass_over_host(context, &objects, self.now).await
    }

    /// One pass over every Host and every Machine; then jobs end, and kubelets report. When the passes are due again.
    pub async fn round(&mut self) -> Vec<NextPass> {
        let mut due = Vec::new();
        self.wake = None;
        let names = |plural: &str| self.all(plural).into_iter().map(|one| text(&one["metadata"]["name"]));
        let (hosts, machines): (Vec<_>, Vec<_>) = (names("hosts").collect(), names("machines").collect());
        for host in hosts {
            self.arm();
            let pass = self.try_pass_over_host(&self.cached(), &host).await;
            due.extend(self.survived(pass));
        }
        for machine in machines {
            self.arm();
            let pass = self.try_pass_over_machine(&self.cached(), &machine).await;
            due.extend(self.survived(pass));
        }
        self.check();
        due
    }

    /// The next write has the fate of the cut, if it is its turn.
    fn arm(&mut self) {
        let mut server = self.api.lock();
        let Some(cut) = self.cut.as_ref().filter(|cut| cut.write == server.changes.len()) else { return };
        for verb in ["patch ", "delete ", "create "] {
            server.rules.add(verb, cut.fate.clone(), Some(1));
        }
    }

    /// An error is the end of this controller.
    fn survived(&mut self, pass: Result<MachinePass, MachinePassError>) -> Option<NextPass> {
        match pass {
            Ok(pass) => {
                self.api.lock().rules.clear();
                if let NextPass::At(at) = pass.next {
                    self.wake = Some(self.wake.map_or(at, |earlier| earlier.min(at)));
                }
                self.events.extend(pass.events.iter().map(shown));
                Some(pass.next)
            }
            Err(error) => {
                assert!(self.cut.take().is_some(), "{error}");
                self.api.lock().rules.clear();
                self.workers.kill();
                None
            }
        }
    }

    /// What holds after every round.
    fn check(&self) {
        for host in self.all("hosts") {
            let name = text(&host["metadata"]["name"]);
            if host["status"]["state"] == "Available" {
                assert!(!self.workers.is_dirty(&name), "{name} is available and not clean");
            }
            let runs = self.workers.runs(&name);
            let has_claim = !host["status"]["claim"].is_null();
            assert!(has_claim || !runs, "{name} is free, and its kubelet runs");
        }
        let claims: Vec<Value> =
            self.all("hosts").iter().map(|host| host["status"]["claim"]["machine"]["uid"].clone()).collect();
        for machine in self.all("machines") {
            let own = claims.iter().filter(|uid| **uid == machine["metadata"]["uid"]).count();
            assert!(own <= 1, "{machine} has two hosts");
        }
    }

    /// Jobs and probes end, and kubelets register and report.
    async fn happen(&mut self) -> bool {
        let ended = self.workers.finish(self.now);
        let kubelets: Vec<_> = {
            let scripted = self.workers.lock();
            let all = scripted.metals.iter();
            all.map(|(name, metal)| (name.to_string(), metal.kubelet.clone(), metal.cut_off)).collect()
        };
        let before = self.all("nodes");
        for (name, kubelet, cut_off) in kubelets {
            let Some(order) = kubelet.and_then(|order| order.node) else { continue };
            let is_there = before.iter().any(|node| node["metadata"]["name"] == name.as_str());
            let ready = json!([{ "type": "Ready", "status": if cut_off { "Unknown" } else { "True" } }]);
            if is_there {
                self.change("nodes", "", &name, |node| node["status"]["conditions"] = ready);
                continue;
            }
            let taint = json!({ "key": "metalform.dev/not-ready", "effect": "NoSchedule" });
            let node = json!({
                "metadata": { "name": name, "labels": { "kept": "by another" } },
                "spec": { "providerID": order.provider_id, "taints": [taint] },
                "status": { "conditions": [{ "type": "Ready", "status": "False" }] },
            });
            self.api.lock().store.insert("nodes", "", node);
        }
        ended || before != self.all("nodes")
    }

    /// A round, and what happens after it.
    pub async fn step(&mut self) {
        self.round().await;
        self.happen().await;
        self.now += SignedDuration::from_secs(1);
    }

    /// Until nothing happens at any time.
    pub async fn settle(&mut self) {
        for _ in 0..ROUNDS {
            let (before, armed) = (self.writes().len(), self.cut.is_some());
            let due = self.round().await;
            let happened = self.happen().await;
            let killed = armed && self.cut.is_none();
            if killed || happened || before != self.writes().len() || due.contains(&NextPass::Now) {
                self.now += SignedDuration::from_secs(1);
                continue;
            }
            match self.wake {
                Some(wake) => self.now = self.now.max(wake),
                None => return,
            }
        }
        panic!("it does not end: {} {:?}", self.shown(), self.writes());
    }

    /// For so many seconds.
    pub async fn advance(&mut self, seconds: i64) {
        let end = self.now + SignedDuration::from_secs(seconds);
        while self.now < end {
            self.round().await;
            self.happen().await;
            self.now += SignedDuration::from_secs(5);
        }
    }

    /// A token with which a kubelet could join as this node.
    pub async fn add_token(&self, node: &str) {
        let token = BootstrapToken::from_random([7; 22]);
        let expires = self.now + SignedDuration::from_hours(1);
        tokens::create(&self.client, &token, &node.parse().unwrap(), expires).await.unwrap();
    }
}

fn ended(pass: MachinePass) -> (usize, NextPass) {
    (pass.done.len(), pass.next)
}

fn shown(event: &ObjectEvent) -> String {
    let object = &event.object;
    let (kind, name) = (object.kind.as_deref().unwrap(), object.name.as_deref().unwrap());
    assert!(object.uid.is_some(), "{event:?}");
    let warning = if event.warning { "Warning" } else { "Normal" };
    format!("{kind} {name} {warning} {}: {}", event.reason, event.message)
}

fn nothing() -> MachinePass {
    MachinePass {
        done: Vec::new(),
        events: Vec::new(),
        ready_after: None,
        conflict: None,
        next: NextPass::OnChange,
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
