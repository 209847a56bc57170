//! Whether a pod on the node answers.

use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use ipnet::IpNet;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, DeleteParams, PostParams};
use serde_json::json;
use tokio::time::timeout;

use super::ClusterSite;
use crate::kube_api::client::ApiError;
use crate::kube_api::nodes;
use crate::operation::effect::{Observation, Returned};
use crate::operation::observed::node::Reachability;
use crate::operation::site::EffectError;

/// Where the pod answers.
const PORT: u16 = 8080;
/// How long one try may take.
const TRY: Duration = Duration::from_secs(2);

impl ClusterSite {
    fn reachability_pod(&self) -> String {
        format!("metalform-reachability-{}", self.goal.name)
    }

    /// Runs on the node whatever its taints and readiness: the scheduler takes no part.
    pub(super) async fn start_reachability_pod(&self) -> Result<Returned, EffectError> {
        let client = self.client().await?;
        let images = self.workspace.bundles.first().manifest.images_by_name();
        let name = self.reachability_pod();
        let pod = json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": { "name": name, "namespace": "kube-system", "labels": { "app.kubernetes.io/managed-by": "metalform" } },
            "spec": {
                "nodeName": self.goal.name.as_str(),
                "activeDeadlineSeconds": 600,
                "automountServiceAccountToken": false,
                "enableServiceLinks": false,
                "terminationGracePeriodSeconds": 0,
                "tolerations": [{ "operator": "Exists" }],
                "securityContext": { "seccompProfile": { "type": "RuntimeDefault" } },
                "containers": [{
                    "name": "answer",
                    "image": images.get("coredns"),
                    "imagePullPolicy": "IfNotPresent",
                    "args": ["-conf", "/etc/coredns/Corefile"],
                    "volumeMounts": [{ "name": "config", "mountPath": "/etc/coredns", "readOnly": true }],
                }],
                "volumes": [{ "name": "config", "configMap": { "name": "metalform-reachability" } }],
            },
        });
        let object = format!("pod/{name}");
        let pod: Pod = serde_json::from_value(pod)
            .map_err(|source| EffectError::Encode { object: object.clone(), source })?;
        let api = Api::<Pod>::namespaced(client, "kube-system");
        match api
            .create(&PostParams::default(), &pod)
            .await
            .map_err(|error| ApiError::new("create", object, error))
        {
            // Of an earlier run.
            Ok(_) | Err(ApiError::Conflict { .. }) => Ok(Returned::default()),
            Err(error) => Err(error.into()),
        }
    }

    pub(super) async fn delete_reachability_pod(&self) -> Result<Returned, EffectError> {
        let client = self.client().await?;
        let name = self.reachability_pod();
        let api = Api::<Pod>::namespaced(client, "kube-system");
        let deleted = api.delete(&name, &DeleteParams::default().grace_period(0)).await;
        match deleted.map_err(|error| ApiError::new("delete", format!("pod/{name}"), error)) {
            Ok(_) | Err(ApiError::NotFound { .. }) => Ok(Returned::default()),
            Err(error) => Err(error.into()),
        }
    }

    /// A connection that is refused was answered too.
    pub(super) async fn pod_gateway(&self) -> Result<Observation, EffectError> {
        let client = self.client().await?;
        let node = nodes::get(&client, &self.goal.name).await?;
        let Some(gateway) = node.and_then(|node| gateway(node.spec?.pod_cidr.as_deref()?)) else {
            return Ok(Observation::PodGateway(false));
        };
        let name = self.reachability_pod();
        let left = Api::<Pod>::namespaced(client, "kube-system").get_opt(&name).await;
        if left.map_err(|error| ApiError::new("get", format!("pod/{name}"), error))?.is_some() {
            return Ok(Observation::PodGateway(false));
        }
        let answers = match timeout(TRY, self.ports.network.connect(gateway)).await {
            Ok(Ok(())) => true,
            Ok(Err(error)) => error.kind() == ErrorKind::ConnectionRefused,
            Err(_) => false,
        };
        Ok(Observation::PodGateway(answers))
    }

    pub(super) async fn reachability(&self) -> Result<Observation, EffectError> {
        let client = self.client().await?;
        let name = self.reachability_pod();
        let api = Api::<Pod>::namespaced(client, "kube-system");
        let pod =
            api.get_opt(&name).await.map_err(|error| ApiError::new("get", format!("pod/{name}"), error))?;
        if let Some(why) = ended(pod.as_ref()) {
            return Ok(Observation::Reachability(Reachability::Ended(why)));
        }
        let address = match pod_address(pod.as_ref(), &self.goal.networks.pods) {
            Ok(address) => address,
            Err(why) => return Ok(Observation::Reachability(Reachability::NotYet(why))),
        };
        Ok(Observation::Reachability(match self.ports.network.get(address, "/health", TRY).await {
            Ok(status) if status.is_success() => Reachability::Reached,
            Ok(status) => Reachability::NotYet(format!("http://{address}: {status}")),
            Err(error) => Reachability::NotYet(error.to_string()),
        }))
    }
}

/// The first address of the node's pod network: a bridge of the host.
fn gateway(pod_cidr: &str) -> Option<SocketAddr> {
    let network: IpNet = pod_cidr.parse().ok()?;
    Some(SocketAddr::new(network.hosts().next()?, PORT))
}

/// Where the pod answers. Its kubelet reports the address, and must not make this machine connect to anything but a
/// pod.
fn pod_address(pod: Option<&Pod>, pods: &IpNet) -> Result<SocketAddr, String> {
    let reported = pod.and_then(|pod| pod.status.as_ref()?.pod_ip.as_ref()?.parse::<IpAddr>().ok());
    let ip = reported.ok_or("the pod has no address yet")?;
    if pods.contains(&ip) {
        Ok(SocketAddr::new(ip, PORT))
    } else {
        Err(format!("the pod's address {ip} is not in the pod network {pods}"))
    }
}

/// Why a pod will never answer. One of a run that failed ends by its own deadline.
fn ended(pod: Option<&Pod>) -> Option<String> {
    let Some(pod) = pod else { return Some("the pod is gone".to_owned()) };
    let status = pod.status.as_ref();
    match status.and_then(|status| status.phase.as_deref()) {
        Some(phase @ ("Failed" | "Succeeded")) => {
            let reason = status.and_then(|status| status.reason.as_deref()).unwrap_or("no reason given");
            Some(format!("the pod has ended: {phase}, {reason}"))
        }
        _ if pod.metadata.deletion_timestamp.is_some() => Some("the pod is being deleted".to_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_no_pod_has_is_not_connected_to() {
        let at = |ip: &str| {
            let pod = serde_json::from_value(json!({ "status": { "podIP": ip } })).unwrap();
            pod_address(Some(&pod), &"10.233.0.0/16".parse().unwrap()).map(|address| address.to_string())
        };
        assert_eq!(at("10.233.4.5"), Ok("10.233.4.5:8080".to_owned()));
        assert_eq!(at(""), Err("the pod has no address yet".to_owned()));
        for ip in ["127.0.0.1", "192.0.2.1", "10.96.0.1", "::ffff:10.233.4.5"] {
            assert_eq!(
                at(ip),
                Err(format!("the pod's address {ip} is not in the pod network 10.233.0.0/16"))
            );
        }
    }

    #[test]
    fn a_pod_that_is_gone_or_ended_differs_from_one_that_is_slow() {
        let pod = |value| serde_json::from_value::<Pod>(value).unwrap();
        let failed = pod(json!({ "status": { "phase": "Failed", "reason": "DeadlineExceeded" } }));
        let going = pod(json!({ "metadata": { "deletionTimestamp": "2026-01-01T00:00:00Z" } }));
        let slow = pod(json!({ "status": { "phase": "Pending" } }));
        assert_eq!(ended(Some(&failed)).unwrap(), "the pod has ended: Failed, DeadlineExceeded");
        assert_eq!(ended(Some(&going)).unwrap(), "the pod is being deleted");
        assert_eq!(ended(None).unwrap(), "the pod is gone");
        assert_eq!(ended(Some(&slow)), None);
    }
}
