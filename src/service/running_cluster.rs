//! A cluster that runs, compared with its configuration: once, before any of its nodes is deployed.

use k8s_openapi::api::core::v1::Service;
use kube::Client;
use kube::api::Api;

use super::cluster_mismatch::ClusterMismatch;
use super::cluster_nodes::ClusterNodesError;
use super::workspace::present_networks;
use crate::kube_api::client::{self, ApiError};
use crate::model::cluster_networks::Networks;
use crate::operation::cluster_site::Workspace;
use crate::operation::present_networks::{ChangedNetwork, PresentNetworks};

/// What the API has of the cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct RunningCluster {
    /// The address of the Service `kubernetes`: workers have no static pod that has the network.
    api_service: Option<String>,
    /// The version of the API server that answered: `v1.35.4`.
    version: String,
}

/// Compares the cluster with the configuration and the first bundle.
///
/// # Errors
/// Everything that differs; when the API cannot be used.
pub(super) async fn check(workspace: &Workspace) -> Result<(), ClusterNodesError> {
    let client = client::connect(&workspace.layout.admin_conf()).await.map_err(ClusterNodesError::Api)?;
    let read = client::in_time(("get", "service/default/kubernetes"), read(&client));
    let running = read.await.map_err(ClusterNodesError::Api)?;
    let present = present_networks(&workspace.layout);
    let mut found = changed_networks(&workspace.configuration.networks, &present, &running);
    let bundle = &workspace.bundles.first().kubernetes;
    found.extend(ClusterMismatch::of_versions(bundle, &running.version));
    if found.is_empty() { Ok(()) } else { Err(ClusterNodesError::Mismatch(found)) }
}

async fn read(client: &Client) -> Result<RunningCluster, ApiError> {
    let services: Api<Service> = Api::namespaced(client.clone(), "default");
    let (service, version) = tokio::join!(services.get_opt("kubernetes"), client.apiserver_version());
    let service = service.map_err(|error| ApiError::new("get", "service/default/kubernetes", error))?;
    let version = version.map_err(|error| ApiError::new("get", "version", error))?.git_version;
    let api_service = service.and_then(|service| service.spec?.cluster_ip);
    Ok(RunningCluster { api_service, version })
}

/// Of the networks.
fn changed_networks(
    networks: &Networks,
    present: &PresentNetworks,
    running: &RunningCluster,
) -> Vec<ClusterMismatch> {
    let mut changed = present.changes(networks);
    if changed.is_empty() {
        let address = running.api_service.as_deref();
        changed.extend(address.and_then(|address| ChangedNetwork::of_api_service(networks, address)));
    }
    changed.into_iter().map(ClusterMismatch::from).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::model::bootstrap_configuration::BootstrapConfiguration;
    use crate::model::document::Document;
    use crate::service::command_error::{CommandError, ErrorClass};
    use crate::workspace::layout::Layout;

    fn networks(more: &str) -> Networks {
        let planes = "  controlPlane: { cidr: 192.0.2.0/24 }\n  workloadPlane: { cidr: 198.51.100.0/24 }\n";
        let head = "apiVersion: metalform.dev/v1alpha1\nkind: BootstrapConfiguration\nbundles: [/nowhere]\n";
        let text = format!("{head}networks:\n{planes}{more}");
        let document = Document { file: "bootstrap.yaml", text: &text };
        BootstrapConfiguration::parse(&document).unwrap().networks
    }

    fn write(root: &Path, pod: &str, flag: &str) {
        let path = Layout::below(root).static_pod(pod);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let manifest = format!("spec:\n  containers:\n  - command:\n    - {pod}\n    - {flag}\n");
        std::fs::write(path, manifest).unwrap();
    }

    #[test]
    fn networks_of_a_cluster_that_runs_cannot_be_changed() {
        let root = tempfile::tempdir().unwrap();
        let none = present_networks(&Layout::below(root.path()));
        write(root.path(), "kube-apiserver", "--service-cluster-ip-range=10.96.0.0/12");
        write(root.path(), "kube-controller-manager", "--cluster-cidr=10.233.0.0/16");
        let present = present_networks(&Layout::below(root.path()));
        let (pods, services) = ("  pods: 10.240.0.0/16\n", "  services: 10.112.0.0/12\n");
        let running =
            RunningCluster { api_service: Some("10.96.0.1".to_owned()), ..RunningCluster::default() };
        for (more, present, expected) in [
            ("", &present, vec![]),
            ("", &none, vec![]),
            // The masters alone show it: they refuse.
            ("  services: 10.96.0.0/16\n", &none, vec![]),
            (
                pods,
                &present,
                vec![
                    "networks.pods is 10.240.0.0/16, but this cluster has 10.233.0.0/16, which cannot be changed",
                ],
            ),
            (
                services,
                &present,
                vec![
                    "networks.services is 10.112.0.0/12, but this cluster has 10.96.0.0/12, which cannot be changed",
                ],
            ),
            (
                services,
                &none,
                vec![
                    "networks.services is 10.112.0.0/12, but the Service kubernetes has the address 10.96.0.1, which cannot be changed",
                ],
            ),
        ] {
            let found = changed_networks(&networks(more), present, &running);
            assert_eq!(found.iter().map(ToString::to_string).collect::<Vec<_>>(), expected, "{more}");
        }
    }

    #[test]
    fn a_mismatch_is_refused_with_its_hint() {
        let configured = networks("  services: 10.112.0.0/12\n");
        let running =
            RunningCluster { api_service: Some("10.96.0.1".to_owned()), ..RunningCluster::default() };
        let error =
            ClusterNodesError::Mismatch(changed_networks(&configured, &PresentNetworks::default(), &running));
        assert_eq!(error.class(), ErrorClass::Refused);
        assert_eq!(error.errors().len(), 1);
        assert_eq!(error.hints(), ["restore networks.services in /etc/metalform/bootstrap.yaml"]);
    }
}
