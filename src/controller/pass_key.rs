//! What a pass is over.

use std::fmt;

use kube::{Resource, ResourceExt};

/// An object that a controller passes over.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum PassKey {
    /// A MachineDeployment.
    Deployment(ObjectKey),
    /// A MachineSet.
    Set(ObjectKey),
    /// A Machine.
    Machine(ObjectKey),
    /// A Host, by its name.
    Host(String),
}

/// Namespace and name of an object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ObjectKey {
    /// `metadata.namespace`.
    pub namespace: String,
    /// `metadata.name`.
    pub name: String,
}

impl ObjectKey {
    /// Of an object in a namespace.
    pub fn of<K: Resource>(object: &K) -> Self {
        Self { namespace: object.namespace().unwrap_or_default(), name: object.name_any() }
    }
}

impl fmt::Display for PassKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, key) = match self {
            Self::Deployment(key) => ("machinedeployment", key),
            Self::Set(key) => ("machineset", key),
            Self::Machine(key) => ("machine", key),
            Self::Host(name) => return write!(f, "host/{name}"),
        };
        write!(f, "{kind}/{}/{}", key.namespace, key.name)
    }
}
