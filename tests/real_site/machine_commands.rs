//! The commands that people type for Machines and Hosts, over the scripted API.

use std::time::Duration;

use jiff::Timestamp;
use metalform::machine::entered_host::EnteredHost;
use metalform::machine::host_change::HostRequest;
use metalform::model::name::HostName;
use metalform::operation::cluster_site::ApiPort;
use metalform::service::command_error::{CommandError, ErrorClass};
use metalform::service::host_add::{self, HostAddError, HostAddRequest};
use metalform::service::machine_rollout::{self, DeploymentName};
use metalform::service::{host_list, host_state_change, machine_list};
use serde_json::{Value, json};

use crate::api::ScriptedApi;
use crate::api::rules::Fate;

const NAMESPACE: &str = "kube-system";

fn now() -> Timestamp {
    "2026-11-23T12:00:00.25Z".parse().unwrap()
}

fn name(text: &str) -> HostName {
    text.parse().unwrap()
}

/// A cluster with the bootstrap node and a master.
fn cluster() -> (ScriptedApi, ApiPort) {
    let api = ScriptedApi::new();
    {
        let mut server = api.lock();
        for (node, role, address) in [("boot", "bootstrap", "10.0.0.1"), ("master-1", "master", "10.0.0.2")] {
            let labels = json!({ format!("node-role.kubernetes.io/{role}"): "" });
            let status = json!({ "addresses": [{ "type": "InternalIP", "address": address }] });
            let node = json!({ "metadata": { "name": node, "labels": labels }, "status": status });
            server.store.insert("nodes", "", node);
        }
    }
    let port = ApiPort::Client(api.client());
    (api, port)
}

fn entry(host: &str, address: &str) -> EnteredHost {
    EnteredHost {
        name: name(host),
        address: address.to_owned(),
        port: None,
        user: Some("ops".to_owned()),
        sudo: true,
        host_key: None,
        bastion: None,
        labels: [("rack".to_owned(), "a".to_owned())].into(),
        zone: Some("a".to_owned()),
    }
}

async fn add(port: &ApiPort, host: &str, address: &str) -> Result<usize, HostAddError> {
    host_add::add(port, HostAddRequest::One(entry(host, address))).await.map(|added| added.len())
}

async fn add_roster(port: &ApiPort, text: &str) -> Result<usize, HostAddError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("roster.yaml");
    std::fs::write(&path, text).unwrap();
    host_add::add(port, HostAddRequest::Roster(path)).await.map(|added| added.len())
}

#[tokio::test]
async fn a_host_is_added_once() {
    let (api, port) = cluster();
    assert_eq!(add(&port, "rack-1", "10.0.0.3").await.unwrap(), 1);
    let stored = api.lock().store.get("hosts", "rack-1").cloned().unwrap();
    assert_eq!(stored["spec"]["ssh"], json!({ "port": 22, "user": "ops", "sudo": true }));
    assert_eq!(stored["spec"]["failureDomain"], "a");
    assert_eq!(stored["metadata"]["labels"], json!({ "rack": "a" }));
    for (host, address, expected) in [
        ("rack-1", "10.0.0.4", "host rack-1 exists already"),
        ("rack-2", "10.0.0.3", "host rack-2: address 10.0.0.3 is that of Host rack-1"),
        ("rack-2", "10.0.0.1", "host rack-2: address 10.0.0.1 is that of the bootstrap node boot"),
        (
            "rack-2",
            "10.0.0.2",
            "host rack-2: address 10.0.0.2 is that of Node master-1, which no Machine has deployed",
        ),
    ] {
        let error = add(&port, host, address).await.unwrap_err();
        assert_eq!((error.errors(), error.class()), (vec![expected.to_owned()], ErrorClass::Refused));
    }
    assert_eq!(api.lock().store.all("hosts").len(), 1);
}

#[tokio::test]
async fn of_a_roster_all_hosts_are_added_or_none() {
    let (api, port) = cluster();
    let good = "hosts:\n  a: { address: 10.0.0.3 }\n  b: { address: 10.0.0.4, labels: { rack: b } }\n";
    for (text, expected) in [
        (
            "hosts:\n  a: { address: 10.0.0.3 }\n  b: { address: 10.0.0.3 }\n",
            "address 10.0.0.3 is that of Host a",
        ),
        ("hosts:\n  a: { address: 10.0.0.3 }\n  b: { address: 10.0.0.2 }\n", "is that of Node master-1"),
        (
            "hosts:\n  a: { address: 10.0.0.3 }\n  b: { address: 10.0.0.4, roles: [etcd] }\n",
            "role etcd is not possible",
        ),
        ("hosts:\n  a: { address: 10.0.0.3 }\n  b: { adress: 10.0.0.4 }\n", "adress"),
        ("hosts: {}\n", "no hosts"),
    ] {
        let error = add_roster(&port, text).await.unwrap_err();
        assert!(error.errors().join("\n").contains(expected), "{text}: {error}");
        assert!(api.lock().store.all("hosts").is_empty(), "{text}");
        assert_eq!(api.lock().changes, Vec::<String>::new(), "{text}");
    }
    // What only the API server refuses, it refuses in the dry run.
    api.lock().rules.add("create hosts", Fate::Status(403), Some(1));
    assert_eq!(add_roster(&port, good).await.unwrap_err().class(), ErrorClass::Api);
    assert!(api.lock().store.all("hosts").is_empty());
    assert_eq!(add_roster(&port, good).await.unwrap(), 2);
    let listed = host_list::list(&port).await.unwrap();
    assert_eq!(listed.iter().map(|host| host.name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
}

/// A Host in use by the Machine m-1, which exists if `exists`.
fn in_use(api: &ScriptedApi, exists: bool) {
    let mut server = api.lock();
    let spec = json!({ "versions": { "kubelet": "1.35.4" }, "providerSpec": { "value": {} } });
    let machine = json!({ "metadata": { "name": "m-1" }, "spec": spec });
    server.store.insert("machines", NAMESPACE, machine);
    let uid = server.store.in_namespace("machines", NAMESPACE, "m-1").unwrap()["metadata"]["uid"].clone();
    let machine = json!({ "namespace": NAMESPACE, "name": "m-1", "uid": uid });
    let claim = json!({ "machine": machine, "token": 1, "since": "2026-11-23T11:00:00Z" });
    let status = json!({ "state": "InUse", "claim": claim, "lastToken": 1 });
    let host =
        json!({ "metadata": { "name": "rack-1" }, "spec": { "address": "10.0.0.3" }, "status": status });
    server.store.insert("hosts", "", host);
    if !exists {
        server.store.remove("machines", NAMESPACE, "m-1");
    }
}

fn annotations_of(api: &ScriptedApi, host: &str) -> Value {
    api.lock().store.get("hosts", host).unwrap()["metadata"]["annotations"].clone()
}

#[tokio::test]
async fn a_host_is_released_when_nothing_runs_on_it() {
    let release = |powered_off| HostRequest::Release { powered_off };
    let rack_1 = name("rack-1");
    let (api, port) = cluster();
    in_use(&api, true);
    let error = host_state_change::change(&port, &rack_1, &release(false), now()).await.unwrap_err();
    assert_eq!(error.to_string(), "host rack-1: Machine kube-system/m-1 exists and may run its node");
    assert_eq!(error.class(), ErrorClass::Refused);
    assert!(error.hints()[0].contains("`metalform host release rack-1 --confirm-powered-off`"));
    assert_eq!(annotations_of(&api, "rack-1"), Value::Null);
    let (host, changed) = host_state_change::change(&port, &rack_1, &release(true), now()).await.unwrap();
    assert_eq!(
        (host.machine.as_deref(), changed),
        (Some("kube-system/m-1"), true),
        "the controllers end the claim"
    );
    assert_eq!(
        annotations_of(&api, "rack-1"),
        json!({ "metalform.dev/powered-off": "2026-11-23T12:00:00.25Z" })
    );

    // A Machine of that name with another UID is another one.
    let (api, port) = cluster();
    in_use(&api, false);
    api.lock().store.insert(
        "machines",
        NAMESPACE,
        json!({
            "metadata": { "name": "m-1" },
            "spec": { "versions": { "kubelet": "1.35.4" }, "providerSpec": { "value": {} } },
        }),
    );
    let ready = json!({ "conditions": [{ "type": "Ready", "status": "True" }] });
    api.lock().store.insert("nodes", "", json!({ "metadata": { "name": "rack-1" }, "status": ready }));
    let error = host_state_change::change(&port, &rack_1, &release(false), now()).await.unwrap_err();
    assert!(error.to_string().contains("no longer exists, but its Node is Ready"), "{error}");
    api.lock().store.remove("nodes", "", "rack-1");
    let (_, changed) = host_state_change::change(&port, &rack_1, &release(false), now()).await.unwrap();
    assert!(!changed, "the controllers reset it by themselves");
}

#[tokio::test]
async fn a_host_is_declared_lost_when_its_node_is_not_ready() {
    let (api, port) = cluster();
    in_use(&api, true);
    let (rack_1, lost) = (name("rack-1"), HostRequest::Lost { reason: "stolen".to_owned() });
    let ready = json!({ "conditions": [{ "type": "Ready", "status": "True" }] });
    api.lock().store.insert("nodes", "", json!({ "metadata": { "name": "rack-1" }, "status": ready }));
    let error = host_state_change::change(&port, &rack_1, &lost, now()).await.unwrap_err();
    let expected = "host rack-1: it runs the Node of Machine kube-system/m-1, which is Ready";
    assert_eq!((error.to_string().as_str(), error.class()), (expected, ErrorClass::Refused));
    assert!(error.hints()[0].contains("`metalform host lost rack-1 --reason REASON --confirm-powered-off`"));
    assert_eq!(annotations_of(&api, "rack-1"), Value::Null);
    api.lock().store.change("nodes", "", "rack-1", |node| {
        node["status"]["conditions"][0]["status"] = json!("Unknown");
    });
    let (_, changed) = host_state_change::change(&port, &rack_1, &lost, now()).await.unwrap();
    assert!(changed);
    assert_eq!(annotations_of(&api, "rack-1"), json!({ "metalform.dev/lost": "stolen" }));
    let (_, changed) = host_state_change::change(&port, &rack_1, &lost, now()).await.unwrap();
    assert!(!changed, "it is declared already");
}

#[tokio::test]
async fn a_host_in_quarantine_is_inspected_only_after_its_release() {
    let (api, port) = cluster();
    add(&port, "rack-1", "10.0.0.3").await.unwrap();
    let rack_1 = name("rack-1");
    let quarantine = HostRequest::Quarantine { reason: "smoke".to_owned() };
    let (host, _) = host_state_change::change(&port, &rack_1, &quarantine, now()).await.unwrap();
    assert_eq!(host.quarantine.as_deref(), Some("smoke"));
    let state = |api: &ScriptedApi, state: &str| {
        api.lock().store.change("hosts", "", "rack-1", |host| host["status"] = json!({ "state": state }));
    };
    state(&api, "Quarantined");
    let error = host_state_change::change(&port, &rack_1, &HostRequest::Inspect, now()).await.unwrap_err();
    assert_eq!(error.to_string(), "host rack-1: its state is Quarantined, which only a release ends");
    let release = HostRequest::Release { powered_off: false };
    let (host, _) = host_state_change::change(&port, &rack_1, &release, now()).await.unwrap();
    assert_eq!(host.quarantine, None);
    assert_eq!(annotations_of(&api, "rack-1"), json!({ "metalform.dev/release": "2026-11-23T12:00:00.25Z" }));
    state(&api, "Available");
    let (_, changed) = host_state_change::change(&port, &rack_1, &HostRequest::Inspect, now()).await.unwrap();
    assert!(changed);
    let (_, changed) = host_state_change::change(&port, &rack_1, &HostRequest::Inspect, now()).await.unwrap();
    assert!(!changed, "it was requested at this time");
    let missing = host_state_change::change(&port, &name("rack-9"), &release, now()).await.unwrap_err();
    assert_eq!(missing.to_string(), "Host rack-9 not found");
    // What a controller wrote meanwhile is not overwritten.
    api.lock().rules.add("patch hosts/rack-1", Fate::Status(409), Some(1));
    let error = host_state_change::change(&port, &rack_1, &quarantine, now()).await.unwrap_err();
    assert_eq!(error.hints(), ["the object has changed meanwhile; run the same command again"]);
}

fn template(kubelet: &str, labels: Value) -> Value {
    let spec = json!({ "versions": { "kubelet": kubelet }, "providerSpec": { "value": {} } });
    json!({ "metadata": { "labels": labels }, "spec": spec })
}

/// A MachineDeployment with revision 2 of its template, and the MachineSets of both revisions.
fn deployed() -> (ScriptedApi, ApiPort, DeploymentName) {
    let (api, port) = cluster();
    let labels = json!({ "group": "a" });
    let selector = json!({ "matchLabels": labels });
    let spec = json!({ "replicas": 2, "selector": selector, "template": template("1.35.4", labels.clone()) });
    let mut server = api.lock();
    server.store.insert(
        "machinedeployments",
        NAMESPACE,
        json!({ "metadata": { "name": "md", "generation": 1 }, "spec": spec }),
    );
    let uid =
        server.store.in_namespace("machinedeployments", NAMESPACE, "md").unwrap()["metadata"]["uid"].clone();
    for (revision, kubelet, uid) in
        [("1", "1.35.3", &uid), ("2", "1.35.4", &uid), ("7", "1.35.9", &json!("other"))]
    {
        let owner = json!({ "apiVersion": "cluster.k8s.io/v1alpha1", "kind": "MachineDeployment", "name": "md", "uid": uid, "controller": true });
        let annotations = json!({ "machinedeployment.clusters.k8s.io/revision": revision });
        let labels = json!({ "group": "a", "machine-template-hash": revision });
        let metadata = json!({ "name": format!("md-{revision}"), "annotations": annotations, "ownerReferences": [owner] });
        let spec = json!({ "selector": selector, "template": template(kubelet, labels) });
        server.store.insert("machinesets", NAMESPACE, json!({ "metadata": metadata, "spec": spec }));
    }
    drop(server);
    (api, port, DeploymentName { namespace: NAMESPACE.to_owned(), name: "md".to_owned() })
}

fn spec(api: &ScriptedApi) -> Value {
    api.lock().store.in_namespace("machinedeployments", NAMESPACE, "md").unwrap()["spec"].clone()
}

#[tokio::test]
async fn a_restart_and_its_undo_change_the_template_alone() {
    let (api, port, md) = deployed();
    let before = spec(&api);
    machine_rollout::restart(&port, &md, now()).await.unwrap();
    let annotations = spec(&api)["template"]["metadata"]["annotations"].clone();
    assert_eq!(annotations, json!({ "kubectl.kubernetes.io/restartedAt": "2026-11-23T12:00:00.250+0000" }));
    // The latest other template is that before the restart.
    let undone = machine_rollout::undo(&port, &md, None).await.unwrap();
    assert_eq!(undone.message, "rolled back to revision 2");
    assert_eq!(spec(&api), before);
    let undone = machine_rollout::undo(&port, &md, None).await.unwrap();
    assert_eq!(undone.message, "rolled back to revision 1");
    assert_eq!(spec(&api)["template"], template("1.35.3", json!({ "group": "a" })));
    let undone = machine_rollout::undo(&port, &md, Some(1)).await.unwrap();
    assert_eq!(
        (undone.changed, undone.message.as_str()),
        (false, "unchanged: its template is that of revision 1")
    );
    let error = machine_rollout::undo(&port, &md, Some(7)).await.unwrap_err();
    assert_eq!(error.to_string(), "machinedeployment md: revision 7 is not kept; those that are kept: 1, 2");
}

#[tokio::test]
async fn a_paused_rollout_is_neither_restarted_nor_undone() {
    let (api, port, md) = deployed();
    let paused = async |paused| machine_rollout::set_paused(&port, &md, paused).await.unwrap().message;
    assert_eq!(paused(true).await, "paused");
    assert_eq!(paused(true).await, "unchanged: it is paused");
    assert_eq!(spec(&api)["paused"], true);
    let restarted = machine_rollout::restart(&port, &md, now()).await.unwrap_err();
    let undone = machine_rollout::undo(&port, &md, None).await.unwrap_err();
    for error in [restarted, undone] {
        assert_eq!(
            (error.to_string().as_str(), error.class()),
            ("machinedeployment md is paused", ErrorClass::Refused)
        );
        let resume = format!("run `metalform machinedeployment rollout resume md -n {NAMESPACE}` first");
        assert_eq!(error.hints(), [resume]);
    }
    assert_eq!(paused(false).await, "resumed");
    assert_eq!(api.lock().changes.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_rollout_is_followed_until_it_is_complete_or_stopped() {
    let (api, port, md) = deployed();
    let status = |updated: i64, reason: &str| {
        let condition = json!({
            "type": "Progressing", "status": "True", "reason": reason, "message": "",
            "lastTransitionTime": "2026-11-23T12:00:00Z",
        });
        json!({
            "observedGeneration": 1, "replicas": 2, "updatedReplicas": updated, "availableReplicas": 2, "conditions": [condition],
        })
    };
    let set = |api: &ScriptedApi, status: Value| {
        api.lock().store.change("machinedeployments", NAMESPACE, "md", |md| md["status"] = status);
    };
    let mut seen = Vec::new();
    let limit = Duration::from_secs(60);
    let following = machine_rollout::wait(&port, &md, limit, |view| {
        let next = match seen.len() {
            0 => status(1, "RolloutProgressing"),
            _ => status(2, "RolloutComplete"),
        };
        set(&api, next);
        seen.push(view.message.clone());
    });
    following.await.unwrap();
    assert_eq!(
        seen,
        [
            "the controllers have not observed the last change",
            "updated machines: 1 of 2, available: 2, old: 1",
            "updated machines: 2 of 2, available: 2, old: 0",
        ]
    );
    set(&api, status(1, "ProgressDeadlineExceeded"));
    let error = machine_rollout::wait(&port, &md, limit, |_| {}).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "machinedeployment md: no progress for 600 s; updated machines: 1 of 2, available: 2, old: 1"
    );
    assert_eq!(error.class(), ErrorClass::Host);
    set(&api, status(1, "RolloutProgressing"));
    let error = machine_rollout::wait(&port, &md, limit, |_| {}).await.unwrap_err();
    let late =
        "waited 60 s for the rollout of machinedeployment md: updated machines: 1 of 2, available: 2, old: 1";
    assert_eq!(error.to_string(), late);
}

#[tokio::test]
async fn a_machine_is_described_with_its_host_and_its_own_events() {
    let (api, port) = cluster();
    in_use(&api, true);
    {
        let mut server = api.lock();
        let uid = server.store.in_namespace("machines", NAMESPACE, "m-1").unwrap()["metadata"]["uid"].clone();
        server.store.change("machines", NAMESPACE, "m-1", |machine| {
            machine["status"] = json!({ "phase": "Running", "host": "rack-1" });
        });
        for (event, uid, reason, time) in [
            ("e1", &uid, "Joined", "2026-11-23T12:00:00Z"),
            ("e2", &uid, "HostClaimed", "2026-11-23T11:00:00Z"),
            ("e3", &json!("of-another"), "Lost", "2026-11-22T11:00:00Z"),
        ] {
            let object = json!({ "kind": "Machine", "name": "m-1", "namespace": NAMESPACE, "uid": uid });
            let event = json!({
                "metadata": { "name": event }, "involvedObject": object, "reason": reason, "type": "Normal",
                "message": "m", "lastTimestamp": time,
            });
            server.store.insert("events", NAMESPACE, event);
        }
    }
    let described = machine_list::describe(&port, NAMESPACE, "m-1").await.unwrap();
    assert_eq!(described.host.unwrap().address, "10.0.0.3");
    let reasons: Vec<&str> = described.events.iter().map(|event| event.reason.as_str()).collect();
    assert_eq!(reasons, ["HostClaimed", "Joined"]);
    assert_eq!(machine_list::list(&port, NAMESPACE).await.unwrap().len(), 1);
    assert_eq!(machine_list::list(&port, "default").await.unwrap().len(), 0);
    let error = machine_list::describe(&port, NAMESPACE, "m-9").await.unwrap_err();
    assert_eq!(
        (error.to_string().as_str(), error.class()),
        ("Machine m-9 not found", ErrorClass::Configuration)
    );
}
