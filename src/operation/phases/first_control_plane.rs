//! The first etcd member and the first control plane run.

use std::time::Duration;

use super::layer_applied::{address, applied};
use crate::operation::cause::Cause;
use crate::operation::class::FailureClass;
use crate::operation::condition::Condition;
use crate::operation::contract::{BootstrapNodeOperation, Phase, PhaseStatus, Scene, seen};
use crate::operation::effect::{Look, LookKey};
use crate::operation::goal::peer_url;
use crate::operation::layer::Layer;
use crate::operation::survey::Survey;

/// The only place that ever starts a new etcd cluster.
#[derive(Debug)]
pub struct FirstControlPlane;

impl<O: BootstrapNodeOperation> Phase<O> for FirstControlPlane {
    fn title(&self) -> &'static str {
        "First control plane"
    }

    fn status(&self, scene: &Scene<'_, O>) -> PhaseStatus {
        let survey = seen!(scene.host().survey, Look::Survey);
        let (initial_cluster, initial_cluster_state) = match flags(scene, survey) {
            Ok(flags) => flags,
            Err(first) => return first,
        };
        // Once there is a cluster, the proxy must not forget its other API servers. But the API may be away
        // because of what is wrong here: that comes first then.
        let layers = if survey.joined && scene.node().peers.is_none() {
            if seen!(scene.cluster().api, Look::Api).is_none() {
                return PhaseStatus::Look(Look::Peers);
            }
            let member = Layer::EtcdMember { initial_cluster, initial_cluster_state };
            vec![Layer::Etcd, member, Layer::ControlPlaneFiles, Layer::ControlPlane]
        } else {
            vec![Layer::First { initial_cluster, initial_cluster_state }]
        };
        for layer in layers {
            if let Err(first) = applied(scene, layer) {
                return first;
            }
        }
        match seen!(scene.cluster().api, Look::Api) {
            None => PhaseStatus::Holds,
            Some(complaint) => {
                let condition = Condition {
                    sentence: "the first API server to be ready".to_owned(),
                    class: FailureClass::Api,
                    last_seen: complaint.clone(),
                    limit: Duration::from_secs(300),
                    looks: vec![LookKey::Api],
                    causes: Vec::new(),
                    hopeless: None,
                };
                let causes =
                    vec![Cause::kubelet(), Cause::container("etcd"), Cause::container("kube-apiserver")];
                PhaseStatus::wait(condition.caused_by(scene.host(), causes))
            }
        }
    }
}

/// A cluster begins with its first member alone. Flags that are there already stay: "new" is used once, and not
/// again where the manifest is lost. etcd then resumes with its data, or refuses to begin a second cluster.
fn flags<O: BootstrapNodeOperation>(
    scene: &Scene<'_, O>,
    survey: &Survey,
) -> Result<(String, String), PhaseStatus> {
    let flag = |name: &str, or: String| {
        survey.etcd_flags.as_ref().and_then(|flags| flags.get(name)).cloned().unwrap_or(or)
    };
    let state = if survey.joined || survey.etcd_data { "existing" } else { "new" };
    let own = format!("{}={}", scene.node_goal().name, peer_url(address(scene)?));
    Ok((flag("initial-cluster", own), flag("initial-cluster-state", state.to_owned())))
}
