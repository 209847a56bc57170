//! sudo with a password: with a sudo of the test's own that behaves as `sudo -S` does.

use std::sync::Arc;

use metalform::model::ssh_target::SshTarget;
use metalform::transport::error::TransportError;
use metalform::transport::secret::Secret;
use metalform::transport::ssh::{SshClient, SshTransport};
use metalform::transport::{Output, Transport};

use crate::server::{Behaviour, Server, Sudo};
use crate::site::Site;
use crate::{program, run};

fn client(site: &Site, password: &str) -> Arc<SshClient> {
    Arc::new(site.client().with_sudo_password(Some(Secret::new(password))))
}

fn connect(site: &Site, client: &Arc<SshClient>, server: &Server) -> SshTransport {
    SshTransport::of(Arc::clone(client), SshTarget { sudo: true, ..site.target(server.port) })
}

#[tokio::test]
async fn the_password_is_given_once_and_neither_script_nor_payload_is_taken_for_it() {
    let site = Site::new();
    for (sudo, answers) in [(Sudo::AsksOnInput, vec!["open sesame"]), (Sudo::Works, vec![])] {
        let server = Server::start(Behaviour { sudo, ..Behaviour::default() }).await;
        let transport = connect(&site, &client(&site, "open sesame"), &server);
        let payload = vec![b'x'; 1 << 20];
        let program = program("cat; echo err >&2; exit 5", &payload);
        let output = transport.run(&program, &mut |_| ()).await.unwrap();
        let expected = Output { status: 5, stdout: payload, stderr: b"err\n".to_vec() };
        assert!(output == expected, "{:?} {}", output.status, String::from_utf8_lossy(&output.stderr));
        assert_eq!(server.sudo_answers(), answers);
        assert!(server.heard().iter().all(|command| !command.contains("sesame")), "{:?}", server.heard());
    }
}

#[tokio::test]
async fn a_wrong_password_is_tried_once_in_all_and_is_a_permanent_error() {
    let site = Site::new();
    let client = client(&site, "wrong");
    let (one, other) = tokio::join!(
        Server::start(Behaviour { sudo: Sudo::AsksOnInput, ..Behaviour::default() }),
        Server::start(Behaviour { sudo: Sudo::AsksOnInput, ..Behaviour::default() })
    );
    let transports = [connect(&site, &client, &one), connect(&site, &client, &other)];
    let errors =
        futures::future::join_all(transports.iter().map(|transport| run(transport, "echo ran"))).await;
    let mut reasons = Vec::new();
    for error in errors.into_iter().chain([run(&transports[0], "echo ran").await]) {
        let error = error.unwrap_err();
        assert!(error.is_permanent());
        let TransportError::SudoRefused { reason, .. } = error else { panic!("{error}") };
        reasons.push(reason);
    }
    let given = [one.sudo_answers(), other.sudo_answers()].concat();
    assert_eq!(given, ["wrong"]);
    assert_eq!(
        reasons.iter().filter(|reason| *reason == "sudo refuses the password").count(),
        1,
        "{reasons:?}"
    );
    let spared = reasons.iter().filter(|reason| reason.contains("refused the one that was given")).count();
    assert_eq!(spared, 2, "{reasons:?}");
}

#[tokio::test]
async fn what_sudo_objects_to_is_shown_also_when_a_password_was_given() {
    let site = Site::new();
    for (sudo, expected) in [
        (Sudo::WantsTerminal, "sudo: sorry, you must have a tty to run sudo"),
        (Sudo::NotInSudoers, "admin is not in the sudoers file."),
        (Sudo::GivesUp, "sudo: 1 incorrect password attempt"),
    ] {
        let server = Server::start(Behaviour { sudo, ..Behaviour::default() }).await;
        let error = run(&connect(&site, &client(&site, "wrong"), &server), "true").await.unwrap_err();
        assert!(
            matches!(&error, TransportError::SudoRefused { reason, .. } if reason == expected),
            "{error}"
        );
    }
}
