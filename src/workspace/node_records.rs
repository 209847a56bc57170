//! The manifests of all Nodes as they were last read, on this machine: without etcd there is no API to read them from.

use super::atomic_file::{self, FileError};
use super::layout::Layout;
use crate::model::node::NodeManifest;

/// Why there are no records.
#[derive(Debug, thiserror::Error)]
pub enum NodeRecordsError {
    /// The file cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// It was never written.
    #[error("{path}: no Node is recorded on this machine")]
    None {
        /// The file.
        path: String,
    },
    /// It is damaged.
    #[error("{path}: {error}")]
    Json {
        /// The file.
        path: String,
        /// What is wrong.
        error: serde_json::Error,
    },
}

/// Replaces the records, atomically.
///
/// # Errors
/// When the file cannot be written; the records are what they were then.
pub fn save(layout: &Layout, manifests: &[NodeManifest]) -> Result<(), NodeRecordsError> {
    let path = layout.node_records();
    let text = serde_json::to_string_pretty(manifests)
        .map_err(|error| NodeRecordsError::Json { path: path.display().to_string(), error })?;
    Ok(atomic_file::write(&path, format!("{text}\n").as_bytes(), 0o600)?)
}

/// All records.
///
/// # Errors
/// When there are none, or they cannot be read.
pub fn read(layout: &Layout) -> Result<Vec<NodeManifest>, NodeRecordsError> {
    let path = layout.node_records();
    let shown = || path.display().to_string();
    let text = atomic_file::read(&path)?.ok_or_else(|| NodeRecordsError::None { path: shown() })?;
    serde_json::from_str(&text).map_err(|error| NodeRecordsError::Json { path: shown(), error })
}

/// The records of the cluster that this machine has the CA of; without a CA, they are of one that is gone.
///
/// # Errors
/// As [`read`], where there is a CA.
pub fn of_cluster(layout: &Layout) -> Result<Vec<NodeManifest>, NodeRecordsError> {
    if layout.pki().join("ca.crt").exists() { read(layout) } else { Ok(Vec::new()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::node::{NodeMetadata, NodeTaints, Taint};

    #[test]
    fn what_was_saved_is_read_and_nothing_else_is() {
        let directory = tempfile::tempdir().unwrap();
        let layout = Layout::below(directory.path());
        assert!(matches!(read(&layout), Err(NodeRecordsError::None { .. })));
        let manifest = NodeManifest {
            metadata: NodeMetadata {
                name: Some("node-1".to_owned()),
                labels: [("node-role.kubernetes.io/etcd".to_owned(), String::new())].into(),
                annotations: [("metalform.dev/ssh-host".to_owned(), "192.0.2.1".to_owned())].into(),
            },
            spec: NodeTaints {
                taints: vec![Taint {
                    key: "a".to_owned(),
                    value: String::new(),
                    effect: "NoSchedule".to_owned(),
                }],
                provider_id: None,
            },
        };
        std::fs::create_dir_all(layout.node_records().parent().unwrap()).unwrap();
        save(&layout, std::slice::from_ref(&manifest)).unwrap();
        assert_eq!(read(&layout).unwrap(), [manifest]);
        std::fs::write(layout.node_records(), "[{").unwrap();
        assert!(matches!(read(&layout), Err(NodeRecordsError::Json { .. })));
    }
}
