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

impl PassKey {
    /// What [`PassKey::kind`] is.
    pub const KINDS: [&'static str; 4] = ["machinedeployment", "machineset", "machine", "host"];

    /// The kind of the object, in lower case.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Deployment(_) => "machinedeployment",
            Self::Set(_) => "machineset",
            Self::Machine(_) => "machine",
            Self::Host(_) => "host",
        }
    }
}

impl ObjectKey {
    /// Of an object in a namespace.
    pub fn of<K: Resource>(object: &K) -> Self {
        Self { namespace: object.namespace().unwrap_or_default(), name: object.name_any() }
    }
}

impl fmt::Display for PassKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = self.kind();
        match self {
            Self::Deployment(key) | Self::Set(key) | Self::Machine(key) => {
                write!(f, "{kind}/{}/{}", key.namespace, key.name)
            }
            Self::Host(name) => write!(f, "{kind}/{name}"),
        }
    }
}
