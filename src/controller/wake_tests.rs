use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::*;

fn of<K: DeserializeOwned>(value: Value) -> K {
    serde_json::from_value(value).unwrap()
}

fn owner(kind: &str, uid: &str) -> Value {
    json!([{ "apiVersion": "cluster.k8s.io/v1alpha1", "kind": kind, "name": "x", "uid": uid, "controller": true }])
}

fn template() -> Value {
    json!({ "metadata": {}, "spec": { "versions": { "kubelet": "1.35.4" }, "providerSpec": { "value": {} } } })
}

fn deployment(namespace: &str, name: &str) -> MachineDeployment {
    of(json!({
        "metadata": { "namespace": namespace, "name": name, "uid": format!("uid-{name}") },
        "spec": { "selector": { "matchLabels": { "group": name } }, "template": template() },
    }))
}

fn set(name: &str, owners: Value) -> MachineSet {
    of(json!({
        "metadata": { "namespace": "a", "name": name, "uid": format!("uid-{name}"), "ownerReferences": owners },
        "spec": { "selector": {}, "template": template() },
    }))
}

fn machine(name: &str, created: &str, owners: Value, status: Value) -> Machine {
    of(json!({
        "metadata": {
            "namespace": "a", "name": name, "uid": format!("uid-{name}"), "ownerReferences": owners,
            "creationTimestamp": created,
        },
        "spec": template()["spec"], "status": status,
    }))
}

fn host(name: &str, status: Value) -> HostObject {
    of(json!({ "metadata": { "name": name }, "spec": { "address": "10.0.0.2" }, "status": status }))
}

fn node(name: &str, labels: Value) -> Node {
    of(json!({ "metadata": { "name": name, "labels": labels } }))
}

/// Two deployments, and one of another namespace; a set of the first and an orphan; Machines of the set: one that has a
/// node on r1, two that wait (the younger has noted r2), and an orphan.
fn view() -> WakeView {
    let running = json!({ "host": "r1", "nodeRef": { "name": "r1" } });
    let of_set = || owner("MachineSet", "uid-s1");
    WakeView {
        deployments: [deployment("a", "d1"), deployment("a", "d2"), deployment("b", "d3")]
            .map(Arc::new)
            .into(),
        sets: [set("s1", owner("MachineDeployment", "uid-d1")), set("s2", json!([]))].map(Arc::new).into(),
        machines: [
            machine("m0", "2026-01-09T00:00:00Z", of_set(), json!({ "host": "r2" })),
            machine("m1", "2026-01-01T00:00:00Z", of_set(), running),
            machine("m2", "2026-01-02T00:00:00Z", of_set(), json!({})),
            machine(
                "m3",
                "2026-01-03T00:00:00Z",
                json!([]),
                json!({ "host": "r3", "provisioningSince": "2026-01-03T00:00:00Z" }),
            ),
        ]
        .map(Arc::new)
        .into(),
        hosts: ["r1", "r2", "r3"].map(|name| Arc::new(host(name, json!({})))).into(),
    }
}

fn woken(change: ObjectChange) -> String {
    let short = |key: &PassKey| match key {
        PassKey::Host(name) => name.clone(),
        PassKey::Deployment(key) | PassKey::Set(key) | PassKey::Machine(key) => key.name.clone(),
    };
    view().woken_by(&change).iter().map(short).collect::<Vec<_>>().join(" ")
}

#[test]
fn a_change_wakes_what_depends_on_it() {
    let of_set = || owner("MachineSet", "uid-s1");
    let claim = json!({ "machine": { "namespace": "a", "name": "m1", "uid": "uid-m1" }, "token": 1, "since": "2026-01-01T00:00:00Z" });
    let waiting = |name: &str| machine(name, "2026-01-05T00:00:00Z", of_set(), json!({}));
    let going = |mut machine: Machine| {
        machine.metadata.deletion_timestamp = of(json!("2026-01-06T00:00:00Z"));
        machine
    };
    let cases: [(&str, ObjectChange, &str); 17] = [
        ("deployment", ObjectChange::Deployment(deployment("a", "d1")), "d1"),
        ("set", ObjectChange::Set(set("s1", owner("MachineDeployment", "uid-d1"))), "s1 d1"),
        ("set whose owner is gone", ObjectChange::Set(set("s1", owner("MachineDeployment", "uid-x"))), "s1"),
        ("orphaned set", ObjectChange::Set(set("s2", json!([]))), "s2 d1 d2"),
        ("waiting machine", ObjectChange::Machine(waiting("m4")), "m4 s1 d1"),
        (
            "machine that has noted a host",
            ObjectChange::Machine(machine("m0", "2026-01-09T00:00:00Z", of_set(), json!({ "host": "r2" }))),
            "m0 r2 s1 d1",
        ),
        (
            "orphaned machine",
            ObjectChange::Machine(machine("m3", "2026-01-03T00:00:00Z", json!([]), json!({}))),
            "m3 s1 d1 s2 d1 d2",
        ),
        ("waiting machine that is deleted", ObjectChange::Machine(going(waiting("m4"))), "m4 s1 d1 m2 m0"),
        (
            "running machine that is deleted",
            ObjectChange::Machine(going(machine(
                "m1",
                "2026-01-01T00:00:00Z",
                of_set(),
                json!({ "host": "r1", "nodeRef": { "name": "r1" } }),
            ))),
            "m1 r1 s1 d1",
        ),
        ("free host", ObjectChange::Host(host("r4", json!({ "state": "Available" }))), "r4 m2 m0 d1 d2 d3"),
        (
            "free host that is noted",
            ObjectChange::Host(host("r2", json!({ "state": "Available" }))),
            "r2 m0 m2 m0 d1 d2 d3",
        ),
        (
            "claimed host",
            ObjectChange::Host(host("r1", json!({ "state": "InUse", "claim": claim }))),
            "r1 m1 m1 d1 d2 d3",
        ),
        (
            "host that is inspected",
            ObjectChange::Host(host("r4", json!({ "state": "Inspecting" }))),
            "r4 d1 d2 d3",
        ),
        ("host without a status", ObjectChange::Host(host("r4", Value::Null)), "r4 d1 d2 d3"),
        ("node by its label", ObjectChange::Node(node("n", json!({ MACHINE_UID: "uid-m2" }))), "m2"),
        ("node by the name of its host", ObjectChange::Node(node("r1", json!({}))), "m1 r1"),
        ("job on a host", ObjectChange::Work("r3".parse().unwrap()), "r3 m3"),
    ];
    for (title, change, expected) in cases {
        assert_eq!(woken(change), expected, "{title}");
    }
    assert_eq!(woken(ObjectChange::Node(node("master-1", json!({})))), "", "a node that is not ours");
}

#[test]
fn a_deployment_wakes_those_whose_conflict_may_begin_or_end() {
    let of_group = |namespace: &str, name: &str, group: &str| {
        let mut one = deployment(namespace, name);
        one.spec.selector = of(json!({ "matchLabels": { "group": group } }));
        one.spec.template.metadata.labels = of(json!({ "group": group }));
        one
    };
    let mut held = of_group("a", "d4", "y");
    held.status = of(json!({ "conditions": [{
        "type": "Progressing", "status": "False", "reason": "SelectorConflict", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }] }));
    let others = ["d1", "d2"].map(|name| of_group("a", name, "x"));
    let deployments = others.into_iter().chain([of_group("b", "d3", "x"), held]);
    let view = WakeView { deployments: deployments.map(Arc::new).collect(), ..WakeView::default() };
    for (title, changed, expected) in [
        ("the earlier one", of_group("a", "d1", "x"), "d1 d2 d4"),
        ("the later one", of_group("a", "d2", "x"), "d2 d4"),
        ("one that had another selector", of_group("a", "d1", "z"), "d1 d4"),
        ("one that is deleted", of_group("a", "d0", "x"), "d0 d1 d2 d4"),
        ("one of another namespace", of_group("b", "d3", "x"), "d3"),
    ] {
        let woken = view.woken_by(&ObjectChange::Deployment(changed));
        let names = woken.iter().map(|key| match key {
            PassKey::Deployment(key) => key.name.as_str(),
            other => panic!("{title}: {other:?}"),
        });
        assert_eq!(names.collect::<Vec<_>>().join(" "), expected, "{title}");
    }
}

#[test]
fn at_first_everything_is_due() {
    let all: Vec<String> = view().all().iter().map(ToString::to_string).collect();
    assert_eq!(
        all,
        [
            "host/r1",
            "host/r2",
            "host/r3",
            "machine/a/m1",
            "machine/a/m2",
            "machine/a/m3",
            "machine/a/m0",
            "machineset/a/s1",
            "machineset/a/s2",
            "machinedeployment/a/d1",
            "machinedeployment/a/d2",
            "machinedeployment/b/d3",
        ]
    );
}

#[test]
fn a_node_wakes_the_deployments_that_judge_it() {
    let mut view = view();
    let unhealthy = json!([{ "type": "Ready", "status": "Unknown", "timeout": "5m" }]);
    for (at, name) in [(0, "d1"), (2, "d3")] {
        let mut judging = deployment(if at == 2 { "b" } else { "a" }, name);
        judging.spec.remediation = of(json!({ "unhealthyConditions": unhealthy }));
        view.deployments[at] = Arc::new(judging);
    }
    let woken = view.woken_by(&ObjectChange::Node(node("r1", json!({}))));
    let deployments: Vec<&PassKey> =
        woken.iter().filter(|key| matches!(key, PassKey::Deployment(_))).collect();
    let expected = PassKey::Deployment(ObjectKey { namespace: "a".to_owned(), name: "d1".to_owned() });
    assert_eq!(deployments, [&expected]);
}
