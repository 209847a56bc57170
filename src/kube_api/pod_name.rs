//! What a pod is called.

use std::fmt;

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;

/// The name of a pod. Displays as `NAMESPACE/NAME`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PodName {
    /// Its namespace.
    pub namespace: String,
    /// Its own name.
    pub name: String,
}

impl PodName {
    /// That of a pod.
    pub fn of(pod: &Pod) -> Self {
        Self { namespace: pod.namespace().unwrap_or_default(), name: pod.name_any() }
    }
}

impl fmt::Display for PodName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}
