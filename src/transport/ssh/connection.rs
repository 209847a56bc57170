//! An open connection to a host.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use russh::client::Handle;
use tokio::sync::Semaphore;

use super::ending::{Ended, Ending};
use super::host_key::HostKeyCheck;
use crate::model::ssh_target::SshTarget;
use crate::transport::error::TransportError;

/// sshd allows ten sessions a connection (`MaxSessions`) and counts ended ones for a while, so as many again may still
/// count. More programs than this wait.
const SESSIONS: usize = 5;

/// A connection that is being opened. Boxed, because a bastion's connection is opened in the same way.
pub(super) type Opening<'a> = Pin<Box<dyn Future<Output = Result<Connection, TransportError>> + Send + 'a>>;

/// An authenticated connection to a host.
pub(super) struct Connection {
    pub(super) handle: Handle<HostKeyCheck>,
    pub(super) sessions: Arc<Semaphore>,
    ending: Ending,
    /// The connection that this one runs through: it must live as long.
    _bastion: Option<Arc<Connection>>,
}

impl Connection {
    /// After the login.
    pub(super) fn new(handle: Handle<HostKeyCheck>, ending: Ending) -> Self {
        Self { handle, sessions: Arc::new(Semaphore::new(SESSIONS)), ending, _bastion: None }
    }

    /// Keeps the connection to the bastion open as long as this one.
    pub(super) fn through(self, bastion: Arc<Self>) -> Self {
        Self { _bastion: Some(bastion), ..self }
    }

    /// What ended the connection, as far as is known.
    pub(super) fn ending(&self) -> String {
        match self.ending.get() {
            Some(Ended::ByHost(reason)) => format!("closed by the host: {reason}"),
            Some(Ended::Broken(reason)) => reason,
            None => "connection closed".to_owned(),
        }
    }
}

pub(super) fn unreachable(target: &SshTarget, reason: String) -> TransportError {
    TransportError::Unreachable { host: target.address(), reason }
}
