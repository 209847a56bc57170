//! Host keys that the operator has verified, on the way through a bastion: what is compared is what is remembered, in
//! one connection.

use metalform::model::ssh_target::{HostKeyPolicy, SshTarget};
use metalform::transport::error::TransportError;
use russh::keys::{HashAlg, PublicKey};

use crate::server::{Behaviour, Server};
use crate::site::Site;
use crate::{printed, run};

fn fingerprint(server: &Server) -> String {
    PublicKey::from_openssh(&server.public_key()).unwrap().fingerprint(HashAlg::Sha256).to_string()
}

/// Of `host` through `bastion`, neither of which is known.
fn stranger(site: &Site, bastion: &Server, host: &Server) -> SshTarget {
    let unknown = |port| SshTarget { host_key: HostKeyPolicy::Known, ..site.target(port) };
    SshTarget { bastion: Some(Box::new(unknown(bastion.port))), ..unknown(host.port) }
}

fn accepting(target: &SshTarget, keys: &[String]) -> SshTarget {
    let keys: Vec<_> = keys.iter().map(|key| key.parse().unwrap()).collect();
    target.accepting(&keys).unwrap()
}

#[tokio::test]
async fn each_machine_on_the_way_is_accepted_by_its_own_key() {
    let site = Site::new();
    let (bastion, host) =
        tokio::join!(Server::start(Behaviour::default()), Server::start(Behaviour::default()));
    let target = stranger(&site, &bastion, &host);
    let of_bastion = |server| format!("{}={}", bastion.address(), fingerprint(server));

    // The host's key alone accepts nothing of the bastion.
    let error = run(&site.connect(accepting(&target, &[fingerprint(&host)])), "true").await.unwrap_err();
    assert!(
        matches!(&error, TransportError::HostKeyUnknown { host, .. } if *host == bastion.address()),
        "{error}"
    );
    // A bastion that shows its own key for the host, and a host that shows the bastion's.
    for (keys, wrong) in [
        ([of_bastion(&bastion), fingerprint(&bastion)], host.address()),
        ([of_bastion(&host), fingerprint(&host)], bastion.address()),
    ] {
        let error = run(&site.connect(accepting(&target, &keys)), "true").await.unwrap_err();
        assert!(matches!(&error, TransportError::HostKeyMismatch { host, .. } if *host == wrong), "{error}");
        assert!(!site.known_hosts.exists() || !site.remembered().contains(&format!("]:{}", host.port)));
    }
    let logins = (bastion.logins(), host.logins());
    let both = accepting(&target, &[of_bastion(&bastion), fingerprint(&host)]);
    assert_eq!(printed(run(&site.connect(both), "echo in").await), "in\n");
    assert_eq!((bastion.logins(), host.logins()), (logins.0 + 1, logins.1 + 1), "in one connection each");
    // What is remembered are these two keys.
    assert_eq!(printed(run(&site.connect(target), "echo again").await), "again\n");
    assert_eq!(site.remembered().lines().count(), 2);
}

#[tokio::test]
async fn a_key_that_is_shown_on_the_next_connection_is_not_the_one_that_was_verified() {
    let site = Site::new();
    let host = Server::start(Behaviour::default()).await;
    let target = SshTarget { host_key: HostKeyPolicy::Known, ..site.target(host.port) };
    run(&site.connect(accepting(&target, &[fingerprint(&host)])), "true").await.unwrap();
    let port = host.port;
    host.stop().await;
    let _impostor = Server::start_on(port, Behaviour::default()).await;
    let error = run(&site.connect(target), "true").await.unwrap_err();
    assert!(matches!(error, TransportError::HostKeyMismatch { .. }), "{error}");
}
