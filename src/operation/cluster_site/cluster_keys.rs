//! What hosts get of the cluster's keys, on the bootstrap node and on masters that stand by for it.

use std::collections::BTreeMap;
use std::io;

use super::ClusterSite;
use crate::model::platform::Platform;
use crate::operation::site::EffectError;
use crate::workspace::atomic_file::FileError;
use crate::workspace::cluster_record::{BundleRecord, ClusterRecord, HostKeys};
use crate::workspace::trust::{IssueError, TrustError};

/// What hosts get of the cluster's keys.
pub(super) struct ClusterKeys {
    /// What any node may get.
    pub(super) host: HostKeys,
    /// Signs service account tokens, PEM; for masters. Empty where the keys of the cluster are not.
    pub(super) service_account: String,
    /// Encrypts Secrets at rest, base64; for masters. Empty where the keys of the cluster are not.
    pub(super) encryption: String,
}

impl ClusterSite {
    pub(super) fn cluster_keys(&self, platform: &Platform) -> Result<ClusterKeys, EffectError> {
        if let Some(record) = &self.workspace.record {
            let host = record.keys.clone();
            return Ok(ClusterKeys { host, service_account: String::new(), encryption: String::new() });
        }
        let trust = self.trust()?;
        let authorities = &trust.authorities;
        let unarmored = |source| TrustError::from(IssueError::Index { index: platform.to_string(), source });
        let host = HostKeys {
            authorities: BTreeMap::from([
                ("kubernetes".to_owned(), authorities.kubernetes.certificate().to_owned()),
                ("etcd".to_owned(), authorities.etcd.certificate().to_owned()),
                ("front-proxy".to_owned(), authorities.front_proxy.certificate().to_owned()),
            ]),
            service_account: authorities.service_account.public().to_owned(),
            repository: authorities.repository.public_armor().map_err(unarmored)?,
            routing: trust.routing_key.clone(),
        };
        let service_account = authorities.service_account.private().to_owned();
        Ok(ClusterKeys { host, service_account, encryption: trust.encryption_key.clone() })
    }

    /// The key of the indexes, and those of packages, which are files of the bundle: one text in ASCII armor.
    pub(super) fn repository_keys(
        &self,
        keys: &ClusterKeys,
        files: &[String],
    ) -> Result<String, EffectError> {
        let mut armor = keys.host.repository.clone();
        for file in files {
            armor.push_str(&self.package_key(file)?);
        }
        Ok(armor)
    }

    fn package_key(&self, file: &str) -> Result<String, FileError> {
        let path = self.bundle.path.join(file);
        let found = match &self.workspace.record {
            None => std::fs::read_to_string(&path),
            Some(record) => {
                let missing = || io::Error::from(io::ErrorKind::NotFound);
                record.package_key(&self.bundle, file).map(str::to_owned).ok_or_else(missing)
            }
        };
        found.map_err(|reason| FileError { path, reason })
    }

    /// The record for a master that stands by, as text; empty for any other node.
    pub(super) fn record(&self, keys: &ClusterKeys) -> Result<String, EffectError> {
        if !self.goal.stands_by() {
            return Ok(String::new());
        }
        if let Some(known) = self.record.get() {
            return Ok(known.clone());
        }
        let workspace = &self.workspace;
        let bundles = workspace.bundles.all().map(|bundle| BundleRecord::of(bundle));
        let unreadable = |(path, reason)| FileError { path, reason };
        let record = ClusterRecord {
            bootstrap_node: workspace.subject.name.clone(),
            bootstrap_address: workspace.subject.address,
            networks: workspace.configuration.networks.clone(),
            kubernetes: workspace.configuration.kubernetes.clone(),
            etcd_snapshots: workspace.configuration.etcd_snapshots,
            bundles: bundles.collect::<Result<_, _>>().map_err(unreadable)?,
            keys: keys.host.clone(),
        };
        Ok(self.record.get_or_init(|| record.text()).clone())
    }
}
