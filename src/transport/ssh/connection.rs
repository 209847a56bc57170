//! From nothing to a connection that has let us in.

use std::borrow::Cow;
use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use russh::client::{Config, Handle, connect_stream};
use russh::{Preferred, compression};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};

use super::host_key::{HandshakeError, HostKeyCheck};
use super::identity::authenticate;
use crate::model::ssh_target::SshTarget;
use crate::transport::error::TransportError;
use crate::transport::known_hosts::{algorithms, file};

/// sshd allows ten sessions a connection (`MaxSessions`); more programs than this wait for their turn.
const SESSIONS: usize = 8;

/// A silent host is asked whether it lives after this time, and given up after three questions.
const KEEPALIVE: Duration = Duration::from_secs(5);

/// Why a connection ended, once it has; written by the connection's own task.
pub(super) type Ending = Arc<Mutex<Option<String>>>;

/// A connection to a host, logged in.
pub(super) struct Connection {
    pub(super) handle: Handle<HostKeyCheck>,
    pub(super) sessions: Arc<Semaphore>,
    ending: Ending,
    /// The connection that this one runs through: it must live as long.
    _bastion: Option<Box<Connection>>,
}

impl Connection {
    /// What ended the connection, as far as it is known.
    pub(super) fn ending(&self) -> String {
        let ending = self.ending.lock().unwrap_or_else(PoisonError::into_inner);
        ending.clone().unwrap_or_else(|| "it was closed".to_owned())
    }
}

/// Connects, checks the host key, logs in.
///
/// # Errors
/// Those of the bastion carry the bastion's address.
pub(super) fn open<'a>(
    target: &'a SshTarget,
    known_hosts: &'a Path,
    deadline: Duration,
) -> Pin<Box<dyn Future<Output = Result<Connection, TransportError>> + Send + 'a>> {
    Box::pin(async move {
        let Some(bastion) = &target.bastion else {
            let end = Instant::now() + deadline;
            let connecting = TcpStream::connect((target.host.as_str(), target.port));
            let stream = match timeout_at(end, connecting).await {
                Ok(stream) => stream.map_err(|error| unreachable(target, error.to_string()))?,
                Err(_) => return Err(unreachable(target, format!("no TCP connection within {deadline:?}"))),
            };
            // Without this a small program waits for the acknowledgement of the one before.
            stream.set_nodelay(true).map_err(|error| unreachable(target, error.to_string()))?;
            return log_in(stream, target, known_hosts, (deadline, end)).await;
        };
        let through = open(bastion, known_hosts, deadline).await?;
        let end = Instant::now() + deadline;
        let opening =
            through.handle.channel_open_direct_tcpip(&target.host, u32::from(target.port), "127.0.0.1", 0);
        let via = bastion.address();
        let stream = match timeout_at(end, opening).await {
            Ok(Ok(channel)) => channel.into_stream(),
            Ok(Err(error)) => return Err(unreachable(target, format!("bastion {via}: {error}"))),
            Err(_) => {
                return Err(unreachable(
                    target,
                    format!("bastion {via}: no TCP connection within {deadline:?}"),
                ));
            }
        };
        let connection = log_in(stream, target, known_hosts, (deadline, end)).await?;
        Ok(Connection { _bastion: Some(Box::new(through)), ..connection })
    })
}

async fn log_in<S>(
    stream: S,
    target: &SshTarget,
    known_hosts: &Path,
    (deadline, end): (Duration, Instant),
) -> Result<Connection, TransportError>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let known = file::read(known_hosts)?;
    let config = Config {
        preferred: Preferred {
            key: Cow::Owned(algorithms(&target.host_key, &known, &target.host, target.port)),
            // Compression costs more than a local network does.
            compression: Cow::Borrowed(&[compression::NONE]),
            ..Preferred::DEFAULT
        },
        keepalive_interval: Some(KEEPALIVE),
        ..Config::default()
    };
    let ending = Ending::default();
    let check = HostKeyCheck::new(target.clone(), known, known_hosts.to_owned(), Arc::clone(&ending));
    let mut handle = match timeout_at(end, connect_stream(Arc::new(config), stream, check)).await {
        Ok(Ok(handle)) => handle,
        Ok(Err(HandshakeError::Refused(error))) => return Err(error),
        Ok(Err(HandshakeError::Ssh(russh::Error::NoCommonAlgo { kind, theirs, .. }))) => {
            let reason = format!("{kind:?}, of which the host offers {}", theirs.join(", "));
            return Err(TransportError::Incompatible { host: target.address(), reason });
        }
        Ok(Err(HandshakeError::Ssh(error))) => return Err(unreachable(target, error.to_string())),
        Err(_) => return Err(unreachable(target, format!("no SSH greeting within {deadline:?}"))),
    };
    match timeout_at(end, authenticate(&mut handle, target)).await {
        Ok(result) => result?,
        Err(_) => return Err(unreachable(target, format!("not logged in within {deadline:?}"))),
    }
    Ok(Connection { handle, sessions: Arc::new(Semaphore::new(SESSIONS)), ending, _bastion: None })
}

fn unreachable(target: &SshTarget, reason: String) -> TransportError {
    TransportError::Unreachable { host: target.address(), reason }
}
