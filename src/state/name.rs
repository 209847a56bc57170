//! Names of states and of resources, parsed once and trusted afterwards.

use std::fmt;
use std::str::FromStr;

/// Why a text is not a name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// Not a path of lowercase words.
    #[error(
        "{0:?} is not the name of a state: use lowercase letters, digits and '-', with '/' between folders"
    )]
    State(String),
    /// No colon, or nothing on one side of it.
    #[error("{0:?} is not the id of a resource: write kind:name")]
    Resource(String),
}

/// The name of a state: the path of its file below `states/`, without `.yaml`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct StateName(String);

impl StateName {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The path of its file below the root of the tree.
    pub fn file(&self) -> String {
        format!("states/{}.yaml", self.0)
    }
}

impl FromStr for StateName {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        let word = |word: &str| {
            !word.is_empty()
                && word.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
        };
        if text.split('/').all(word) {
            Ok(Self(text.to_owned()))
        } else {
            Err(NameError::State(text.to_owned()))
        }
    }
}

impl fmt::Display for StateName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What names one resource of a host: `package:containerd`. The name may itself hold colons.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ResourceId {
    /// The kind.
    pub kind: String,
    /// The name, unique among resources of that kind.
    pub name: String,
}

impl FromStr for ResourceId {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        match text.split_once(':') {
            Some((kind, name)) if !kind.is_empty() && !name.is_empty() => {
                Ok(Self { kind: kind.to_owned(), name: name.to_owned() })
            }
            _ => Err(NameError::Resource(text.to_owned())),
        }
    }
}

impl fmt::Display for ResourceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.kind, self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_named_after_its_file() {
        assert_eq!("cluster/etcd-3".parse::<StateName>().unwrap().file(), "states/cluster/etcd-3.yaml");
        for bad in ["", "Etcd", "a//b", "/a", "a.yaml", "../a"] {
            assert!(bad.parse::<StateName>().is_err(), "{bad}");
        }
    }

    #[test]
    fn an_id_is_split_at_its_first_colon() {
        let id: ResourceId = "image:registry.k8s.io/pause:3.10".parse().unwrap();
        assert_eq!((id.kind.as_str(), id.name.as_str()), ("image", "registry.k8s.io/pause:3.10"));
        assert_eq!(id.to_string(), "image:registry.k8s.io/pause:3.10");
        for bad in ["", "package", ":x", "package:"] {
            assert!(bad.parse::<ResourceId>().is_err(), "{bad}");
        }
    }
}
