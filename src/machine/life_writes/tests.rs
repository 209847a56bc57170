use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::machine::host_choice::{HostChoice, HostShortage};
use crate::machine::host_job::{HostJob, HostWork};
use crate::machine::life_observation::{MachineSpecError, scene};
use crate::machine::life_rules::LifeRules;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn merge(target: &mut Value, patch: &Value) {
    match patch {
        Value::Object(fields) if target.is_object() => {
            for (key, value) in fields {
                if value.is_null() {
                    target.as_object_mut().unwrap().remove(key);
                } else {
                    merge(&mut target[key], value);
                }
            }
        }
        other => *target = other.clone(),
    }
}

/// A Machine with both finalizers, its Host and its Node, as far as they are given.
fn objects(machine: Value, host: Value, node: Value) -> MachineObjects {
    let mut all = json!({
        "metadata": {
            "namespace": "a", "name": "m1", "uid": "u-1", "resourceVersion": "7", "generation": 1,
            "finalizers": ["other", HOST_RELEASED_FINALIZER, NODE_DELETED_FINALIZER],
            "ownerReferences": [{ "kind": "MachineSet", "name": "s", "uid": "s", "apiVersion": "", "controller": true }],
        },
        "spec": {
            "providerSpec": { "value": { "cloudProvider": "metalform", "operatingSystem": "debian" } },
            "versions": { "kubelet": "1.35.4" },
        },
    });
    if !machine.is_null() {
        merge(&mut all, &machine);
    }
    let given = |base: Value, change: Value| {
        let mut object = base;
        merge(&mut object, &change);
        (!change.is_null()).then_some(object)
    };
    let host = given(
        json!({
            "metadata": {
                "name": "h1", "uid": "h-1", "resourceVersion": "8", "generation": 1,
                "finalizers": ["metalform.dev/claim-released"],
            },
            "spec": { "address": "192.0.2.1" },
        }),
        host,
    );
    let node = given(
        json!({
            "metadata": { "name": "h1", "uid": "n-1", "resourceVersion": "9" },
            "spec": { "providerID": "metalform://h1/u-1" },
        }),
        node,
    );
    MachineObjects {
        machine: Arc::new(serde_json::from_value(all).unwrap()),
        host: host.map(|host| Arc::new(serde_json::from_value(host).unwrap())),
        node: node.map(|node| Arc::new(serde_json::from_value(node).unwrap())),
        choice: None,
        elsewhere: true,
        drain_timeout: None,
    }
}

/// The status of a Host that Machine u-1 has claimed at 60.
fn claimed(state: &str, done: &[&str]) -> Value {
    json!({ "status": {
        "state": state, "lastToken": 3, "doneJobs": done,
        "claim": {
            "machine": { "namespace": "a", "name": "m1", "uid": "u-1" }, "token": 3,
            "since": "1970-01-01T00:01:00Z",
        },
    } })
}

/// Before a claim.
fn chosen() -> Value {
    json!({ "status": { "host": "h1" } })
}

fn noted() -> Value {
    json!({ "status": { "host": "h1" }, "spec": { "providerID": "metalform://h1/u-1" } })
}

fn decided(objects: &MachineObjects, now: i64) -> LifeWrites {
    let scene = scene(objects, HostWork::Idle, Some(Vec::new()), &LifeRules::DEFAULT).unwrap();
    decide(objects, &scene, &lifecycle::next(&scene, at(now)), at(now))
}

/// The object with the write applied, without what identifies the version; the write must apply to that version.
fn patch(writes: &LifeWrites) -> (String, Value) {
    let write = writes.write.as_ref().unwrap();
    let (ids, patch) = match write {
        MachineWrite::Machine(ObjectWrite::Patch { patch, .. } | ObjectWrite::PatchStatus { patch, .. }) => {
            (("u-1", "7"), patch)
        }
        MachineWrite::Host(ObjectWrite::PatchStatus { patch, .. }) => (("h-1", "8"), patch),
        MachineWrite::Node(ObjectWrite::Patch { patch, .. }) => (("n-1", "9"), patch),
        other => return (other.to_string(), Value::Null),
    };
    let mut patch = patch.clone();
    let metadata = patch["metadata"].as_object_mut().unwrap();
    assert_eq!(metadata.remove("uid"), Some(json!(ids.0)), "{write}");
    assert_eq!(metadata.remove("resourceVersion"), Some(json!(ids.1)), "{write}");
    (write.to_string(), patch)
}

#[test]
fn every_step_is_one_write_of_a_version() {
    let ready = json!({ "status": { "conditions": [{ "type": "Ready", "status": "True" }] } });
    let joined = json!({
        "status": { "host": "h1", "nodeRef": { "name": "h1" } },
        "spec": { "providerID": "metalform://h1/u-1" },
    });
    let deleting = json!({
        "metadata": { "deletionTimestamp": "1970-01-01T00:01:30Z" },
        "status": { "host": "h1", "nodeRef": { "name": "h1" } },
        "spec": { "providerID": "metalform://h1/u-1" },
    });
    let released = json!({ "metadata": { "deletionTimestamp": "1970-01-01T00:01:30Z" } });
    let deployed = || claimed("Provisioning", &["Check", "Deploy"]);
    let free = json!({ "status": { "state": "Available", "lastToken": 2 } });
    let none = || Value::Null;
    for (objects, write, pointer, expected) in [
        (
            objects(json!({ "metadata": { "finalizers": ["other"] } }), none(), none()),
            "patch machine/m1",
            "/metadata/finalizers",
            json!(["other", HOST_RELEASED_FINALIZER, NODE_DELETED_FINALIZER]),
        ),
        (
            MachineObjects {
                choice: Some(HostChoice::Host("h1".parse().unwrap())),
                ..objects(none(), none(), none())
            },
            "patch status of machine/m1",
            "/status/host",
            json!("h1"),
        ),
        (
            MachineObjects {
                choice: Some(HostChoice::NotedUnavailable("h1".parse().unwrap())),
                ..objects(chosen(), none(), none())
            },
            "patch status of machine/m1",
            "/status/host",
            none(),
        ),
        (
            MachineObjects {
                choice: Some(HostChoice::Host("h1".parse().unwrap())),
                ..objects(chosen(), free, none())
            },
            "patch status of host/h1",
            "/status/claim",
            json!({
                "machine": { "namespace": "a", "name": "m1", "uid": "u-1" }, "token": 3,
                "since": "1970-01-01T00:01:40Z",
            }),
        ),
        (
            objects(json!({ "status": { "host": "h1" } }), deployed(), none()),
            "patch machine/m1",
            "/spec",
            json!({ "providerID": "metalform://h1/u-1" }),
        ),
        (
            objects(noted(), deployed(), ready.clone()),
            "patch node/h1",
            "/metadata/labels",
            json!({ "metalform.dev/machine-uid": "u-1" }),
        ),
        (
            objects(noted(), deployed(), json!({})),
            "patch status of machine/m1",
            "/status/nodeRef",
            json!({ "apiVersion": "v1", "kind": "Node", "name": "h1", "uid": "n-1" }),
        ),
        (
            objects(joined, deployed(), ready.clone()),
            "patch node/h1",
            "/metadata/labels",
            json!({ "metalform.dev/machine-uid": "u-1" }),
        ),
        (
            objects(deleting.clone(), claimed("InUse", &[]), ready.clone()),
            "patch node/h1",
            "/spec",
            json!({ "unschedulable": true }),
        ),
        (
            objects(deleting.clone(), claimed("InUse", &[]), none()),
            "patch status of machine/m1",
            "/status/phase",
            json!("Deleting"),
        ),
        (objects(released, none(), none()), "patch machine/m1", "/metadata/finalizers", json!(["other"])),
    ] {
        let writes = decided(&objects, 100);
        let (found, patch) = patch(&writes);
        assert_eq!((found.as_str(), writes.again), (write, true), "{expected}");
        assert_eq!(patch.pointer(pointer).unwrap_or(&Value::Null), &expected, "{write} {pointer}");
    }
}

#[test]
fn the_conditions_tell_the_story_and_are_written_once() {
    let shortage = HostShortage { hosts: 2, in_use: 2, ..HostShortage::default() };
    let mut waiting = objects(Value::Null, Value::Null, Value::Null);
    waiting.choice = Some(HostChoice::None(shortage));
    let writes = decided(&waiting, 100);
    let (write, patch) = patch(&writes);
    assert_eq!((write.as_str(), writes.again), ("patch status of machine/m1", false));
    let status = &patch["status"];
    assert_eq!(status["phase"], json!("Pending"));
    assert_eq!(status["lastUpdated"], json!("1970-01-01T00:01:40Z"));
    assert_eq!(status["lastOperation"]["description"], json!("no host is free: all in use"));
    assert_eq!(status["lastOperation"]["type"], json!("Create"));
    let conditions = status["conditions"].as_array().unwrap().iter();
    let shown: Vec<String> = conditions
        .map(|one| format!("{} {} {}", one["type"], one["status"], one["reason"]).replace('"', ""))
        .collect();
    assert_eq!(shown, ["HostClaimed False NoHostAvailable", "Ready False NoHost"]);
    let mut written = serde_json::to_value(&*waiting.machine).unwrap();
    written["status"] = status.clone();
    waiting.machine = Arc::new(serde_json::from_value(written).unwrap());
    assert_eq!(decided(&waiting, 200), LifeWrites::default());
    let more = HostShortage { hosts: 5_000, in_use: 5_000, ..HostShortage::default() };
    waiting.choice = Some(HostChoice::None(more));
    assert_eq!(decided(&waiting, 300), LifeWrites::default(), "it waits for the same reason");
}

#[test]
fn other_words_for_the_same_state_are_written_two_seconds_after_the_last_write() {
    let told = |objects: &MachineObjects, phase: &str, now: i64| {
        let work = HostWork::Running { job: HostJob::Deploy, token: 3, phase: phase.to_owned() };
        let scene = scene(objects, work, None, &LifeRules::DEFAULT).unwrap();
        decide(objects, &scene, &lifecycle::next(&scene, at(now)), at(now))
    };
    let mut running = objects(noted(), claimed("Provisioning", &["Check"]), Value::Null);
    let (_, patch) = patch(&told(&running, "Base system", 100));
    let mut written = serde_json::to_value(&*running.machine).unwrap();
    merge(&mut written["status"], &patch["status"]);
    running.machine = Arc::new(serde_json::from_value(written).unwrap());
    for (phase, now, written, wake) in [
        ("Base system", 101, false, None),
        ("Node joined", 101, false, Some(102)),
        ("Node joined", 102, true, None),
        // Of another leader, whose clock is ahead.
        ("Node joined", 99, true, None),
    ] {
        let writes = told(&running, phase, now);
        assert_eq!((writes.write.is_some(), writes.wake), (written, wake.map(at)), "{phase} at {now}");
    }
    let writes = decided(&running, 101);
    assert!(writes.write.is_some() && writes.wake.is_none(), "it no longer runs: {writes:?}");
}

#[test]
fn a_node_that_is_linked_is_not_missing_since_it_was_awaited() {
    let machine = json!({
        "spec": { "providerID": "metalform://h1/u-1" },
        "status": { "host": "h1", "conditions": [{
            "type": "NodeLinked", "status": "False", "reason": "NodeNotFound", "message": "",
            "lastTransitionTime": "1970-01-01T00:01:10Z",
        }] },
    });
    let deployed = claimed("Provisioning", &["Check", "Deploy"]);
    let (_, patch) = patch(&decided(&objects(machine, deployed, json!({})), 5_000));
    let conditions = patch["status"]["conditions"].as_array().unwrap();
    let linked = conditions.iter().find(|one| one["type"] == "NodeLinked").unwrap();
    assert_eq!((&linked["status"], &linked["reason"]), (&json!("True"), &json!("NodeLinked")));
    assert_eq!(patch["status"]["provisioningSince"], json!("1970-01-01T00:01:00Z"));
    assert_eq!(patch["status"]["phase"], json!("Provisioned"));
}

#[test]
fn addresses_are_those_that_metalform_recorded() {
    for (annotations, expected) in [
        (json!({}), "InternalIP=192.0.2.1 Hostname=h1"),
        (
            json!({
                "metalform.dev/control-plane-ip": "192.0.2.7",
                "metalform.dev/addresses": "192.0.2.6,192.0.2.7",
            }),
            "InternalIP=192.0.2.7 InternalIP=192.0.2.6 Hostname=h1",
        ),
    ] {
        let reported = json!([{ "type": "InternalIP", "address": "203.0.113.9" }]);
        let node = json!({
            "metadata": { "annotations": annotations },
            "status": { "addresses": reported, "nodeInfo": node_info("v1.35.4") },
        });
        let deployed = claimed("Provisioning", &["Check", "Deploy"]);
        let (_, patch) = patch(&decided(&objects(noted(), deployed, node), 100));
        let addresses = patch["status"]["addresses"].as_array().unwrap().iter();
        let shown: Vec<String> = addresses
            .map(|one| format!("{}={}", one["type"].as_str().unwrap(), one["address"].as_str().unwrap()))
            .collect();
        assert_eq!(shown.join(" "), expected);
        assert_eq!(patch["status"]["versions"]["kubelet"], json!("v1.35.4"));
    }
}

#[test]
fn a_machine_is_deleted_after_its_status_contains_the_reason() {
    let mut late = objects(noted(), claimed("Provisioning", &["Check"]), Value::Null);
    let (write, patch) = patch(&decided(&late, 60 + 7_200));
    assert_eq!(write, "patch status of machine/m1");
    let status = &patch["status"];
    assert_eq!(
        (&status["errorReason"], &status["phase"]),
        (&json!("JoinClusterTimeoutError"), &json!("Failed"))
    );
    assert_eq!(status["errorMessage"], json!("node h1 did not join in time"));
    let mut written = serde_json::to_value(&*late.machine).unwrap();
    written["status"] = status.clone();
    late.machine = Arc::new(serde_json::from_value(written).unwrap());
    let writes = decided(&late, 60 + 7_201);
    assert_eq!((writes.write.unwrap().to_string().as_str(), writes.again), ("delete machine/m1", true));
}

#[test]
fn a_lost_machine_is_deleted_if_a_set_replaces_it() {
    for (owners, expected) in [(None, "delete machine/m1"), (Some(json!([])), "patch status of machine/m1")] {
        let mut machine = noted();
        if let Some(owners) = owners {
            machine["metadata"] = json!({ "ownerReferences": owners });
        }
        let mut host = claimed("InUse", &["Check", "Deploy"]);
        host["metadata"] = json!({ "deletionTimestamp": "1970-01-01T00:01:30Z" });
        let mut lost = objects(machine, host, Value::Null);
        let mut last = String::new();
        for _ in 0..2 {
            let Some(write) = decided(&lost, 100).write else { break };
            last = write.to_string();
            if let MachineWrite::Machine(ObjectWrite::PatchStatus { patch, .. }) = write {
                let mut written = serde_json::to_value(&*lost.machine).unwrap();
                merge(&mut written["status"], &patch["status"]);
                lost.machine = Arc::new(serde_json::from_value(written).unwrap());
            }
        }
        assert_eq!(last, expected);
    }
}

#[test]
fn an_invalid_machine_fails_once() {
    let value = json!({ "cloudProvider": "other" });
    let mut invalid =
        objects(json!({ "spec": { "providerSpec": { "value": value } } }), Value::Null, Value::Null);
    let error: MachineSpecError = scene(&invalid, HostWork::Idle, None, &LifeRules::DEFAULT).unwrap_err();
    let Some(ObjectWrite::PatchStatus { patch, .. }) = refused(&invalid.machine, &error, at(100)) else {
        panic!("it has no status");
    };
    let status = &patch["status"];
    assert_eq!(
        (&status["errorReason"], &status["phase"]),
        (&json!("InvalidConfiguration"), &json!("Failed"))
    );
    let mut written = serde_json::to_value(&*invalid.machine).unwrap();
    written["status"] = status.clone();
    invalid.machine = Arc::new(serde_json::from_value(written).unwrap());
    assert_eq!(refused(&invalid.machine, &error, at(200)), None);
}

/// What a kubelet of this version reports; the Node of one that has not reported has all of it, and empty.
fn node_info(kubelet: &str) -> Value {
    json!({
        "kubeletVersion": kubelet, "architecture": "", "bootID": "", "containerRuntimeVersion": "", "kernelVersion": "",
        "kubeProxyVersion": "", "machineID": "", "operatingSystem": "", "osImage": "", "systemUUID": "",
    })
}

#[test]
fn a_node_whose_kubelet_has_not_reported_has_no_version() {
    let node = json!({ "status": { "nodeInfo": node_info("") } });
    let deployed = claimed("Provisioning", &["Check"]);
    let (_, patch) = patch(&decided(&objects(noted(), deployed, node), 100));
    assert_eq!(patch["status"].get("versions"), None, "{patch}");
}
