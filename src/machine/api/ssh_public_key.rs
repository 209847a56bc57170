//! A public key that may log in to the host of a Machine.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::model::ssh_syntax::host_key;
use crate::model::ssh_target::HostKeyPolicy;

/// One line in the format of OpenSSH: type, base64, and a comment if any. No options.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SshPublicKey(String);

/// A string is not a public key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SshPublicKeyError {
    /// It has another form.
    #[error("{0:?} is not a public key in OpenSSH format, such as \"ssh-ed25519 AAAA... comment\"")]
    Syntax(String),
    /// It is a private key, which is not shown.
    #[error("expected a public key, found a private key")]
    Private,
}

impl SshPublicKey {
    /// The line, without blanks around it.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for SshPublicKey {
    type Error = SshPublicKeyError;

    fn try_from(text: String) -> Result<Self, SshPublicKeyError> {
        if text.contains("PRIVATE KEY") {
            return Err(SshPublicKeyError::Private);
        }
        let line = text.trim();
        // A public key of a user and one of a host have the same form.
        match host_key(line) {
            Ok(HostKeyPolicy::Pinned(_)) if !line.contains(char::is_control) => Ok(Self(line.to_owned())),
            _ => Err(SshPublicKeyError::Syntax(text)),
        }
    }
}

impl From<SshPublicKey> for String {
    fn from(key: SshPublicKey) -> Self {
        key.0
    }
}

impl fmt::Display for SshPublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFdvrUKgYXnEjtUQ0WqTGVdXE2fVoVzVGyYaPBAMwXv2";

    #[test]
    fn a_public_key_is_one_line_in_the_format_of_openssh() {
        for text in [KEY.to_owned(), format!("{KEY} ops@example"), format!("{KEY}\n")] {
            assert_eq!(SshPublicKey::try_from(text.clone()).unwrap().as_str(), text.trim());
        }
        for text in [
            "",
            "accept-new",
            "ssh-ed25519",
            "ssh-ed25519 AAAA",
            &KEY.replace("ed25519 ", "rsa "),
            &format!("{KEY}\n{KEY}"),
        ] {
            assert_eq!(
                SshPublicKey::try_from(text.to_owned()),
                Err(SshPublicKeyError::Syntax(text.to_owned()))
            );
        }
        let private = "-----BEGIN OPENSSH PRIVATE KEY-----\nsecret".to_owned();
        assert_eq!(SshPublicKey::try_from(private), Err(SshPublicKeyError::Private));
    }
}
