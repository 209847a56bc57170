//! The first member's data, with which its static pod starts.

use std::net::IpAddr;

use super::{ClusterSite, Workspace};
use crate::model::image_reference::without_tag;
use crate::model::shell_word::quote_all;
use crate::operation::effect::Returned;
use crate::operation::etcd_container;
use crate::operation::goal::{client_url, peer_url};
use crate::operation::script_turn::member_data_turn;
use crate::operation::site::EffectError;

const SCRIPT: &str = include_str!("begin_cluster.sh");

/// The image of etcd as containerd knows it; `None` where the bundle has none.
fn etcd_image(workspace: &Workspace) -> Option<String> {
    workspace.bundles.first().manifest.images_by_name().get("etcd").map(|image| without_tag(image))
}

impl ClusterSite {
    /// Creates the data of a new etcd cluster on the host, unless there is data.
    pub(super) async fn begin_cluster(&self, address: IpAddr) -> Result<Returned, EffectError> {
        let image = etcd_image(&self.workspace).ok_or_else(|| EffectError::States {
            faults: vec!["no image of etcd in the bundle".to_owned()],
        })?;
        let (peer_url, client_url) = (peer_url(address), client_url(address));
        let arguments = quote_all([self.goal.name.as_str(), &peer_url, &client_url, &image]);
        let (turn, functions) = (member_data_turn(), etcd_container::FUNCTIONS);
        self.run("etcd:begin", &format!("set -- {arguments}\n{turn}{functions}{SCRIPT}")).await
    }
}
