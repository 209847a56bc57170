//! What masters have of the bootstrap node's files, to run the controllers of Machines while it is off.
//!
//! # Guarantees
//! - No key that signs is part of it: nothing can be issued with it.
//! - No secret is part of it but the routing key, which every node has.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::bundle::cluster_bundles::{BundleDirectory, ClusterBundles, ClusterBundlesError};
use crate::bundle::format;
use crate::bundle::manifest::Bundle;
use crate::model::bootstrap_configuration::BootstrapConfiguration;
use crate::model::cluster::{EtcdSnapshotOptions, KubernetesOptions};
use crate::model::cluster_networks::Networks;
use crate::model::name::HostName;

/// Everything that the states of a node without another role are rendered from.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ClusterRecord {
    /// The bootstrap node.
    pub bootstrap_node: HostName,
    /// Its address on the control plane.
    pub bootstrap_address: IpAddr,
    /// Of the cluster.
    pub networks: Networks,
    /// Settings of the Kubernetes components.
    pub kubernetes: KubernetesOptions,
    /// The snapshots of etcd that a timer takes.
    pub etcd_snapshots: EtcdSnapshotOptions,
    /// The first one first.
    pub bundles: Vec<BundleRecord>,
    /// What hosts get of the cluster's keys.
    pub keys: HostKeys,
}

/// A bundle without its content.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BundleRecord {
    /// Its directory on the bootstrap node.
    pub directory: PathBuf,
    /// Its manifest, with no other files than the keys of packages.
    pub manifest: Bundle,
    /// The keys of packages: path in the bundle → ASCII armor.
    pub package_keys: BTreeMap<String, String>,
}

/// What hosts get of the cluster's keys.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HostKeys {
    /// CA name to certificate, PEM.
    pub authorities: BTreeMap<String, String>,
    /// Verifies service account tokens, PEM.
    pub service_account: String,
    /// Verifies the indexes of packages, ASCII armor.
    pub repository: String,
    /// Authenticates routing messages between nodes. Secret.
    pub routing: String,
}

/// Why a record cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ClusterRecordError {
    /// The file cannot be read.
    #[error("{}: {source}", path.display())]
    Read {
        /// Of the record.
        path: PathBuf,
        /// From the system.
        source: io::Error,
    },
    /// The file is no record of this version.
    #[error("{}: {source}", path.display())]
    Syntax {
        /// Of the record.
        path: PathBuf,
        /// Where and why.
        source: serde_json::Error,
    },
    /// The bundles contradict each other.
    #[error(transparent)]
    Bundles(#[from] ClusterBundlesError),
}

impl ClusterRecord {
    /// Reads a record that [`Self::text`] was written to.
    ///
    /// # Errors
    /// When the file is missing or is no record.
    pub fn read(path: &Path) -> Result<Self, ClusterRecordError> {
        let path = path.to_owned();
        match fs::read_to_string(&path) {
            Ok(text) => {
                serde_json::from_str(&text).map_err(|source| ClusterRecordError::Syntax { path, source })
            }
            Err(source) => Err(ClusterRecordError::Read { path, source }),
        }
    }

    /// The same text for the same record.
    pub fn text(&self) -> String {
        serde_json::to_string(self).expect("plain data with string keys can be serialised")
    }

    /// The bundles, without their content.
    ///
    /// # Errors
    /// When two contradict each other.
    pub fn cluster_bundles(&self) -> Result<ClusterBundles, ClusterBundlesError> {
        let manifests = self.bundles.iter().map(|bundle| (bundle.directory.clone(), bundle.manifest.clone()));
        ClusterBundles::new(manifests.collect())
    }

    /// What the operator's file says of nodes.
    pub fn configuration(&self) -> BootstrapConfiguration {
        BootstrapConfiguration {
            networks: self.networks.clone(),
            ca_node: Some(self.bootstrap_node.clone()),
            bundles: self.bundles.iter().map(|bundle| bundle.directory.clone()).collect(),
            bundle_key: None,
            kubernetes: self.kubernetes.clone(),
            etcd_snapshots: self.etcd_snapshots,
            warnings: Vec::new(),
        }
    }

    /// The key of packages with this path in a bundle.
    pub fn package_key(&self, bundle: &BundleDirectory, path: &str) -> Option<&str> {
        let record = self.bundles.iter().find(|record| record.directory == bundle.path)?;
        record.package_keys.get(path).map(String::as_str)
    }
}

impl BundleRecord {
    /// Of a bundle on this machine.
    ///
    /// # Errors
    /// When a key of its packages cannot be read, with the file.
    pub fn of(bundle: &BundleDirectory) -> Result<Self, (PathBuf, io::Error)> {
        let manifest = &bundle.manifest;
        let keys = manifest
            .platforms
            .iter()
            .filter_map(|platform| format::of_platform(platform)?.package_keys(&manifest.files, platform));
        let read = |path: String| {
            let file = bundle.path.join(&path);
            let text = fs::read_to_string(&file).map_err(|error| (file, error))?;
            Ok((path, text))
        };
        let package_keys: BTreeMap<String, String> = keys.flatten().map(read).collect::<Result<_, _>>()?;
        let mut manifest = manifest.clone();
        manifest.files.retain(|path, _| package_keys.contains_key(path));
        manifest.provenance = BTreeMap::new();
        Ok(Self { directory: bundle.path.clone(), manifest, package_keys })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bundle::digest::Sha256;

    fn bundle(directory: &Path, files: &[&str]) -> ClusterBundles {
        let digest = Sha256::of(b"");
        let files: serde_json::Map<String, serde_json::Value> = files
            .iter()
            .map(|path| ((*path).to_owned(), serde_json::json!({ "sha256": digest, "size": 1 })))
            .collect();
        let manifest = serde_json::json!({
            "apiVersion": "metalform.dev/v1alpha1", "kind": "Bundle", "inputs": digest,
            "architectures": ["amd64"], "platforms": ["debian-13-amd64", "rocky-9-amd64"],
            "versions": { "kubernetes": "1.35.4" }, "provenance": { "etcd": "url" }, "images": {}, "packages": [],
            "files": files,
        });
        ClusterBundles::new(vec![(directory.to_owned(), serde_json::from_value(manifest).unwrap())]).unwrap()
    }

    fn record(bundles: &ClusterBundles) -> ClusterRecord {
        ClusterRecord {
            bootstrap_node: "bootstrap".parse().unwrap(),
            bootstrap_address: "192.0.2.11".parse().unwrap(),
            networks: BootstrapConfiguration::parse(&crate::model::document::Document {
                file: "bootstrap.yaml",
                text: include_str!("../../tests/vagrant/bootstrap.yaml"),
            })
            .unwrap()
            .networks,
            kubernetes: KubernetesOptions::default(),
            etcd_snapshots: EtcdSnapshotOptions::default(),
            bundles: bundles.all().map(|bundle| BundleRecord::of(bundle).unwrap()).collect(),
            keys: HostKeys {
                authorities: BTreeMap::from([("kubernetes".to_owned(), "PEM".to_owned())]),
                service_account: "PEM".to_owned(),
                repository: "ARMOR".to_owned(),
                routing: "5ec4e7".to_owned(),
            },
        }
    }

    #[test]
    fn what_is_written_is_read_and_has_no_file_of_a_bundle_but_its_package_keys() {
        let root = tempfile::tempdir().unwrap();
        let key = "rpm/keys/packages.asc";
        fs::create_dir_all(root.path().join("rpm/keys")).unwrap();
        fs::write(root.path().join(key), "KEY").unwrap();
        let bundles = bundle(root.path(), &["apt/pool/a.deb", key]);
        let record = record(&bundles);
        assert_eq!(record.package_key(bundles.first(), key), Some("KEY"));
        assert_eq!(record.package_key(bundles.first(), "apt/pool/a.deb"), None);
        assert_eq!(record.bundles[0].manifest.files.len(), 1);

        let path = root.path().join("record.json");
        fs::write(&path, record.text()).unwrap();
        let read = ClusterRecord::read(&path).unwrap();
        assert_eq!(read.text(), record.text());
        assert_eq!(read.cluster_bundles().unwrap().versions(), ["1.35.4"]);
        assert_eq!(read.configuration().ca_node, Some("bootstrap".parse().unwrap()));
    }

    #[test]
    fn a_missing_file_and_another_document_are_refused_with_their_path() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("record.json");
        let error = |path: &Path| ClusterRecord::read(path).map(|_| ()).unwrap_err().to_string();
        assert_eq!(error(&path), format!("{}: No such file or directory (os error 2)", path.display()));
        fs::write(&path, "{\"a\": 1}").unwrap();
        let found = error(&path);
        assert!(found.starts_with(&format!("{}: unknown field `a`", path.display())), "{found}");
    }
}
