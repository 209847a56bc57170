//! What templates see of the cluster, and the states of a layer compiled for a host.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;

use super::ClusterSite;
use crate::bundle::cluster_bundles::BundleDirectory;
use crate::bundle::format::{self, RepositoryLocation};
use crate::engine::states::{HostStates, own_boot_id};
use crate::model::cluster::{Cluster, ClusterBundle, MIRROR_NAME, Mirrors, Repository, SERVE_PORT, Secrets};
use crate::model::facts::Facts;
use crate::model::node::NodeSpec;
use crate::model::platform::{PackageFormat, Platform};
use crate::model::role::Role;
use crate::operation::host_access::SharedDesired;
use crate::operation::inputs::NodeInputs;
use crate::operation::layer::Layer;
use crate::operation::site::EffectError;
use crate::operation::values::{ClusterInputs, values};
use crate::render::values_of;
use crate::resource;
use crate::state::{Compiled, StateName, compile};
use crate::workspace::trust::Trust;

impl ClusterSite {
    pub(super) fn trust(&self) -> Result<Arc<Trust>, EffectError> {
        Ok(self.trust.get(&self.workspace, self.dry)?)
    }

    /// The states of a layer for a host, compiled. What they only refer to is compiled too, and left out.
    pub(super) fn desired(
        &self,
        layer: &Layer,
        inputs: &NodeInputs,
        spec: &NodeSpec,
    ) -> Result<SharedDesired, EffectError> {
        let cluster = self.cluster(&inputs.facts)?;
        let compiled = self.compiled(layer, inputs, spec, &cluster)?;
        self.declared(compiled, &cluster)
    }

    /// Compiled states as what a host shall be.
    pub(super) fn declared(
        &self,
        compiled: Vec<Compiled>,
        cluster: &Cluster,
    ) -> Result<SharedDesired, EffectError> {
        let states = HostStates::new(compiled, cluster.authorities.clone(), (self.workspace.now)())
            .map_err(|errors| EffectError::States { faults: lines(&errors) })?;
        Ok(Arc::new(states.seen_from(own_boot_id())))
    }

    /// The resources of a layer.
    pub(super) fn compiled(
        &self,
        layer: &Layer,
        inputs: &NodeInputs,
        spec: &NodeSpec,
        cluster: &Cluster,
    ) -> Result<Vec<Compiled>, EffectError> {
        let faults = |faults: Vec<String>| EffectError::States { faults };
        let library = &self.workspace.library;
        let roles: Vec<&str> = inputs.goal.roles.iter().map(|role| role.as_str()).collect();
        let all = library.staged(&roles).map_err(|errors| faults(lines(&errors)))?;
        let own: BTreeSet<StateName> = layer.states(&all).into_iter().collect();
        let token = self.token.bearer();
        let given = ClusterInputs { cluster, spec, join_token: &token };
        let values = values_of(&values(inputs, layer, given));
        let mut compiled = compile(library, &layer.states_referred_to(&all), resource::kinds(), &values)
            .map_err(|errors| faults(lines(&errors)))?;
        compiled.retain(|resource| own.contains(&resource.state));
        Ok(compiled)
    }

    /// Digest of the metalform binary for a host that runs it, or a copy of it.
    fn metalform_digest(&self) -> Result<String, EffectError> {
        let runs_it = [Role::Bootstrap, Role::Mirror].into_iter().any(|role| self.goal.has(role));
        if !runs_it && !self.goal.stands_by() {
            // A reset compiles the states of all roles.
            return Ok("0".repeat(64));
        }
        Ok(self.workspace.metalform_digest.of(&self.workspace.metalform)?)
    }

    /// The cluster as templates see it on a host with these facts.
    pub(super) fn cluster(&self, facts: &Facts) -> Result<Cluster, EffectError> {
        let workspace = &self.workspace;
        let bundle = &self.bundle.manifest;
        let registry = format!("https://{MIRROR_NAME}:{SERVE_PORT}");
        let platform = platform(facts)?;
        let keys = self.cluster_keys(&platform)?;
        let (format, location) = repository(&platform)?;
        let package_keys = format::of(format).package_keys(&bundle.files, &platform);
        Ok(Cluster {
            name: "metalform".to_owned(),
            networks: workspace.configuration.networks.clone(),
            versions: bundle.versions.clone(),
            packages: bundle.packages_of(&platform),
            images: bundle.images_by_name(),
            kubernetes: workspace.configuration.kubernetes.clone(),
            etcd_snapshots: workspace.configuration.etcd_snapshots,
            repository: Repository {
                format,
                uri: format!("{registry}/{}/{}", self.bundle.served_path(), location.path),
                suite: location.suite,
                key: self.repository_keys(&keys, package_keys.as_deref().unwrap_or_default())?,
                signed_packages: package_keys.is_some(),
            },
            registry,
            mirrors: Mirrors {
                name: MIRROR_NAME.to_owned(),
                address: workspace.subject.address,
                origin: format!("https://{}", SocketAddr::new(workspace.subject.address, SERVE_PORT)),
                metalform_sha256: self.metalform_digest()?,
            },
            record: self.record(&keys)?,
            authorities: keys.host.authorities,
            service_account_public_key: keys.host.service_account,
            secrets: Secrets {
                service_account_key: keys.service_account,
                encryption_key: keys.encryption,
                routing_key: keys.host.routing,
            },
            metalform: workspace.metalform.display().to_string(),
            bundles: workspace.bundles.all().map(|bundle| values_of_bundle(bundle)).collect(),
        })
    }
}

fn values_of_bundle(bundle: &BundleDirectory) -> ClusterBundle {
    ClusterBundle {
        kubernetes: bundle.kubernetes.clone(),
        directory: bundle.path.display().to_string(),
        inputs: bundle.manifest.inputs.to_string(),
    }
}

fn platform(facts: &Facts) -> Result<Platform, EffectError> {
    Platform::of(facts).map_err(|error| EffectError::States { faults: vec![error.to_string()] })
}

fn repository(platform: &Platform) -> Result<(PackageFormat, RepositoryLocation), EffectError> {
    let found = || {
        let format = platform.distribution.package_format()?;
        Some((format, format::of(format).location(platform)))
    };
    found().ok_or_else(|| EffectError::States {
        faults: vec![format!("no packages for {platform} in the bundle")],
    })
}

fn lines<E: ToString>(errors: &[E]) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}
