//! The connection pool: what the connections of one run share.

use std::sync::Arc;

use metalform::model::name::HostName;
use metalform::model::ssh_target::SshTarget;
use metalform::transport::Transport;
use metalform::transport::error::TransportError;
use metalform::transport::pool::ConnectionPool;
use metalform::transport::secret::Secret;

use crate::server::{Behaviour, RESOLVED_BY_BASTION, Server};
use crate::site::Site;
use crate::{printed, program, run};

fn name(text: &str) -> HostName {
    text.parse().unwrap()
}

async fn echo(transport: &Arc<dyn Transport>) -> String {
    printed(transport.run(&program("echo \"$SSH_CONNECTION here\"", b""), &mut |_| ()).await)
}

#[tokio::test]
async fn a_host_has_one_connection_whatever_runs_programs_on_it() {
    let site = Site::new();
    let server = Server::start(Behaviour::default()).await;
    let pool = ConnectionPool::new(site.client(), None);
    let transports: Vec<_> =
        (0..5).map(|_| pool.transport(&name("node-1"), &site.target(server.port))).collect();
    futures::future::join_all(transports.iter().map(echo)).await;
    assert_eq!(server.logins(), 1);
}

#[tokio::test]
async fn this_machine_is_reached_without_ssh() {
    let site = Site::new();
    let nowhere = site.target(1);
    let pool = ConnectionPool::new(site.client(), Some(name("node-1")));
    assert!(pool.is_local(&name("node-1")) && !pool.is_local(&name("node-2")));
    assert!(echo(&pool.transport(&name("node-1"), &nowhere)).await.contains("here"));
    let remote = pool.transport(&name("node-2"), &nowhere);
    let error = remote.run(&program("true", b""), &mut |_| ()).await.unwrap_err();
    assert!(matches!(error, TransportError::Unreachable { .. }), "{error}");
}

#[tokio::test]
async fn a_key_that_was_seen_for_the_first_time_is_reported_once() {
    let site = Site::new();
    let server = Server::start(Behaviour::default()).await;
    let target = site.target(server.port);
    for new in [true, false] {
        let pool = ConnectionPool::new(site.client(), None);
        assert_eq!(pool.host_keys(&name("node-1"), &target), []);
        printed(run(&pool.ssh(&target), "true").await);
        let keys = pool.host_keys(&name("node-1"), &target);
        assert_eq!(keys.len(), 1, "{keys:?}");
        assert_eq!((keys[0].address.as_str(), keys[0].new), (target.address().as_str(), new));
        assert!(keys[0].key.starts_with("ssh-ed25519 SHA256:"), "{keys:?}");
    }
}

#[tokio::test]
async fn without_remembering_a_new_key_counts_for_one_run_and_nothing_is_written() {
    let site = Site::new();
    let server = Server::start(Behaviour::default()).await;
    let (port, target) = (server.port, site.target(server.port));
    let pool = ConnectionPool::new(site.client().without_remembering(), None);
    // Another transport to the same host.
    let again = SshTarget { user: "other".to_owned(), ..target.clone() };
    for target in [&target, &again] {
        printed(run(&pool.ssh(target), "true").await);
        let keys = pool.host_keys(&name("node-1"), target);
        assert!(keys.len() == 1 && keys[0].new, "{keys:?}");
    }
    server.stop().await;
    let _impostor = Server::start_on(port, Behaviour::default()).await;
    let third = SshTarget { user: "third".to_owned(), ..target };
    let error = run(&pool.ssh(&third), "true").await.unwrap_err();
    assert!(
        matches!(&error, TransportError::HostKeyMismatch { expected, .. } if expected.ends_with("(in this run)")),
        "{error}"
    );
    assert!(!site.known_hosts.exists());
}

#[tokio::test]
async fn a_key_in_memory_logs_in_to_the_target_that_names_it() {
    let site = Site::new();
    let server = Server::start(Behaviour::default()).await;
    let pool = ConnectionPool::new(site.client(), None);
    let text = Secret::new(std::fs::read_to_string(&site.identity).unwrap());
    std::fs::remove_file(&site.identity).unwrap();
    let key = pool.hold_key("Secret kube-system/ops", &text).unwrap();
    let target = SshTarget { identity_files: vec![key], ..site.target(server.port) };
    assert_eq!(printed(run(&pool.ssh(&target), "echo in").await), "in\n");
    // Neither another target of this pool, nor another pool.
    let error = run(&pool.ssh(&site.target(server.port)), "true").await.unwrap_err();
    assert!(matches!(error, TransportError::IdentityUnreadable { .. }), "{error}");
    let other = ConnectionPool::new(site.client(), None);
    let error = run(&other.ssh(&target), "true").await.unwrap_err();
    assert!(error.to_string().contains("Secret kube-system/ops (SHA256:"), "{error}");
    assert!(!format!("{:?}", text).contains("OPENSSH"), "it is not printed");
}

#[tokio::test]
async fn a_name_that_only_the_bastion_resolves_is_reached_through_nested_bastions() {
    let site = Site::new();
    let (outer, inner, host) = tokio::join!(
        Server::start(Behaviour::default()),
        Server::start(Behaviour::default()),
        Server::start(Behaviour::default())
    );
    let named = |server: &Server, bastion: Option<SshTarget>| SshTarget {
        host: RESOLVED_BY_BASTION.to_owned(),
        bastion: bastion.map(Box::new),
        ..site.target(server.port)
    };
    let near = named(&inner, Some(site.target(outer.port)));
    let pool = ConnectionPool::new(site.client(), None);
    let transport = pool.ssh(&named(&host, Some(near.clone())));
    assert_eq!(printed(run(&transport, "echo through").await), "through\n");
    assert_eq!(printed(run(&pool.ssh(&near), "echo near").await), "near\n");
    assert_eq!((outer.commands(), inner.commands(), host.commands()), (0, 1, 1));
    assert_eq!(outer.logins(), 1);
    assert!(site.remembered().contains(&format!("[{RESOLVED_BY_BASTION}]:{}", host.port)));
    // Nothing here resolves the name.
    let direct = run(&pool.ssh(&named(&host, None)), "true").await.unwrap_err();
    assert!(matches!(direct, TransportError::Unreachable { .. }), "{direct}");
}
