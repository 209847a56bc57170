//! Slow links, dead ones, and those that break at any point.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use metalform::model::ssh_target::SshTarget;
use metalform::transport::Transport;
use metalform::transport::error::TransportError;

use crate::link::{Direction, Link, Weather};
use crate::openssh::Sshd;
use crate::server::{Behaviour, Server};
use crate::site::Site;
use crate::{printed, program, run};

#[tokio::test]
async fn a_first_program_takes_no_more_round_trips_than_with_ssh_and_a_second_one_two() {
    let site = Site::new();
    let sshd = Sshd::start(&site, &[]).await;
    let weather = Weather { delay: Duration::from_millis(20), cut: None };
    let link = Link::to(sshd.port, weather).await;
    let transport = site.connect(SshTarget { port: link.port, ..sshd.target(&site) });
    assert_eq!(printed(run(&transport, "echo in").await), "in\n");
    let first = link.round_trips();
    assert_eq!(printed(run(&transport, "echo in").await), "in\n");
    let second = link.round_trips() - first;

    let theirs = Link::to(sshd.port, weather).await;
    let (identity, port) = (site.identity.display().to_string(), theirs.port.to_string());
    let arguments = [
        "-F",
        "none",
        "-o",
        "BatchMode=yes",
        "-o",
        "IdentitiesOnly=yes",
        "-o",
        "StrictHostKeyChecking=no",
        "-o",
        "UserKnownHostsFile=/dev/null",
        "-i",
        &identity,
        "-p",
        &port,
        "-l",
        &sshd.user,
        "127.0.0.1",
        "sh",
    ];
    let mut command = tokio::process::Command::new("ssh");
    let done = command.args(arguments).stdin(Stdio::null()).stderr(Stdio::null()).status().await.unwrap();
    assert!(done.success());
    // Greeting, key exchange, service, question for the key, signature, channel, program; one more where a greeting and
    // what follows it cross, and one for the end of the channel, which nobody waits for.
    assert!(first <= 9, "{first}");
    assert!(first <= theirs.round_trips(), "{first}, and {} with ssh", theirs.round_trips());
    assert!(second <= 3, "{second}");
}

#[tokio::test]
async fn a_link_that_breaks_at_any_point_is_no_host_s_fault_and_the_next_run_goes_through() {
    let script = "wc -c; exec head -c 200000 /dev/zero";
    let payload = vec![7; 200_000];
    let site = Site::new();
    let server = Server::start(Behaviour::default()).await;
    let whole = Link::to(server.port, Weather::default()).await;
    site.connect(site.target(whole.port)).run(&program(script, &payload), &mut |_| ()).await.unwrap();
    let (sent, received) = whole.bytes();
    for (direction, total) in [(Direction::ToServer, sent), (Direction::ToClient, received)] {
        // More of them where the connection is made than where mere payload flows.
        let early = [1, 20, 30, 300, 1000, 1300, 1600, 1800, 2000, 2200, 2500, 3000];
        for bytes in early.into_iter().chain([total / 3, total * 2 / 3]) {
            let link =
                Link::to(server.port, Weather { cut: Some((direction, bytes)), ..Weather::default() }).await;
            let transport = site.connect(site.target(link.port));
            let result = transport.run(&program(script, &payload), &mut |_| ()).await;
            assert!(
                matches!(&result, Err(TransportError::Unreachable { .. } | TransportError::Lost { .. })),
                "{direction:?} {bytes}: {result:?}"
            );
            let output = transport.run(&program(script, &payload), &mut |_| ()).await.unwrap();
            assert_eq!(output.stdout.len(), "200000\n".len() + 200_000, "{direction:?} {bytes}");
        }
    }
}

#[tokio::test]
async fn a_dead_connection_is_noticed_while_a_program_runs_and_a_quiet_host_is_not_disconnected() {
    let site = Site::new();
    let server = Server::start(Behaviour::default()).await;
    let client = site.client().with_keepalive(Duration::from_millis(200));
    let transport = site.connect_with(client, site.target(server.port));
    // Quiet for longer than a dead connection takes to be noticed.
    assert_eq!(printed(run(&transport, "sleep 2; echo alive").await), "alive\n");
    let mut frozen = None;
    let result = transport
        .run(&program("echo started; exec sleep 60", b""), &mut |_| {
            server.freeze_connections();
            frozen = Some(Instant::now());
        })
        .await;
    assert!(
        matches!(&result, Err(TransportError::Lost { reason, .. }) if reason == "no answer to keepalive requests"),
        "{result:?}"
    );
    assert!(frozen.unwrap().elapsed() < Duration::from_secs(5), "{:?}", frozen.unwrap().elapsed());
    assert_eq!(printed(run(&transport, "echo back").await), "back\n");
    assert_eq!(server.logins(), 2);
}

#[tokio::test]
async fn a_dead_connection_is_noticed_while_a_large_payload_is_sent() {
    let site = Site::new();
    let server = Server::start(Behaviour::default()).await;
    let client = site.client().with_keepalive(Duration::from_millis(200));
    let transport = site.connect_with(client, site.target(server.port));
    let program = program("echo started; exec cat", &vec![0; 64 << 20]);
    let mut freeze = |_: &str| server.freeze_connections();
    let run = transport.run(&program, &mut freeze);
    let result = tokio::time::timeout(Duration::from_secs(10), run).await.unwrap();
    assert!(matches!(&result, Err(TransportError::Lost { .. })), "{:?}", result.map(|output| output.status));
}

#[tokio::test]
async fn a_dead_host_behind_a_bastion_is_noticed_while_a_large_payload_is_sent() {
    let site = Site::new();
    let (bastion, server) =
        tokio::join!(Server::start(Behaviour::default()), Server::start(Behaviour::default()));
    let client = site.client().with_keepalive(Duration::from_millis(500)).with_stuck(Duration::from_secs(3));
    let target = SshTarget { bastion: Some(Box::new(site.target(bastion.port))), ..site.target(server.port) };
    let transport = site.connect_with(client, target);
    // Quiet for longer than that.
    assert_eq!(printed(run(&transport, "sleep 4; echo alive").await), "alive\n");
    let program = program("echo started; exec cat", &vec![0; 64 << 20]);
    let mut freeze = |_: &str| server.freeze_connections();
    let running = transport.run(&program, &mut freeze);
    let result = tokio::time::timeout(Duration::from_secs(20), running).await.unwrap();
    assert!(matches!(&result, Err(TransportError::Lost { .. })), "{:?}", result.map(|output| output.status));
    assert_eq!(printed(run(&transport, "echo back").await), "back\n");
    assert_eq!(bastion.logins(), 1);
}

#[test]
fn the_tools_of_these_tests_are_there() {
    for tool in ["ssh", "ssh-agent", "ssh-keygen"] {
        let found = Command::new("which").arg(tool).stdout(Stdio::null()).status().unwrap();
        assert!(found.success(), "{tool} is missing: install openssh-client, which these tests need");
    }
}
