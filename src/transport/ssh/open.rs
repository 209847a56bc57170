//! Opens connections: TCP or a bastion, host key, authentication.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use russh::client::{Config, connect_stream};
use russh::keys::Algorithm;
use russh::{Preferred, compression};
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};

use super::client::{SshClient, UNANSWERED};
use super::connection::{Connection, Opening, unreachable};
use super::ending::Ending;
use super::host_key::{HandshakeError, HostKeyCheck};
use super::login::{LoginEnd, log_in};
use crate::model::ssh_target::SshTarget;
use crate::transport::error::TransportError;
use crate::transport::known_hosts::certificate::has_ca;
use crate::transport::known_hosts::{algorithms, file};

/// Connects, verifies the host key, authenticates.
///
/// # Errors
/// Those of the bastion carry the bastion's address.
pub(super) fn open<'a>(client: &'a SshClient, target: &'a SshTarget) -> Opening<'a> {
    Box::pin(async move {
        if let Some(connection) = attempt(client, target).await? {
            return Ok(connection);
        }
        let closed = || unreachable(target, "connection closed while the passphrase was typed".to_owned());
        attempt(client, target).await?.ok_or_else(closed)
    })
}

/// `None` when the host closed the connection while a passphrase was typed: the key is unlocked now.
async fn attempt(client: &SshClient, target: &SshTarget) -> Result<Option<Connection>, TransportError> {
    let Some(bastion) = &target.bastion else {
        let end = Instant::now() + client.deadline;
        return shake_hands(tcp(client, target, end).await?, client, target, end).await;
    };
    let (stream, through) =
        client.bastions.stream(client.deadline, bastion, target, || open(client, bastion)).await?;
    let end = Instant::now() + client.deadline;
    let connection = shake_hands(stream, client, target, end).await?;
    Ok(connection.map(|connection| connection.through(through)))
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
    // Nagle's algorithm delays a small program until the one before is acknowledged.
    let prepared = socket.set_tcp_nodelay(true).and_then(|()| {
        // While a large payload is written no keepalive requests are sent: then the kernel notices a dead
        // connection (tcp(7), TCP_USER_TIMEOUT).
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
    let certified = client.clock.is_some() && has_ca(&target.host_key, &known, &target.host, target.port);
    let mut config = config(client.keepalive, host_keys, certified);
    config.inactivity_timeout = target.bastion.as_ref().map(|_| client.stuck);
    let ending = Ending::default();
    let remembered = client.known_hosts.first().filter(|_| client.remembers).cloned();
    let check = HostKeyCheck {
        target: target.clone(),
        known,
        known_hosts: remembered,
        clock: client.clock,
        accepted: Arc::clone(&client.host_keys),
        ending: ending.clone(),
    };
    let mut handle = match timeout_at(end, connect_stream(Arc::new(config), stream, check)).await {
        Ok(Ok(handle)) => handle,
        Ok(Err(HandshakeError::Refused(error))) => return Err(error),
        Ok(Err(HandshakeError::Ssh(russh::Error::NoCommonAlgo { kind, theirs, .. }))) => {
            let reason = format!("{kind:?}, of which the host offers {}", theirs.join(", "));
            return Err(TransportError::Incompatible { host: target.address(), reason });
        }
        Ok(Err(HandshakeError::Ssh(error))) => return Err(unreachable(target, error.to_string())),
        Err(_) => return Err(unreachable(target, format!("no SSH handshake within {:?}", client.deadline))),
    };
    match log_in(&mut handle, target, client, &ending).await? {
        LoginEnd::Done => {}
        LoginEnd::Reconnect => return Ok(None),
    }
    Ok(Some(Connection::new(handle, ending)))
}

fn config(keepalive: Duration, host_keys: Vec<Algorithm>, certified: bool) -> Config {
    Config {
        preferred: Preferred {
            host_key_certificates: if certified { Cow::Owned(host_keys.clone()) } else { Cow::Borrowed(&[]) },
            key: Cow::Owned(host_keys),
            // On a local network compression costs more time than it saves.
            compression: Cow::Borrowed(&[compression::NONE]),
            ..Preferred::DEFAULT
        },
        keepalive_interval: Some(keepalive),
        keepalive_max: UNANSWERED as usize,
        ..Config::default()
    }
}
