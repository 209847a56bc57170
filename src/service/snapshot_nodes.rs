//! The hosts that can have copies of snapshots, of the Nodes of the cluster.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;

use super::cluster_nodes::{self, ClusterNodesError};
use super::hosts::hostname;
use super::snapshot_host::SnapshotHost;
use super::ssh_options::{SshEnvironment, SshOptions, SshOptionsError};
use super::workspace::WorkspaceError;
use crate::kube_api::nodes::is_ready;
use crate::model::name::HostName;
use crate::model::node::NodeSpec;
use crate::model::role::Role;
use crate::transport::local::LocalTransport;
use crate::workspace::layout::Layout;

/// How hosts are reached.
#[derive(Clone)]
pub struct SnapshotAccess {
    /// Where files are on this machine, and on the others.
    pub layout: Layout,
    /// How hosts are logged in to.
    pub ssh: SshOptions,
    /// What `ssh` takes from its user.
    pub ssh_environment: SshEnvironment,
    /// The clock.
    pub clock: fn() -> Timestamp,
}

/// The bootstrap node and the other hosts.
pub(super) struct SnapshotHosts {
    pub local: SnapshotHost,
    /// Those that should have copies first.
    pub others: Vec<SnapshotHost>,
    /// Nodes whose hosts cannot be reached, by their manifests; one line each.
    pub faults: Vec<String>,
    /// Why no other host is known.
    pub unlisted: Option<ClusterNodesError>,
}

/// This machine.
///
/// # Errors
/// When it has no name that a Node could have, or the process is not root.
pub(super) fn this_host(layout: &Layout) -> Result<SnapshotHost, WorkspaceError> {
    if !rustix::process::geteuid().is_root() {
        return Err(WorkspaceError::NotRoot);
    }
    let name = hostname().parse().map_err(WorkspaceError::Hostname)?;
    Ok(SnapshotHost { name, transport: Arc::new(LocalTransport), layout: layout.clone() })
}

/// The hosts of all Nodes that have joined the cluster, over one pool of connections.
///
/// # Errors
/// When the SSH options cannot be used. An API that does not answer is no error here: the snapshots are of use above all
/// then.
pub(super) async fn hosts(
    access: &SnapshotAccess,
    local: SnapshotHost,
) -> Result<SnapshotHosts, SshOptionsError> {
    let SnapshotAccess { layout, ssh, ssh_environment, clock } = access;
    let pool = ssh.pool(ssh_environment, *clock, Some(local.name.clone())).await?;
    let (nodes, unlisted) = match cluster_nodes::list(layout).await {
        Ok(nodes) => (nodes, None),
        Err(error) => (Vec::new(), Some(error)),
    };
    let (specs, faults) = in_preference(&nodes, &local.name);
    let host = |spec: NodeSpec| {
        let transport = pool.transport(&spec.name, &spec.ssh);
        SnapshotHost { name: spec.name, transport, layout: layout.clone() }
    };
    Ok(SnapshotHosts { local, others: specs.into_iter().map(host).collect(), faults, unlisted })
}

/// The other Nodes that have joined: those with etcd first, which have the database anyway, then masters; those that are
/// not Ready or are cordoned last, which may be about to leave. And what is wrong with manifests. Pure.
fn in_preference(nodes: &[Node], local: &HostName) -> (Vec<NodeSpec>, Vec<String>) {
    let (mut ranked, mut faults) = (Vec::new(), Vec::new());
    for node in nodes.iter().filter(|node| has_joined(node)) {
        match NodeSpec::from_node(node) {
            Ok(spec) if spec.name == *local => {}
            Ok(spec) => {
                let cordoned = node.spec.as_ref().and_then(|spec| spec.unschedulable) == Some(true);
                let (etcd, master) = (spec.roles.contains(&Role::Etcd), spec.roles.contains(&Role::Master));
                ranked.push(((cordoned || !is_ready(node), !etcd, !master, spec.name.clone()), spec));
            }
            Err(problems) => faults.extend(problems.to_string().lines().map(str::to_owned)),
        }
    }
    ranked.sort_by(|(one, _), (other, _)| one.cmp(other));
    (ranked.into_iter().map(|(_, spec)| spec).collect(), faults)
}

/// A Node that an operator wrote has no machine yet.
fn has_joined(node: &Node) -> bool {
    let info = node.status.as_ref().and_then(|status| status.node_info.as_ref());
    info.is_some_and(|info| !info.machine_id.is_empty())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn node(name: &str, roles: &[&str], machine: &str, ready: &str, unschedulable: bool) -> Node {
        let labels: serde_json::Map<_, _> =
            roles.iter().map(|role| (format!("node-role.kubernetes.io/{role}"), json!(""))).collect();
        serde_json::from_value(json!({
            "metadata": { "name": name, "labels": labels, "annotations": { "metalform.dev/ssh-host": "192.0.2.1" } },
            "spec": { "unschedulable": unschedulable },
            "status": {
                "conditions": [{ "type": "Ready", "status": ready }],
                "nodeInfo": {
                    "architecture": "", "bootID": "", "containerRuntimeVersion": "", "kernelVersion": "",
                    "kubeProxyVersion": "", "kubeletVersion": "", "machineID": machine, "operatingSystem": "",
                    "osImage": "", "systemUUID": "",
                },
            },
        }))
        .unwrap()
    }

    #[test]
    fn a_node_with_etcd_is_the_first_choice_and_one_that_may_leave_the_last() {
        let nodes = [
            node("a-worker", &["node"], "1", "True", false),
            node("b-cordoned", &["etcd", "master"], "2", "True", true),
            node("c-lost", &["etcd"], "3", "Unknown", false),
            node("d-master", &["master"], "4", "True", false),
            node("e-new", &["etcd"], "", "Unknown", false),
            node("f-etcd", &["etcd"], "5", "True", false),
            node("g-both", &["etcd", "master"], "6", "True", false),
            node("h-wrong", &["no-such-role"], "7", "True", false),
            node("own", &["bootstrap", "etcd", "master"], "8", "True", false),
        ];
        let (specs, faults) = in_preference(&nodes, &"own".parse().unwrap());
        let names: Vec<_> = specs.iter().map(|spec| spec.name.as_str()).collect();
        assert_eq!(names, ["g-both", "f-etcd", "d-master", "a-worker", "b-cordoned", "c-lost"]);
        assert_eq!(faults.len(), 1, "{faults:?}");
        assert!(faults[0].contains("h-wrong"), "{faults:?}");
    }
}
