//! The SSH transport against servers that behave well and badly: one in this process, and OpenSSH's.

#![expect(clippy::unwrap_used, reason = "in a test an error is a failure")]

#[path = "ssh/keys.rs"]
mod keys;
#[path = "ssh/latency.rs"]
mod latency;
#[path = "ssh/link.rs"]
mod link;
#[path = "ssh/openssh.rs"]
mod openssh;
#[path = "ssh/pool.rs"]
mod pool;
#[path = "ssh/server.rs"]
mod server;
#[path = "ssh/shells.rs"]
mod shells;
#[path = "ssh/site.rs"]
mod site;
#[path = "ssh/sudo.rs"]
mod sudo;
#[path = "ssh/verified_keys.rs"]
mod verified_keys;

use std::sync::Arc;
use std::time::Duration;

use metalform::model::ssh_target::{HostKeyPolicy, SshTarget};
use metalform::transport::error::TransportError;
use metalform::transport::ssh::SshTransport;
use metalform::transport::{Output, Program, Transport};

use self::server::{Behaviour, Server, Sudo};
use self::site::Site;

/// For hosts that are expected not to answer.
const SHORT: Duration = Duration::from_secs(1);

async fn run(transport: &SshTransport, script: &str) -> Result<Output, TransportError> {
    transport.run(&program(script, b""), &mut |_| ()).await
}

fn program(script: &str, payload: &[u8]) -> Program {
    Program { script: script.to_owned(), payload: payload.to_vec() }
}

fn printed(result: Result<Output, TransportError>) -> String {
    String::from_utf8(result.unwrap().stdout).unwrap()
}

#[tokio::test]
async fn a_program_goes_there_and_its_output_and_status_come_back() {
    let site = Site::new();
    let server = Server::start(Behaviour::default()).await;
    let transport = site.transport(&server);
    let mut lines = Vec::new();
    let payload = vec![b'x'; 3 << 20];
    let program = program("echo one; echo two >&2; wc -c; exit 42", &payload);
    let output = transport.run(&program, &mut |line| lines.push(line.to_owned())).await.unwrap();
    assert_eq!(output.status, 42);
    assert_eq!(String::from_utf8_lossy(&output.stdout), format!("one\n{}\n", payload.len()));
    assert_eq!(output.stderr, b"two\n");
    assert_eq!(lines, ["one", &payload.len().to_string()]);
}

#[tokio::test]
async fn a_program_that_reads_nothing_does_not_wait_for_its_payload() {
    let site = Site::new();
    let server = Server::start(Behaviour::default()).await;
    let output =
        site.transport(&server).run(&program("exit 3", &vec![0; 16 << 20]), &mut |_| ()).await.unwrap();
    assert_eq!(output.status, 3);
}

#[tokio::test]
async fn programs_share_one_connection_also_when_they_overlap() {
    let site = Site::new();
    let server = Server::start(Behaviour::default()).await;
    let transport = site.transport(&server);
    let scripts: Vec<String> = (0..20).map(|number| format!("echo {number}")).collect();
    let results = futures::future::join_all(scripts.iter().map(|script| run(&transport, script))).await;
    for (number, result) in results.into_iter().enumerate() {
        assert_eq!(printed(result), format!("{number}\n"));
    }
    assert_eq!(server.logins(), 1);
}

#[tokio::test]
async fn login_files_that_print_do_not_disturb() {
    let site = Site::new();
    let server = Server::start(Behaviour {
        banner: Some("Authorised use only.\n".repeat(50)),
        login_prints: "echo welcome; echo 'no line break' | tr -d '\\n'; echo oops >&2; ".to_owned(),
        ..Behaviour::default()
    })
    .await;
    let output = run(&site.transport(&server), "echo ok; echo err >&2").await.unwrap();
    assert_eq!((output.stdout.as_slice(), output.stderr.as_slice()), (&b"ok\n"[..], &b"err\n"[..]));
}

#[tokio::test]
async fn a_host_that_prints_garbage_for_ever_is_given_up() {
    let site = Site::new();
    let server =
        Server::start(Behaviour { login_prints: "exec cat /dev/zero; ".to_owned(), ..Behaviour::default() })
            .await;
    let error = run(&site.transport(&server), "true").await.unwrap_err();
    assert!(matches!(&error, TransportError::NoShell { reason, .. } if reason.contains("64 MiB")), "{error}");
}

#[tokio::test]
async fn an_account_without_a_shell_is_recognised() {
    let site = Site::new();
    let login_prints = "echo This account is currently not available.; exit 1; ".to_owned();
    let server = Server::start(Behaviour { login_prints, ..Behaviour::default() }).await;
    let error = run(&site.transport(&server), "true").await.unwrap_err();
    assert!(
        matches!(&error, TransportError::NoShell { reason, .. } if reason.contains("not available")),
        "{error}"
    );
    let server = Server::start(Behaviour { refuses_commands: true, ..Behaviour::default() }).await;
    let error = run(&site.transport(&server), "true").await.unwrap_err();
    assert!(matches!(&error, TransportError::NoShell { .. }), "{error}");
}

#[tokio::test]
async fn a_refused_key_is_permanent_and_names_the_keys() {
    let site = Site::new();
    let server = Server::start(Behaviour { refuses_keys: true, ..Behaviour::default() }).await;
    let error = run(&site.transport(&server), "true").await.unwrap_err();
    let keys = site.identity.display().to_string();
    assert_eq!(
        error,
        TransportError::AuthenticationRefused { host: server.address(), user: "admin".to_owned(), keys }
    );
    assert!(error.is_permanent());
}

#[tokio::test]
async fn a_host_that_never_answers_is_given_up_at_the_deadline() {
    let site = Site::new();
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let target = site.target(silent.local_addr().unwrap().port());
    let error =
        run(&site.connect_with(site.client().with_deadline(SHORT), target), "true").await.unwrap_err();
    assert!(matches!(error, TransportError::Unreachable { .. }), "{error}");
    assert!(!error.is_permanent());
}

#[tokio::test]
async fn programs_that_wait_for_the_same_attempt_share_its_failure_and_later_ones_try_again() {
    let site = Site::new();
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let target = site.target(silent.local_addr().unwrap().port());
    let transport = site.connect_with(site.client().with_deadline(SHORT), target);
    let attempts = |programs: usize| {
        let (silent, transport) = (&silent, &transport);
        async move {
            let mut accepted = Vec::new();
            let side_by_side = futures::future::join_all((0..programs).map(|_| run(transport, "true")));
            tokio::pin!(side_by_side);
            loop {
                tokio::select! {
                    stream = silent.accept() => accepted.push(stream.unwrap()),
                    results = &mut side_by_side => {
                        for result in results {
                            let error = result.unwrap_err();
                            assert!(matches!(error, TransportError::Unreachable { .. }), "{error}");
                        }
                        return accepted.len();
                    }
                }
            }
        }
    };
    assert_eq!(attempts(4).await, 1);
    assert_eq!(attempts(2).await, 1);
}

#[tokio::test]
async fn a_closed_port_is_unreachable() {
    let site = Site::new();
    let port = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
    let error = run(&site.connect(site.target(port)), "true").await.unwrap_err();
    assert!(
        matches!(&error, TransportError::Unreachable { reason, .. } if reason.contains("refused")),
        "{error}"
    );
}

#[tokio::test]
async fn a_connection_that_breaks_is_lost_and_the_next_run_connects_anew() {
    let site = Site::new();
    let server = Server::start(Behaviour::default()).await;
    let transport = site.transport(&server);
    let mut cut = false;
    let result = transport
        .run(&program("echo started; exec cat", &vec![0; 64 << 20]), &mut |_| {
            if !std::mem::replace(&mut cut, true) {
                server.cut_connections();
            }
        })
        .await;
    assert!(matches!(&result, Err(TransportError::Lost { .. })), "{result:?}");
    assert_eq!(printed(run(&transport, "echo back").await), "back\n");
    assert_eq!(server.logins(), 2);
}

#[tokio::test]
async fn a_connection_that_broke_between_two_runs_is_no_failure() {
    let site = Site::new();
    let server = Server::start(Behaviour::default()).await;
    let transport = site.transport(&server);
    assert_eq!(printed(run(&transport, "echo one").await), "one\n");
    server.cut_connections();
    assert_eq!(printed(run(&transport, "echo two").await), "two\n");
    assert_eq!(server.logins(), 2);
}

#[tokio::test]
async fn a_connection_that_hangs_is_replaced_before_anything_is_sent() {
    let site = Site::new();
    let server = Server::start(Behaviour::default()).await;
    let transport = site.connect_with(site.client().with_deadline(SHORT), site.target(server.port));
    assert_eq!(printed(run(&transport, "echo one").await), "one\n");
    server.freeze_connections();
    assert_eq!(printed(run(&transport, "echo two").await), "two\n");
    assert_eq!(server.logins(), 2);
}

#[tokio::test]
async fn a_run_that_is_given_up_leaves_the_connection_usable() {
    let site = Site::new();
    let server = Server::start(Behaviour::default()).await;
    let transport = site.transport(&server);
    let given_up = tokio::time::timeout(SHORT, run(&transport, "exec sleep 60")).await;
    assert!(given_up.is_err());
    assert_eq!(printed(run(&transport, "echo ok").await), "ok\n");
    assert_eq!(server.logins(), 1);
}

#[tokio::test]
async fn a_pinned_key_is_accepted_and_any_other_one_is_a_mismatch() {
    let site = Site::new();
    let (right, wrong) =
        (Server::start(Behaviour::default()).await, Server::start(Behaviour::default()).await);
    let pinned = |server: &Server| {
        let mut target = site.target(server.port);
        target.host_key = HostKeyPolicy::Pinned(right.public_key());
        site.connect(target)
    };
    assert_eq!(printed(run(&pinned(&right), "echo ok").await), "ok\n");
    let error = run(&pinned(&wrong), "echo ok").await.unwrap_err();
    assert!(
        matches!(&error, TransportError::HostKeyMismatch { expected, .. } if expected.ends_with("(pinned)")),
        "{error}"
    );
    assert!(error.is_permanent());
    assert!(!site.known_hosts.exists());
}

#[tokio::test]
async fn a_new_key_is_remembered_and_another_one_on_the_second_visit_is_a_mismatch() {
    let site = Site::new();
    let server = Server::start(Behaviour::default()).await;
    let port = server.port;
    let with = |policy: HostKeyPolicy| {
        let mut target = site.target(port);
        target.host_key = policy;
        site.connect(target)
    };
    let error = run(&with(HostKeyPolicy::Known), "true").await.unwrap_err();
    assert!(matches!(error, TransportError::HostKeyUnknown { .. }), "{error}");
    for policy in [HostKeyPolicy::AcceptNew, HostKeyPolicy::AcceptNew, HostKeyPolicy::Known] {
        run(&with(policy), "true").await.unwrap();
    }
    assert_eq!(site.remembered().lines().count(), 1);
    server.stop().await;
    let _impostor = Server::start_on(port, Behaviour::default()).await;
    for policy in [HostKeyPolicy::AcceptNew, HostKeyPolicy::Known] {
        let error = run(&with(policy), "true").await.unwrap_err();
        assert!(matches!(error, TransportError::HostKeyMismatch { .. }), "{error}");
    }
}

#[tokio::test]
async fn sudo_that_refuses_is_recognised_without_another_round_trip() {
    for (sudo, expected) in [
        (Sudo::AsksForPassword, "sudo: a password is required"),
        (Sudo::NotInSudoers, "admin is not in the sudoers file."),
        (Sudo::Missing, "sudo: not found"),
    ] {
        let site = Site::new();
        let server = Server::start(Behaviour { sudo, ..Behaviour::default() }).await;
        let mut target = site.target(server.port);
        target.sudo = true;
        let error = run(&site.connect(target), "echo ran").await.unwrap_err();
        assert!(
            matches!(&error, TransportError::SudoRefused { reason, .. } if reason.contains(expected)),
            "{error}"
        );
        assert_eq!(server.commands(), 1);
    }
}

#[tokio::test]
async fn sudo_that_works_does_not_show() {
    let site = Site::new();
    let server = Server::start(Behaviour { sudo: Sudo::Works, ..Behaviour::default() }).await;
    let mut target = site.target(server.port);
    target.sudo = true;
    let program = program("echo ran; cat; echo err >&2; exit 5", b"payload");
    let output = site.connect(target).run(&program, &mut |_| ()).await.unwrap();
    assert_eq!(output, Output { status: 5, stdout: b"ran\npayload".to_vec(), stderr: b"err\n".to_vec() });
}

#[tokio::test]
async fn hosts_behind_one_bastion_share_the_connection_to_it() {
    let site = Site::new();
    let bastion = Server::start(Behaviour::default()).await;
    let mut hosts = Vec::new();
    for _ in 0..12 {
        hosts.push(Server::start(Behaviour::default()).await);
    }
    let client = Arc::new(site.client());
    let through = |host: &Server| {
        let target =
            SshTarget { bastion: Some(Box::new(site.target(bastion.port))), ..site.target(host.port) };
        SshTransport::of(Arc::clone(&client), target)
    };
    let transports: Vec<_> = hosts.iter().map(through).collect();
    let results = futures::future::join_all(transports.iter().map(|host| run(host, "echo in"))).await;
    for result in results {
        assert_eq!(printed(result), "in\n");
    }
    assert_eq!(bastion.logins(), 1);
    assert!(hosts.iter().all(|host| host.logins() == 1));
    // It reboots: that is noticed when it is next needed, and it is connected to once more.
    bastion.cut_connections();
    let again: Vec<_> = hosts.iter().map(through).collect();
    for result in futures::future::join_all(again.iter().map(|host| run(host, "echo in"))).await {
        assert_eq!(printed(result), "in\n");
    }
    assert_eq!(bastion.logins(), 2);
}

#[tokio::test]
async fn a_bastion_that_refuses_is_asked_once_for_all_hosts_behind_it() {
    let site = Site::new();
    let bastion = Server::start(Behaviour { refuses_keys: true, ..Behaviour::default() }).await;
    let client = Arc::new(site.client());
    let results = futures::future::join_all((1..20).map(|port| {
        let target = SshTarget { bastion: Some(Box::new(site.target(bastion.port))), ..site.target(port) };
        let transport = SshTransport::of(Arc::clone(&client), target);
        async move { run(&transport, "true").await }
    }))
    .await;
    for result in results {
        let error = result.unwrap_err();
        assert!(
            matches!(&error, TransportError::AuthenticationRefused { host, .. } if *host == bastion.address()),
            "{error}"
        );
    }
    assert_eq!(bastion.attempts(), 1);
}

#[tokio::test]
async fn a_host_behind_two_bastions_is_reached() {
    let site = Site::new();
    let (outer, inner, host) = tokio::join!(
        Server::start(Behaviour::default()),
        Server::start(Behaviour::default()),
        Server::start(Behaviour::default())
    );
    let mut near = site.target(inner.port);
    near.bastion = Some(Box::new(site.target(outer.port)));
    let mut target = site.target(host.port);
    target.bastion = Some(Box::new(near));
    let transport = site.connect(target.clone());
    assert_eq!(printed(run(&transport, "echo through").await), "through\n");
    assert_eq!((outer.logins(), inner.logins(), host.logins()), (1, 1, 1));
    assert_eq!((outer.commands(), inner.commands(), host.commands()), (0, 0, 1));
    host.stop().await;
    let error = run(&site.connect(target), "true").await.unwrap_err();
    let expected = format!("bastion 127.0.0.1:{}", inner.port);
    assert!(
        matches!(&error, TransportError::Unreachable { reason, .. } if reason.contains(&expected)),
        "{error}"
    );
}
