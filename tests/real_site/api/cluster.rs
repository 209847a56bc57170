//! What the controller manager and the kubelets do with the API's objects, seen from the scripted hosts' state.

use serde_json::{Value, json};

use super::store::Store;
use crate::host::ScriptedHost;
use crate::host::guards::kubelet_certificate;

const MANIFESTS: &str = "/etc/kubernetes/manifests";
const BOOTSTRAP_KUBECONFIG: &str = "/etc/kubernetes/bootstrap-kubelet.conf";
const CERTIFICATE: &str = "/var/lib/kubelet/pki/kubelet-client-current.pem";
const CA: &str = "/etc/kubernetes/pki/ca.crt";

/// The controller manager gives every Node its part of the pod network, in the order of their names.
pub fn allocate_pod_networks(store: &mut Store) {
    let names: Vec<String> = store.all("nodes").iter().map(|node| name(node)).collect();
    let taken: Vec<Value> = store.all("nodes").iter().map(|node| node["spec"]["podCIDR"].clone()).collect();
    let mut free =
        (0..=255).map(|third| json!(format!("10.233.{third}.0/24"))).filter(|cidr| !taken.contains(cidr));
    for node in names {
        if store.get("nodes", &node).is_some_and(|node| node["spec"]["podCIDR"].is_null())
            && let Some(cidr) = free.next()
        {
            store.change("nodes", "", &node, |node| {
                node["spec"]["podCIDRs"] = json!([cidr]);
                node["spec"]["podCIDR"] = cidr;
            });
        }
    }
}

/// The controller manager binds a pod of every DaemonSet to each Node that its node selector selects.
pub fn run_daemon_sets(store: &mut Store) {
    let sets: Vec<Value> = store.all("daemonsets").into_iter().cloned().collect();
    let nodes: Vec<Value> = store.all("nodes").into_iter().cloned().collect();
    for set in &sets {
        let selector =
            set["spec"]["template"]["spec"]["nodeSelector"].as_object().cloned().unwrap_or_default();
        let selected =
            |node: &&Value| selector.iter().all(|(key, value)| node["metadata"]["labels"][key] == *value);
        for node in nodes.iter().filter(selected).map(name) {
            let pod = format!("{}-{node}", name(set));
            if store.in_namespace("pods", "kube-system", &pod).is_none() {
                let owner =
                    json!({ "apiVersion": "apps/v1", "kind": "DaemonSet", "name": name(set), "uid": "1" });
                let metadata = json!({ "name": pod, "ownerReferences": [owner] });
                store.insert(
                    "pods",
                    "kube-system",
                    json!({ "metadata": metadata, "spec": { "nodeName": node } }),
                );
            }
        }
    }
}

/// One kubelet: gets its certificate by the token of its bootstrap kubeconfig, registers its machine, reports the
/// static pods of its manifests, and runs the pods that are bound to it.
pub fn run_kubelet(store: &mut Store, name: &str, host: &mut ScriptedHost, internal_ip: &str) {
    if !host.runs("kubelet.service") {
        return;
    }
    let Some(ca) = host.tree.text(CA) else { return };
    let certificate = kubelet_certificate(&ca);
    if host.tree.text(CERTIFICATE).as_ref() != Some(&certificate) {
        let kubeconfig = host.tree.text(BOOTSTRAP_KUBECONFIG).unwrap_or_default();
        if !store.all("secrets").iter().any(|secret| is_token_of(secret, name, &kubeconfig)) {
            return;
        }
        let access = crate::host::tree::of_root(0o600);
        host.tree.write(CERTIFICATE, certificate.as_str().into(), access, host.clock);
    }
    if store.get("nodes", name).is_none() {
        // It registers when it starts, and not again where its Node is deleted. It lists no pods then.
        if host.registered {
            return;
        }
        store.insert("nodes", "", json!({ "metadata": { "name": name } }));
    }
    host.registered = true;
    let has_network = !host.tree.glob("/etc/cni/net.d/*.conflist").is_empty();
    let (status, message) = match has_network {
        true => ("True", "kubelet is posting ready status"),
        false => ("False", "container runtime network not ready: cni plugin not initialized"),
    };
    store.change("nodes", "", name, |node| {
        node["status"]["nodeInfo"]["machineID"] = json!(host.facts.machine_id);
        node["status"]["nodeInfo"]["bootID"] = json!(host.facts.boot_id);
        // With --cloud-provider=external a kubelet keeps addresses that are set (pkg/kubelet/nodestatus/setters.go).
        if node["status"]["addresses"].as_array().is_none_or(Vec::is_empty) {
            node["status"]["addresses"] = json!([{ "type": "InternalIP", "address": internal_ip }]);
        }
        node["status"]["conditions"] = json!([{ "type": "Ready", "status": status, "message": message }]);
    });
    mirror_static_pods(store, name, host);
    run_bound_pods(store, name);
}

/// The node controller: a Node whose kubelet does not report is not Ready.
pub fn mark_silent_node(store: &mut Store, name: &str) {
    store.change("nodes", "", name, |node| {
        if let Some(conditions) = node["status"]["conditions"].as_array_mut() {
            for condition in conditions.iter_mut().filter(|one| one["type"] == "Ready") {
                condition["status"] = json!("Unknown");
                condition["message"] = json!("Kubelet stopped posting node status.");
            }
        }
    });
}

fn is_token_of(secret: &Value, node: &str, kubeconfig: &str) -> bool {
    use base64::Engine as _;
    let field = |key: &str| {
        let bytes = base64::engine::general_purpose::STANDARD.decode(secret["data"][key].as_str()?).ok()?;
        String::from_utf8(bytes).ok()
    };
    let group = format!("system:bootstrappers:metalform:{}", node.replace('.', ":"));
    let bearer = || Some(format!("{}.{}", field("token-id")?, field("token-secret")?));
    field("auth-extra-groups").as_ref() == Some(&group)
        && bearer().is_some_and(|bearer| kubeconfig.contains(&bearer))
}

/// `etcd-n1` for the static pod `etcd` of n1.
fn mirror_static_pods(store: &mut Store, node: &str, host: &ScriptedHost) {
    let names: Vec<String> = host
        .tree
        .glob(&format!("{MANIFESTS}/*.yaml"))
        .iter()
        .filter_map(|path| path.strip_prefix(MANIFESTS)?.strip_prefix('/')?.strip_suffix(".yaml"))
        .map(str::to_owned)
        .collect();
    let gone: Vec<String> = store
        .all("pods")
        .into_iter()
        .filter(|pod| {
            pod["spec"]["nodeName"] == json!(node)
                && !pod["metadata"]["annotations"]["kubernetes.io/config.mirror"].is_null()
        })
        .map(name)
        .filter(|pod| !names.iter().any(|name| *pod == format!("{name}-{node}")))
        .collect();
    for pod in gone {
        store.remove("pods", "kube-system", &pod);
    }
    for name in names {
        let status = match host.crashing.get(&name) {
            None if host.starting.contains(&name) => json!({
                "phase": "Running", "conditions": [{ "type": "Ready", "status": "False" }],
            }),
            None => running("10.233.255.1"),
            Some(exit) => json!({
                "phase": "Running",
                "conditions": [{ "type": "Ready", "status": "False" }],
                "containerStatuses": [{
                    "name": name, "image": name, "imageID": "", "ready": false, "restartCount": exit.restarts,
                    "state": { "waiting": { "reason": "CrashLoopBackOff" } },
                    "lastState": { "terminated": { "exitCode": exit.status, "reason": "Error", "message": exit.last_line } },
                }],
            }),
        };
        // A mirror has the annotations of its manifest.
        let manifest = host.tree.read(&format!("{MANIFESTS}/{name}.yaml")).unwrap_or_default();
        let mut annotations = serde_saphyr::from_slice::<Value>(manifest)
            .ok()
            .and_then(|manifest| manifest.pointer("/metadata/annotations").cloned())
            .unwrap_or_else(|| json!({}));
        annotations["kubernetes.io/config.mirror"] = json!(name);
        store.insert(
            "pods",
            "kube-system",
            json!({
                "metadata": { "name": format!("{name}-{node}"), "annotations": annotations },
                "spec": { "nodeName": node, "containers": [{ "name": name }] },
                "status": status,
            }),
        );
    }
}

fn run_bound_pods(store: &mut Store, node: &str) {
    let bound: Vec<String> = store
        .all("pods")
        .into_iter()
        .filter(|pod| pod["spec"]["nodeName"] == json!(node) && pod["status"]["phase"].is_null())
        .map(name)
        .collect();
    for pod in bound {
        store.change("pods", "kube-system", &pod, |pod| pod["status"] = running("10.233.255.2"));
    }
}

fn running(ip: &str) -> Value {
    json!({ "phase": "Running", "podIP": ip, "conditions": [{ "type": "Ready", "status": "True" }] })
}

fn name(object: &Value) -> String {
    object["metadata"]["name"].as_str().unwrap_or_default().to_owned()
}
