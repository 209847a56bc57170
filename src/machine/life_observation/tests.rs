use jiff::Timestamp;
use serde_json::{Value, json};

use super::*;
use crate::machine::api::drain_timeout::DrainTimeout;
use crate::model::node::Taint;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

/// `change` is a merge patch of a valid Machine without a status.
fn machine(change: Value) -> Machine {
    let mut machine = json!({
        "metadata": {
            "namespace": "a", "name": "m1", "uid": "u-1",
            "labels": { "group": "x", "machine-template-hash": "abc", "metalform.dev/x": "1" },
            "finalizers": [HOST_RELEASED_FINALIZER, NODE_DELETED_FINALIZER],
        },
        "spec": {
            "metadata": { "labels": { "disk": "ssd" }, "annotations": { "note": "b" } },
            "taints": [{ "key": "t", "effect": "NoSchedule" }],
            "providerSpec": { "value": {
                "cloudProvider": "metalform", "operatingSystem": "debian",
                "operatingSystemSpec": { "distUpgradeOnBoot": true },
                "sshPublicKeys": ["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl"],
                "cloudProviderSpec": {
                    "failureDomain": "rack-1", "hostSelector": { "matchLabels": { "size": "big" } },
                },
            } },
            "versions": { "kubelet": "v1.35.4" },
            "nodeDrainTimeout": "30m",
        },
    });
    merge(&mut machine, &change);
    serde_json::from_value(machine).unwrap()
}

fn merge(target: &mut Value, patch: &Value) {
    match patch {
        Value::Object(fields) if target.is_object() => {
            for (key, value) in fields {
                merge(&mut target[key], value);
            }
        }
        other => *target = other.clone(),
    }
}

fn condition(kind: &str, status: &str) -> Value {
    json!({
        "type": kind, "status": status, "reason": "R", "message": "",
        "lastTransitionTime": "1970-01-01T00:01:00Z",
    })
}

#[test]
fn a_machine_is_what_its_object_contains() {
    let found = view(&machine(json!({}))).unwrap();
    assert_eq!((found.uid.as_str(), found.finalizers, found.owned), ("u-1", true, false));
    assert_eq!((found.noted, found.provider_id, found.joined, found.drained), (None, None, false, false));
    assert!(found.upgrades_packages);
    assert_eq!(found.drain_timeout, Some(DrainTimeout::After(std::time::Duration::from_secs(1_800))));
    let found = view(&machine(json!({
        "metadata": {
            "deletionTimestamp": "1970-01-01T00:00:30Z",
            "ownerReferences": [{ "kind": "MachineSet", "name": "s", "uid": "s-1", "apiVersion": "", "controller": true }],
        },
        "spec": { "providerID": "metalform://h1/u-1" },
        "status": {
            "host": "h1", "nodeRef": { "name": "h1" },
            "conditions": [
                condition("NodeLinked", "False"), condition("Drained", "True"), condition("DrainTimeout", "True"),
            ],
        },
    })))
    .unwrap();
    assert_eq!((found.deleting_since, found.owned), (Some(at(30)), true));
    assert_eq!(found.noted, Some("h1".parse().unwrap()));
    assert_eq!(found.provider_id.as_deref(), Some("metalform://h1/u-1"));
    assert_eq!((found.joined, found.drained), (true, true));
    assert_eq!((found.unlinked_since, found.deletion_announced), (Some(at(60)), Some(at(60))));
    let conditions = json!([condition("NodeLinked", "True"), condition("Drained", "False")]);
    let found = view(&machine(json!({ "status": { "conditions": conditions } }))).unwrap();
    assert_eq!((found.unlinked_since, found.drained), (None, false));
}

#[test]
fn the_drain_timeout_is_that_of_the_machine_or_else_of_its_deployment() {
    let minutes = |minutes: u64| Some(DrainTimeout::After(std::time::Duration::from_secs(minutes * 60)));
    for (own, of_deployment, expected) in [
        (json!("30m"), minutes(5), minutes(30)),
        (json!("0"), minutes(5), Some(DrainTimeout::Never)),
        (Value::Null, minutes(5), minutes(5)),
        (Value::Null, Some(DrainTimeout::Never), Some(DrainTimeout::Never)),
        (Value::Null, None, None),
    ] {
        let machine = machine(json!({ "spec": { "nodeDrainTimeout": own } }));
        let objects = MachineObjects {
            machine: Arc::new(machine),
            host: None,
            node: None,
            choice: None,
            elsewhere: true,
            drain_timeout: of_deployment,
        };
        let found = scene(&objects, HostWork::Idle, None, &LifeRules::DEFAULT).unwrap();
        assert_eq!(found.machine.drain_timeout, expected, "{own} {of_deployment:?}");
    }
}

#[test]
fn both_finalizers_are_required_and_one_is_enough_to_be_removed() {
    for (finalizers, deleting, expected) in [
        (json!([HOST_RELEASED_FINALIZER, NODE_DELETED_FINALIZER]), false, true),
        (json!([HOST_RELEASED_FINALIZER]), false, false),
        (json!([NODE_DELETED_FINALIZER]), true, true),
        (json!(["foregroundDeletion"]), true, false),
        (json!(["foregroundDeletion"]), false, false),
    ] {
        let deletion = deleting.then_some("1970-01-01T00:00:30Z");
        let metadata = json!({ "finalizers": finalizers, "deletionTimestamp": deletion });
        let found = view(&machine(json!({ "metadata": metadata }))).unwrap();
        assert_eq!(found.finalizers, expected, "{finalizers} {deleting}");
    }
}

#[test]
fn a_node_has_the_labels_of_both_metadata_and_no_reserved_ones() {
    let found = settings(&machine(json!({ "metadata": { "labels": { "disk": "hdd" } } })));
    let labels: Vec<String> = found.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    assert_eq!(labels, ["disk=ssd", "group=x", "metalform.dev/machine-uid=u-1"]);
    let annotations: Vec<String> =
        found.annotations.iter().map(|(key, value)| format!("{key}={value}")).collect();
    assert_eq!(annotations, ["cluster.k8s.io/machine=a/m1", "note=b"]);
    let taint = Taint { key: "t".to_owned(), value: String::new(), effect: "NoSchedule".to_owned() };
    assert_eq!(found.taints, [taint]);
}

#[test]
fn an_invalid_specification_is_an_error_until_the_machine_is_deleted() {
    let deleting = json!({ "deletionTimestamp": "1970-01-01T00:00:30Z" });
    for (spec, expected) in [
        (
            json!({ "providerSpec": { "value": { "cloudProvider": "other" } } }),
            "providerSpec.value.cloudProvider: unknown variant `other`, expected `metalform`",
        ),
        (
            json!({ "versions": { "kubelet": "latest" } }),
            "versions.kubelet is \"latest\", expected a semantic version such as 1.35.4",
        ),
        (
            json!({ "nodeDrainTimeout": "soon" }),
            "nodeDrainTimeout is \"soon\", expected a duration such as 2h or 30m",
        ),
    ] {
        let change = json!({ "spec": spec });
        let error = view(&machine(change.clone())).unwrap_err();
        assert_eq!(error.to_string(), expected);
        assert_eq!(waiting(&machine(change.clone())), None, "it takes no host");
        let deleted = json!({ "spec": spec, "metadata": deleting });
        assert!(view(&machine(deleted)).unwrap().deleting_since.is_some(), "{expected}");
    }
}

#[test]
fn the_order_of_a_node_contains_what_its_kubelet_needs() {
    let host: HostObject =
        serde_json::from_value(json!({ "metadata": { "name": "h1" }, "spec": { "address": "192.0.2.1" } }))
            .unwrap();
    let order = node_order(&machine(json!({})), &host).unwrap().unwrap();
    assert_eq!((order.machine.as_str(), order.kubelet.as_str()), ("a/m1", "1.35.4"));
    assert_eq!(order.provider_id, "metalform://h1/u-1");
    assert_eq!((order.ssh_public_keys.len(), order.settings.labels.len()), (1, 3));
}

#[test]
fn a_waiting_machine_requires_what_its_provider_block_contains() {
    let owner = json!([{ "kind": "MachineSet", "name": "nodes-abc", "uid": "s", "apiVersion": "", "controller": true }]);
    let found = waiting(&machine(json!({ "metadata": { "ownerReferences": owner } }))).unwrap();
    assert_eq!((found.uid.as_str(), found.group.as_str(), found.noted), ("u-1", "a/nodes", None));
    let HostRequirement { selector, failure_domain, distribution, architecture } = found.requirement;
    assert_eq!((selector.to_string().as_str(), failure_domain.as_deref()), ("size=big", Some("rack-1")));
    assert_eq!((distribution.map(|one| one.to_string()).as_deref(), architecture), (Some("debian"), None));
    for waits_for_none in [
        json!({ "metadata": { "deletionTimestamp": "1970-01-01T00:00:30Z" } }),
        json!({ "spec": { "providerID": "metalform://h1/u-1" } }),
        json!({ "status": { "host": "h1", "nodeRef": { "name": "h1" } } }),
    ] {
        assert_eq!(waiting(&machine(waits_for_none.clone())), None, "{waits_for_none}");
    }
}

#[test]
fn a_noted_host_is_the_choice_or_nothing_is() {
    let noted = machine(json!({ "status": { "host": "h1" } }));
    let claim = |uid: &str| {
        json!({
            "machine": { "namespace": "a", "name": "m", "uid": uid }, "token": 3, "since": "1970-01-01T00:00:00Z",
        })
    };
    let name = || "h1".parse().unwrap();
    for (status, expected) in [
        (json!({ "state": "Available" }), HostChoice::Host(name())),
        (json!({ "state": "Claimed", "claim": claim("u-1"), "lastToken": 3 }), HostChoice::Host(name())),
        (
            json!({ "state": "Claimed", "claim": claim("u-2"), "lastToken": 3 }),
            HostChoice::NotedUnavailable(name()),
        ),
        (json!({ "state": "Quarantined" }), HostChoice::NotedUnavailable(name())),
    ] {
        let host: HostObject = serde_json::from_value(json!({
            "metadata": { "name": "h1", "finalizers": ["metalform.dev/claim-released"] },
            "spec": { "address": "192.0.2.1" }, "status": status,
        }))
        .unwrap();
        assert_eq!(choice_of_noted(&noted, Some(&host)), Some(expected), "{status}");
    }
    assert_eq!(choice_of_noted(&noted, None), Some(HostChoice::NotedUnavailable(name())));
}
