//! A host becomes the node of a Machine, by the phases of `deploy-node`.

use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, PostParams};

use super::Job;
use super::fault::JobFault;
use crate::kube_api::FIELD_MANAGER;
use crate::kube_api::client::ApiError;
use crate::kube_api::nodes;
use crate::machine::job_order::NodeOrder;
use crate::machine::kubelet_refusal::AbsentVersion;
use crate::machine::pool_node;
use crate::model::node::NodeSpec;
use crate::operation::deploy::DeployOperation;
use crate::operation::effect::Action;
use crate::operation::site::Site;

impl Job<'_> {
    /// Its Node is created first. Ends when the Node is Ready as that host, and a pod on it was reached.
    pub(super) async fn deploy(&self, order: &NodeOrder) -> Result<(), JobFault> {
        let spec = self.registered(order).await?;
        self.add_ssh_keys(&order.ssh_public_keys).await?;
        let goal = self.goal(&spec);
        self.run::<DeployOperation>(&goal, &self.site(&goal, &spec)).await
    }

    /// Its Node was deleted: it is created again, and what a deployment records in it is recorded again.
    pub(super) async fn restart_kubelet(&self, order: &NodeOrder) -> Result<(), JobFault> {
        let spec = self.registered(order).await?;
        let goal = self.goal(&spec);
        let site = self.site(&goal, &spec);
        site.act_in_time(&Action::RestartKubelet).await?;
        self.run::<DeployOperation>(&goal, &site).await
    }

    /// The Node of the Machine, created where it does not exist, with the SSH settings of the Host as they are now; the
    /// version is that of the Machine, whatever the Node's label is. A version that no bundle has is refused before.
    async fn registered(&self, order: &NodeOrder) -> Result<NodeSpec, JobFault> {
        let bundles = &self.pool.workspace.bundles;
        if bundles.of_version(&order.kubelet).is_none() {
            return Err(AbsentVersion::new(&order.kubelet, &bundles.versions()).into());
        }
        let (client, name) = (&self.pool.client, &self.spec.name);
        let node = match nodes::get(client, name).await? {
            Some(node) => self.updated(node, order).await?,
            None => create(client, &pool_node::object(name, &self.order.host.spec, order)).await?,
        };
        let (ssh, version) = (self.spec.ssh.clone(), Some(order.kubelet.clone()));
        Ok(NodeSpec { ssh, version, ..NodeSpec::from_node(&node)? })
    }

    /// A Node that exists must be that of the Machine.
    async fn updated(&self, node: Node, order: &NodeOrder) -> Result<Node, JobFault> {
        let found = node.spec.as_ref().and_then(|spec| spec.provider_id.clone()).unwrap_or_default();
        if found != order.provider_id {
            let (node, expected) = (self.spec.name.clone(), order.provider_id.clone());
            return Err(JobFault::ForeignNode { node, found, expected });
        }
        let annotations = pool_node::ssh_annotations(&self.order.host.spec);
        let annotations = annotations.into_iter().map(|(key, value)| (key, Some(value))).collect();
        nodes::annotate(&self.pool.client, &self.spec.name, &annotations).await?;
        Ok(node)
    }
}

async fn create(client: &kube::Client, node: &Node) -> Result<Node, JobFault> {
    let parameters = PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
    let created = Api::<Node>::all(client.clone()).create(&parameters, node).await;
    let name = node.metadata.name.clone().unwrap_or_default();
    Ok(created.map_err(|error| ApiError::new("create", format!("node/{name}"), error))?)
}
