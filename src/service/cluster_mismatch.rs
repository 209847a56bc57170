//! Something that a cluster has otherwise than its configuration, and that no deployment of its nodes may change.

use crate::model::skew::KubernetesVersion;
use crate::operation::present_networks::ChangedNetwork;

/// Something that a cluster has otherwise than its configuration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ClusterMismatch {
    /// A network.
    #[error(transparent)]
    Network(#[from] ChangedNetwork),
    /// Kubelets must not be newer than any API server, and are deployed before those of this command.
    #[error("the first bundle has Kubernetes {bundle}, another minor version than the API server's {server}")]
    Version {
        /// Of the first bundle.
        bundle: KubernetesVersion,
        /// Of the API server that answered.
        server: KubernetesVersion,
    },
}

impl ClusterMismatch {
    /// Where the first bundle has another minor version of Kubernetes than an API server; a patch release may differ.
    pub fn of_versions(bundle: &str, server: &str) -> Option<Self> {
        let bundle: KubernetesVersion = bundle.parse().ok()?;
        let server: KubernetesVersion = server.parse().ok()?;
        let differs = (bundle.major, bundle.minor) != (server.major, server.minor);
        differs.then_some(Self::Version { bundle, server })
    }

    /// What to do about it.
    pub fn hint(&self) -> String {
        match self {
            Self::Network(changed) => changed.hint(),
            Self::Version { server, .. } => format!(
                "put a bundle with Kubernetes {}.{} first in bundles in /etc/metalform/bootstrap.yaml: upgrades to another minor version are not implemented",
                server.major, server.minor
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_bundle_has_the_minor_version_of_the_api_servers() {
        for (bundle, server, expected) in [
            ("1.35.5", "v1.35.4", None),
            ("1.35.4", "v1.35.5-rc.1+build", None),
            ("1.35.4", "unknown", None),
            (
                "1.36.0",
                "v1.34.2",
                Some(
                    "the first bundle has Kubernetes 1.36.0, another minor version than the API server's 1.34.2",
                ),
            ),
            (
                "1.34.4",
                "v1.35.4",
                Some(
                    "the first bundle has Kubernetes 1.34.4, another minor version than the API server's 1.35.4",
                ),
            ),
        ] {
            let found = ClusterMismatch::of_versions(bundle, server);
            assert_eq!(found.map(|mismatch| mismatch.to_string()).as_deref(), expected);
        }
        let hint = ClusterMismatch::of_versions("1.36.0", "1.34.2").unwrap().hint();
        assert!(hint.starts_with("put a bundle with Kubernetes 1.34 first in bundles"), "{hint}");
    }
}
