//! Conversion of the API's Node to the manifest that metalform parses.

use k8s_openapi::api::core::v1::Node;

use crate::model::node::{NodeManifest, NodeMetadata, NodeProblems, NodeSpec, NodeTaints, Taint};

impl From<&Node> for NodeManifest {
    fn from(node: &Node) -> Self {
        let taints = node.spec.iter().flat_map(|spec| spec.taints.iter().flatten());
        Self {
            metadata: NodeMetadata {
                name: node.metadata.name.clone(),
                labels: node.metadata.labels.clone().unwrap_or_default(),
                annotations: node.metadata.annotations.clone().unwrap_or_default(),
            },
            spec: NodeTaints {
                taints: taints.map(Taint::from).collect(),
                provider_id: node.spec.as_ref().and_then(|spec| spec.provider_id.clone()),
            },
        }
    }
}

impl From<&k8s_openapi::api::core::v1::Taint> for Taint {
    fn from(taint: &k8s_openapi::api::core::v1::Taint) -> Self {
        Self {
            key: taint.key.clone(),
            value: taint.value.clone().unwrap_or_default(),
            effect: taint.effect.clone(),
        }
    }
}

impl NodeSpec {
    /// Validates a Node of the API.
    ///
    /// # Errors
    /// All problems at once.
    pub fn from_node(node: &Node) -> Result<Self, NodeProblems> {
        Self::parse(&node.into())
    }
}
