//! `metalform serve` as a process: with more clients than it has file descriptors for, and when it is terminated.

#![expect(clippy::unwrap_used, reason = "all of it is test code; clippy knows only test functions")]

#[path = "serve/clients.rs"]
mod clients;
#[path = "support/pinned_tls.rs"]
mod pinned_tls;
#[path = "serve/server.rs"]
mod server;

use std::time::{Duration, Instant};

use metalform::serve::connections::{HEADER, PER_PEER};
use tokio::io::AsyncReadExt;
use tokio::time::timeout;

use clients::{Attack, allow_many_sockets};
use server::{LARGE, Server};

/// Of a request that is not starved, on a machine that does other things too.
const SOON: Duration = Duration::from_secs(30);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_peer_with_thousands_of_connections_starves_no_other() {
    allow_many_sockets();
    let server = Server::start().await;
    let attack = Attack::begin(&server, "127.0.0.1", 2_000, 200).await;

    let other = server.client("127.0.0.2");
    for _ in 0..20 {
        let small = other.get(server.url("/healthz")).send();
        let response = timeout(SOON, small).await.expect("a small request is starved").unwrap();
        assert_eq!(response.text().await.unwrap(), "ok\n");
    }
    let large = async {
        other
            .get(server.url("/bundles/1.35.4/apt/pool/large.deb"))
            .send()
            .await
            .unwrap()
            .bytes()
            .await
            .unwrap()
    };
    let large = timeout(SOON, large).await.expect("a download is starved");
    assert_eq!(large.len(), LARGE);

    assert!(server.open_files() < PER_PEER + 64, "{} open files", server.open_files());
    let peak = server.peak_memory();
    assert!(peak < 100 << 20, "{} MiB", peak >> 20);
    attack.end();
}

#[tokio::test]
async fn a_connection_without_a_request_is_closed() {
    let server = Server::start().await;
    let began = Instant::now();
    let mut idle = server.connect("127.0.0.1").await.unwrap();
    let read = timeout(HEADER + SOON, idle.read(&mut [0; 1])).await.expect("the connection is still open");
    assert!(matches!(read, Ok(0) | Err(_)), "{read:?}");
    assert!(began.elapsed() >= HEADER);
}

#[tokio::test]
async fn a_download_in_progress_is_completed_after_sigterm() {
    let mut server = Server::start().await;
    let mut download = server
        .client("127.0.0.1")
        .get(server.url("/bundles/1.35.4/apt/pool/large.deb"))
        .send()
        .await
        .unwrap();
    let mut received = download.chunk().await.unwrap().unwrap().len();
    server.terminate();
    while let Some(chunk) = timeout(SOON, download.chunk()).await.expect("the download stalls").unwrap() {
        received += chunk.len();
    }
    assert_eq!(received, LARGE);
    assert!(server.ended().success());
}
