//! Bootstrapping: a machine becomes the first node of a cluster.

use std::collections::BTreeSet;
use std::time::Duration;

use super::contract::{Operation, PhaseEntry, World};
use super::deploy::{NodeRunBegun, NodeWorld};
use super::effect::{Action, LookKey, Observation};
use super::goal::NodeGoal;
use super::parts::bootstrap::BootstrapPart;
use super::parts::cluster::ClusterPart;
use super::parts::etcd::EtcdPart;
use super::parts::host::HostPart;
use super::parts::node::NodePart;
use super::phases;
use crate::model::event::OperationKind;

/// The operation.
#[derive(Debug)]
pub struct BootstrapOperation;

/// The first node, and what a dry run must know of things that do not exist yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BootstrapGoal {
    /// The first node.
    pub node: NodeGoal,
    /// The images of the bundle.
    pub images: BTreeSet<String>,
    /// The cluster's own objects.
    pub objects: BTreeSet<String>,
}

impl AsRef<NodeGoal> for BootstrapGoal {
    fn as_ref(&self) -> &NodeGoal {
        &self.node
    }
}

impl Operation for BootstrapOperation {
    type Goal = BootstrapGoal;
    type World = BootstrapWorld;
    type Begun = NodeRunBegun;

    const KIND: OperationKind = OperationKind::Deployment;

    const PHASES: &'static [PhaseEntry<Self>] = &[
        PhaseEntry { phase: &phases::reachable::Reachable, needs: &[] },
        PhaseEntry { phase: &phases::preflight::Preflight, needs: &["Reachable"] },
        PhaseEntry { phase: &phases::trust_created::TrustCreated, needs: &["Preflight"] },
        PhaseEntry { phase: &phases::package_service::PackageService, needs: &["Certificate authorities"] },
        PhaseEntry { phase: &phases::images_loaded::ImagesLoaded, needs: &["Package service"] },
        PhaseEntry { phase: &phases::first_control_plane::FirstControlPlane, needs: &["Images loaded"] },
        PhaseEntry { phase: &phases::cluster_objects::ClusterObjects, needs: &["First control plane"] },
        PhaseEntry { phase: &phases::base_system::BaseSystem, needs: &["Cluster objects"] },
        PhaseEntry { phase: &phases::node_joined::NodeJoined, needs: &["Base system"] },
        PhaseEntry { phase: &phases::end_state::EndState, needs: &["Node joined"] },
    ];
}

/// What was observed of the first node.
#[derive(Debug, Clone, Default)]
pub struct BootstrapWorld {
    /// What any node has.
    pub node: NodeWorld,
    /// What only the bootstrap node has.
    pub bootstrap: BootstrapPart,
}

impl World<BootstrapGoal, NodeRunBegun> for BootstrapWorld {
    fn put(
        &mut self,
        goal: &BootstrapGoal,
        begun: &mut NodeRunBegun,
        observation: Observation,
        now: Duration,
    ) {
        self.bootstrap.put(&observation);
        self.node.put(&goal.node, begun, observation, now);
    }

    fn forget(&mut self, key: &LookKey) {
        self.bootstrap.forget(key);
        World::<NodeGoal, NodeRunBegun>::forget(&mut self.node, key);
    }

    fn predict(&mut self, goal: &BootstrapGoal, begun: &mut NodeRunBegun, action: &Action) {
        let survey = self.node.host.survey.as_ref();
        let joined = survey.is_some_and(|survey| survey.joined);
        let bare = survey.is_some_and(|survey| survey.authority.is_none() && !survey.has_member());
        self.bootstrap.predict(action, &goal.images, &goal.objects, (joined, bare));
        self.node.predict(&goal.node, begun, action);
    }
}

impl AsRef<HostPart> for BootstrapWorld {
    fn as_ref(&self) -> &HostPart {
        &self.node.host
    }
}

impl AsRef<NodePart> for BootstrapWorld {
    fn as_ref(&self) -> &NodePart {
        &self.node.node
    }
}

impl AsRef<EtcdPart> for BootstrapWorld {
    fn as_ref(&self) -> &EtcdPart {
        &self.node.etcd
    }
}

impl AsRef<ClusterPart> for BootstrapWorld {
    fn as_ref(&self) -> &ClusterPart {
        &self.node.cluster
    }
}

impl AsRef<BootstrapPart> for BootstrapWorld {
    fn as_ref(&self) -> &BootstrapPart {
        &self.bootstrap
    }
}
