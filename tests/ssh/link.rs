//! A link between the transport and a server, that delays, breaks, and counts.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    ToServer,
    ToClient,
}

/// What the link does to its first connection; later ones pass.
#[derive(Debug, Clone, Copy, Default)]
pub struct Weather {
    /// One way.
    pub delay: Duration,
    /// The link breaks when so many bytes went this way.
    pub cut: Option<(Direction, usize)>,
}

pub struct Link {
    pub port: u16,
    counted: Arc<Counted>,
}

#[derive(Default)]
struct Counted {
    to_server: AtomicUsize,
    to_client: AtomicUsize,
    /// Who spoke last, and how often the client spoke after the server had.
    turns: Mutex<(Option<Direction>, usize)>,
}

impl Link {
    pub async fn to(server: u16, weather: Weather) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let counted = Arc::new(Counted::default());
        let counting = Arc::clone(&counted);
        tokio::spawn(async move {
            let mut weather = weather;
            loop {
                let (client, _) = listener.accept().await.unwrap();
                let server = TcpStream::connect(("127.0.0.1", server)).await.unwrap();
                client.set_nodelay(true).unwrap();
                server.set_nodelay(true).unwrap();
                let ((client_reads, client_writes), (server_reads, server_writes)) =
                    (client.into_split(), server.into_split());
                let (cut, _) = watch::channel(false);
                for (direction, from, to) in [
                    (Direction::ToServer, client_reads, server_writes),
                    (Direction::ToClient, server_reads, client_writes),
                ] {
                    let counted = Arc::clone(&counting);
                    let (cut, mut is_cut) = (cut.clone(), cut.subscribe());
                    tokio::spawn(async move {
                        tokio::select! {
                            () = carry(direction, from, to, (weather, counted)) => {
                                // The end of one direction leaves the other; a cut does not.
                                if weather.cut.is_some_and(|(cut, _)| cut == direction) {
                                    cut.send_replace(true);
                                }
                            }
                            _ = is_cut.wait_for(|cut| *cut) => (),
                        }
                    });
                }
                weather.cut = None;
            }
        });
        Self { port, counted }
    }

    /// Round trips so far: how often the client spoke after the server had spoken, and once for the first time.
    pub fn round_trips(&self) -> usize {
        self.counted.turns.lock().unwrap().1
    }

    /// Bytes to the server and to the client so far.
    pub fn bytes(&self) -> (usize, usize) {
        (self.counted.to_server.load(Ordering::SeqCst), self.counted.to_client.load(Ordering::SeqCst))
    }
}

/// Carries one direction until it ends or is cut.
async fn carry(
    direction: Direction,
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    (weather, counted): (Weather, Arc<Counted>),
) {
    let (sender, mut receiver) = mpsc::unbounded_channel::<(Instant, Vec<u8>)>();
    let reading = async move {
        let mut left = weather.cut.filter(|(cut, _)| *cut == direction).map(|(_, bytes)| bytes);
        let mut buffer = vec![0; 1 << 16];
        while let Ok(length @ 1..) = from.read(&mut buffer).await {
            let length = length.min(left.unwrap_or(length));
            {
                let mut turns = counted.turns.lock().unwrap();
                if direction == Direction::ToServer && turns.0 != Some(direction) {
                    turns.1 += 1;
                }
                turns.0 = Some(direction);
            }
            let bytes = match direction {
                Direction::ToServer => &counted.to_server,
                Direction::ToClient => &counted.to_client,
            };
            bytes.fetch_add(length, Ordering::SeqCst);
            sender.send((Instant::now() + weather.delay, buffer[..length].to_vec())).unwrap();
            left = left.map(|left| left - length);
            if left == Some(0) {
                return;
            }
        }
    };
    let writing = async move {
        while let Some((at, bytes)) = receiver.recv().await {
            sleep_until(at).await;
            if to.write_all(&bytes).await.is_err() {
                return;
            }
        }
    };
    tokio::join!(reading, writing);
}
