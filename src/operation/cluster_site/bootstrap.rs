//! What only the bootstrap node has.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr};

use super::{ClusterSite, change_turn};
use crate::kube_api::manifests::{self, AppliedObject, ApplyOutcome, Comparison, Manifest};
use crate::model::cluster::SERVE_PORT;
use crate::operation::effect::{Observation, Returned};
use crate::operation::inputs::NodeInputs;
use crate::operation::layer::Layer;
use crate::operation::site::EffectError;
use crate::operation::values::{ClusterInputs, values};
use crate::render::values_of;
use crate::workspace::trust;

/// Where the registry is read, on the bootstrap node itself; it refuses writes.
pub const REGISTRY: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 5000);
/// Where the registry is written, a socket of root.
pub const REGISTRY_WRITER: &str = "/run/metalform-registry-writer/registry.sock";
/// Templates of the objects that every cluster has, in the order in which they are applied: the policy first, before
/// any kubelet has a certificate, and definitions before what concerns their kinds.
pub const OBJECTS: [&str; 7] = [
    "cluster/node-policy.yaml.j2",
    "cluster/access.yaml.j2",
    "cluster/machines.yaml.j2",
    "cluster/machines-access.yaml.j2",
    "cluster/kubelet-versions.yaml.j2",
    "cluster/coredns.yaml.j2",
    "cluster/reachability.yaml.j2",
];

impl ClusterSite {
    pub(super) fn missing_trust(&self) -> Result<Observation, EffectError> {
        let workspace = &self.workspace;
        Ok(Observation::Trust(trust::missing(&workspace.layout, &workspace.subject, (workspace.now)())?))
    }

    pub(super) fn new_cluster_mark(&self) -> Observation {
        Observation::NewClusterMark(trust::is_new_cluster(&self.workspace.layout))
    }

    pub(super) fn remove_new_cluster_mark(&self) -> Result<Returned, EffectError> {
        trust::remove_new_cluster_mark(&self.workspace.layout)?;
        Ok(Returned { changed: 1, observed: Vec::new() })
    }

    /// Creates what is missing of these files, which is all of them unless another run was faster.
    pub(super) fn create_trust(&self, _files: &BTreeSet<String>) -> Result<Returned, EffectError> {
        let changed = self.trust.create(&self.workspace)?;
        Ok(Returned { changed, observed: Vec::new() })
    }

    /// That it accepts connections is enough: what it serves, the package manager and containerd verify.
    pub(super) async fn package_service(&self) -> Observation {
        let address = SocketAddr::new(self.workspace.subject.address, SERVE_PORT);
        Observation::PackageService(self.complaint(address).await)
    }

    pub(super) async fn registry(&self) -> Observation {
        let written = self.ports.registry.connect().await.err();
        let complaint = written.map(|error| format!("{REGISTRY_WRITER}: {error}"));
        Observation::Registry(match complaint {
            None => self.complaint(REGISTRY).await,
            complaint => complaint,
        })
    }

    pub(super) async fn missing_images(&self) -> Result<Observation, EffectError> {
        let mut missing = BTreeSet::new();
        for bundle in self.workspace.bundles.all() {
            missing.extend(self.ports.registry.missing(&bundle.manifest).await?);
        }
        Ok(Observation::Images(missing))
    }

    /// What is uploaded, and not named by a tag yet, is not removed meanwhile.
    pub(super) async fn load_images(&self) -> Result<Returned, EffectError> {
        let _lock = change_turn::images(&self.workspace.layout).await?;
        let mut changed = 0;
        for bundle in self.workspace.bundles.all() {
            changed += self.ports.registry.load(&bundle.path, &bundle.manifest).await?;
        }
        Ok(Returned { changed, observed: Vec::new() })
    }

    pub(super) async fn missing_objects(&self, inputs: &NodeInputs) -> Result<Observation, EffectError> {
        let objects = self.objects(inputs)?;
        let Comparison { differing, kept } = manifests::compare(&self.client().await?, &objects).await?;
        for object in kept {
            tracing::warn!(
                "{object} was edited by another client and stays as it is; \
                 delete it and run `metalform bootstrap` to have the default again"
            );
        }
        Ok(Observation::Objects(differing.into_iter().collect()))
    }

    pub(super) async fn apply_objects(&self, inputs: &NodeInputs) -> Result<Returned, EffectError> {
        let objects = self.objects(inputs)?;
        let applied = manifests::apply(&self.client().await?, &objects).await?;
        let changes =
            |one: &&AppliedObject| matches!(one.outcome, ApplyOutcome::Created | ApplyOutcome::Changed);
        let changed = applied.iter().filter(changes).count();
        Ok(Returned { changed, observed: Vec::new() })
    }

    /// Why a connection is not accepted.
    async fn complaint(&self, address: SocketAddr) -> Option<String> {
        self.ports.network.connect(address).await.err().map(|error| format!("{address}: {error}"))
    }

    fn objects(&self, inputs: &NodeInputs) -> Result<Vec<Manifest>, EffectError> {
        let cluster = self.cluster(&inputs.facts)?;
        let given = ClusterInputs { cluster: &cluster, spec: &self.spec, join_token: "" };
        let values = values_of(&values(inputs, &Layer::Base, given));
        let mut objects = Vec::new();
        for template in OBJECTS {
            let text = self
                .workspace
                .library
                .template(template, &values)
                .map_err(|error| EffectError::Template { template, reason: error.to_string() })?;
            objects.extend(manifests::parse(&text)?);
        }
        Ok(objects)
    }
}
