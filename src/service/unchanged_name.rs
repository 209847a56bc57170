//! The bootstrap node keeps its name: its Node, its kubelet and its member of etcd have it, and under another one
//! `bootstrap` would make it a second node.

use super::command_error::{CommandError, ErrorClass};
use crate::model::name::HostName;
use crate::model::node::{NodeManifest, roles_of};
use crate::model::role::Role;
use crate::workspace::layout::Layout;
use crate::workspace::node_records;

/// The bootstrap node of a cluster has got another hostname.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("this machine is {found}, and the bootstrap node of its cluster is {expected}")]
pub struct RenamedMachine {
    /// The hostname.
    pub found: HostName,
    /// The name of its Node.
    pub expected: String,
}

impl CommandError for RenamedMachine {
    fn class(&self) -> ErrorClass {
        ErrorClass::Refused
    }

    fn errors(&self) -> Vec<String> {
        vec![self.to_string()]
    }

    fn hints(&self) -> Vec<String> {
        let expected = &self.expected;
        vec![format!(
            "hostnamectl set-hostname {expected}, then run the same command again; nothing was changed"
        )]
    }
}

/// Compares the hostname with the Nodes that are recorded on this machine: it needs no API.
///
/// # Errors
/// When the cluster of this machine has another bootstrap node.
pub(super) fn check(layout: &Layout, hostname: &HostName) -> Result<(), RenamedMachine> {
    // Commands that need records report those that cannot be read.
    compare(hostname, &node_records::of_cluster(layout).unwrap_or_default())
}

/// A machine whose name a Node has is not another one, whatever labels others carry. Pure.
///
/// # Errors
/// When only a Node of another name is a bootstrap node.
pub(super) fn compare(hostname: &HostName, nodes: &[NodeManifest]) -> Result<(), RenamedMachine> {
    let name = |node: &NodeManifest| node.metadata.name.clone().unwrap_or_default();
    if nodes.iter().any(|node| name(node) == hostname.as_str()) {
        return Ok(());
    }
    match nodes.iter().find(|node| roles_of(&node.metadata.labels).contains(&Role::Bootstrap)) {
        Some(node) => Err(RenamedMachine { found: hostname.clone(), expected: name(node) }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::node::NodeMetadata;

    fn node(name: &str, roles: &[&str]) -> NodeManifest {
        let labels = roles.iter().map(|role| (format!("node-role.kubernetes.io/{role}"), String::new()));
        let metadata =
            NodeMetadata { name: Some(name.to_owned()), labels: labels.collect(), ..NodeMetadata::default() };
        NodeManifest { metadata, ..NodeManifest::default() }
    }

    #[test]
    fn a_bootstrap_node_under_another_hostname_is_refused() {
        let (first, worker) = (node("bootstrap", &["bootstrap", "master", "etcd"]), node("node-1", &[]));
        for (hostname, nodes, expected) in [
            ("bootstrap", vec![], None),
            ("bootstrap", vec![worker.clone(), first.clone()], None),
            ("boot2", vec![worker.clone(), first.clone()], Some("bootstrap")),
            // No Node has the role: nothing shows that it was renamed.
            ("boot2", vec![worker.clone(), node("bootstrap", &["master"])], None),
            // Another node has got the label by mistake.
            ("bootstrap", vec![node("bootstrap", &["master"]), node("node-1", &["bootstrap"])], None),
        ] {
            let refused = compare(&hostname.parse().unwrap(), &nodes).err();
            assert_eq!(refused.map(|refused| refused.expected).as_deref(), expected, "{hostname} {nodes:?}");
        }
    }

    #[test]
    fn the_records_count_where_the_cluster_of_their_nodes_is() {
        let directory = tempfile::tempdir().unwrap();
        let layout = Layout::below(directory.path());
        let hostname: HostName = "boot2".parse().unwrap();
        assert_eq!(check(&layout, &hostname), Ok(()), "nothing is recorded");
        std::fs::create_dir_all(layout.node_records().parent().unwrap()).unwrap();
        node_records::save(&layout, &[node("bootstrap", &["bootstrap"])]).unwrap();
        assert_eq!(check(&layout, &hostname), Ok(()), "there is no cluster");
        std::fs::create_dir_all(layout.pki()).unwrap();
        std::fs::write(layout.pki().join("ca.crt"), "CA").unwrap();
        let refused = check(&layout, &hostname).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "this machine is boot2, and the bootstrap node of its cluster is bootstrap"
        );
        assert!(
            refused.hints()[0].starts_with("hostnamectl set-hostname bootstrap,"),
            "{:?}",
            refused.hints()
        );
        assert_eq!(check(&layout, &"bootstrap".parse().unwrap()), Ok(()));
    }
}
