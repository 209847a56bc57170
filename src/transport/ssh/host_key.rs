//! russh's callbacks of one connection: verifying the host key, and recording how the connection ended.

use std::path::PathBuf;
use std::sync::Arc;

use jiff::Timestamp;
use russh::client::{DisconnectReason, Handler};
use russh::keys::{PublicKey, PublicKeyOrCertificate};

use super::ending::{Ended, Ending};
use crate::model::ssh_target::{HostKeyPolicy, SshTarget};
use crate::transport::error::TransportError;
use crate::transport::host_keys::{AcceptedHostKey, HostKeys};
use crate::transport::known_hosts::certificate::{KnownName, certificate_verdict};
use crate::transport::known_hosts::{KeyVerdict, KnownHosts, describe, file, verdict};

/// Why a handshake failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum HandshakeError {
    /// In the protocol.
    #[error(transparent)]
    Ssh(#[from] russh::Error),
    /// The host key was not accepted.
    #[error(transparent)]
    Refused(#[from] TransportError),
}

/// Verifies the host key of one connection.
pub(super) struct HostKeyCheck {
    pub(super) target: SshTarget,
    /// The content of all known hosts files.
    pub(super) known: KnownHosts,
    /// The file in which a new key is remembered; `None`: nothing is written.
    pub(super) known_hosts: Option<PathBuf>,
    pub(super) clock: Option<fn() -> Timestamp>,
    /// Receives the key that is accepted.
    pub(super) accepted: Arc<HostKeys>,
    pub(super) ending: Ending,
}

impl HostKeyCheck {
    /// The verdict, and whether the key is new; a new key is remembered first, where the policy allows it.
    async fn judge(
        &self,
        presented: &PublicKeyOrCertificate,
        key: &PublicKey,
    ) -> Result<(KeyVerdict, bool), TransportError> {
        let (policy, host, port) = (&self.target.host_key, &self.target.host, self.target.port);
        let found = match (presented.certificate(), self.clock) {
            (Some(certificate), Some(now)) => {
                let host = KnownName { host, port };
                certificate_verdict(policy, &self.known, host, certificate, now())
            }
            _ => verdict(policy, &self.known, host, port, key),
        };
        if found != KeyVerdict::Remember {
            return Ok((found, false));
        }
        let Some(path) = self.known_hosts.clone() else { return Ok((self.as_accepted(key), true)) };
        let (host, port) = (self.target.host.clone(), self.target.port);
        let (copy, reported) = (key.clone(), path.display().to_string());
        let replace = matches!(policy, HostKeyPolicy::Fingerprint(_));
        // Blocks while another process has the file locked.
        let remember = move || {
            if replace {
                file::forget(&path, &host, port)?;
            }
            file::remember(&path, &host, port, &copy)
        };
        let remembered = tokio::task::spawn_blocking(remember)
            .await
            .map_err(|error| TransportError::KnownHosts { path: reported, reason: error.to_string() })?;
        Ok((remembered?, true))
    }

    /// The verdict on a new key by the one that an earlier connection of this client has accepted.
    fn as_accepted(&self, key: &PublicKey) -> KeyVerdict {
        match self.accepted.at(&self.target.address()) {
            Some(accepted) if accepted.key != describe(key) => {
                KeyVerdict::Mismatch { expected: format!("{} (in this run)", accepted.key) }
            }
            _ => KeyVerdict::Accept,
        }
    }
}

impl Handler for HostKeyCheck {
    type Error = HandshakeError;

    async fn check_server_key(&mut self, presented: &PublicKeyOrCertificate) -> Result<bool, HandshakeError> {
        let key = presented.public_key();
        let (host, found) = (self.target.address(), describe(&key));
        let (verdict, new) = self.judge(presented, &key).await?;
        match verdict {
            KeyVerdict::Accept => {
                self.accepted.accept(AcceptedHostKey { address: host, key: found, new });
                Ok(true)
            }
            KeyVerdict::Unknown | KeyVerdict::Remember => {
                Err(TransportError::HostKeyUnknown { host, found }.into())
            }
            KeyVerdict::Mismatch { expected } => {
                Err(TransportError::HostKeyMismatch { host, found, expected }.into())
            }
        }
    }

    async fn disconnected(&mut self, reason: DisconnectReason<HandshakeError>) -> Result<(), HandshakeError> {
        self.ending.set(match reason {
            DisconnectReason::ReceivedDisconnect(info) => Ended::ByHost(info.message),
            DisconnectReason::Error(HandshakeError::Ssh(russh::Error::KeepaliveTimeout)) => {
                Ended::Broken("no answer to keepalive requests".to_owned())
            }
            DisconnectReason::Error(error) => Ended::Broken(error.to_string()),
        });
        Ok(())
    }
}
