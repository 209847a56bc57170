//! The first etcd member and the first control plane run.
//!
//! # How an etcd cluster begins
//! The action that creates the CAs of a new cluster leaves a mark ([`crate::workspace::trust`]). With the mark, and only
//! with it, the member's data directory is created and its static pod is written with `--initial-cluster-state=new`. As
//! soon as the member is a healthy voter the mark is removed, and the static pod is written again with `existing`, which
//! restarts etcd once. The API server is started after that, so whatever was written to a cluster was written when it
//! could not begin a second time. Each step is decided from what is observed: a run that is killed anywhere resumes.

use std::time::Duration;

use super::layer_applied::{address, applied};
use super::member_wait::wait;
use super::membership::{member_goal, members};
use crate::etcd::membership::{LearnerProgress, Move, Obstacle, next};
use crate::operation::cause::Cause;
use crate::operation::class::FailureClass;
use crate::operation::condition::Condition;
use crate::operation::contract::{Blocker, BootstrapNodeOperation, Phase, PhaseStatus, Scene, seen};
use crate::operation::effect::{Action, Look, LookKey};
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
        let new = *seen!(scene.bootstrap().new_cluster, Look::NewClusterMark);
        let started = if new { begin(scene, survey) } else { resume(scene, survey) };
        if let Err(first) = started {
            return first;
        }
        match seen!(scene.cluster().api, Look::Api) {
            None => PhaseStatus::Holds,
            Some(complaint) => {
                let causes =
                    vec![Cause::kubelet(), Cause::container("etcd"), Cause::container("kube-apiserver")];
                let condition = Condition {
                    sentence: "the first API server to be ready".to_owned(),
                    class: FailureClass::Api,
                    last_seen: complaint.clone(),
                    limit: Duration::from_secs(300),
                    looks: vec![LookKey::Api],
                    causes: Vec::new(),
                    hopeless: None,
                };
                PhaseStatus::wait(condition.caused_by(scene.host(), causes))
            }
        }
    }
}

/// The cluster has yet to begin, or has begun a moment ago.
fn begin<O: BootstrapNodeOperation>(scene: &Scene<'_, O>, survey: &Survey) -> Result<(), PhaseStatus> {
    let first = Layer::First {
        initial_cluster: own(scene)?,
        initial_cluster_state: "new".to_owned(),
        first_start: true,
    };
    applied(scene, first)?;
    // While it starts.
    applied(scene, Layer::ControlPlaneFiles)?;
    if !survey.etcd_data {
        let condition = Condition {
            sentence: format!("etcd on {} to begin its cluster", scene.node_goal().name),
            class: FailureClass::Etcd,
            last_seen: "/var/lib/etcd/member/wal does not exist".to_owned(),
            limit: Duration::from_secs(300),
            looks: vec![LookKey::Survey],
            causes: Vec::new(),
            hopeless: None,
        };
        let causes = vec![Cause::kubelet(), Cause::container("etcd")];
        return Err(PhaseStatus::wait(condition.caused_by(scene.host(), causes)));
    }
    match next(&member_goal(scene)?, members(scene)?, LearnerProgress::STARTED) {
        Move::Holds => Err(PhaseStatus::Act(Action::RemoveNewClusterMark)),
        other => Err(PhaseStatus::wait(wait(scene, &other))),
    }
}

/// The cluster has begun: its first member starts with its data, or not at all.
fn resume<O: BootstrapNodeOperation>(scene: &Scene<'_, O>, survey: &Survey) -> Result<(), PhaseStatus> {
    if !survey.etcd_data {
        let name = scene.node_goal().name.to_string();
        return Err(PhaseStatus::Blocked(Blocker::Etcd(Obstacle::FirstDataLost { name })));
    }
    let flags = survey.etcd_flags.as_ref();
    let initial_cluster = match flags.and_then(|flags| flags.get("initial-cluster")) {
        Some(flag) => flag.clone(),
        None => own(scene)?,
    };
    let initial_cluster_state = "existing".to_owned();
    // Once there is a cluster, the proxy must not forget its other API servers. But the API may be away because of
    // what is wrong here: that comes first then.
    let mut layers = if survey.joined && scene.node().peers.is_some() {
        vec![Layer::First { initial_cluster, initial_cluster_state, first_start: false }]
    } else {
        if survey.joined && scene.cluster().api.as_ref().ok_or(PhaseStatus::Look(Look::Api))?.is_none() {
            return Err(PhaseStatus::Look(Look::Peers));
        }
        vec![Layer::Etcd, Layer::EtcdMember { initial_cluster, initial_cluster_state, first_start: false }]
    };
    layers.extend([Layer::ControlPlaneFiles, Layer::ControlPlane]);
    layers.into_iter().try_for_each(|layer| applied(scene, layer))
}

/// A cluster begins with its first member alone.
fn own<O: BootstrapNodeOperation>(scene: &Scene<'_, O>) -> Result<String, PhaseStatus> {
    Ok(format!("{}={}", scene.node_goal().name, peer_url(address(scene)?)))
}
