//! Why no host may become a node with the kubelet of a Machine.

use crate::model::skew::SkewError;

/// Why a kubelet must not join, or cannot be deployed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KubeletRefusal {
    /// By the version skew policy.
    #[error(transparent)]
    Skew(#[from] SkewError),
    /// No bundle has it.
    #[error(transparent)]
    Absent(#[from] AbsentVersion),
}

/// No bundle has the version of the kubelet.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("versions.kubelet is {requested}, but the bundle contains Kubernetes {available}")]
pub struct AbsentVersion {
    requested: String,
    available: String,
}

impl AbsentVersion {
    /// `available` are the versions of the bundles.
    pub fn new(requested: &str, available: &[impl AsRef<str>]) -> Self {
        let available: Vec<&str> = available.iter().map(AsRef::as_ref).collect();
        Self { requested: requested.to_owned(), available: available.join(" and ") }
    }
}
