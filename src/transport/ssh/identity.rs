//! Logging in with private keys, and with nothing else.

use std::path::Path;
use std::sync::Arc;

use russh::client::{AuthResult, Handle};
use russh::keys::{Error, HashAlg, PrivateKey, PrivateKeyWithHashAlg, decode_secret_key};

use super::host_key::HostKeyCheck;
use crate::model::ssh_target::SshTarget;
use crate::transport::error::TransportError;

/// Offers the target's keys in order until one is taken. A key that cannot be read is passed over, and is the
/// error only when no key could be read.
///
/// # Errors
/// `AuthenticationRefused`, `IdentityUnreadable`; `Unreachable` when the host hung up before it refused any.
pub(super) async fn authenticate(
    handle: &mut Handle<HostKeyCheck>,
    target: &SshTarget,
) -> Result<(), TransportError> {
    let mut refused: Vec<String> = Vec::new();
    let mut unreadable = None;
    for path in &target.identity_files {
        let key = match read(path).await {
            Ok(key) => key,
            Err(error) => {
                unreadable.get_or_insert(error);
                continue;
            }
        };
        // RFC 8332: every server that still gets updates takes SHA-512 for an RSA key. Asking which it takes
        // would cost a round trip.
        let key = PrivateKeyWithHashAlg::new(Arc::new(key), Some(HashAlg::Sha512));
        let answer = handle.authenticate_publickey(&target.user, key).await;
        if let Ok(AuthResult::Success) = answer {
            return Ok(());
        }
        // A connection that ends is reported as a refusal too. Servers hang up after a number of refusals, so
        // only one that ends before the first says nothing about our keys.
        if handle.is_closed() && refused.is_empty() {
            let reason = "it hung up while we logged in".to_owned();
            return Err(TransportError::Unreachable { host: target.address(), reason });
        }
        refused.push(path.display().to_string());
        if handle.is_closed() {
            break;
        }
    }
    match unreadable {
        Some(error) if refused.is_empty() => Err(error),
        _ => Err(TransportError::AuthenticationRefused {
            host: target.address(),
            user: target.user.clone(),
            keys: if refused.is_empty() { "none".to_owned() } else { refused.join(", ") },
        }),
    }
}

/// A private key without a passphrase: OpenSSH's format, or PEM.
async fn read(path: &Path) -> Result<PrivateKey, TransportError> {
    let unreadable =
        |reason: String| TransportError::IdentityUnreadable { path: path.display().to_string(), reason };
    let text = tokio::fs::read_to_string(path).await.map_err(|error| unreadable(error.to_string()))?;
    decode_secret_key(&text, None).map_err(|error| match error {
        Error::KeyIsEncrypted => {
            unreadable("it is protected by a passphrase, and nobody is there to type it".to_owned())
        }
        other => unreadable(other.to_string()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_unreadable_key_says_why() {
        let directory = tempfile::tempdir().unwrap();
        let locked = directory.path().join("locked");
        std::process::Command::new("ssh-keygen")
            .args(["-q", "-t", "ed25519", "-N", "secret", "-f"])
            .arg(&locked)
            .status()
            .unwrap();
        let garbage = directory.path().join("garbage");
        std::fs::write(&garbage, "no key").unwrap();
        let missing = directory.path().join("missing");
        for (path, part) in
            [(locked, "passphrase"), (garbage, "ould not read key"), (missing, "No such file")]
        {
            match read(&path).await {
                Err(TransportError::IdentityUnreadable { reason, .. }) => {
                    assert!(reason.contains(part), "{reason}")
                }
                other => panic!("{other:?}"),
            }
        }
    }
}
