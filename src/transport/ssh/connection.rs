//! From nothing to a connection that has let us in.

use std::borrow::Cow;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use russh::client::{Config, Handle, connect_stream};
use russh::keys::Algorithm;
use russh::{Preferred, compression};
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};

use super::bastion::Bastions;
use super::client::{STUCK, SshClient, UNANSWERED};
use super::host_key::{HandshakeError, HostKeyCheck};
use super::login::{Login, log_in};
use crate::model::ssh_target::SshTarget;
use crate::transport::error::TransportError;
use crate::transport::known_hosts::certificate::has_authority;
use crate::transport::known_hosts::{algorithms, file};

/// sshd allows ten sessions a connection (`MaxSessions`), and counts one that has ended until it next looks; so as
/// many again may still count. More programs than this wait for their turn.
const SESSIONS: usize = 5;

/// How a connection ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Ended {
    /// The host said that it closes it, and why.
    ByHost(String),
    /// The link broke.
    Broken(String),
}

/// How a connection ended, once it has; written by the connection's own task.
#[derive(Clone, Default)]
pub(super) struct Ending(Arc<Mutex<Option<Ended>>>);

impl Ending {
    pub(super) fn set(&self, ended: Ended) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(ended);
    }

    pub(super) fn get(&self) -> Option<Ended> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A connection to a host, logged in.
pub(super) struct Connection {
    pub(super) handle: Handle<HostKeyCheck>,
    pub(super) sessions: Arc<Semaphore>,
    ending: Ending,
    /// The connection that this one runs through: it must live as long.
    _bastion: Option<Arc<Connection>>,
}

impl Connection {
    /// What ended the connection, as far as it is known.
    pub(super) fn ending(&self) -> String {
        match self.ending.get() {
            Some(Ended::ByHost(reason)) => format!("the host closed it: {reason}"),
            Some(Ended::Broken(reason)) => reason,
            None => "it was closed".to_owned(),
        }
    }
}

/// Connects, checks the host key, logs in.
///
/// # Errors
/// Those of the bastion carry the bastion's address.
pub(super) fn open<'a>(
    client: &'a SshClient,
    target: &'a SshTarget,
) -> Pin<Box<dyn Future<Output = Result<Connection, TransportError>> + Send + 'a>> {
    Box::pin(async move {
        if let Some(connection) = attempt(client, target).await? {
            return Ok(connection);
        }
        let never = || unreachable(target, "it hung up while the passphrase was typed".to_owned());
        attempt(client, target).await?.ok_or_else(never)
    })
}

/// `None` when the host hung up while a person typed a passphrase, which is known now.
async fn attempt(client: &SshClient, target: &SshTarget) -> Result<Option<Connection>, TransportError> {
    let Some(bastion) = &target.bastion else {
        let end = Instant::now() + client.deadline;
        return shake_hands(tcp(client, target, end).await?, client, target, end).await;
    };
    let (stream, through) = Bastions::way(client, bastion, target).await?;
    let end = Instant::now() + client.deadline;
    let connection = shake_hands(stream, client, target, end).await?;
    Ok(connection.map(|connection| Connection { _bastion: Some(through), ..connection }))
}

async fn tcp(client: &SshClient, target: &SshTarget, end: Instant) -> Result<TcpStream, TransportError> {
    let connecting = TcpStream::connect((target.host.as_str(), target.port));
    let stream = match timeout_at(end, connecting).await {
        Ok(stream) => stream.map_err(|error| unreachable(target, error.to_string()))?,
        Err(_) => {
            return Err(unreachable(target, format!("no TCP connection within {:?}", client.deadline)));
        }
    };
    let socket = SockRef::from(&stream);
    // Without this a small program waits for the acknowledgement of the one before.
    let prepared = socket.set_tcp_nodelay(true).and_then(|()| {
        // While a large payload is being written no questions are asked (see KEEPALIVE): then it is the
        // kernel that notices a dead link (tcp(7), TCP_USER_TIMEOUT).
        socket.set_tcp_user_timeout(Some(client.keepalive * (UNANSWERED + 1)))
    });
    prepared.map_err(|error| unreachable(target, error.to_string()))?;
    Ok(stream)
}

async fn shake_hands<S>(
    stream: S,
    client: &SshClient,
    target: &SshTarget,
    end: Instant,
) -> Result<Option<Connection>, TransportError>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let known = file::read_all(&client.known_hosts)?;
    let host_keys = algorithms(&target.host_key, &known, &target.host, target.port);
    let certified =
        client.clock.is_some() && has_authority(&target.host_key, &known, &target.host, target.port);
    let mut config = config(client.keepalive, host_keys, certified);
    config.inactivity_timeout = target.bastion.as_ref().map(|_| client.keepalive * STUCK);
    let ending = Ending::default();
    let remembered = client.known_hosts.first().cloned().unwrap_or_default();
    let check = HostKeyCheck::new(target.clone(), (known, remembered), client.clock, ending.clone());
    let mut handle = match timeout_at(end, connect_stream(Arc::new(config), stream, check)).await {
        Ok(Ok(handle)) => handle,
        Ok(Err(HandshakeError::Refused(error))) => return Err(error),
        Ok(Err(HandshakeError::Ssh(russh::Error::NoCommonAlgo { kind, theirs, .. }))) => {
            let reason = format!("{kind:?}, of which the host offers {}", theirs.join(", "));
            return Err(TransportError::Incompatible { host: target.address(), reason });
        }
        Ok(Err(HandshakeError::Ssh(error))) => return Err(unreachable(target, error.to_string())),
        Err(_) => return Err(unreachable(target, format!("no SSH greeting within {:?}", client.deadline))),
    };
    match log_in(&mut handle, target, client, &ending).await? {
        Login::Done => {}
        Login::Anew => return Ok(None),
    }
    Ok(Some(Connection { handle, sessions: Arc::new(Semaphore::new(SESSIONS)), ending, _bastion: None }))
}

fn config(keepalive: Duration, host_keys: Vec<Algorithm>, certified: bool) -> Config {
    Config {
        preferred: Preferred {
            host_key_certificates: if certified { Cow::Owned(host_keys.clone()) } else { Cow::Borrowed(&[]) },
            key: Cow::Owned(host_keys),
            // Compression costs more than a local network does.
            compression: Cow::Borrowed(&[compression::NONE]),
            ..Preferred::DEFAULT
        },
        keepalive_interval: Some(keepalive),
        keepalive_max: UNANSWERED as usize,
        ..Config::default()
    }
}

pub(super) fn unreachable(target: &SshTarget, reason: String) -> TransportError {
    TransportError::Unreachable { host: target.address(), reason }
}
