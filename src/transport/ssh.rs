//! Programs over SSH: one connection a host, made when it is first needed and replaced when it broke, with one
//! channel for each program.

mod agent;
mod bastion;
mod client;
mod connection;
mod ending;
mod exchange;
mod host_key;
mod key_file;
mod login;
mod offer;
mod open;
mod short_scalar;
mod signing;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use russh::client::Msg;
use russh::{Channel, Error};
use tokio::sync::{Mutex, OwnedSemaphorePermit};
use tokio::time::timeout;

pub use self::client::{CONNECT_DEADLINE, KEEPALIVE, STUCK, SshClient};
use self::connection::Connection;
use self::exchange::{ExchangeEnd, SudoLogin};
use super::capture::{Capture, OUTPUT_LIMIT};
use super::error::TransportError;
use super::shell::{Elevation, Frame};
use super::{Input, LineSink, Output, Program, Replies, Transport};
use crate::model::ssh_target::SshTarget;

/// One host, reached over SSH.
///
/// # Guarantees
/// A program is started at most once. A connection that turns out to be broken before the program was sent
/// is replaced, once; one that breaks later is [`TransportError::Lost`], and the next run connects again. Runs may
/// overlap; they share the connection, and the failure of an attempt for which they waited.
pub struct SshTransport {
    target: SshTarget,
    client: Arc<SshClient>,
    slot: Mutex<Slot>,
    /// How many runs have asked for a connection.
    asked: AtomicU64,
}

#[derive(Default)]
struct Slot {
    connection: Option<Arc<Connection>>,
    /// The last failed attempt, and how many had asked when it ended: they do not wait for the host once more.
    failed: Option<(u64, TransportError)>,
}

/// A channel on which nothing was sent yet, and what must live as long as it does.
struct Session {
    channel: Channel<Msg>,
    connection: Arc<Connection>,
    _permit: OwnedSemaphorePermit,
}

impl SshTransport {
    /// With a client of its own, which has neither agent nor prompter. `known_hosts` is the file of remembered host
    /// keys, for the host and its bastions.
    pub fn new(target: SshTarget, known_hosts: PathBuf) -> Self {
        Self::of(Arc::new(SshClient::new(known_hosts)), target)
    }

    /// Does not connect yet.
    pub fn of(client: Arc<SshClient>, target: SshTarget) -> Self {
        Self { target, client, slot: Mutex::default(), asked: AtomicU64::default() }
    }

    async fn session(&self) -> Result<Session, TransportError> {
        let (connection, fresh) = self.connect().await?;
        match self.open(&connection).await {
            Err(error) if !fresh && !error.is_permanent() => {
                // Nothing was sent yet: the host may have rebooted since its last program.
                self.forget(&connection).await;
                let (connection, _) = self.connect().await?;
                self.open(&connection).await
            }
            result => result,
        }
    }

    /// The existing connection, or a new one, and whether it is new. Concurrent calls wait for the same attempt.
    async fn connect(&self) -> Result<(Arc<Connection>, bool), TransportError> {
        let turn = self.asked.fetch_add(1, Ordering::Relaxed);
        let mut slot = self.slot.lock().await;
        if let Some(connection) = slot.connection.as_ref().filter(|present| !present.handle.is_closed()) {
            return Ok((Arc::clone(connection), false));
        }
        slot.connection = None;
        if let Some((_, error)) = slot.failed.as_ref().filter(|(asked, _)| turn < *asked) {
            return Err(error.clone());
        }
        let connection = match open::open(&self.client, &self.target).await {
            Ok(connection) => Arc::new(connection),
            Err(error) => {
                slot.failed = Some((self.asked.load(Ordering::Relaxed), error.clone()));
                return Err(error);
            }
        };
        slot.connection = Some(Arc::clone(&connection));
        Ok((connection, true))
    }

    async fn open(&self, connection: &Arc<Connection>) -> Result<Session, TransportError> {
        let permit =
            Arc::clone(&connection.sessions).acquire_owned().await.expect("the semaphore is never closed");
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
        let mut slot = self.slot.lock().await;
        if slot.connection.as_ref().is_some_and(|present| Arc::ptr_eq(present, broken)) {
            slot.connection = None;
        }
    }
}

#[async_trait]
impl Transport for SshTransport {
    async fn converse(
        &self,
        program: &Program,
        replies: Replies,
        lines: &mut LineSink<'_>,
    ) -> Result<Output, TransportError> {
        let session = self.session().await?;
        let password = self.client.sudo.as_ref().filter(|_| self.target.sudo);
        let elevation = match (self.target.sudo, password) {
            (false, _) => Elevation::None,
            (true, None) => Elevation::Sudo,
            (true, Some(_)) => Elevation::SudoWithPassword,
        };
        let frame = Frame::new(&program.script, elevation);
        let mut capture = Capture::new(&frame, lines);
        let (host, user) = (self.target.address(), self.target.user.clone());
        let login = password.map(|password| SudoLogin { password, user: &user, host: &host });
        let input = Input { payload: &program.payload, replies };
        match exchange::run(session.channel, &frame, input, &mut capture, login).await {
            ExchangeEnd::Exited(status) => capture.finish(status, &host, &user),
            ExchangeEnd::SudoRefused(reason) => Err(TransportError::SudoRefused { host, user, reason }),
            ExchangeEnd::Lost => {
                self.forget(&session.connection).await;
                Err(TransportError::Lost { host, reason: session.connection.ending() })
            }
            ExchangeEnd::NoCommands => {
                Err(TransportError::NoShell { host, reason: "the server refuses to run commands".to_owned() })
            }
            ExchangeEnd::OutputLimit => {
                let reason = format!("more than {} MiB of output", OUTPUT_LIMIT >> 20);
                Err(TransportError::NoShell { host, reason })
            }
        }
    }
}
