use serde_json::{Value, json};

use super::*;
use crate::model::api_contract::FOREGROUND_DELETION;

fn now() -> Timestamp {
    "2026-01-02T00:00:00Z".parse().unwrap()
}

fn provider() -> Value {
    json!({ "value": { "cloudProvider": "metalform", "operatingSystem": "debian" } })
}

fn set(metadata: Value, replicas: u32) -> Value {
    let mut object = json!({
        "metadata": {
            "name": "s", "namespace": "kube-system", "uid": "s", "resourceVersion": "7", "generation": 3,
            "finalizers": [FOREGROUND_DELETION],
        },
        "spec": {
            "replicas": replicas, "selector": { "matchLabels": { "group": "a" } },
            "template": {
                "metadata": { "labels": { "group": "a", "disk": "b" }, "annotations": { "c": "d" } },
                "spec": {
                    "providerSpec": provider(), "versions": { "kubelet": "1.35.4" }, "providerID": "metalform://a/b",
                },
            },
        },
    });
    object["metadata"].as_object_mut().unwrap().extend(metadata.as_object().unwrap().clone());
    object
}

fn machine(name: &str, owner: Option<&str>) -> Value {
    let reference = |uid| json!({ "apiVersion": "cluster.k8s.io/v1alpha1", "kind": "MachineSet", "name": "s", "uid": uid, "controller": true });
    json!({
        "metadata": {
            "name": name, "namespace": "kube-system", "uid": format!("uid-{name}"), "resourceVersion": "9",
            "labels": { "group": "a" }, "ownerReferences": owner.map(reference).into_iter().collect::<Vec<_>>(),
        },
        "spec": { "providerSpec": provider(), "versions": { "kubelet": "1.35.4" } },
    })
}

fn decided(set: &Value, machines: &[Value]) -> WritePlan {
    let machines = machines.iter().map(|one| Arc::new(serde_json::from_value(one.clone()).unwrap()));
    let set = Arc::new(serde_json::from_value(set.clone()).unwrap());
    decide(&SetObjects { set, machines: machines.collect() }, now())
}

fn titles(plan: &WritePlan) -> Vec<String> {
    plan.writes.iter().map(ToString::to_string).collect()
}

#[test]
fn machines_are_created_before_the_generation_counts_as_observed() {
    let plan = decided(&set(json!({}), 2), &[machine("m1", Some("s")), machine("m2", Some("other"))]);
    let [MachineWrite::Machine(ObjectWrite::Create(created)), MachineWrite::Set(status)] = &plan.writes[..]
    else {
        panic!("{:?}", titles(&plan));
    };
    let created = serde_json::to_value(created).unwrap();
    let metadata = &created["metadata"];
    assert_eq!(metadata["labels"], json!({ "group": "a", "disk": "b" }));
    assert_eq!(metadata["annotations"], json!({ "c": "d" }));
    assert_eq!(metadata["finalizers"], json!([HOST_RELEASED_FINALIZER, NODE_DELETED_FINALIZER]));
    assert_eq!(metadata["ownerReferences"][0]["uid"], json!("s"));
    assert_eq!(created["spec"]["providerID"], Value::Null);
    let ObjectWrite::PatchStatus { patch, .. } = status else { panic!("{status:?}") };
    let status = &patch["status"];
    assert_eq!((&status["observedGeneration"], &status["replicas"]), (&json!(3), &json!(1)));
    assert_eq!(status["fullyLabeledReplicas"], json!(0), "it lacks the label disk");
}

#[test]
fn deletions_are_of_the_machines_that_were_listed() {
    let mut own = set(json!({}), 1);
    own["status"] = json!({ "observedGeneration": 3, "labelSelector": "group=a", "replicas": 2 });
    let plan = decided(&own, &[machine("m1", Some("s")), machine("m2", Some("s"))]);
    let deleted = ObjectWrite::Delete {
        name: "m1".to_owned(),
        uid: Some("uid-m1".to_owned()),
        version: Some("9".to_owned()),
    };
    assert_eq!(plan.writes, [MachineWrite::Machine(deleted)]);
}

#[test]
fn a_set_with_what_it_needs_writes_nothing() {
    let mut own = set(json!({}), 1);
    own["status"] = json!({ "observedGeneration": 3, "labelSelector": "group=a", "replicas": 1 });
    assert_eq!(decided(&own, &[machine("m1", Some("s"))]), WritePlan::default());
}

#[test]
fn orphans_are_adopted_before_others_are_created() {
    let plan = decided(&set(json!({}), 1), &[machine("m1", None)]);
    assert_eq!((titles(&plan), plan.again), (vec!["patch machine/m1".to_owned()], true));
}

#[test]
fn an_invalid_template_creates_no_machine() {
    let mut own = set(json!({}), 2);
    own["spec"]["template"]["spec"]["providerSpec"]["value"]["cloudProviderSpec"] = json!({ "flavor": "m1" });
    let plan = decided(&own, &[]);
    let [MachineWrite::Set(ObjectWrite::PatchStatus { patch, .. })] = &plan.writes[..] else { panic!() };
    assert_eq!(patch["status"]["errorReason"], json!("InvalidConfiguration"));
    assert!(patch["status"]["errorMessage"].as_str().unwrap().contains("flavor"));
}

#[test]
fn a_set_is_gone_after_its_machines() {
    let deleted = json!({ "deletionTimestamp": "2026-01-02T00:00:00Z" });
    let plan = decided(&set(deleted.clone(), 1), &[machine("m1", Some("s")), machine("m2", None)]);
    assert_eq!(titles(&plan), ["delete machine/m1", "patch status of machineset/s"]);
    let mut going = machine("m1", Some("s"));
    going["metadata"]["deletionTimestamp"] = json!("2026-01-02T00:00:00Z");
    assert!(!titles(&decided(&set(deleted.clone(), 1), &[going])).contains(&"patch machineset/s".to_owned()));
    let plan = decided(&set(deleted, 1), &[]);
    assert_eq!(titles(&plan), ["patch machineset/s"]);
    let orphaning = json!({ "deletionTimestamp": "2026-01-02T00:00:00Z", "finalizers": ["orphan"] });
    assert_eq!(decided(&set(orphaning, 1), &[machine("m1", Some("s"))]), WritePlan::default());
    let unprotected = decided(&set(json!({ "finalizers": [] }), 1), &[]);
    assert_eq!(titles(&unprotected), ["patch machineset/s"]);
}
