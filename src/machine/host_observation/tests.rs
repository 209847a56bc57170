use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::*;
use crate::machine::host_job::HostJob;

fn host(metadata: Value, status: Value) -> HostObject {
    let mut metadata = metadata;
    (metadata["name"], metadata["resourceVersion"]) = (json!("h1"), json!("7"));
    serde_json::from_value(json!({
        "metadata": metadata,
        "spec": { "address": "192.0.2.1", "failureDomain": "rack-1" },
        "status": status,
    }))
    .unwrap()
}

fn claim() -> Value {
    json!({ "machine": { "namespace": "a", "name": "m1", "uid": "u-1" }, "token": 3, "since": "1970-01-01T00:01:00Z" })
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

#[test]
fn a_host_is_what_its_status_contains() {
    let status = json!({
        "state": "Resetting", "claim": claim(), "lastToken": 4, "failures": 2,
        "doneJobs": ["StopKubelet"], "residue": ["/etc/kubernetes"],
        "jobQueue": { "since": "1970-01-01T00:01:30Z", "waitedSeconds": 20 },
        "failedJob": { "job": "Reset", "attempts": 2, "last": "1970-01-01T00:02:00Z", "message": "busy" },
        "silentSince": "1970-01-01T00:03:00Z", "poweredOff": true,
    });
    let metadata = json!({
        "finalizers": [CLAIM_RELEASED_FINALIZER], "deletionTimestamp": "1970-01-01T00:04:00Z",
        "annotations": { "metalform.dev/quarantine": "smoke" },
    });
    let found = view(&host(metadata, status)).unwrap();
    let failure = JobFailure { job: HostJob::Reset, attempts: 2, last: at(120), message: "busy".to_owned() };
    let expected = HostView {
        name: "h1".parse().unwrap(),
        version: "7".to_owned(),
        state: HostState::Resetting,
        claim: Some(ClaimView {
            machine_uid: "u-1".to_owned(),
            machine: "a/m1".to_owned(),
            since: at(60),
            queue: JobQueue { since: Some(at(90)), waited: jiff::SignedDuration::from_secs(20) },
        }),
        last_token: 4,
        failures: 2,
        finalizer: true,
        deleting: true,
        done: BTreeSet::from([HostJob::StopKubelet]),
        failure: Some(failure),
        residue: vec!["/etc/kubernetes".to_owned()],
        silent_since: Some(at(180)),
        orders: crate::machine::host_state::HostOrders { quarantine: true, ..Default::default() },
        has_power_hook: false,
        hook_reports_off: true,
    };
    assert_eq!(found, expected);
}

#[test]
fn a_host_without_a_status_is_unknown() {
    let found = view(&host(json!({}), Value::Null)).unwrap();
    assert_eq!((found.state, found.finalizer, found.deleting), (HostState::Unknown, false, false));
    assert_eq!((found.claim, found.done.len(), found.silent_since), (None, 0, None));
}

#[test]
fn the_claimant_is_the_machine_of_the_uid_that_has_noted_the_host() {
    let machine = |uid: &str, metadata: Value, status: Value| -> Machine {
        let mut metadata = metadata;
        metadata["uid"] = json!(uid);
        let spec = json!({ "providerSpec": { "value": {} }, "versions": { "kubelet": "1.35.4" } });
        serde_json::from_value(json!({ "metadata": metadata, "spec": spec, "status": status })).unwrap()
    };
    let drained = json!([{
        "type": "Drained", "status": "True", "reason": "R", "message": "",
        "lastTransitionTime": "1970-01-01T00:00:00Z",
    }]);
    let present =
        |deleting, drained, joined, join_failed| Claimant::Present { deleting, drained, joined, join_failed };
    let going = json!({ "deletionTimestamp": "1970-01-01T00:04:00Z" });
    for (machine, expected) in [
        (None, Claimant::Gone),
        (Some(machine("u-2", json!({}), json!({ "host": "h1" }))), Claimant::Gone),
        (Some(machine("u-1", json!({}), json!({ "host": "h2" }))), Claimant::Gone),
        (Some(machine("u-1", json!({}), Value::Null)), Claimant::Gone),
        (Some(machine("u-1", json!({}), json!({ "host": "h1" }))), present(false, false, false, false)),
        (
            Some(machine(
                "u-1",
                going.clone(),
                json!({ "host": "h1", "conditions": drained, "nodeRef": {} }),
            )),
            present(true, true, true, false),
        ),
        (
            Some(machine(
                "u-1",
                going.clone(),
                json!({ "host": "h1", "errorReason": "JoinClusterTimeoutError" }),
            )),
            present(true, false, false, true),
        ),
        (
            Some(machine("u-1", going, json!({ "host": "h1", "errorReason": "DeleteError" }))),
            present(true, false, false, false),
        ),
    ] {
        let status = json!({ "state": "InUse", "claim": claim(), "lastToken": 3 });
        let objects = HostObjects {
            host: Arc::new(host(json!({}), status)),
            machine: machine.clone().map(Arc::new),
            node: None,
            conflict: None,
        };
        let status = objects.host.status.clone().unwrap();
        let found = scene(&objects, &status, HostWork::Idle, 3).unwrap();
        assert_eq!(found.claimant, expected, "{machine:?}");
    }
}

#[test]
fn a_node_counts_if_it_has_the_provider_id_of_the_claim() {
    for (provider_id, status, expected) in [
        ("metalform://h1/u-1", json!({ "state": "InUse", "claim": claim(), "lastToken": 3 }), true),
        ("metalform://h1/u-2", json!({ "state": "InUse", "claim": claim(), "lastToken": 3 }), false),
        ("", json!({ "state": "InUse", "claim": claim(), "lastToken": 3 }), false),
        ("metalform://h1/u-1", json!({ "state": "Available" }), false),
    ] {
        let node = serde_json::from_value(json!({
            "metadata": { "name": "h1" }, "spec": { "providerID": provider_id },
        }));
        let objects = HostObjects {
            host: Arc::new(host(json!({}), status)),
            machine: None,
            node: Some(Arc::new(node.unwrap())),
            conflict: None,
        };
        let status = objects.host.status.clone().unwrap();
        let found = scene(&objects, &status, HostWork::Idle, 3).unwrap();
        assert_eq!(found.node_exists, expected, "{provider_id}");
        let ready = is_node_ready(&found.host, objects.node.as_deref());
        assert_eq!(ready, expected.then_some(false), "{provider_id}");
    }
}

#[test]
fn a_host_of_the_pool_has_the_labels_and_facts_that_are_chosen_by() {
    let facts = json!({
        "machineId": "", "bootId": "", "operatingSystem": "debian", "operatingSystemVersion": "13",
        "architecture": "arm64", "kernel": "", "cpus": 4, "memory": 1, "addresses": [],
    });
    let metadata = json!({ "finalizers": [CLAIM_RELEASED_FINALIZER], "labels": { "disk": "ssd" } });
    for (status, expected) in [
        (json!({ "state": "Available", "facts": facts }), "Available - debian arm64"),
        (json!({ "state": "Available" }), "Available - - -"),
        (json!({ "state": "Unknown", "facts": facts }), "Busy - debian arm64"),
        (json!({ "state": "Quarantined" }), "Quarantined - - -"),
        (json!({ "state": "Lost" }), "Quarantined - - -"),
        (json!({ "state": "InUse", "claim": claim(), "lastToken": 3 }), "Busy u-1 - -"),
    ] {
        let found = pool_host(&host(metadata.clone(), status.clone())).unwrap();
        let word = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        let shown = [
            format!("{:?}", found.state),
            word(found.claim),
            word(found.distribution.map(|one| one.to_string())),
            word(found.architecture.map(|one| one.to_string())),
        ];
        assert_eq!(shown.join(" "), expected, "{status}");
        assert_eq!(found.labels["disk"], "ssd");
        assert_eq!(found.failure_domain.as_deref(), Some("rack-1"));
    }
}
