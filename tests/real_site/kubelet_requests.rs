//! Certificate requests of kubelets, as `metalform sign` answers them, over the scripted API.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use metalform::controller::certificate_requests::{self, Sign, SignError};
use metalform::pki::certificate_request::ParsedCsr;
use metalform::pki::leaf::Leaf;
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};
use serde_json::{Value, json};

use crate::api::ScriptedApi;
use crate::api::store::Store;
use crate::support::given::networks;

const NAMESPACE: &str = "kube-system";
const TOKEN: &str = "system:bootstrap:abcdef";

/// Of the kubelet of node n1.
fn request(user: &str) -> Value {
    let mut parameters = CertificateParams::default();
    parameters.distinguished_name = DistinguishedName::new();
    parameters.distinguished_name.push(DnType::OrganizationName, "system:nodes");
    parameters.distinguished_name.push(DnType::CommonName, "system:node:n1");
    let pem = parameters.serialize_request(&KeyPair::generate().unwrap()).unwrap().pem().unwrap();
    json!({
        "metadata": { "name": "csr-1" },
        "spec": {
            "request": STANDARD.encode(pem), "signerName": "kubernetes.io/kube-apiserver-client-kubelet",
            "username": user, "groups": ["system:bootstrappers:metalform:n1"],
            "usages": ["digital signature", "client auth"],
        },
    })
}

/// Machine m has claimed Host n1, and Node n1 was created for it.
fn provisioning(store: &mut Store) {
    let machine = json!({
        "metadata": { "name": "m", "finalizers": ["metalform.dev/host-released"] },
        "spec": { "providerSpec": { "value": {} }, "versions": { "kubelet": "1.35.4" } },
        "status": { "host": "n1" },
    });
    store.insert("machines", NAMESPACE, machine);
    let machine = store.in_namespace("machines", NAMESPACE, "m").unwrap();
    let uid = machine["metadata"]["uid"].as_str().unwrap().to_owned();
    let host = json!({ "metadata": { "name": "n1" }, "spec": { "address": "192.0.2.1" } });
    store.insert("hosts", "", host);
    claim(store, &uid);
    let node = json!({
        "metadata": { "name": "n1" }, "spec": { "providerID": format!("metalform://n1/{uid}") },
    });
    store.insert("nodes", "", node);
}

fn claim(store: &mut Store, uid: &str) {
    let machine = json!({ "namespace": NAMESPACE, "name": "m", "uid": uid });
    let claim = json!({ "machine": machine, "token": 1, "since": "2026-01-01T00:00:00Z" });
    store.change("hosts", "", "n1", |host| {
        host["status"] = json!({ "state": "Provisioning", "lastToken": 1, "claim": claim });
    });
}

fn deleting(store: &mut Store) {
    store.change("machines", NAMESPACE, "m", |machine| {
        machine["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    });
}

/// `signed`, or why it was denied.
fn answer(csr: &Value) -> Option<String> {
    if csr["status"]["certificate"].is_string() {
        return Some("signed".to_owned());
    }
    let mut conditions = csr["status"]["conditions"].as_array()?.iter();
    let denied = conditions.find(|condition| condition["type"] == "Denied")?;
    Some(denied["message"].as_str()?.to_owned())
}

async fn answered(user: &str, change: fn(&mut Store)) -> String {
    let api = ScriptedApi::new();
    {
        let mut server = api.lock();
        provisioning(&mut server.store);
        change(&mut server.store);
        server.store.insert("certificatesigningrequests", "", request(user));
    }
    let sign: Arc<Sign> =
        Arc::new(|_: &Leaf, _: &ParsedCsr| -> Result<String, SignError> { Ok("signed".to_owned()) });
    let seen = async {
        loop {
            let csr = api.lock().store.get("certificatesigningrequests", "csr-1").cloned();
            if let Some(answer) = csr.as_ref().and_then(answer) {
                return answer;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::select! {
        () = certificate_requests::run(api.client(), networks(), sign) => panic!("the signer ended"),
        answer = tokio::time::timeout(Duration::from_secs(60), seen) => answer.unwrap(),
    }
}

/// What is done to the objects before the request.
type Change = fn(&mut Store);

#[tokio::test(start_paused = true)]
async fn a_token_is_good_for_the_machine_of_its_node() {
    let deleted = "machine kube-system/m is being deleted";
    let cases: [(&str, Change, &str); 6] = [
        (TOKEN, |_| {}, "signed"),
        (TOKEN, deleting, deleted),
        // The kubelet renews its certificate while its node is drained.
        ("system:node:n1", deleting, "signed"),
        (
            TOKEN,
            |store| claim(store, "next"),
            "host n1 is not claimed by the machine of this node, which has UID uid-1",
        ),
        // That of deploy-node.
        (TOKEN, |store| store.change("nodes", "", "n1", |node| node["spec"] = json!({})), "signed"),
        (
            TOKEN,
            |store| store.remove("hosts", "", "n1"),
            "host n1 is not claimed by the machine of this node, which has UID uid-1",
        ),
    ];
    for (user, change, expected) in cases {
        assert_eq!(answered(user, change).await, expected);
    }
}
