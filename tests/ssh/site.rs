//! What lies on the bootstrap node: a private key and the remembered host keys, in a directory of the test.

use std::path::PathBuf;
use std::sync::Arc;

use metalform::model::ssh_target::{HostKeyPolicy, SshTarget};
use metalform::transport::ssh::{SshClient, SshTransport};
use russh::keys::PrivateKey;
use russh::keys::ssh_key::LineEnding;
use russh::keys::ssh_key::private::Ed25519Keypair;

use crate::server::Server;

pub struct Site {
    pub directory: tempfile::TempDir,
    pub identity: PathBuf,
    pub known_hosts: PathBuf,
}

impl Site {
    pub fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let identity = directory.path().join("id");
        let key = PrivateKey::from(Ed25519Keypair::from_seed(&[7; 32]));
        key.write_openssh_file(&identity, LineEnding::LF).unwrap();
        let known_hosts = directory.path().join("state/known_hosts");
        Self { directory, identity, known_hosts }
    }

    /// A host on loopback that is accepted when it is new.
    pub fn target(&self, port: u16) -> SshTarget {
        SshTarget {
            host: "127.0.0.1".to_owned(),
            port,
            user: "admin".to_owned(),
            identity_files: vec![self.identity.clone()],
            identities_only: true,
            sudo: false,
            host_key: HostKeyPolicy::AcceptNew,
            bastion: None,
        }
    }

    pub fn connect(&self, target: SshTarget) -> SshTransport {
        SshTransport::new(target, self.known_hosts.clone())
    }

    pub fn client(&self) -> SshClient {
        SshClient::new(self.known_hosts.clone())
    }

    /// A connection of a client that is prepared otherwise.
    pub fn connect_with(&self, client: SshClient, target: SshTarget) -> SshTransport {
        SshTransport::of(Arc::new(client), target)
    }

    pub fn transport(&self, server: &Server) -> SshTransport {
        self.connect(self.target(server.port))
    }

    pub fn remembered(&self) -> String {
        std::fs::read_to_string(&self.known_hosts).unwrap()
    }
}
