//! How SSH connects to a Host: the settings of a Node's annotations.

use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::rules;
use crate::model::ssh_syntax::{self, DEFAULT_PORT, DEFAULT_USER, OWN_KEY, SshSyntaxError};
use crate::model::ssh_target::{HostKeyPolicy, SshTarget};

/// The key of a Secret of type `kubernetes.io/ssh-auth`.
const SECRET_KEY: &str = "ssh-privatekey";

/// SSH settings of a Host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct HostSsh {
    /// TCP port.
    #[schemars(extend("x-kubernetes-validations" = rules::port()))]
    pub port: i32,
    /// Login user.
    #[schemars(length(max = 64), extend("x-kubernetes-validations" = rules::word()))]
    pub user: String,
    /// Whether programs run with sudo.
    pub sudo: bool,
    /// The private key, in a Secret of type kubernetes.io/ssh-auth; by default that of the bootstrap node. The controllers
    /// may read Secrets of kube-system. The key is not encrypted, and is used for the controllers' connections to this Host
    /// and its jump hosts alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_secret_ref: Option<SecretKeyReference>,
    /// The fingerprint of the host key, as ssh-keygen -l prints it; by default the key must be known on the bootstrap
    /// node.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(max = 64), extend("x-kubernetes-validations" = rules::fingerprint()))]
    pub host_key_fingerprint: Option<String>,
    /// Jump hosts, first hop first: [user@]address[:port], separated by commas.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(min = 1, max = 1024))]
    pub bastion: Option<String>,
}

/// A key of a Secret in any namespace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SecretKeyReference {
    /// Namespace of the Secret.
    #[schemars(length(min = 1, max = 63))]
    pub namespace: String,
    /// Name of the Secret.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Key of its data.
    #[serde(default = "ssh_private_key")]
    #[schemars(length(min = 1, max = 253))]
    pub key: String,
}

/// A setting is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HostSshError {
    /// The port is out of range.
    #[error("port is {0}, expected a number from 1 to 65535")]
    Port(i32),
    /// The user is no word.
    #[error("user is {0:?}, expected a string without blanks")]
    User(String),
    /// The fingerprint has another form.
    #[error("hostKeyFingerprint is {0:?}, expected SHA256: and 43 characters")]
    Fingerprint(String),
    /// The private key of the Secret was not given.
    #[error("keySecretRef: the key of Secret {namespace}/{name} is not available")]
    NoKey {
        /// Of the Secret.
        namespace: String,
        /// Of the Secret.
        name: String,
    },
    /// The bastion cannot be parsed.
    #[error("bastion: {0}")]
    Bastion(SshSyntaxError),
}

fn ssh_private_key() -> String {
    SECRET_KEY.to_owned()
}

impl Default for HostSsh {
    fn default() -> Self {
        Self {
            port: DEFAULT_PORT.into(),
            user: DEFAULT_USER.to_owned(),
            sudo: false,
            key_secret_ref: None,
            host_key_fingerprint: None,
            bastion: None,
        }
    }
}

impl HostSsh {
    /// With the address of the Host, and the path of its private key.
    pub(super) fn target(&self, address: &str, key: Option<&Path>) -> Result<SshTarget, HostSshError> {
        let port = u16::try_from(self.port).ok().filter(|port| *port != 0);
        if self.user.is_empty() || self.user.contains(char::is_whitespace) {
            return Err(HostSshError::User(self.user.clone()));
        }
        let mut target = SshTarget {
            host: address.to_owned(),
            port: port.ok_or(HostSshError::Port(self.port))?,
            user: self.user.clone(),
            identity_files: vec![match (key, &self.key_secret_ref) {
                (Some(key), Some(_)) => key.to_owned(),
                (_, None) => OWN_KEY.into(),
                (None, Some(SecretKeyReference { namespace, name, .. })) => {
                    return Err(HostSshError::NoKey { namespace: namespace.clone(), name: name.clone() });
                }
            }],
            identities_only: true,
            sudo: self.sudo,
            host_key: match &self.host_key_fingerprint {
                None => HostKeyPolicy::Known,
                Some(text) if is_fingerprint(text) => HostKeyPolicy::Fingerprint(text.clone()),
                Some(text) => return Err(HostSshError::Fingerprint(text.clone())),
            },
            bastion: None,
        };
        if let Some(text) = &self.bastion {
            target.bastion = ssh_syntax::bastion(text, &target).map_err(HostSshError::Bastion)?;
        }
        Ok(target)
    }
}

/// SHA-256 in base64 without padding.
fn is_fingerprint(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/';
    text.strip_prefix("SHA256:").is_some_and(|digest| digest.len() == 43 && digest.bytes().all(allowed))
}
