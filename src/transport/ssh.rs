//! Programs over SSH: one connection a host, made when it is first needed and made again when it broke, with
//! one channel for each program.

mod bastion;
mod client;
mod connection;
mod exchange;
mod host_key;
mod key_file;
mod login;
mod offer;

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use russh::client::Msg;
use russh::{Channel, Error};
use tokio::sync::{Mutex, OwnedSemaphorePermit};
use tokio::time::timeout;

pub use self::client::{CONNECT_DEADLINE, KEEPALIVE, SshClient};
use self::connection::Connection;
use self::exchange::{Asked, End};
use super::capture::{Capture, OUTPUT_LIMIT};
use super::error::TransportError;
use super::shell::{Elevation, Frame};
use super::{Output, Program, Progress, Replies, Transport};
use crate::model::ssh_target::SshTarget;

/// One host, reached over SSH.
///
/// # Guarantees
/// A program is started at most once. A connection that turns out to be broken before the program was sent
/// is replaced, once; one that breaks later is [`TransportError::Lost`], and the next run connects anew.
/// Runs may overlap; they share the connection.
pub struct SshTransport {
    target: SshTarget,
    client: Arc<SshClient>,
    connection: Mutex<Option<Arc<Connection>>>,
}

/// A channel that nothing was sent on yet, and what must live as long as it does.
struct Session {
    channel: Channel<Msg>,
    connection: Arc<Connection>,
    _permit: OwnedSemaphorePermit,
}

impl SshTransport {
    /// Of a client of its own, with neither agent nor anybody to ask. `known_hosts` is the file of remembered host
    /// keys, for the host and its bastions.
    pub fn new(target: SshTarget, known_hosts: PathBuf) -> Self {
        Self::of(Arc::new(SshClient::new(known_hosts)), target)
    }

    /// Does not connect yet.
    pub fn of(client: Arc<SshClient>, target: SshTarget) -> Self {
        Self { target, client, connection: Mutex::default() }
    }

    async fn session(&self) -> Result<Session, TransportError> {
        let (connection, fresh) = self.connect().await?;
        match self.open(&connection).await {
            Err(error) if !fresh && !error.is_permanent() => {
                // Nothing was sent yet: the host has rebooted since, so this is no failure.
                self.forget(&connection).await;
                let (connection, _) = self.connect().await?;
                self.open(&connection).await
            }
            result => result,
        }
    }

    /// The connection there is, or a new one; whoever comes while it is being made waits for it.
    async fn connect(&self) -> Result<(Arc<Connection>, bool), TransportError> {
        let mut slot = self.connection.lock().await;
        if let Some(connection) = slot.as_ref().filter(|connection| !connection.handle.is_closed()) {
            return Ok((Arc::clone(connection), false));
        }
        *slot = None;
        let connection = Arc::new(connection::open(&self.client, &self.target).await?);
        *slot = Some(Arc::clone(&connection));
        Ok((connection, true))
    }

    async fn open(&self, connection: &Arc<Connection>) -> Result<Session, TransportError> {
        let permit = Arc::clone(&connection.sessions)
            .acquire_owned()
            .await
            .expect("permits are to be had, because the semaphore is never closed");
        let host = self.target.address();
        let opened = timeout(self.client.deadline, connection.handle.channel_open_session()).await;
        let channel = match opened {
            Ok(Ok(channel)) => channel,
            Ok(Err(Error::ChannelOpenFailure(refusal))) => {
                return Err(TransportError::NoShell {
                    host,
                    reason: format!("no session: {}", refusal.description()),
                });
            }
            Ok(Err(_)) => return Err(TransportError::Lost { host, reason: connection.ending() }),
            Err(_) => {
                let reason = format!("no session within {} s", self.client.deadline.as_secs());
                return Err(TransportError::Lost { host, reason });
            }
        };
        Ok(Session { channel, connection: Arc::clone(connection), _permit: permit })
    }

    async fn forget(&self, broken: &Arc<Connection>) {
        let mut slot = self.connection.lock().await;
        if slot.as_ref().is_some_and(|present| Arc::ptr_eq(present, broken)) {
            *slot = None;
        }
    }
}

#[async_trait]
impl Transport for SshTransport {
    async fn converse(
        &self,
        program: &Program,
        replies: Replies,
        progress: &mut Progress<'_>,
    ) -> Result<Output, TransportError> {
        let session = self.session().await?;
        let password = self.client.sudo.as_ref().filter(|_| self.target.sudo);
        let elevation = match (self.target.sudo, password) {
            (false, _) => Elevation::None,
            (true, None) => Elevation::Sudo,
            (true, Some(_)) => Elevation::SudoWithPassword,
        };
        let frame = Frame::new(&program.script, elevation);
        let mut capture = Capture::new(&frame, progress);
        let (host, user) = (self.target.address(), self.target.user.clone());
        let asked = password.map(|password| Asked { password, user: &user, host: &host });
        match exchange::run(session.channel, &frame, (&program.payload, replies), &mut capture, asked).await {
            End::Exited(status) => capture.finish(status, &host, &user),
            End::Sudo(reason) => Err(TransportError::SudoRefused { host, user, reason }),
            End::Lost => {
                self.forget(&session.connection).await;
                Err(TransportError::Lost { host, reason: session.connection.ending() })
            }
            End::Refused => {
                Err(TransportError::NoShell { host, reason: "it refuses to run commands".to_owned() })
            }
            End::TooMuch => {
                let reason = format!("more than {} MiB of output", OUTPUT_LIMIT >> 20);
                Err(TransportError::NoShell { host, reason })
            }
        }
    }
}
