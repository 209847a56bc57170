//! How the API server serves the kinds: names, subresources, columns, the scale of what an autoscaler scales.

use std::fmt::Write as _;

use axum::http::Request;
use kube::Client;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use crate::shared::{NAMESPACE, dynamic, objects, refusal, shared};

async fn get(client: &Client, path: &str, accept: &str) -> Value {
    let request = Request::get(path).header("Accept", accept).body(Vec::new()).unwrap();
    client.request(request).await.unwrap()
}

#[tokio::test]
async fn clients_discover_the_kinds_and_their_columns() {
    let Some(shared) = shared() else { return };
    let client = shared.api.admin().await;
    let (mut served, mut columns) = (String::new(), String::new());
    for group in ["cluster.k8s.io", "metalform.dev"] {
        let found = get(&client, &format!("/apis/{group}/v1alpha1"), "application/json").await;
        // The API server lists the kinds in the order in which it has seen them.
        let mut resources: Vec<&Value> = found["resources"].as_array().unwrap().iter().collect();
        resources.sort_by_key(|resource| resource["name"].as_str());
        for resource in resources {
            let text = |field: &str| resource[field].as_str().unwrap_or_default();
            let short = resource.get("shortNames").map(|names| format!(" {names}")).unwrap_or_default();
            writeln!(served, "{} {}{short}", text("name"), text("kind")).unwrap();
            if !text("name").contains('/') {
                let path = format!("/apis/{group}/v1alpha1/{}?limit=1", text("name"));
                let table = get(&client, &path, "application/json;as=Table;v=v1;g=meta.k8s.io").await;
                let definitions = table["columnDefinitions"].as_array().unwrap();
                let names: Vec<&str> =
                    definitions.iter().map(|column| column["name"].as_str().unwrap()).collect();
                writeln!(columns, "{}: {}", text("name"), names.join(" ")).unwrap();
            }
        }
    }
    insta::assert_snapshot!(served, @r#"
    machinedeployments MachineDeployment ["md"]
    machinedeployments/scale Scale
    machinedeployments/status MachineDeployment
    machines Machine ["ma"]
    machines/status Machine
    machinesets MachineSet ["ms"]
    machinesets/scale Scale
    machinesets/status MachineSet
    hosts Host
    hosts/status Host
    "#);
    insta::assert_snapshot!(columns, @r"
    machinedeployments: Name Desired Current Ready Available Up-to-date Paused Age Version
    machines: Name Node Host Ready Phase Age Version ProviderID Internal-IP
    machinesets: Name Desired Current Ready Available Age Version
    hosts: Name Address State Machine OS Failure-Domain Age
    ");
}

#[tokio::test]
async fn an_autoscaler_scales_by_the_subresource() {
    let Some(shared) = shared() else { return };
    let client = shared.api.admin().await;
    for (kind, labels) in [
        ("MachineDeployment", json!({ "group": "scaled" })),
        ("MachineSet", json!({ "group": "scaled", "machine-template-hash": "1" })),
    ] {
        let api = objects(&client, "cluster.k8s.io/v1alpha1", kind);
        let object = json!({
            "apiVersion": "cluster.k8s.io/v1alpha1", "kind": kind,
            "metadata": { "name": "scaled", "namespace": NAMESPACE },
            "spec": {
                "selector": { "matchLabels": labels },
                "template": {
                    "metadata": { "labels": labels },
                    "spec": {
                        "versions": { "kubelet": "1.35.4" },
                        "providerSpec": { "value": { "cloudProvider": "metalform", "operatingSystem": "debian" } },
                    },
                },
            },
        });
        api.create(&PostParams::default(), &dynamic(&object)).await.unwrap();
        let status = json!({ "status": { "replicas": 3, "labelSelector": "group=scaled" } });
        let parameters = PatchParams::default();
        api.patch_status("scaled", &parameters, &Patch::Merge(&status)).await.unwrap();
        let scale = api.get_scale("scaled").await.unwrap();
        let (spec, found) = (scale.spec.unwrap(), scale.status.unwrap());
        let found = (spec.replicas, found.replicas, found.selector);
        assert_eq!(found, (Some(1), 3, Some("group=scaled".to_owned())), "{kind}: the default is 1");
        let wanted = |replicas: i32| Patch::Merge(json!({ "spec": { "replicas": replicas } }));
        api.patch_scale("scaled", &parameters, &wanted(7)).await.unwrap();
        assert_eq!(api.get("scaled").await.unwrap().data["spec"]["replicas"], 7, "{kind}");
        let refused = refusal(api.patch_scale("scaled", &parameters, &wanted(-1)).await);
        assert!(refused.contains("should be a non-negative integer"), "{refused}");
    }
}
