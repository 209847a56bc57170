//! Validated names.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The regular expression of a host name, without the limits of its length.
pub const HOST_NAME: &str = "^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$";

/// A string is not a name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// Not a lowercase RFC 1123 subdomain.
    #[error(
        "{0:?} is not a host name: use lowercase letters, digits, '-' and '.', at most 253 characters (RFC 1123)"
    )]
    HostName(String),
}

/// The name of a host and of its Node: a lowercase RFC 1123 subdomain of at most 253 characters, as the Kubernetes API
/// requires for Nodes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct HostName(String);

impl HostName {
    /// Never empty.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for HostName {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        let label = |label: &str| {
            !label.is_empty()
                && label.len() <= 63
                && label.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
                && !label.starts_with('-')
                && !label.ends_with('-')
        };
        if text.len() <= 253 && text.split('.').all(label) {
            Ok(Self(text.to_owned()))
        } else {
            Err(NameError::HostName(text.to_owned()))
        }
    }
}

impl TryFrom<String> for HostName {
    type Error = NameError;

    fn try_from(text: String) -> Result<Self, NameError> {
        text.parse()
    }
}

impl From<HostName> for String {
    fn from(name: HostName) -> Self {
        name.0
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_names_are_rfc_1123_subdomains() {
        for good in ["a", "node-1", "node-1.rack-2.example", "0", &"a".repeat(63)] {
            assert!(good.parse::<HostName>().is_ok(), "{good}");
        }
        for bad in ["", "Node", "node_1", "-a", "a-", "a..b", "a b", &"a".repeat(64), "ä"] {
            assert!(bad.parse::<HostName>().is_err(), "{bad}");
        }
    }
}
