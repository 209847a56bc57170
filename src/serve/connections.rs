//! Accepts connections, and ends those that take longer than they need.
//!
//! # Guarantees
//! - A peer and all peers have at most the connections of a limit; further ones are closed when they are
//!   accepted, before anything is read. What one connection holds is bounded, so the memory of the server is too.
//! - A connection ends when its TLS handshake or the header of a request, also of the next one, is not complete in
//!   [`HEADER`], when it accepts no byte of a response for [`STALL`], and in any case after [`TOTAL`].
//! - The connection of a host that lost power ends: TCP keepalive and user timeout.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::serve::Listener;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use hyper_util::service::TowerToHyperService;
use socket2::{SockRef, TcpKeepalive};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_io_timeout::TimeoutStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;

use super::connection_limit::{ConnectionLimit, Slot};

/// Connections of one peer of `metalform serve`. apt opens one, containerd three for each image that it pulls.
pub const PER_PEER: usize = 32;
/// Connections of all peers of `metalform serve`: far below the unit's `LimitNOFILE`, as each may have a file or the registry open too.
pub const IN_ALL: usize = 512;
/// Deadline of a TLS handshake, and of the header of a request, counted from the response before it.
pub const HEADER: Duration = Duration::from_secs(10);
/// How long a peer may accept no byte of a response.
pub const STALL: Duration = Duration::from_secs(60);
/// Deadline of a connection. Package managers and containerd connect again.
pub const TOTAL: Duration = Duration::from_secs(3600);
/// How long responses in progress may take after a shutdown.
pub const DRAIN: Duration = Duration::from_secs(20);
/// Largest buffer of a connection, and with it the largest header of a request.
const BUFFER: usize = 64 * 1024;

/// Serves until `shutdown` is ready; responses in progress are completed, for at most [`DRAIN`].
pub(super) async fn serve(
    mut listener: TcpListener,
    tls: ServerConfig,
    router: Router,
    limit: ConnectionLimit,
    shutdown: impl Future<Output = ()> + Send,
) {
    let server = Server {
        tls: TlsAcceptor::from(Arc::new(tls)),
        http: http(),
        service: TowerToHyperService::new(router),
    };
    let graceful = GracefulShutdown::new();
    // Connections that remain are closed when it is dropped.
    let mut connections = JoinSet::new();
    let mut shutdown = pin!(shutdown);
    loop {
        tokio::select! {
            // axum's own, which waits when no file descriptor is available.
            (stream, peer) = Listener::accept(&mut listener) => match limit.take(peer.ip()) {
                Some(slot) => {
                    drop(connections.spawn(server.clone().connection(stream, peer, slot, graceful.watcher())));
                }
                None => tracing::debug!(%peer, "connection closed: too many connections"),
            },
            Some(_) = connections.join_next() => {}
            () = &mut shutdown => break,
        }
    }
    drop(listener);
    if timeout(DRAIN, graceful.shutdown()).await.is_err() {
        tracing::warn!("connections still open {} s after shutdown are closed", DRAIN.as_secs());
    }
}

fn http() -> auto::Builder<TokioExecutor> {
    let mut http = auto::Builder::new(TokioExecutor::new()).http1_only();
    http.http1().timer(TokioTimer::new()).header_read_timeout(HEADER).max_buf_size(BUFFER);
    http
}

#[derive(Clone)]
struct Server {
    tls: TlsAcceptor,
    http: auto::Builder<TokioExecutor>,
    service: TowerToHyperService<Router>,
}

impl Server {
    async fn connection(self, stream: TcpStream, peer: SocketAddr, _slot: Slot, watcher: Watcher) {
        if let Err(error) = detect_dead_peer(&stream) {
            tracing::debug!(%peer, %error, "cannot set TCP keepalive");
        }
        // Below TLS, where each byte that the peer accepts is seen.
        let mut stream = TimeoutStream::new(stream);
        stream.set_write_timeout(Some(STALL));
        let stream = match timeout(HEADER, self.tls.accept(Box::pin(stream))).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => return tracing::debug!(%peer, %error, "TLS handshake failed"),
            Err(_) => return tracing::debug!(%peer, "TLS handshake timed out"),
        };
        let connection = self.http.serve_connection(TokioIo::new(stream), self.service);
        match timeout(TOTAL, watcher.watch(connection)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::debug!(%peer, %error, "connection ended"),
            Err(_) => tracing::debug!(%peer, "connection closed after {} s", TOTAL.as_secs()),
        }
    }
}

/// A peer that vanished is noticed after 60 s, whether anything is sent to it or not.
fn detect_dead_peer(stream: &TcpStream) -> io::Result<()> {
    let second = Duration::from_secs;
    let keepalive = TcpKeepalive::new().with_time(second(30)).with_interval(second(10)).with_retries(3);
    let socket = SockRef::from(stream);
    socket.set_tcp_keepalive(&keepalive)?;
    socket.set_tcp_user_timeout(Some(STALL))
}
