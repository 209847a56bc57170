//! The warning about a kubelet's version with which no Machine becomes a node.

use std::time::Duration;

use axum::http::Request;
use kube::Client;
use kube::client::Body;
use metalform::machine::kubelet_refusal::AbsentVersion;
use metalform::model::skew;
use serde_json::{Value, json};

use crate::api_server::{BUNDLES, KUBERNETES};
use crate::shared::{NAMESPACE, shared};

/// How long a policy may take until it is enforced.
const ENFORCED: Duration = Duration::from_secs(60);

fn machine(name: &str, kubelet: &str) -> Value {
    json!({
        "apiVersion": "cluster.k8s.io/v1alpha1", "kind": "Machine",
        "metadata": { "name": name, "namespace": NAMESPACE },
        "spec": {
            "versions": { "kubelet": kubelet },
            "providerSpec": { "value": { "cloudProvider": "metalform", "operatingSystem": "debian" } },
        },
    })
}

fn deployment(name: &str, kubelet: &str) -> Value {
    let labels = json!({ "group": "versions" });
    json!({
        "apiVersion": "cluster.k8s.io/v1alpha1", "kind": "MachineDeployment",
        "metadata": { "name": name, "namespace": NAMESPACE },
        "spec": {
            "replicas": 0, "selector": { "matchLabels": labels },
            "template": { "metadata": { "labels": labels }, "spec": machine(name, kubelet)["spec"] },
        },
    })
}

/// The warnings of a creation in a dry run, without what is the same in each.
async fn warnings(client: &Client, object: &Value) -> Vec<String> {
    let plural = format!("{}s", object["kind"].as_str().unwrap().to_lowercase());
    let path = format!("/apis/cluster.k8s.io/v1alpha1/namespaces/{NAMESPACE}/{plural}?dryRun=All");
    let body = Body::from(object.to_string().into_bytes());
    let request = Request::post(path).header("Content-Type", "application/json").body(body).unwrap();
    let response = client.send(request).await.unwrap();
    assert_eq!(response.status(), 201, "{object}");
    let texts = response.headers().get_all("warning").iter().map(|value| value.to_str().unwrap());
    let policy = "'metalform-kubelet-versions' with binding 'metalform-kubelet-versions': ";
    texts.map(|text| text.split_once(policy).unwrap().1.trim_end_matches('"').to_owned()).collect()
}

#[tokio::test]
async fn a_version_that_cannot_be_deployed_now_is_accepted_with_the_reason_of_the_condition() {
    let Some(shared) = shared() else { return };
    let admin = shared.api.admin().await;
    // The policy is enforced a moment after it was created.
    let enforced = async {
        while warnings(&admin, &machine("probe", "1.99.0")).await.is_empty() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    assert!(tokio::time::timeout(ENFORCED, enforced).await.is_ok(), "the policy warns of nothing");
    for kubelet in [
        KUBERNETES, BUNDLES[1], "1.36.9", "1.33.0", "1.32.9", "1.24.9", "1.37.0", "1.9.1", "2.36.0", "0.36.0",
    ] {
        let skew = skew::check(kubelet.parse().unwrap(), &[KUBERNETES.parse().unwrap()]);
        let absent = (!BUNDLES.contains(&kubelet)).then(|| AbsentVersion::new(kubelet, &BUNDLES).to_string());
        let expected: Vec<String> =
            skew.err().map(|error| error.to_string()).into_iter().chain(absent).collect();
        let spellings =
            [machine("one", kubelet), machine("one", &format!("v{kubelet}")), deployment("one", kubelet)];
        for object in spellings {
            assert_eq!(warnings(&admin, &object).await, expected, "{object}");
        }
    }
    let candidate = warnings(&admin, &machine("one", "1.37.0-rc.1+k3s1")).await;
    assert!(candidate[0].contains("1.37.0-rc.1+k3s1 is newer than the API server"), "{candidate:?}");
    let controllers = shared.api.client("metalform:machine-controller", None).await;
    assert_eq!(warnings(&controllers, &machine("one", "1.99.0")).await, Vec::<String>::new());
}
