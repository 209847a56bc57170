//! The identity of a resource of a host.

use std::fmt;
use std::str::FromStr;

use crate::resource::contract::kind::{Kind, UnknownKind};

/// The kind and the name, `package:containerd`: unique on a host. The name may contain colons.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ResourceId {
    /// The part before the first colon.
    pub kind: Kind,
    /// Unique among the resources of that kind.
    pub name: String,
}

/// Why a string is not the id of a resource.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ResourceIdError {
    /// No colon, or nothing on one side of it.
    #[error("{0:?} is not a resource id: expected kind:name")]
    Malformed(String),
    /// The kind does not exist.
    #[error(transparent)]
    Kind(#[from] UnknownKind),
}

impl FromStr for ResourceId {
    type Err = ResourceIdError;

    fn from_str(text: &str) -> Result<Self, ResourceIdError> {
        match text.split_once(':') {
            Some((kind, name)) if !kind.is_empty() && !name.is_empty() => {
                Ok(Self { kind: kind.parse()?, name: name.to_owned() })
            }
            _ => Err(ResourceIdError::Malformed(text.to_owned())),
        }
    }
}

impl fmt::Display for ResourceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.kind, self.name)
    }
}

/// The ids, separated by commas.
pub(in crate::resource) fn ids_text(ids: &[ResourceId]) -> String {
    ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_split_at_its_first_colon() {
        let id: ResourceId = "image:registry.k8s.io/pause:3.10".parse().unwrap();
        assert_eq!((id.kind, id.name.as_str()), (Kind::Image, "registry.k8s.io/pause:3.10"));
        assert_eq!(id.to_string(), "image:registry.k8s.io/pause:3.10");
        for bad in ["", "package", ":x", "package:", "no_such_kind:x"] {
            assert!(bad.parse::<ResourceId>().is_err(), "{bad}");
        }
    }
}
