//! Clients that want nothing but connections.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::JoinSet;
use tokio::time::{interval, timeout};

use super::server::{Dialer, Server};

/// Between connections of a client, and between the bytes that a slow one sends or reads.
const BEAT: Duration = Duration::from_secs(3);
/// How long a client waits for a connection before it counts as begun.
const PATIENCE: Duration = Duration::from_secs(5);

/// Clients that connect again whenever they are disconnected.
pub struct Attack(JoinSet<()>);

/// What a client does with a connection.
#[derive(Clone, Copy)]
enum Client {
    Idle,
    SlowHeader,
    SlowReader,
}

impl Attack {
    /// Returns once each client has connected, or has waited for it for some time.
    pub async fn begin(server: &Server, from: &str, idle: usize, slow: usize) -> Self {
        let dialer = server.dialer(from);
        let begun = Arc::new(AtomicUsize::new(0));
        let slow_ones = (0..slow).map(|n| if n % 2 == 0 { Client::SlowHeader } else { Client::SlowReader });
        let clients: Vec<Client> = slow_ones.chain((0..idle).map(|_| Client::Idle)).collect();
        let all = clients.len();
        let mut running = JoinSet::new();
        for client in clients {
            running.spawn(run(client, dialer.clone(), Arc::clone(&begun)));
        }
        let mut beat = interval(Duration::from_millis(100));
        let complete = async {
            while begun.load(Ordering::Relaxed) < all {
                beat.tick().await;
            }
        };
        timeout(Duration::from_secs(180), complete).await.expect("the clients do not get to connect");
        Self(running)
    }

    pub fn end(mut self) {
        self.0.abort_all();
    }
}

async fn run(client: Client, dialer: Dialer, begun: Arc<AtomicUsize>) {
    let mut beat = interval(BEAT);
    let mut first = true;
    loop {
        beat.tick().await;
        let connected = timeout(PATIENCE, dialer.connect()).await;
        if std::mem::take(&mut first) {
            begun.fetch_add(1, Ordering::Relaxed);
        }
        let Ok(Ok(mut stream)) = connected else { continue };
        // An error is the end of the connection, which is what this waits for.
        let _ended = match client {
            Client::Idle => stream.read(&mut [0; 1]).await.map(drop),
            Client::SlowHeader => slow_header(&mut stream).await,
            Client::SlowReader => slow_reader(&mut stream).await,
        };
    }
}

async fn slow_header(stream: &mut (impl AsyncWriteExt + Unpin)) -> std::io::Result<()> {
    let mut beat = interval(BEAT);
    stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: a\r\nX: ").await?;
    loop {
        beat.tick().await;
        stream.write_all(b"x").await?;
        stream.flush().await?;
    }
}

async fn slow_reader(stream: &mut (impl AsyncReadExt + AsyncWriteExt + Unpin)) -> std::io::Result<()> {
    let mut beat = interval(BEAT);
    stream.write_all(b"GET /bundles/1.35.4/apt/pool/large.deb HTTP/1.1\r\nHost: a\r\n\r\n").await?;
    while stream.read(&mut [0; 1]).await? > 0 {
        beat.tick().await;
    }
    Ok(())
}

/// The test has more sockets than a process may have by default.
pub fn allow_many_sockets() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).unwrap();
}
