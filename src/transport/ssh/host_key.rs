//! What is asked of us while a connection lives: whether the host's key is good, and who ended it.

use std::path::PathBuf;

use jiff::Timestamp;
use russh::client::{DisconnectReason, Handler};
use russh::keys::{PublicKey, PublicKeyOrCertificate};

use super::connection::{Ended, Ending};
use crate::model::ssh_target::SshTarget;
use crate::transport::error::TransportError;
use crate::transport::known_hosts::certificate::certificate_verdict;
use crate::transport::known_hosts::{KeyVerdict, KnownHosts, describe, file, verdict};

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub(super) enum HandshakeError {
    /// Of the protocol.
    #[error(transparent)]
    Ssh(#[from] russh::Error),
    /// By us, because of the host's key.
    #[error(transparent)]
    Refused(#[from] TransportError),
}

/// Answers for one connection.
pub(super) struct HostKeyCheck {
    target: SshTarget,
    known: KnownHosts,
    known_hosts: PathBuf,
    clock: Option<fn() -> Timestamp>,
    ending: Ending,
}

impl HostKeyCheck {
    /// `known` is what the files say, of which a new key is remembered in `known_hosts`.
    pub(super) fn new(
        target: SshTarget,
        (known, known_hosts): (KnownHosts, PathBuf),
        clock: Option<fn() -> Timestamp>,
        ending: Ending,
    ) -> Self {
        Self { target, known, known_hosts, clock, ending }
    }

    /// The verdict after remembering, where that is what it says.
    async fn settle(
        &self,
        shown: &PublicKeyOrCertificate,
        key: &PublicKey,
    ) -> Result<KeyVerdict, TransportError> {
        let (policy, host, port) = (&self.target.host_key, &self.target.host, self.target.port);
        let found = match (shown.certificate(), self.clock) {
            (Some(certificate), Some(now)) => {
                certificate_verdict(policy, &self.known, (host, port), certificate, now())
            }
            _ => verdict(policy, &self.known, host, port, key),
        };
        if found != KeyVerdict::Remember {
            return Ok(found);
        }
        let (path, host, port) = (self.known_hosts.clone(), self.target.host.clone(), self.target.port);
        let (copy, reported) = (key.clone(), self.known_hosts.display().to_string());
        // It waits for a lock that another process may hold.
        tokio::task::spawn_blocking(move || file::remember(&path, &host, port, &copy))
            .await
            .map_err(|error| TransportError::KnownHosts { path: reported, reason: error.to_string() })?
    }
}

impl Handler for HostKeyCheck {
    type Error = HandshakeError;

    async fn check_server_key(&mut self, shown: &PublicKeyOrCertificate) -> Result<bool, HandshakeError> {
        let key = shown.public_key();
        let (host, found) = (self.target.address(), describe(&key));
        match self.settle(shown, &key).await? {
            KeyVerdict::Accept => Ok(true),
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
            DisconnectReason::Error(error) => Ended::Broken(error.to_string()),
        });
        Ok(())
    }
}
