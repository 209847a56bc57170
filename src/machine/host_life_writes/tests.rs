use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::machine::host_job::JobFence;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn objects(status: Value) -> HostObjects {
    let host = json!({
        "metadata": {
            "name": "h1", "uid": "h-1", "resourceVersion": "7", "generation": 2,
            "finalizers": ["other", CLAIM_RELEASED_FINALIZER],
        },
        "spec": { "address": "192.0.2.1" }, "status": status,
    });
    let node = json!({
        "metadata": { "name": "h1", "uid": "n-1", "resourceVersion": "9" },
        "spec": { "providerID": "metalform://h1/u-1" },
    });
    HostObjects {
        host: Arc::new(serde_json::from_value(host).unwrap()),
        machine: None,
        node: Some(Arc::new(serde_json::from_value(node).unwrap())),
        conflict: None,
    }
}

fn claimed(state: &str) -> Value {
    json!({
        "state": state, "lastToken": 3, "failures": 1, "doneJobs": ["Check", "Deploy"],
        "failedJob": { "job": "Reset", "attempts": 1, "last": "1970-01-01T00:00:00Z", "message": "m" },
        "claim": {
            "machine": { "namespace": "a", "name": "m1", "uid": "u-1" }, "token": 3,
            "since": "1970-01-01T00:00:00Z",
        },
    })
}

fn plan(state: HostState, reason: HostReason, step: Option<HostStep>) -> HostLifePlan {
    HostLifePlan { state, reason, step, wake: None }
}

fn decided(objects: &HostObjects, plan: &HostLifePlan) -> HostLifeWrites {
    decide(objects, &objects.host.status.clone().unwrap_or_default(), plan, at(100))
}

/// The patch of the status, which is that of the version that was read.
fn status_patch(writes: &HostLifeWrites) -> Value {
    let Some(MachineWrite::Host(ObjectWrite::PatchStatus { name, patch })) = &writes.write else {
        panic!("{writes:?}")
    };
    assert_eq!(name, "h1");
    assert_eq!(patch["metadata"], json!({ "uid": "h-1", "resourceVersion": "7" }));
    patch["status"].clone()
}

#[test]
fn every_step_of_the_state_is_one_write_of_the_status() {
    for (before, step, reason, expected) in [
        (
            json!({ "state": "Available", "doneJobs": ["Reset"] }),
            HostStep::Enter(HostState::Unknown),
            HostReason::NotInspected,
            json!({ "state": "Unknown", "doneJobs": null, "stateSince": "1970-01-01T00:01:40Z" }),
        ),
        (
            claimed("InUse"),
            HostStep::Enter(HostState::Draining),
            HostReason::Draining("a/m1".to_owned()),
            json!({ "state": "Draining", "doneJobs": ["Check", "Deploy"], "lastToken": 3 }),
        ),
        (
            claimed("Draining"),
            HostStep::BeginReset { token: 4, failures: 1 },
            HostReason::Resetting,
            json!({ "state": "Resetting", "doneJobs": null, "failedJob": null, "lastToken": 4, "failures": 1 }),
        ),
        (
            claimed("Provisioning"),
            HostStep::BeginReset { token: 4, failures: 2 },
            HostReason::Resetting,
            json!({ "failures": 2, "lastFailure": "1970-01-01T00:01:40Z", "jobQueue": null }),
        ),
        // It is not fit to be a node: others are preferred.
        (
            json!({ "state": "Claimed", "lastToken": 3, "claim": claimed("")["claim"], "failedJob": {
                "job": "Check", "attempts": 9, "last": "1970-01-01T00:00:00Z", "message": "m",
            } }),
            HostStep::BeginReset { token: 4, failures: 0 },
            HostReason::Resetting,
            json!({ "failures": 0, "lastFailure": "1970-01-01T00:01:40Z" }),
        ),
        (
            claimed("Resetting"),
            HostStep::Release { state: HostState::Available, failures: 0 },
            HostReason::Clean,
            json!({ "state": "Available", "claim": null, "failures": 0, "lastToken": 3 }),
        ),
        (
            claimed("Resetting"),
            HostStep::Quarantine,
            HostReason::ResetFailed { attempts: 3, message: "busy".to_owned() },
            json!({ "state": "Quarantined", "lastToken": 3 }),
        ),
    ] {
        let objects = objects(before);
        let plan = plan(HostState::Unknown, reason.clone(), Some(step.clone()));
        let writes = decided(&objects, &plan);
        let status = status_patch(&writes);
        assert!(writes.again, "{step:?}");
        for (key, value) in expected.as_object().unwrap() {
            assert_eq!(&status[key], value, "{step:?} {key}");
        }
        let condition = &status["conditions"][0];
        assert_eq!((&condition["type"], &condition["reason"]), (&json!("Available"), &json!(reason.name())));
        let expected = if status["state"] == "Available" { "True" } else { "False" };
        assert_eq!(condition["status"], json!(expected), "{step:?}");
        assert_eq!(status["observedGeneration"], json!(2));
    }
}

#[test]
fn steps_beyond_the_status_are_writes_of_their_own() {
    let fence = JobFence { host: "h1".parse().unwrap(), machine: None, token: 3 };
    let id = |uid: &str| crate::machine::api::provider_id::ProviderId {
        host: "h1".parse().unwrap(),
        machine_uid: uid.to_owned(),
    };
    let finalizers = |write: &MachineWrite| match write {
        MachineWrite::Host(ObjectWrite::Patch { patch, .. }) => patch["metadata"]["finalizers"].to_string(),
        other => other.to_string(),
    };
    for (step, expected) in [
        (HostStep::AddFinalizer, r#"["other","metalform.dev/claim-released"]"#),
        (HostStep::RemoveFinalizer, r#"["other"]"#),
        (HostStep::DeleteNode(id("u-1")), "delete node/h1"),
        // Its reason is written, and the Node is another's.
        (HostStep::DeleteNode(id("u-2")), "patch status of host/h1"),
        (HostStep::Begin(HostJob::Reset, fence), "patch status of host/h1"),
    ] {
        let plan = plan(HostState::Resetting, HostReason::Resetting, Some(step.clone()));
        let writes = decided(&objects(claimed("Resetting")), &plan);
        assert_eq!(writes.write.as_ref().map(finalizers).as_deref(), Some(expected), "{step:?}");
    }
}

#[test]
fn a_reason_is_written_once_and_that_of_a_quarantine_stays() {
    let mut objects = objects(json!({ "state": "Inspecting" }));
    let inspecting = plan(HostState::Inspecting, HostReason::Inspecting, None);
    let status = status_patch(&decided(&objects, &inspecting));
    assert_eq!(status["conditions"][0]["reason"], json!("Inspecting"));
    let set = |objects: &mut HostObjects, status: Value| {
        let mut host = (*objects.host).clone();
        let status = status.as_object().unwrap().iter().filter(|(_, value)| !value.is_null());
        let status: Value = status.map(|(key, value)| (key.clone(), value.clone())).collect();
        host.status = serde_json::from_value(status).unwrap();
        objects.host = Arc::new(host);
    };
    set(&mut objects, status);
    assert_eq!(decided(&objects, &inspecting), HostLifeWrites::default());

    let found = HostReason::NotClean(vec!["/etc/kubernetes".to_owned()]);
    let quarantine = plan(HostState::Quarantined, found, Some(HostStep::Quarantine));
    let status = status_patch(&decided(&objects, &quarantine));
    set(&mut objects, status);
    let held = plan(HostState::Quarantined, HostReason::QuarantineOrdered, None);
    assert_eq!(decided(&objects, &held), HostLifeWrites::default());
}

#[test]
fn what_workers_have_found_is_written_with_the_step_or_before_it() {
    let objects = objects(claimed("Resetting"));
    let mut found = objects.host.status.clone().unwrap();
    found.done_jobs.push(HostJob::StopKubelet);
    let fence = JobFence { host: "h1".parse().unwrap(), machine: None, token: 3 };
    let id = crate::machine::api::provider_id::ProviderId {
        host: "h1".parse().unwrap(),
        machine_uid: "u-1".to_owned(),
    };
    for step in [HostStep::Begin(HostJob::Reset, fence), HostStep::DeleteNode(id), HostStep::Quarantine] {
        let plan = plan(HostState::Resetting, HostReason::Resetting, Some(step.clone()));
        let writes = decide(&objects, &found, &plan, at(100));
        let status = status_patch(&writes);
        assert_eq!(status["doneJobs"], json!(["Check", "Deploy", "StopKubelet"]), "{step:?}");
        assert!(writes.again, "{step:?}");
    }
}

#[test]
fn a_claim_forgets_the_jobs_of_the_one_before() {
    let objects = objects(json!({
        "state": "Available", "lastToken": 3, "doneJobs": ["StopKubelet", "Reset"], "failures": 1,
        "stateSince": "1970-01-01T00:00:00Z",
    }));
    let machine = crate::machine::api::host_claim::MachineReference {
        namespace: "a".to_owned(),
        name: "m1".to_owned(),
        uid: "u-1".to_owned(),
    };
    let new = HostClaimRef { machine, token: 4, since: Time(at(100)) };
    let Some(ObjectWrite::PatchStatus { patch, .. }) = claim(&objects.host, new, at(100)) else { panic!() };
    assert_eq!(patch["metadata"], json!({ "uid": "h-1", "resourceVersion": "7" }));
    let status = &patch["status"];
    assert_eq!((&status["state"], &status["lastToken"]), (&json!("Claimed"), &json!(4)));
    assert_eq!((&status["doneJobs"], &status["failures"]), (&Value::Null, &json!(1)));
    assert_eq!(status["claim"]["machine"], json!({ "namespace": "a", "name": "m1", "uid": "u-1" }));
    assert_eq!(status["stateSince"], json!("1970-01-01T00:01:40Z"));
    assert_eq!(status["conditions"][0]["message"], json!("claimed by machine a/m1"));
}
