//! The proof that pods on a node can be reached, and the proxies of the other nodes.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Node, Pod};
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, PostParams};
use serde_json::json;

use super::{ClusterSite, Setting};
use crate::engine::cancel::Cancel;
use crate::engine::fleet;
use crate::engine::fleet::schedule::Rules;
use crate::engine::host::HostError;
use crate::kube_api::client::ApiError;
use crate::kube_api::{http_probe, nodes};
use crate::model::name::HostName;
use crate::model::node::NodeSpec;
use crate::operation::goal::Goal;
use crate::operation::layer::Layer;
use crate::operation::phase::Look;
use crate::operation::site::{Done, Site, Trouble};
use crate::operation::world::{Proxies, Reach, Seen, World};

/// Where the pod answers.
const PORT: u16 = 8080;
/// How long one try may take.
const TRY: Duration = Duration::from_secs(2);

impl ClusterSite {
    fn reachability_pod(&self) -> String {
        format!("metalform-reachability-{}", self.goal.name)
    }

    /// Runs on the node whatever its taints and readiness; the scheduler is not asked.
    pub(super) async fn start_reachability_pod(&mut self, world: &World) -> Result<Done, Trouble> {
        let client = self.client().await?;
        let images = self.cluster(world)?.images;
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
            .map_err(|error| Trouble::States { faults: vec![error.to_string()] })?;
        let api = Api::<Pod>::namespaced(client, "kube-system");
        match api
            .create(&PostParams::default(), &pod)
            .await
            .map_err(|error| ApiError::new("create", object, error))
        {
            // Of an earlier run.
            Ok(_) | Err(ApiError::Conflict { .. }) => Ok(Done::default()),
            Err(error) => Err(error.into()),
        }
    }

    pub(super) async fn delete_reachability_pod(&mut self) -> Result<Done, Trouble> {
        let client = self.client().await?;
        let name = self.reachability_pod();
        let api = Api::<Pod>::namespaced(client, "kube-system");
        let deleted = api.delete(&name, &DeleteParams::default().grace_period(0)).await;
        match deleted.map_err(|error| ApiError::new("delete", format!("pod/{name}"), error)) {
            Ok(_) | Err(ApiError::NotFound { .. }) => Ok(Done::default()),
            Err(error) => Err(error.into()),
        }
    }

    pub(super) async fn reach(&mut self) -> Result<Seen, Trouble> {
        let client = self.client().await?;
        let name = self.reachability_pod();
        let api = Api::<Pod>::namespaced(client, "kube-system");
        let pod =
            api.get_opt(&name).await.map_err(|error| ApiError::new("get", format!("pod/{name}"), error))?;
        if let Some(why) = ended(pod.as_ref()) {
            return Ok(Seen::Reach(Reach::Ended(why)));
        }
        let ip = pod
            .as_ref()
            .and_then(|pod| pod.status.as_ref())
            .and_then(|status| status.pod_ip.as_ref())
            .and_then(|ip| ip.parse::<IpAddr>().ok());
        let Some(ip) = ip else {
            return Ok(Seen::Reach(Reach::NotYet("the pod has no address yet".to_owned())));
        };
        let address = SocketAddr::new(ip, PORT);
        Ok(Seen::Reach(match http_probe::get(address, "/health", TRY).await {
            Ok(status) if status.is_success() => Reach::Reached,
            Ok(status) => Reach::NotYet(format!("http://{address}: {status}")),
            Err(error) => Reach::NotYet(error.to_string()),
        }))
    }

    /// Asks every other node that is deployed what would change in its proxy.
    pub(super) async fn proxies(&mut self, world: &World) -> Result<Seen, Trouble> {
        let outcome = self.on_peers(world, false, None).await?;
        let mut proxies = Proxies::default();
        for (name, planned) in outcome.reached {
            match planned {
                Ok(0) => {}
                Ok(_) => {
                    proxies.stale.insert(name.to_string());
                }
                Err(error) => {
                    proxies.unreachable.insert(name.to_string(), error.to_string());
                }
            }
        }
        for (name, error) in outcome.unreachable {
            tracing::warn!(node = %name, %error, "its API server proxy is brought up to date when it is back");
            proxies.unreachable.insert(name.to_string(), error.to_string());
        }
        Ok(Seen::Proxies(proxies))
    }

    pub(super) async fn update_proxies(&mut self, names: &[String], world: &World) -> Result<Done, Trouble> {
        let outcome = self.on_peers(world, true, Some(names)).await?;
        let mut changed = 0;
        for (_, applied) in outcome.reached {
            changed += applied.map_err(Trouble::Host)?;
        }
        for (name, error) in outcome.unreachable {
            tracing::warn!(node = %name, %error, "its API server proxy was not brought up to date");
        }
        Ok(Done { changed })
    }

    /// Plans, and applies where asked, the proxy of each of these nodes; the answer is how many resources differ.
    async fn on_peers(
        &mut self,
        world: &World,
        apply: bool,
        only: Option<&[String]>,
    ) -> Result<fleet::FleetOutcome<usize>, Trouble> {
        let client = self.client().await?;
        let deployed = |node: &&Node| {
            let peer = world.peers.as_ref().and_then(|peers| peers.get(&node.name_any()));
            peer.is_some_and(|peer| peer.control_plane_ip.is_some() && !peer.machine_id.is_empty())
                && only.is_none_or(|names| names.contains(&node.name_any()))
        };
        let all = nodes::list(&client).await?;
        let address = |name: &HostName| world.peers.as_ref()?.get(name.as_str())?.control_plane_ip;
        let specs: std::collections::BTreeMap<HostName, (NodeSpec, IpAddr)> = all
            .iter()
            .filter(deployed)
            .filter_map(|node| NodeSpec::from_node(node).ok())
            .filter_map(|spec| Some((spec.name.clone(), (spec.clone(), address(&spec.name)?))))
            .collect();
        let setting = self.setting.clone();
        let goal = self.goal.clone();
        let work = |name: HostName| {
            let (setting, goal, spec) = (setting.clone(), goal.clone(), specs.get(&name).cloned());
            async move {
                match spec {
                    Some(peer) => proxy_of(setting, &goal, peer, apply).await,
                    None => Ok(0),
                }
            }
        };
        let rules = Rules::side_by_side(fleet::LIMIT);
        Ok(fleet::run(specs.keys().cloned().collect(), &rules, &Cancel::never(), work, |_| true).await)
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

/// One other node, seen by itself: its own facts, and the whole list of API servers.
async fn proxy_of(
    setting: Arc<Setting>,
    goal: &Goal,
    (spec, control_plane_ip): (NodeSpec, IpAddr),
    apply: bool,
) -> Result<usize, HostError> {
    let first = spec.name == setting.subject.name;
    let peer_goal =
        Goal { name: spec.name.clone(), roles: spec.roles.clone(), first, control_plane_ip, ..goal.clone() };
    let mut site = ClusterSite::new(setting, peer_goal.clone(), spec);
    let mut world = World::default();
    for look in [Look::Facts, Look::Node, Look::Peers, Look::Plan(Layer::Proxy)] {
        let seen = site.look(&look, &world).await.map_err(host_error)?;
        world.put(&peer_goal, seen);
    }
    let differing = world.plans.get(&Layer::Proxy).map_or(0, |plan| plan.changes.len());
    if apply && differing > 0 {
        site.apply(&Layer::Proxy, &world).await.map_err(host_error)?;
    }
    Ok(differing)
}

/// A fleet tells hosts that are away from those that fail; all else counts as the latter.
fn host_error(trouble: Trouble) -> HostError {
    match trouble {
        Trouble::Host(error) => error,
        other => HostError::EndedEarly { status: 1, resources: Vec::new(), stderr: other.to_string() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_that_is_gone_or_ended_is_told_from_one_that_is_slow() {
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
