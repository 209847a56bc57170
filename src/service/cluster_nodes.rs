//! The Nodes of the cluster, as the API server of this machine has them.

use k8s_openapi::api::core::v1::Node;

use super::cluster_mismatch::ClusterMismatch;
use super::command_error::{CommandError, ErrorClass};
use crate::kube_api::client::{self, ApiError};
use crate::kube_api::nodes;
use crate::model::error_chain::error_chain;
use crate::model::name::HostName;
use crate::model::node::NodeSpec;
use crate::workspace::layout::Layout;
use crate::workspace::trust::API;

/// Why Nodes cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ClusterNodesError {
    /// The API cannot be used.
    #[error("{} ({API})", error_chain(.0))]
    Api(ApiError),
    /// Nodes are missing, or their manifests are wrong.
    #[error("{}", unusable(missing, wrong).join("; "))]
    Unusable {
        /// Their names.
        missing: Vec<HostName>,
        /// What is wrong, one line each.
        wrong: Vec<String>,
    },
    /// The configuration does not fit the cluster. Nothing was done.
    #[error("{}", lines(.0).join("; "))]
    Mismatch(Vec<ClusterMismatch>),
}

fn lines(mismatches: &[ClusterMismatch]) -> Vec<String> {
    mismatches.iter().map(ToString::to_string).collect()
}

fn unusable(missing: &[HostName], wrong: &[String]) -> Vec<String> {
    missing.iter().map(|name| format!("Node {name} not found")).chain(wrong.iter().cloned()).collect()
}

const CHECK_API: &str = "check the API server: kubectl --kubeconfig /etc/kubernetes/admin.conf get nodes";
/// Where no API server answers.
pub(super) const WHILE_ETCD_WORKS: &str = "`metalform etcd health` shows whether its etcd works; \
                                           `metalform etcd recover --dry-run`, what it can continue with";

impl CommandError for ClusterNodesError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Api(_) => ErrorClass::Api,
            Self::Unusable { .. } => ErrorClass::Configuration,
            Self::Mismatch(_) => ErrorClass::Refused,
        }
    }

    fn errors(&self) -> Vec<String> {
        match self {
            Self::Api(_) => vec![self.to_string()],
            Self::Unusable { missing, wrong } => unusable(missing, wrong),
            Self::Mismatch(mismatches) => lines(mismatches),
        }
    }

    fn hints(&self) -> Vec<String> {
        let hints = match self {
            Self::Api(ApiError::Kubeconfig { .. } | ApiError::Unusable { .. }) => {
                vec!["run this command as root on the bootstrap node"]
            }
            // The administrator may do everything, while the certificate is valid.
            Self::Api(ApiError::Forbidden { .. }) => {
                vec!["run `metalform bootstrap`, which renews the administrator's certificate"]
            }
            Self::Api(ApiError::Unreachable { .. } | ApiError::NotReady { .. }) => {
                vec![CHECK_API, WHILE_ETCD_WORKS]
            }
            Self::Api(_) => vec![CHECK_API],
            Self::Unusable { missing, wrong } => {
                let list =
                    "`metalform node list` lists the Nodes; kubectl apply -f creates one from its manifest";
                let fix = "fix the manifest and run kubectl apply -f again";
                let hints = [(!missing.is_empty(), list), (!wrong.is_empty(), fix)];
                hints.into_iter().filter_map(|(applies, hint)| applies.then_some(hint)).collect()
            }
            Self::Mismatch(mismatches) => return mismatches.iter().map(ClusterMismatch::hint).collect(),
        };
        hints.into_iter().map(str::to_owned).collect()
    }
}

/// All Nodes.
///
/// # Errors
/// When the API cannot be used.
pub async fn list(layout: &Layout) -> Result<Vec<Node>, ClusterNodesError> {
    let client = client::connect(&layout.admin_conf()).await.map_err(ClusterNodesError::Api)?;
    client::in_time(("list", "nodes"), nodes::list(&client)).await.map_err(ClusterNodesError::Api)
}

/// What the manifests of these Nodes specify.
///
/// # Errors
/// Everything that is wrong with any of them.
pub fn specs(nodes: &[Node]) -> Result<Vec<NodeSpec>, ClusterNodesError> {
    let mut specs = Vec::new();
    let mut errors = Vec::new();
    for node in nodes {
        match NodeSpec::from_node(node) {
            Ok(spec) => specs.push(spec),
            Err(problems) => errors.extend(problems.to_string().lines().map(str::to_owned)),
        }
    }
    if errors.is_empty() {
        Ok(specs)
    } else {
        Err(ClusterNodesError::Unusable { missing: Vec::new(), wrong: errors })
    }
}

/// Reads the Nodes with these names, and checks all of them before any is used.
///
/// # Errors
/// When the API cannot be used; else every Node that is missing or wrong.
pub async fn named(layout: &Layout, names: &[HostName]) -> Result<Vec<NodeSpec>, ClusterNodesError> {
    let client = client::connect(&layout.admin_conf()).await.map_err(ClusterNodesError::Api)?;
    let mut found = Vec::new();
    let mut missing = Vec::new();
    for name in names {
        let object = format!("node/{name}");
        let read = client::in_time(("get", &object), nodes::get(&client, name));
        match read.await.map_err(ClusterNodesError::Api)? {
            Some(node) => found.push(node),
            None => missing.push(name.clone()),
        }
    }
    match specs(&found) {
        Ok(specs) if missing.is_empty() => Ok(specs),
        Ok(_) => Err(ClusterNodesError::Unusable { missing, wrong: Vec::new() }),
        Err(ClusterNodesError::Unusable { wrong, .. }) => Err(ClusterNodesError::Unusable { missing, wrong }),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kube_api::client::ApiCall;

    #[test]
    fn an_expired_certificate_is_renewed_and_an_api_server_that_is_away_is_checked() {
        let call = || ApiCall { verb: "list", object: "nodes".to_owned() };
        let renew = "run `metalform bootstrap`, which renews the administrator's certificate";
        let check = "check the API server: kubectl --kubeconfig /etc/kubernetes/admin.conf get nodes";
        for (error, hint) in [
            (ApiError::Forbidden { call: call(), message: "Unauthorized".to_owned() }, renew),
            (ApiError::Unreachable { call: call(), reason: "connection refused".to_owned() }, check),
            (ApiError::NotReady { call: call(), message: "starting".to_owned() }, check),
        ] {
            let error = ClusterNodesError::Api(error);
            assert_eq!(error.hints()[0], hint, "{error}");
            assert_eq!(error.hints().len(), if hint == check { 2 } else { 1 }, "{error}");
        }
    }
}
