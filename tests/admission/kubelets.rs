//! What the identity of a node may not write.

use std::fmt::Write as _;

use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::rbac::v1::ClusterRoleBinding;
use kube::Client;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use crate::shared::{NAMESPACE, dynamic, objects, refusal, shared};

const NODES: Option<&str> = Some("system:nodes");

/// An object of each kind, whose writer is the administrator.
fn kinds() -> [Value; 4] {
    let template = json!({
        "versions": { "kubelet": "1.35.4" },
        "providerSpec": { "value": { "cloudProvider": "metalform", "operatingSystem": "debian" } },
    });
    let labels = json!({ "group": "kubelets" });
    let group = json!({
        "replicas": 0,
        "selector": { "matchLabels": labels },
        "template": { "metadata": { "labels": labels }, "spec": template },
    });
    let machines = |kind: &str, spec: &Value| {
        json!({
            "apiVersion": "cluster.k8s.io/v1alpha1", "kind": kind,
            "metadata": { "name": "kubelets", "namespace": NAMESPACE },
            "spec": spec,
        })
    };
    [
        machines("MachineDeployment", &group),
        machines("MachineSet", &group),
        machines("Machine", &template),
        json!({
            "apiVersion": "metalform.dev/v1alpha1", "kind": "Host",
            "metadata": { "name": "kubelets" }, "spec": { "address": "192.0.2.1" },
        }),
    ]
}

/// Every write of every kind as this client, each with the answer.
async fn attempts(client: &Client) -> String {
    let mut answers = String::new();
    for object in kinds() {
        let kind = object["kind"].as_str().unwrap();
        let api = objects(client, object["apiVersion"].as_str().unwrap(), kind);
        let mut other = object.clone();
        other["metadata"]["name"] = "other".into();
        let labels = Patch::Merge(json!({ "metadata": { "labels": { "a": "b" } } }));
        let status = Patch::Merge(json!({ "status": {} }));
        let parameters = PatchParams::default();
        let attempts = [
            ("create", refusal(api.create(&PostParams::default(), &dynamic(&other)).await)),
            ("patch", refusal(api.patch("kubelets", &parameters, &labels).await)),
            ("patch the status", refusal(api.patch_status("kubelets", &parameters, &status).await)),
            ("delete", refusal(api.delete("kubelets", &DeleteParams::default()).await)),
        ];
        for (verb, answer) in attempts {
            writeln!(answers, "{verb} {kind}: {answer}").unwrap();
        }
    }
    answers
}

#[tokio::test]
async fn no_node_writes_machines_and_hosts_whatever_it_is_bound_to() {
    let Some(shared) = shared() else { return };
    let admin = shared.api.admin().await;
    for object in kinds() {
        let api = objects(&admin, object["apiVersion"].as_str().unwrap(), object["kind"].as_str().unwrap());
        api.create(&PostParams::default(), &dynamic(&object)).await.unwrap();
    }
    let answers = attempts(&shared.api.client("system:node:unbound", NODES).await).await;
    let forbidden =
        answers.lines().filter(|line| line.contains("User \"system:node:unbound\" cannot ")).count();
    assert_eq!((forbidden, answers.lines().count()), (16, 16), "{answers}");

    let bindings: Api<ClusterRoleBinding> = Api::all(admin.clone());
    let user = |name: &str| json!({ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": name });
    let binding = json!({
        "metadata": { "name": "test-of-admission" },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin" },
        "subjects": [user("system:node:bound"), user("joining")],
    });
    let binding = serde_json::from_value(binding).unwrap();
    bindings.create(&PostParams::default(), &binding).await.unwrap();
    let mut refused = String::new();
    for (name, group) in [("system:node:bound", NODES), ("joining", Some("system:bootstrappers:metalform"))] {
        let client = shared.api.client(name, group).await;
        let machines = objects(&client, "cluster.k8s.io/v1alpha1", "Machine");
        // The authorizer sees a new binding a moment later.
        while machines.get("kubelets").await.is_err() {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
        let answers = attempts(&client).await;
        let by_policy = "denied request: a node identity may not write Machines or Hosts";
        let denied = answers.lines().filter(|line| line.ends_with(by_policy)).count();
        assert_eq!((denied, answers.lines().count()), (16, 16), "{answers}");
        refused.push_str(answers.lines().next().unwrap());
        refused.push('\n');
    }
    insta::assert_snapshot!(refused, @"
    create MachineDeployment: machinedeployments.cluster.k8s.io \"other\" is forbidden: ValidatingAdmissionPolicy 'metalform-machines' with binding 'metalform-machines' denied request: a node identity may not write Machines or Hosts
    create MachineDeployment: machinedeployments.cluster.k8s.io \"other\" is forbidden: ValidatingAdmissionPolicy 'metalform-machines' with binding 'metalform-machines' denied request: a node identity may not write Machines or Hosts
    ");
}

/// What a kubelet writes to its own Node: a merge patch, whether of the status, and the answer without what is the same in
/// each.
fn writes_of_node() -> Vec<(Value, bool, &'static str)> {
    const ANNOTATIONS: &str = "a node identity may not change annotations of metalform.dev, metalk8s.scality.com, machine-controller or cluster.k8s.io";
    const LABELS: &str = "a node identity may not change labels of metalform.dev, metalk8s.scality.com, machine-controller or cluster.k8s.io";
    let metadata = |field: &str, key: &str, value: Value| json!({ "metadata": { field: { key: value } } });
    let mut writes = Vec::new();
    for key in ["metalform.dev/machine-uid", "metalk8s.scality.com/ssh-host", "machine-controller/owned-by"] {
        for value in [json!("x"), Value::Null] {
            writes.push((metadata("labels", key, value.clone()), false, LABELS));
        }
        writes.push((metadata("annotations", key, json!("x")), false, ANNOTATIONS));
        writes.push((metadata("annotations", key, json!("x")), true, ANNOTATIONS));
    }
    for value in [json!("kube-system/b"), Value::Null] {
        writes.push((metadata("annotations", "cluster.k8s.io/machine", value.clone()), false, ANNOTATIONS));
        writes.push((metadata("annotations", "cluster.k8s.io/machine", value), true, ANNOTATIONS));
    }
    let other = |field: &str, key: &str, answer| (metadata(field, key, json!("x")), false, answer);
    writes.extend([
        other(
            "labels",
            "node-role.kubernetes.io/etcd",
            "is not allowed to modify labels: node-role.kubernetes.io/etcd",
        ),
        other("labels", "example.org/rack", "allowed"),
        other("annotations", "example.org/rack", "allowed"),
        (json!({ "spec": { "taints": [] } }), false, "node \"pooled\" is not allowed to modify taints"),
        (
            json!({ "spec": { "providerID": "metalform://other/uid" } }),
            false,
            "spec.providerID: Forbidden: node updates may not change providerID except from \"\" to valid",
        ),
        (
            json!({ "spec": { "podCIDR": "10.9.9.0/24", "podCIDRs": ["10.9.9.0/24"] } }),
            false,
            "a node identity may not assign a pod network",
        ),
        (
            json!({ "status": { "addresses": [{ "type": "InternalIP", "address": "192.0.2.66" }] } }),
            true,
            "a node identity may not change the addresses of a Node",
        ),
        (json!({ "status": { "capacity": { "cpu": "4" } } }), true, "allowed"),
    ]);
    writes
}

#[tokio::test]
async fn a_kubelet_changes_of_its_node_only_what_decides_nothing() {
    let Some(shared) = shared() else { return };
    let nodes: Api<Node> = Api::all(shared.api.admin().await);
    // As the controllers create it before its kubelet registers.
    let node = json!({
        "metadata": {
            "name": "pooled",
            "labels": {
                "metalform.dev/machine-uid": "u",
                "metalk8s.scality.com/ssh-host": "u",
                "machine-controller/owned-by": "u",
            },
            "annotations": { "cluster.k8s.io/machine": "kube-system/a" },
        },
        "spec": {
            "providerID": "metalform://pooled/u",
            "taints": [{ "key": "metalform.dev/not-ready", "effect": "NoSchedule" }],
        },
    });
    nodes.create(&PostParams::default(), &serde_json::from_value(node).unwrap()).await.unwrap();
    let addresses = json!({ "status": { "addresses": [{ "type": "InternalIP", "address": "192.0.2.1" }] } });
    let parameters = PatchParams::default();
    nodes.patch_status("pooled", &parameters, &Patch::Merge(&addresses)).await.unwrap();

    let own: Api<Node> = Api::all(shared.api.client("system:node:pooled", NODES).await);
    let mut wrong = Vec::new();
    for (patch, of_status, expected) in writes_of_node() {
        let merge = Patch::Merge(&patch);
        let answer = refusal(if of_status {
            own.patch_status("pooled", &parameters, &merge).await
        } else {
            own.patch("pooled", &parameters, &merge).await
        });
        let found = answer.rsplit_once("denied request: ").map_or(answer.as_str(), |(_, sentence)| sentence);
        let found = ["nodes \"pooled\" is forbidden: ", "Node \"pooled\" is invalid: "]
            .iter()
            .fold(found, |found, prefix| found.trim_start_matches(prefix));
        if found != expected {
            wrong.push(format!("{patch} {of_status}:\n  expected {expected}\n  found {answer}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let deleted = refusal(own.delete("pooled", &DeleteParams::default()).await);
    assert!(deleted.contains("User \"system:node:pooled\" cannot delete resource \"nodes\""), "{deleted}");
}

#[tokio::test]
async fn a_kubelet_gives_its_node_no_provider_id_but_its_own() {
    const SENTENCE: &str =
        "a node identity may not change the provider ID of a Node, nor create a Node with that of another";
    let Some(shared) = shared() else { return };
    let nodes: Api<Node> = Api::all(shared.api.admin().await);
    let node = |name: &str, spec: Value| -> Node {
        serde_json::from_value(json!({ "metadata": { "name": name }, "spec": spec })).unwrap()
    };
    // As an operator applies it.
    nodes.create(&PostParams::default(), &node("bare", json!({}))).await.unwrap();
    let own: Api<Node> = Api::all(shared.api.client("system:node:bare", NODES).await);
    for id in ["metalform://pooled/u", "metalform://bare/u", "other://u"] {
        let patch = Patch::Merge(json!({ "spec": { "providerID": id } }));
        let answer = refusal(own.patch("bare", &PatchParams::default(), &patch).await);
        assert!(answer.ends_with(SENTENCE), "{id}: {answer}");
    }

    // The Node was deleted while its kubelet runs, which creates it again.
    let own: Api<Node> = Api::all(shared.api.client("system:node:again", NODES).await);
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    for spec in [json!({ "providerID": "metalform://again/u" }), json!({})] {
        let answer = refusal(own.create(&dry, &node("again", spec.clone())).await);
        assert_eq!(answer, "allowed", "{spec}");
    }
    for id in ["metalform://pooled/u", "metalform://again", "metalform://again-2/u", "other://again/u"] {
        let answer = refusal(own.create(&dry, &node("again", json!({ "providerID": id }))).await);
        assert!(answer.ends_with(SENTENCE), "{id}: {answer}");
    }
}
