use serde_json::{Value, json};

use super::*;
use crate::machine::revision_hash::RevisionHash;
use crate::model::api_contract::{
    DESIRED_REPLICAS, FOREGROUND_DELETION, LAST_APPLIED, MACHINE_TEMPLATE_HASH, MAX_REPLICAS, REVISION,
};

fn now() -> Timestamp {
    "2026-01-02T00:00:00.5Z".parse().unwrap()
}

fn template() -> Value {
    json!({
        "metadata": { "labels": { "group": "a" } },
        "spec": { "providerSpec": { "value": {} }, "versions": { "kubelet": "1.35.4" } },
    })
}

/// With the metadata and the fields of `spec` that are given.
fn deployment(metadata: Value, spec: Value) -> MachineDeployment {
    let mut object = json!({
        "metadata": {
            "name": "nodes", "namespace": "kube-system", "uid": "md", "resourceVersion": "5", "generation": 2,
            "finalizers": [FOREGROUND_DELETION], "annotations": { REVISION: "1" },
        },
        "spec": { "replicas": 2, "selector": { "matchLabels": { "group": "a" } }, "template": template() },
    });
    for (field, more) in [("metadata", metadata), ("spec", spec)] {
        object[field].as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    }
    serde_json::from_value(object).unwrap()
}

fn hash() -> String {
    let template: super::super::api::machine_template::MachineTemplate =
        serde_json::from_value(template()).unwrap();
    RevisionHash::of_template(&serde_json::to_value(template).unwrap()).to_string()
}

/// A set of the deployment that has acted on its size.
fn set(hash: &str, replicas: u32, uid: &str) -> Value {
    let mut template = template();
    template["metadata"]["labels"][MACHINE_TEMPLATE_HASH] = json!(hash);
    json!({
        "metadata": {
            "name": format!("nodes-{hash}"), "namespace": "kube-system", "uid": uid, "resourceVersion": "7",
            "generation": 3, "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": template["metadata"]["labels"],
            "annotations": { REVISION: "1", DESIRED_REPLICAS: "2", MAX_REPLICAS: "3" },
            "ownerReferences": [{
                "apiVersion": "cluster.k8s.io/v1alpha1", "kind": "MachineDeployment", "name": "nodes",
                "uid": "md", "controller": true,
            }],
        },
        "spec": { "replicas": replicas, "selector": { "matchLabels": { "group": "a" } }, "template": template },
        "status": { "observedGeneration": 3 },
    })
}

/// A Machine of the set whose Node is Ready.
fn machine(name: &str, set_uid: &str) -> Value {
    json!({
        "metadata": {
            "name": name, "namespace": "kube-system", "uid": name,
            "labels": { "group": "a" },
            "ownerReferences": [{
                "apiVersion": "cluster.k8s.io/v1alpha1", "kind": "MachineSet", "name": "s", "uid": set_uid,
                "controller": true,
            }],
        },
        "spec": template()["spec"],
        "status": {
            "nodeRef": { "name": name },
            "conditions": [{
                "type": "Ready", "status": "True", "reason": "R", "message": "",
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            }],
        },
    })
}

fn objects(deployment: MachineDeployment, sets: &[Value], machines: &[Value]) -> RolloutObjects {
    let sets = sets.iter().map(|set| Arc::new(serde_json::from_value(set.clone()).unwrap()));
    let machines = machines.iter().map(|one| Arc::new(serde_json::from_value(one.clone()).unwrap()));
    let deployment = Arc::new(deployment);
    RolloutObjects {
        deployments: vec![deployment.clone()],
        deployment,
        sets: sets.collect(),
        machines: machines.collect(),
        nodes: BTreeMap::new(),
    }
}

/// One free host.
fn offer() -> PoolOffer {
    PoolOffer { free_hosts: 1, ..PoolOffer::default() }
}

fn decided(objects: &RolloutObjects) -> WritePlan {
    decide(objects, &offer(), now()).unwrap()
}

fn titles(plan: &WritePlan) -> Vec<String> {
    plan.writes.iter().map(ToString::to_string).collect()
}

fn patch_of_set(write: &MachineWrite) -> &Value {
    match write {
        MachineWrite::Set(ObjectWrite::Patch { patch, .. }) => patch,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_finalizer_comes_before_everything_else() {
    let plan = decided(&objects(deployment(json!({ "finalizers": [] }), json!({})), &[], &[]));
    assert_eq!(titles(&plan), ["patch machinedeployment/nodes"]);
    assert!(plan.again);
}

#[test]
fn a_new_set_has_what_follows_from_the_deployment() {
    let annotations = json!({ "team": "x", LAST_APPLIED: "{}", REVISION: "9", "cluster.k8s.io/a": "b" });
    let metadata = json!({ "annotations": annotations });
    let plan = decided(&objects(deployment(metadata, json!({ "minReadySeconds": 30 })), &[], &[]));
    assert_eq!(
        titles(&plan),
        [format!("create machineset/nodes-{}", hash()), "patch machinedeployment/nodes".into()]
    );
    assert!(plan.again, "the status follows in the next pass");
    let MachineWrite::Set(ObjectWrite::Create(set)) = &plan.writes[0] else { panic!() };
    let set = serde_json::to_value(set).unwrap();
    let labels = json!({ "group": "a", MACHINE_TEMPLATE_HASH: hash() });
    assert_eq!(set["metadata"]["namespace"], json!("kube-system"));
    assert_eq!(set["metadata"]["labels"], labels);
    assert_eq!(set["spec"]["selector"], json!({ "matchLabels": labels }));
    assert_eq!(set["spec"]["template"]["metadata"]["labels"], labels);
    assert_eq!((&set["spec"]["replicas"], &set["spec"]["minReadySeconds"]), (&json!(2), &json!(30)));
    let expected = json!({
        "team": "x", "cluster.k8s.io/a": "b", REVISION: "1", DESIRED_REPLICAS: "2", MAX_REPLICAS: "3",
    });
    assert_eq!(set["metadata"]["annotations"], expected);
    let owner = &set["metadata"]["ownerReferences"][0];
    assert_eq!((&owner["uid"], &owner["controller"]), (&json!("md"), &json!(true)));
    assert_eq!(set["metadata"]["finalizers"], json!([FOREGROUND_DELETION]));
}

#[test]
fn a_status_that_is_written_leaves_nothing_to_write() {
    let sets = [set(&hash(), 2, "s")];
    let machines = [machine("m1", "s"), machine("m2", "s")];
    let mut own = deployment(json!({}), json!({}));
    let plan = decided(&objects(own.clone(), &sets, &machines));
    assert_eq!(titles(&plan), ["patch status of machinedeployment/nodes"]);
    let MachineWrite::Deployment(ObjectWrite::PatchStatus { patch, .. }) = &plan.writes[0] else { panic!() };
    assert_eq!(patch["metadata"], json!({ "uid": "md", "resourceVersion": "5" }));
    let status = &patch["status"];
    assert_eq!((&status["observedGeneration"], &status["availableReplicas"]), (&json!(2), &json!(2)));
    assert_eq!(status["labelSelector"], json!("group=a"));
    assert_eq!(status["conditions"][0]["lastTransitionTime"], json!("2026-01-02T00:00:00Z"));
    own.status = serde_json::from_value(status.clone()).unwrap();
    let later = now() + jiff::SignedDuration::from_hours(1);
    let plan = decide(&objects(own, &sets, &machines), &offer(), later).unwrap();
    assert_eq!(plan, WritePlan::default());
}

#[test]
fn a_size_is_patched_in_the_version_that_was_observed() {
    let sets = [set(&hash(), 1, "s")];
    let plan = decided(&objects(deployment(json!({}), json!({})), &sets, &[machine("m1", "s")]));
    let expected = json!({
        "metadata": { "uid": "s", "resourceVersion": "7" },
        "spec": { "replicas": 2 },
    });
    assert_eq!(patch_of_set(&plan.writes[0]), &expected);
}

#[test]
fn the_current_set_grows_before_another_one_shrinks() {
    let current = set(&hash(), 1, "new");
    let mut old = set("0000000000", 2, "old");
    old["metadata"]["creationTimestamp"] = json!("2025-01-01T00:00:00Z");
    let machines = [machine("m1", "old"), machine("m2", "old"), machine("m3", "new")];
    let more = json!({ "strategy": { "rollingUpdate": { "maxSurge": 2 } } });
    let plan = decided(&objects(deployment(json!({}), more), &[old, current], &machines));
    let titles = titles(&plan);
    assert_eq!(
        titles[..2],
        [format!("patch machineset/nodes-{}", hash()), "patch machineset/nodes-0000000000".into()]
    );
    assert_eq!(patch_of_set(&plan.writes[0])["spec"]["replicas"], json!(2));
    assert_eq!(patch_of_set(&plan.writes[1])["spec"]["replicas"], json!(1));
}

#[test]
fn what_the_deployment_defines_is_copied_to_existing_sets() {
    let sets = [set(&hash(), 2, "s"), set("0000000000", 0, "old")];
    let machines = [machine("m1", "s"), machine("m2", "s")];
    let metadata = json!({ "annotations": { "team": "x", REVISION: "2" } });
    let plan = decided(&objects(deployment(metadata, json!({ "minReadySeconds": 30 })), &sets, &machines));
    let patches: Vec<&Value> =
        plan.writes.iter().filter(|write| matches!(write, MachineWrite::Set(_))).map(patch_of_set).collect();
    let current = patches.iter().find(|patch| patch["metadata"]["uid"] == json!("s")).unwrap();
    let old = patches.iter().find(|patch| patch["metadata"]["uid"] == json!("old")).unwrap();
    assert_eq!(current["spec"], json!({ "minReadySeconds": 30 }));
    assert_eq!(current["metadata"]["annotations"]["team"], json!("x"));
    assert_eq!(old["spec"], json!({ "minReadySeconds": 30 }));
    assert_eq!(old["metadata"]["annotations"]["team"], Value::Null, "an old revision keeps its own");
}

#[test]
fn orphans_are_adopted_alone() {
    let mut orphan = set(&hash(), 2, "s");
    orphan["metadata"]["ownerReferences"] = json!([]);
    let plan = decided(&objects(deployment(json!({}), json!({})), &[orphan], &[]));
    assert_eq!(titles(&plan), [format!("patch machineset/nodes-{}", hash())]);
    assert!(plan.again);
    let patch = patch_of_set(&plan.writes[0]);
    assert_eq!(patch["metadata"]["ownerReferences"][0]["uid"], json!("md"));
    assert_eq!(patch["metadata"]["resourceVersion"], json!("7"));
}

#[test]
fn a_deployment_that_cannot_be_decided_writes_nothing() {
    let mut foreign = set(&hash(), 2, "s");
    foreign["metadata"]["ownerReferences"][0]["uid"] = json!("other");
    let error =
        decide(&objects(deployment(json!({}), json!({})), &[foreign], &[]), &offer(), now()).unwrap_err();
    assert_eq!(error, RolloutDecisionError::NameTaken { name: format!("nodes-{}", hash()) });
    let strategy = json!({ "strategy": { "rollingUpdate": { "maxSurge": 0, "maxUnavailable": 0 } } });
    let error = decide(&objects(deployment(json!({}), strategy), &[], &[]), &offer(), now()).unwrap_err();
    assert_eq!(error.to_string(), "strategy.rollingUpdate: maxSurge and maxUnavailable are both 0");
}

#[test]
fn a_deployment_that_an_earlier_one_is_in_conflict_with_has_its_status_alone() {
    let earlier = |selector: Value| {
        let metadata =
            json!({ "name": "first", "uid": "first", "creationTimestamp": "2025-01-01T00:00:00Z" });
        Arc::new(deployment(metadata, json!({ "selector": selector })))
    };
    let same = || json!({ "matchLabels": { "group": "a" } });
    let with = |metadata: Value, sets: &[Value], other: Arc<MachineDeployment>| {
        let mut objects = objects(deployment(metadata, json!({})), sets, &[]);
        objects.deployments.push(other);
        objects
    };
    let status_alone = ["patch status of machinedeployment/nodes"];
    let mut orphan = set(&hash(), 2, "s");
    orphan["metadata"]["ownerReferences"] = json!([]);
    let own = set(&hash(), 1, "s");
    for sets in [vec![], vec![orphan], vec![own.clone()]] {
        let objects = with(json!({ "annotations": {} }), &sets, earlier(same()));
        let plan = decided(&objects);
        assert_eq!((titles(&plan), plan.again), (status_alone.map(str::to_owned).to_vec(), false));
        let MachineWrite::Deployment(ObjectWrite::PatchStatus { patch, .. }) = &plan.writes[0] else {
            panic!()
        };
        let message = "selector group=a matches the Machines of MachineDeployment first";
        for (at, kind, status) in [(1, "Progressing", "False"), (2, "RolloutBlocked", "True")] {
            let condition = &patch["status"]["conditions"][at];
            let shown = ["type", "status", "reason", "message"].map(|field| condition[field].clone());
            assert_eq!(shown, [kind, status, "SelectorConflict", message].map(|text| json!(text)));
        }
        let mut written = (*objects.deployment).clone();
        written.status = serde_json::from_value(patch["status"].clone()).unwrap();
        let objects = RolloutObjects { deployment: Arc::new(written), ..objects };
        let later = now() + jiff::SignedDuration::from_hours(1);
        assert_eq!(decide(&objects, &offer(), later).unwrap(), WritePlan::default(), "no deadline passes");
    }
    let deleted = json!({ "deletionTimestamp": "2026-01-02T00:00:00Z" });
    let plan = decided(&with(deleted, &[own], earlier(same())));
    assert_eq!(patch_of_set(&plan.writes[0])["spec"], json!({ "replicas": 0 }), "its deletion is its own");
    let created = format!("create machineset/nodes-{}", hash());
    let mut one = (*earlier(json!({ "matchLabels": { "group": "b" } }))).clone();
    one.spec.template.metadata.labels = BTreeMap::from([("group".to_owned(), "b".to_owned())]);
    let plan = decided(&with(json!({}), &[], Arc::new(one)));
    assert_eq!(titles(&plan)[0], created, "another selector");
    let older = json!({ "creationTimestamp": "2024-01-01T00:00:00Z" });
    assert_eq!(titles(&decided(&with(older, &[], earlier(same()))))[0], created, "it is the earlier one");
}

#[test]
fn a_deletion_empties_the_sets_then_deletes_them_then_ends() {
    let deleted = json!({ "deletionTimestamp": "2026-01-02T00:00:00Z" });
    let own = || deployment(deleted.clone(), json!({}));
    let plan = decided(&objects(own(), &[set(&hash(), 2, "s")], &[machine("m1", "s")]));
    assert_eq!(patch_of_set(&plan.writes[0])["spec"], json!({ "replicas": 0 }));
    let plan = decided(&objects(own(), &[set(&hash(), 0, "s")], &[]));
    assert_eq!(titles(&plan)[0], format!("delete machineset/nodes-{}", hash()));
    let plan = decided(&objects(own(), &[], &[]));
    let [MachineWrite::Deployment(ObjectWrite::Patch { patch, .. })] = &plan.writes[..] else { panic!() };
    assert_eq!(patch["metadata"]["finalizers"], json!([]));
    // `kubectl delete --cascade=orphan`.
    let orphaning = json!({ "deletionTimestamp": "2026-01-02T00:00:00Z", "finalizers": ["orphan"] });
    let plan = decided(&objects(deployment(orphaning, json!({})), &[set(&hash(), 2, "s")], &[]));
    assert_eq!(plan, WritePlan::default());
}

/// A Machine of the set, and its Node with these conditions, `Ready=False@2026-01-01T00:00:00Z`.
fn judged(name: &str, set_uid: &str, conditions: &[&str]) -> (Value, (String, Arc<Node>)) {
    let mut machine = machine(name, set_uid);
    machine["spec"]["providerID"] = json!(format!("metalform://{name}/u"));
    let conditions = conditions.iter().map(|text| {
        let (condition, since) = text.split_once('@').unwrap();
        let (kind, status) = condition.split_once('=').unwrap();
        json!({ "type": kind, "status": status, "lastTransitionTime": since })
    });
    let node = json!({
        "metadata": { "name": name }, "spec": { "providerID": format!("metalform://{name}/u") },
        "status": { "conditions": conditions.collect::<Vec<_>>() },
    });
    (machine, (name.to_owned(), Arc::new(serde_json::from_value(node).unwrap())))
}

/// Not Ready for more than the timeout.
const ILL: &str = "Ready=False@2026-01-01T23:54:00Z";

/// The Machines that are deleted, and the reason of the condition.
fn remediated(spec: Value, machines: Vec<(Value, (String, Arc<Node>))>) -> (Vec<String>, Option<String>) {
    let unhealthy = json!([{ "type": "Ready", "status": "False", "timeout": "5m" }]);
    let declared = json!({ "unhealthyConditions": unhealthy, "maxInFlight": 9 });
    let mut more = json!({ "replicas": machines.len(), "remediation": declared });
    more.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    let (machines, nodes): (Vec<Value>, Vec<_>) = machines.into_iter().unzip();
    let count = u32::try_from(machines.len()).unwrap();
    let mut own = set(&hash(), count, "s");
    own["metadata"]["annotations"][DESIRED_REPLICAS] = json!(count.to_string());
    let mut old = set("0000000000", 0, "old");
    old["metadata"]["annotations"][REVISION] = json!("0");
    let sets = [own, old];
    let mut objects = objects(deployment(json!({}), more), &sets, &machines);
    objects.nodes = nodes.into_iter().collect();
    let plan = decided(&objects);
    let deleted = plan.writes.iter().filter_map(|write| match write {
        MachineWrite::Machine(ObjectWrite::Delete { name, .. }) => Some(name.clone()),
        _ => None,
    });
    let status = plan.writes.iter().find_map(|write| match write {
        MachineWrite::Deployment(ObjectWrite::PatchStatus { patch, .. }) => Some(patch["status"].clone()),
        _ => None,
    });
    let conditions = status.unwrap()["conditions"].as_array().unwrap().clone();
    let condition = conditions.into_iter().find(|one| one["type"] == "RemediationAllowed");
    let reason = condition.map(|one| one["reason"].as_str().unwrap().to_owned());
    (deleted.collect(), reason)
}

#[test]
fn machines_of_the_present_template_with_unhealthy_nodes_are_deleted() {
    let all = || vec![judged("m1", "s", &[ILL]), judged("m2", "s", &["Ready=True@2026-01-01T00:00:00Z"])];
    let allowed = || Some("RemediationAllowed".to_owned());
    assert_eq!(remediated(json!({}), all()), (vec!["m1".to_owned()], allowed()));
    assert_eq!(remediated(json!({ "remediation": null }), all()), (vec![], None));
    let more = json!({ "paused": true });
    assert_eq!(remediated(more, all()), (vec!["m1".to_owned()], allowed()), "a pause holds rollouts only");
    // Its Node is that of another Machine.
    let mut foreign = all();
    foreign[0].0["spec"]["providerID"] = json!("metalform://m1/other");
    assert_eq!(remediated(json!({}), foreign), (vec![], allowed()));
    let mut excluded = all();
    excluded[0].0["metadata"]["annotations"] = json!({ "cluster.k8s.io/skip-remediation": "" });
    assert_eq!(remediated(json!({}), excluded), (vec![], allowed()));
    let mut leaving = all();
    leaving[0].0["metadata"]["deletionTimestamp"] = json!("2026-01-02T00:00:00Z");
    assert_eq!(remediated(json!({}), leaving), (vec![], allowed()));
    // An old template: the rollout replaces it, unless that is paused.
    let old = || vec![judged("m1", "old", &[ILL])];
    assert_eq!(remediated(json!({}), old()), (vec![], allowed()));
    assert_eq!(remediated(json!({ "paused": true }), old()), (vec!["m1".to_owned()], allowed()));
}

#[test]
fn the_condition_of_a_remediation_goes_with_it() {
    let sets = [set(&hash(), 2, "s")];
    let machines = [machine("m1", "s"), machine("m2", "s")];
    let mut own = deployment(json!({}), json!({}));
    let stale = json!([{
        "type": "RemediationAllowed", "status": "True", "reason": "R", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }, {
        "type": "Foreign", "status": "True", "reason": "R", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }]);
    own.status = serde_json::from_value(json!({ "conditions": stale })).unwrap();
    let plan = decided(&objects(own, &sets, &machines));
    let MachineWrite::Deployment(ObjectWrite::PatchStatus { patch, .. }) = &plan.writes[0] else { panic!() };
    let conditions = patch["status"]["conditions"].as_array().unwrap();
    let kinds: Vec<&str> = conditions.iter().map(|one| one["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["Foreign", "Available", "Progressing", "RolloutBlocked"]);
}
