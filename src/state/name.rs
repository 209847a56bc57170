//! Names of states.

use std::fmt;
use std::str::FromStr;

/// A string that is not a path of lowercase words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid state name {0:?}: use lowercase letters, digits and '-', with '/' between directories")]
pub struct StateNameError(String);

/// The name of a state: the path of its file below `states/`, without `.yaml`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct StateName(String);

impl StateName {
    /// Without `.yaml`.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The path of its file below the root of the tree.
    pub fn file(&self) -> String {
        format!("states/{}.yaml", self.0)
    }
}

impl FromStr for StateName {
    type Err = StateNameError;

    fn from_str(text: &str) -> Result<Self, StateNameError> {
        let word = |word: &str| {
            !word.is_empty()
                && word.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
        };
        if text.split('/').all(word) {
            Ok(Self(text.to_owned()))
        } else {
            Err(StateNameError(text.to_owned()))
        }
    }
}

impl fmt::Display for StateName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_has_the_name_of_its_file() {
        assert_eq!("cluster/etcd-3".parse::<StateName>().unwrap().file(), "states/cluster/etcd-3.yaml");
        for bad in ["", "Etcd", "a//b", "/a", "a.yaml", "../a"] {
            assert!(bad.parse::<StateName>().is_err(), "{bad}");
        }
    }
}
