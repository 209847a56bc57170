//! Which Nodes of the cluster a command deploys.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;
use serde::{Deserialize, Serialize};

use super::cluster_nodes::{self, ClusterNodesError};
use crate::model::name::HostName;
use crate::model::node::{NodeProblems, NodeSpec};
use crate::workspace::layout::Layout;

/// Which Nodes of the cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum NodeSelection {
    /// These. One that is missing or wrong is an error of the command.
    Named(BTreeSet<HostName>),
    /// All of them. One that is wrong is a failure of that node alone.
    All,
}

/// What the selected Nodes specify.
#[derive(Debug, Clone, Default)]
pub struct SelectedNodes {
    /// Those that can be deployed.
    pub specs: Vec<NodeSpec>,
    /// Those whose manifests are wrong.
    pub wrong: Vec<(HostName, NodeProblems)>,
    /// Those that can be deployed, and were left out since.
    pub left_out: BTreeSet<HostName>,
}

impl SelectedNodes {
    /// What becomes of each, for the record of the operation.
    pub(super) fn lines(&self) -> Vec<String> {
        let deployed = self.specs.iter().map(|spec| format!("{}: {}", spec.name, roles(spec)));
        let wrong = self.wrong.iter().map(|(name, _)| format!("{name}: nothing, its manifest is wrong"));
        deployed.chain(wrong).collect()
    }
}

/// The roles of a node, by their names.
pub(super) fn roles(spec: &NodeSpec) -> String {
    spec.roles.iter().map(|role| role.as_str()).collect::<Vec<_>>().join(", ")
}

impl NodeSelection {
    /// Reads the selected Nodes.
    ///
    /// # Errors
    /// When the API cannot be used, and when a Node that is named is missing or wrong.
    pub(super) async fn read(&self, layout: &Layout) -> Result<SelectedNodes, ClusterNodesError> {
        match self {
            Self::Named(names) => {
                let names: Vec<HostName> = names.iter().cloned().collect();
                let specs = cluster_nodes::named(layout, &names).await?;
                Ok(SelectedNodes { specs, ..SelectedNodes::default() })
            }
            Self::All => Ok(self.among(&cluster_nodes::list(layout).await?)),
        }
    }

    /// Those of these Nodes that are selected.
    pub(super) fn among(&self, nodes: &[Node]) -> SelectedNodes {
        let mut selected = SelectedNodes::default();
        for node in nodes {
            // The API has no Node whose name is not one.
            let Ok(name) = node.name_any().parse::<HostName>() else { continue };
            if let Self::Named(names) = self
                && !names.contains(&name)
            {
                continue;
            }
            match NodeSpec::from_node(node) {
                Ok(spec) => selected.specs.push(spec),
                Err(problems) => selected.wrong.push((name, problems)),
            }
        }
        selected
    }
}

impl SelectedNodes {
    /// The names of all of them.
    pub fn names(&self) -> BTreeSet<HostName> {
        let wrong = self.wrong.iter().map(|(name, _)| name);
        self.specs.iter().map(|spec| &spec.name).chain(wrong).cloned().collect()
    }

    /// The names of those that could be deployed when they were selected.
    pub(super) fn deployable(&self) -> BTreeSet<HostName> {
        self.specs.iter().map(|spec| &spec.name).chain(&self.left_out).cloned().collect()
    }

    /// Leaves out all but some of them.
    pub(super) fn retain(&mut self, keep: impl Fn(&HostName) -> bool) {
        self.left_out = self.deployable();
        self.specs.retain(|spec| keep(&spec.name));
        self.wrong.retain(|(name, _)| keep(name));
        self.left_out.retain(|name| !keep(name));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;

    fn node(name: &str, roles: &[&str], annotated: bool) -> Node {
        let labels: BTreeMap<String, &str> =
            roles.iter().map(|role| (format!("node-role.kubernetes.io/{role}"), "")).collect();
        let annotations =
            if annotated { json!({ "metalform.dev/ssh-host": "192.0.2.1" }) } else { json!({}) };
        let metadata = json!({ "name": name, "labels": labels, "annotations": annotations });
        serde_json::from_value(json!({ "apiVersion": "v1", "kind": "Node", "metadata": metadata })).unwrap()
    }

    #[test]
    fn a_wrong_node_is_set_aside() {
        let nodes = [
            node("a-worker", &[], true),
            node("broken", &["king"], true),
            node("etcd-1", &["etcd"], true),
            node("unreached", &[], false),
        ];
        let named =
            NodeSelection::Named(["etcd-1", "broken", "gone"].map(|name| name.parse().unwrap()).into());
        for (selection, specs, wrong) in [
            (NodeSelection::All, vec!["a-worker", "etcd-1"], vec!["broken", "unreached"]),
            (named, vec!["etcd-1"], vec!["broken"]),
        ] {
            let selected = selection.among(&nodes);
            let names: Vec<&str> = selected.specs.iter().map(|spec| spec.name.as_str()).collect();
            assert_eq!(names, specs);
            let names: Vec<&str> = selected.wrong.iter().map(|(name, _)| name.as_str()).collect();
            assert_eq!(names, wrong);
            assert_eq!(selected.names().len(), specs.len() + wrong.len());
        }
    }

    #[test]
    fn a_node_that_is_left_out_was_selected_beside_the_others() {
        let nodes = [
            node("broken", &["king"], true),
            node("etcd-1", &["etcd"], true),
            node("master-1", &["master"], true),
        ];
        let mut selected = NodeSelection::All.among(&nodes);
        let all = selected.deployable();
        let names: Vec<&str> = all.iter().map(HostName::as_str).collect();
        assert_eq!(names, ["etcd-1", "master-1"]);
        selected.retain(|name| name.as_str() == "master-1");
        let names: Vec<&str> = selected.specs.iter().map(|spec| spec.name.as_str()).collect();
        assert_eq!(names, ["master-1"]);
        assert!(selected.wrong.is_empty());
        assert_eq!(selected.deployable(), all);
    }
}
