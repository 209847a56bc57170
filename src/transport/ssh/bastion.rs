//! Connections to bastions: one each, shared by all hosts of a run behind it. The bastion resolves the names of these
//! hosts; nothing here looks them up.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use russh::client::Msg;
use russh::{ChannelOpenFailure, ChannelStream, Error};
use tokio::time::{Instant, timeout};

use super::connection::{Connection, Opening, unreachable};
use crate::model::ssh_target::SshTarget;
use crate::transport::error::TransportError;

/// Bastions of one run.
#[derive(Default)]
pub(super) struct Bastions(Mutex<BTreeMap<SshTarget, Arc<Slot>>>);

/// Locked while a connection is made, so that concurrent calls wait for the same one.
#[derive(Default)]
struct Slot(tokio::sync::Mutex<LastAttempt>);

/// The result of the last attempt.
#[derive(Default)]
enum LastAttempt {
    #[default]
    None,
    Connected(Arc<Connection>),
    Failed(Instant, TransportError),
}

impl Bastions {
    /// A stream through `bastion` to `target`, and the connection that must live as long. Such channels do not count
    /// towards sshd's `MaxSessions`.
    ///
    /// # Errors
    /// Those of the bastion carry its address; `Unreachable` when it does not connect to the target.
    pub(super) async fn stream<'a>(
        &self,
        deadline: Duration,
        bastion: &SshTarget,
        target: &SshTarget,
        connect: impl Fn() -> Opening<'a>,
    ) -> Result<(ChannelStream<Msg>, Arc<Connection>), TransportError> {
        let slot = {
            let mut slots = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(slots.entry(bastion.clone()).or_default())
        };
        let (connection, fresh) = slot.connection(&connect).await?;
        match open(deadline, &connection, bastion, target).await {
            Err(Obstacle::Bastion(_)) if !fresh => {
                // The bastion was down since its last use: reconnect once.
                slot.forget(&connection).await;
                let (connection, _) = slot.connection(&connect).await?;
                let stream = open(deadline, &connection, bastion, target).await?;
                Ok((stream, connection))
            }
            result => Ok((result?, connection)),
        }
    }
}

impl Slot {
    /// The existing connection, or a new one, and whether it is new. Calls that waited for an attempt share its failure,
    /// or many hosts would wait in turn for a bastion that is down; and a permanent failure is final, or each host
    /// behind a bastion would add a refused login to it.
    async fn connection<'a>(
        &self,
        connect: impl Fn() -> Opening<'a>,
    ) -> Result<(Arc<Connection>, bool), TransportError> {
        let called = Instant::now();
        let mut last = self.0.lock().await;
        match &*last {
            LastAttempt::Connected(connection) if !connection.handle.is_closed() => {
                return Ok((Arc::clone(connection), false));
            }
            LastAttempt::Failed(at, error) if error.is_permanent() || *at >= called => {
                return Err(error.clone());
            }
            _ => {}
        }
        match connect().await {
            Ok(connection) => {
                let connection = Arc::new(connection);
                *last = LastAttempt::Connected(Arc::clone(&connection));
                Ok((connection, true))
            }
            Err(error) => {
                *last = LastAttempt::Failed(Instant::now(), error.clone());
                Err(error)
            }
        }
    }

    async fn forget(&self, broken: &Arc<Connection>) {
        let mut last = self.0.lock().await;
        if matches!(&*last, LastAttempt::Connected(present) if Arc::ptr_eq(present, broken)) {
            *last = LastAttempt::None;
        }
    }
}

/// Why a bastion did not open a stream.
enum Obstacle {
    /// The connection to the bastion is dead.
    Bastion(TransportError),
    /// The bastion does not reach the target, or does not allow it.
    Target(TransportError),
}

impl From<Obstacle> for TransportError {
    fn from(obstacle: Obstacle) -> Self {
        match obstacle {
            Obstacle::Bastion(error) | Obstacle::Target(error) => error,
        }
    }
}

async fn open(
    deadline: Duration,
    through: &Connection,
    bastion: &SshTarget,
    target: &SshTarget,
) -> Result<ChannelStream<Msg>, Obstacle> {
    let opening =
        through.handle.channel_open_direct_tcpip(&target.host, u32::from(target.port), "127.0.0.1", 0);
    let why = |reason: String| unreachable(target, format!("bastion {}: {reason}", bastion.address()));
    match timeout(deadline, opening).await {
        Ok(Ok(channel)) => Ok(channel.into_stream()),
        Ok(Err(Error::ChannelOpenFailure(refusal))) => {
            let reason = match refusal {
                ChannelOpenFailure::AdministrativelyProhibited => "forwarding is not allowed".to_owned(),
                other => other.description().to_owned(),
            };
            Err(Obstacle::Target(why(reason)))
        }
        Ok(Err(error)) => Err(Obstacle::Bastion(why(error.to_string()))),
        Err(_) => {
            let late = why(format!("no TCP connection within {:?}", deadline));
            // Either the bastion is dead, or the target drops packets: a bastion that answers is alive.
            match timeout(deadline, through.handle.send_ping()).await {
                Ok(Ok(())) if !through.handle.is_closed() => Err(Obstacle::Target(late)),
                _ => Err(Obstacle::Bastion(late)),
            }
        }
    }
}
