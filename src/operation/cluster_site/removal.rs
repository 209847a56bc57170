//! The host of a node that is removed.

use super::ClusterSite;
use crate::operation::effect::Returned;
use crate::operation::site::EffectError;

impl ClusterSite {
    pub(super) async fn stop_control_plane(&self) -> Result<Returned, EffectError> {
        self.run("static_pod:kube-apiserver", include_str!("stop_control_plane.sh")).await
    }

    pub(super) async fn stop_node(&self) -> Result<Returned, EffectError> {
        self.run("service:kubelet", include_str!("stop_node.sh")).await
    }
}
