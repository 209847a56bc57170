//! The machine controllers over the scripted API: from a MachineDeployment to a node, with one leader at a time.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use futures::FutureExt;
use futures::future::BoxFuture;
use metalform::controller::candidate::{Candidate, Rank};
use metalform::controller::controller_metrics::ControllerMetrics;
use metalform::controller::job_performer::{JobContext, JobPerformer};
use metalform::controller::leadership::lead;
use metalform::controller::machine_controller::{ControllerSettings, control};
use metalform::engine::cancel::{self, CancelLevel};
use metalform::machine::api::host::HostObject;
use metalform::machine::api::host_facts::HostFacts;
use metalform::machine::host_job::HostJob;
use metalform::machine::job_order::JobOrder;
use metalform::machine::job_outcome::{HostFindings, HostPresence, JobError};
use metalform::model::facts::Facts;
use serde_json::{Value, json};

use crate::api::rules::Fate;
use crate::api::{BUDGET, ScriptedApi};
use crate::scripts::{begin_clock, now};

pub const NAMESPACE: &str = "kube-system";

/// Hosts that take no time, or for ever; a deployed one has a Node that is Ready.
pub struct Performer {
    api: ScriptedApi,
    /// Who they work for.
    leader: &'static str,
    log: Arc<Mutex<Vec<String>>>,
    /// Jobs that do not end.
    hang: Option<HostJob>,
    /// How many jobs of these are dropped before their end.
    dropped: Arc<Mutex<usize>>,
}

struct Unfinished(Arc<Mutex<usize>>, bool);

impl Drop for Unfinished {
    fn drop(&mut self) {
        *self.0.lock().unwrap() += usize::from(!self.1);
    }
}

impl Performer {
    pub fn new(api: &ScriptedApi, leader: &'static str) -> Self {
        Self { api: api.clone(), leader, log: Arc::default(), hang: None, dropped: Arc::default() }
    }

    fn register(&self, order: &JobOrder) {
        let node = order.node.as_ref().unwrap();
        let mut annotations = node.settings.annotations.clone();
        annotations.insert("metalform.dev/ssh-host".to_owned(), order.host.spec.address.clone());
        let object = json!({
            "metadata": { "name": order.fence.host, "labels": node.settings.labels, "annotations": annotations },
            "spec": {
                "providerID": node.provider_id, "podCIDR": "10.233.7.0/24",
                "taints": [{ "key": "metalform.dev/not-ready", "effect": "NoSchedule" }],
            },
            "status": {
                "conditions": [
                    { "type": "Ready", "status": "True", "reason": "KubeletReady", "message": "ready" },
                    { "type": "NetworkUnavailable", "status": "False", "reason": "R", "message": "" },
                ],
                "nodeInfo": { "kubeletVersion": format!("v{}", node.kubelet) },
            },
        });
        self.api.lock().store.insert("nodes", "", object);
    }
}

#[async_trait]
impl JobPerformer for Performer {
    async fn perform(&self, order: &JobOrder, context: &JobContext<'_>) -> Result<HostFindings, JobError> {
        let mut unfinished = Unfinished(self.dropped.clone(), false);
        let line =
            format!("{}: {} of {} under {}", self.leader, order.job, order.fence.host, order.fence.token);
        self.log.lock().unwrap().push(line);
        (context.phase)("Base system");
        if self.hang == Some(order.job) {
            std::future::pending::<()>().await;
        }
        tokio::time::sleep(Duration::from_secs(5)).await;
        unfinished.1 = true;
        let facts = matches!(order.job, HostJob::Inspect | HostJob::Check);
        if order.job == HostJob::Deploy {
            self.register(order);
        }
        let facts = facts.then(|| HostFacts::from(&Facts::examples()[0]));
        Ok(HostFindings { facts, ..HostFindings::default() })
    }

    async fn probe(&self, _: &HostObject) -> HostPresence {
        HostPresence::Answers
    }
}

/// Two hosts, and a MachineDeployment of so many Machines.
pub fn cluster(replicas: u32) -> ScriptedApi {
    begin_clock();
    let api = ScriptedApi::new();
    {
        let mut server = api.lock();
        // A pass that goes by an old cache is repeated at once: with writes that take no time, the clock would never
        // come to the watch that renews the cache.
        server.rules.add("patch ", Fate::Slow(Duration::from_millis(1)), None);
        for (host, address) in [("rack-1", "10.0.0.1"), ("rack-2", "10.0.0.2")] {
            let host = json!({ "metadata": { "name": host }, "spec": { "address": address } });
            server.store.insert("hosts", "", host);
        }
        let template = json!({
            "metadata": { "labels": { "group": "a" } },
            "spec": {
                "providerSpec": { "value": { "cloudProvider": "metalform", "operatingSystem": "debian" } },
                "versions": { "kubelet": "1.35.4" },
            },
        });
        let spec = json!({ "replicas": replicas, "selector": { "matchLabels": { "group": "a" } }, "template": template });
        server.store.insert(
            "machinedeployments",
            NAMESPACE,
            json!({ "metadata": { "name": "nodes" }, "spec": spec }),
        );
    }
    api
}

fn settings() -> ControllerSettings {
    ControllerSettings {
        provisionings: NonZeroUsize::new(2).unwrap(),
        max_pods: 110,
        bundles: vec!["1.35.4".to_owned()],
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

pub fn states(api: &ScriptedApi) -> BTreeMap<String, String> {
    let server = api.lock();
    let hosts = server.store.all("hosts").into_iter();
    hosts.map(|host| (text(&host["metadata"]["name"]), text(&host["status"]["state"]))).collect()
}

pub fn phases(api: &ScriptedApi) -> Vec<String> {
    let server = api.lock();
    let phase = |machine: &&Value| machine["status"]["phase"].as_str().unwrap_or_default().to_owned();
    server.store.all("machines").iter().map(phase).collect()
}

/// Runs the controllers until `holds`, or for ten minutes.
pub async fn until(api: &ScriptedApi, performer: &Arc<Performer>, holds: impl Fn() -> bool) {
    until_measured(api, performer, &Arc::new(ControllerMetrics::new(now)), holds).await;
}

/// The same with metrics that outlast the run.
pub async fn until_measured(
    api: &ScriptedApi,
    performer: &Arc<Performer>,
    metrics: &Arc<ControllerMetrics>,
    holds: impl Fn() -> bool,
) {
    let controllers = control(api.client(), performer.clone(), settings(), metrics.clone(), now);
    let looking = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    let limited = async {
        tokio::select! {
            () = controllers => panic!("the controllers ended"),
            () = looking => {}
        }
    };
    if tokio::time::timeout(Duration::from_secs(600), limited).await.is_err() {
        let server = api.lock();
        let machines = serde_json::to_string_pretty(&server.store.all("machines")).unwrap();
        let hosts = serde_json::to_string_pretty(&server.store.all("hosts")).unwrap();
        panic!("{:?}\n{:?}\n{machines}\n{hosts}", performer.log.lock().unwrap(), server.changes);
    }
}

#[tokio::test(start_paused = true)]
async fn a_deployment_becomes_nodes_and_returns_its_hosts() {
    let api = cluster(2);
    let performer = Arc::new(Performer::new(&api, "a"));
    until(&api, &performer, || phases(&api) == ["Running"; 2]).await;
    let mut log = performer.log.lock().unwrap().clone();
    log.sort();
    let expected: Vec<String> = ["deployment", "inspection", "preflight check"]
        .iter()
        .flat_map(|job| ["rack-1", "rack-2"].map(|host| (job, host)))
        .map(|(job, host)| format!("a: {job} of {host} under {}", i32::from(*job != "inspection")))
        .collect();
    assert_eq!(log, expected);
    let node = api.lock().store.get("nodes", "rack-1").cloned().unwrap();
    assert_eq!(node["spec"]["taints"].as_array().map_or(0, Vec::len), 0, "it takes pods");

    api.lock()
        .store
        .change("machinedeployments", NAMESPACE, "nodes", |nodes| nodes["spec"]["replicas"] = json!(0));
    until(&api, &performer, || {
        phases(&api).is_empty() && states(&api).values().all(|one| one == "Available")
    })
    .await;
    assert!(api.lock().store.all("nodes").is_empty());
    let resets = performer.log.lock().unwrap().iter().filter(|line| line.contains("reset of")).count();
    assert_eq!(resets, 2);
}

#[tokio::test(start_paused = true)]
async fn the_drain_timeout_of_a_deployment_holds_for_machines_that_exist_and_replaces_none() {
    let api = cluster(1);
    let performer = Arc::new(Performer::new(&api, "a"));
    until(&api, &performer, || phases(&api) == ["Running"]).await;
    let (machine, host) = {
        let machine = api.lock().store.all("machines")[0].clone();
        (text(&machine["metadata"]["name"]), text(&machine["status"]["host"]))
    };
    let change = |change: Value| {
        api.lock().store.change("machinedeployments", NAMESPACE, "nodes", |nodes| {
            nodes["spec"].as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        });
    };
    change(json!({ "nodeDrainTimeout": "1m" }));
    let later = tokio::time::Instant::now() + Duration::from_secs(60);
    until(&api, &performer, || tokio::time::Instant::now() > later).await;
    assert_eq!(text(&api.lock().store.all("machines")[0]["metadata"]["name"]), machine);
    assert_eq!(api.lock().store.all("machinesets").len(), 1);

    let ready = json!({ "conditions": [{ "type": "Ready", "status": "True" }] });
    let other = json!({ "metadata": { "name": "other" }, "status": ready });
    let pod = json!({
        "metadata": { "name": "web", "annotations": { BUDGET: "1" } },
        "spec": { "nodeName": host, "containers": [] }, "status": { "phase": "Running" },
    });
    api.lock().store.insert("nodes", "", other);
    api.lock().store.insert("pods", "a", pod);
    change(json!({ "replicas": 0 }));
    let is_deleted = || !api.lock().store.all("machines")[0]["metadata"]["deletionTimestamp"].is_null();
    until(&api, &performer, is_deleted).await;
    // Of the clock of this test.
    api.lock().store.change("machines", NAMESPACE, &machine, |machine| {
        machine["metadata"]["deletionTimestamp"] = json!(now().to_string());
    });
    until(&api, &performer, || phases(&api).is_empty()).await;
}

/// Events about an object, in order: reason and message.
fn events(api: &ScriptedApi, kind: &str) -> Vec<String> {
    let server = api.lock();
    let mut events: Vec<&Value> = server.store.all("events");
    events.retain(|event| event["involvedObject"]["kind"] == kind);
    events.sort_by_key(|event| text(&event["metadata"]["name"]));
    events.iter().map(|event| format!("{}: {}", text(&event["reason"]), text(&event["message"]))).collect()
}

#[tokio::test(start_paused = true)]
async fn a_rollout_is_reported_by_events_that_it_does_not_depend_on() {
    let api = cluster(1);
    let performer = Arc::new(Performer::new(&api, "a"));
    until(&api, &performer, || {
        events(&api, "MachineDeployment").iter().any(|event| event.starts_with("RolloutComplete"))
    })
    .await;
    let set = text(&api.lock().store.all("machinesets")[0]["metadata"]["name"]);
    let machine = text(&api.lock().store.all("machines")[0]["metadata"]["name"]);
    let scaled = format!("ScalingMachineSet: scaled up machine set {set} from 0 to 1");
    let complete = "RolloutComplete: updated machines: 1 of 1, available: 1, old: 0".to_owned();
    let deployment = events(&api, "MachineDeployment");
    assert_eq!((deployment.first(), deployment.last()), (Some(&scaled), Some(&complete)));
    assert_eq!(events(&api, "MachineSet"), [format!("SuccessfulCreate: created machine {machine}")]);
    let machines = events(&api, "Machine");
    assert_eq!(machines.last().map(String::as_str), Some("NodeReady: the node is Ready and accepts pods"));
    assert!(api.lock().store.all("events").iter().all(|event| event["count"] == 1));

    // The API refuses every Event: what they are about happens all the same.
    let (api, before) = (cluster(1), api.lock().store.all("events").len());
    assert!(before > 8, "{before}");
    api.lock().rules.add("create events", crate::api::rules::Fate::Status(403), None);
    until(&api, &Arc::new(Performer::new(&api, "a")), || phases(&api) == ["Running"]).await;
    assert!(api.lock().store.all("events").is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_deployment_with_the_selector_of_an_earlier_one_resumes_when_that_is_gone() {
    // No Host changes when the earlier one goes: that would make a pass over the later one due too.
    let api = cluster(0);
    let performer = Arc::new(Performer::new(&api, "a"));
    let mut spec = api.lock().store.all("machinedeployments")[0]["spec"].clone();
    spec["replicas"] = json!(1);
    let other = json!({ "metadata": { "name": "other" }, "spec": spec });
    api.lock().store.insert("machinedeployments", NAMESPACE, other);
    let conflict =
        "SelectorConflict: selector group=a matches the Machines of MachineDeployment nodes".to_owned();
    until(&api, &performer, || {
        events(&api, "MachineDeployment").contains(&conflict)
            && api.lock().store.all("machinesets").len() == 1
            && states(&api).values().all(|state| state == "Available")
    })
    .await;
    assert!(phases(&api).is_empty());
    api.lock().store.change("machinedeployments", NAMESPACE, "nodes", |nodes| {
        nodes["metadata"]["deletionTimestamp"] = json!("2026-01-02T00:00:00Z");
    });
    until(&api, &performer, || phases(&api) == ["Running"]).await;
    let owner = text(&api.lock().store.all("machinesets")[0]["metadata"]["ownerReferences"][0]["name"]);
    assert_eq!(owner, "other");
}

/// Events about passes that failed: kind of the object, message, how often.
fn errors(api: &ScriptedApi) -> Vec<(String, String, u64)> {
    let server = api.lock();
    let all = server.store.all("events").into_iter().filter(|event| event["reason"] == "ReconcileError");
    all.map(|event| {
        assert_eq!(event["type"], "Warning");
        let kind = text(&event["involvedObject"]["kind"]);
        (kind, text(&event["message"]), event["count"].as_u64().unwrap())
    })
    .collect()
}

#[tokio::test(start_paused = true)]
async fn a_pass_that_fails_is_reported_by_one_event_and_a_conflict_by_none() {
    let api = cluster(1);
    {
        let rules = &mut api.lock().rules;
        rules.clear();
        rules.add("patch hosts/rack-1/status", Fate::Status(403), Some(4));
        rules.add("patch machinesets", Fate::Status(409), Some(2));
        // No API server answers: no Event has that.
        rules.add("patch hosts/rack-2/status", Fate::Refused, Some(3));
        rules.add("patch ", Fate::Slow(Duration::from_millis(1)), None);
    }
    let performer = Arc::new(Performer::new(&api, "a"));
    let metrics = Arc::new(ControllerMetrics::new(now));
    until_measured(&api, &performer, &metrics, || {
        phases(&api) == ["Running"]
            && states(&api).values().filter(|state| *state == "Available").count() == 1
    })
    .await;
    let message =
        "cannot patch status of host/rack-1: forbidden: forbidden: cannot patch hosts/rack-1/status";
    assert_eq!(errors(&api), [("Host".to_owned(), message.to_owned(), 4)]);
    let text = metrics.text();
    for (result, expected) in [("error", 7), ("conflict", 2)] {
        let lines = text.lines().filter(|line| line.contains(&format!("result=\"{result}\"}} ")));
        let counted: u64 = lines.map(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap()).sum();
        // Of jobs none failed.
        assert_eq!(counted, expected, "{result}\n{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn controllers_at_rest_write_nothing() {
    let api = cluster(2);
    let performer = Arc::new(Performer::new(&api, "a"));
    until(&api, &performer, || phases(&api) == ["Running"; 2]).await;
    let settled = tokio::time::Instant::now() + Duration::from_secs(60);
    until(&api, &performer, || tokio::time::Instant::now() > settled).await;
    let written = api.lock().changes.len();
    let hour = tokio::time::Instant::now() + Duration::from_secs(500);
    until(&api, &performer, || tokio::time::Instant::now() > hour).await;
    assert_eq!(api.lock().changes.len(), written, "{:?}", &api.lock().changes[written..]);
}

/// Those of two processes; inspections of the first one do not end.
fn two_performers(api: &ScriptedApi) -> (Arc<Performer>, Arc<Performer>) {
    let hanging = Performer { hang: Some(HostJob::Inspect), ..Performer::new(api, "a") };
    (Arc::new(hanging), Arc::new(Performer::new(api, "b")))
}

fn work(performer: &Arc<Performer>, client: &kube::Client) -> impl Fn() -> BoxFuture<'static, ()> {
    let (performer, client) = (performer.clone(), client.clone());
    let metrics = Arc::new(ControllerMetrics::new(now));
    move || control(client.clone(), performer.clone(), settings(), metrics.clone(), now).boxed()
}

fn candidate(identity: &str, rank: Rank) -> Candidate {
    Candidate { identity: identity.to_owned(), rank }
}

#[tokio::test(start_paused = true)]
async fn of_two_processes_one_acts_and_a_lost_lease_drops_its_jobs() {
    let api = cluster(1);
    let (first, second) = two_performers(&api);
    let (client_a, client_b) = (api.client(), api.client());
    let (handle, cancel) = cancel::channel();
    let (work_a, work_b) = (work(&first, &client_a), work(&second, &client_b));
    let (me_a, me_b) = (candidate("a/1", Rank::StandBy), candidate("b/1", Rank::StandBy));
    let a = lead(&client_a, &me_a, now, work_a, &cancel);
    let b = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        lead(&client_b, &me_b, now, work_b, &cancel).await;
    };
    let script = async {
        tokio::time::sleep(Duration::from_secs(60)).await;
        let mut log = first.log.lock().unwrap().clone();
        log.sort();
        assert_eq!(log, ["a: inspection of rack-1 under 0", "a: inspection of rack-2 under 0"]);
        assert_eq!(*second.log.lock().unwrap(), [""; 0]);
        assert_eq!(*first.dropped.lock().unwrap(), 0);
        // A renewal is refused: the jobs are dropped, and begun again with the Lease that is still the first one's.
        api.lock().rules.add(
            "update leases/kube-system/metalform-machine-controller",
            Fate::Status(403),
            Some(1),
        );
        tokio::time::sleep(Duration::from_secs(9)).await;
        assert_eq!((*first.dropped.lock().unwrap(), first.log.lock().unwrap().len()), (2, 4));
        assert_eq!(*second.log.lock().unwrap(), [""; 0]);
        api.lock().store.change("leases", NAMESPACE, "metalform-machine-controller", |lease| {
            lease["spec"]["holderIdentity"] = json!("b/1");
        });
        tokio::time::sleep(Duration::from_secs(120)).await;
        assert_eq!(phases(&api), ["Running"]);
        let jobs = (*first.dropped.lock().unwrap(), first.log.lock().unwrap().len());
        assert_eq!(jobs, (4, 4), "a former leader does nothing");
        handle.cancel(CancelLevel::AfterResource);
    };
    tokio::join!(a, b, script);
    let lease = api.lock().store.in_namespace("leases", NAMESPACE, "metalform-machine-controller").cloned();
    assert_eq!(lease.unwrap()["spec"]["holderIdentity"], Value::Null, "released at the end");
}

#[tokio::test(start_paused = true)]
async fn a_process_that_stands_by_works_while_the_preferred_one_is_away() {
    let api = cluster(1);
    let (first, second) = two_performers(&api);
    let (client_a, client_b) = (api.client(), api.client());
    let (handle, cancel) = cancel::channel();
    let (work_a, work_b) = (work(&first, &client_a), work(&second, &client_b));
    let (me_a, me_b) = (candidate("a/1", Rank::StandBy), candidate("b/1", Rank::Preferred));
    let holder = || {
        let lease =
            api.lock().store.in_namespace("leases", NAMESPACE, "metalform-machine-controller").cloned();
        lease.map(|lease| text(&lease["spec"]["holderIdentity"]))
    };
    let a = lead(&client_a, &me_a, now, work_a, &cancel);
    let b = async {
        tokio::time::sleep(Duration::from_secs(60)).await;
        lead(&client_b, &me_b, now, work_b, &cancel).await;
    };
    let script = async {
        tokio::time::sleep(Duration::from_secs(35)).await;
        assert_eq!(holder(), None, "it leaves time to the preferred one");
        tokio::time::sleep(Duration::from_secs(20)).await;
        assert_eq!(holder().as_deref(), Some("a/1"));
        assert_eq!(first.log.lock().unwrap().len(), 2);
        tokio::time::sleep(Duration::from_secs(30)).await;
        assert_eq!(holder().as_deref(), Some("b/1"), "returned within 25 s");
        assert_eq!(*first.dropped.lock().unwrap(), 2);
        tokio::time::sleep(Duration::from_secs(100)).await;
        assert_eq!((phases(&api), holder().as_deref()), (vec!["Running".to_owned()], Some("b/1")));
        handle.cancel(CancelLevel::AfterResource);
    };
    tokio::join!(a, b, script);
}
