//! The operator's SSH agent.

use std::path::Path;
use std::time::Duration;

use russh::keys::agent::AgentIdentity;
use russh::keys::agent::client::AgentClient;
use russh::keys::{HashAlg, PublicKey};
use tokio::net::UnixStream;
use tokio::time::timeout;

use super::signing::Signing;

/// An agent and the identities that it holds; none, when there is no agent or it does not answer.
pub(super) struct Agent {
    client: Option<AgentClient<UnixStream>>,
    pub(super) identities: Vec<AgentIdentity>,
}

impl Agent {
    pub(super) async fn connect(socket: Option<&Path>, deadline: Duration) -> Self {
        let none = Self { client: None, identities: Vec::new() };
        let Some(socket) = socket else { return none };
        let connecting = async {
            let mut client = AgentClient::connect_uds(socket).await?;
            let identities = client.request_identities().await?;
            Ok::<_, russh::keys::Error>((client, identities))
        };
        match timeout(deadline, connecting).await {
            Ok(Ok((client, identities))) => Self { client: Some(client), identities },
            Ok(Err(error)) => {
                tracing::debug!("ssh agent {}: {error}", socket.display());
                none
            }
            Err(_) => {
                tracing::warn!("ssh agent {}: no answer within {deadline:?}", socket.display());
                none
            }
        }
    }

    /// Signing by the identity at this index.
    pub(super) fn signing(&mut self, at: usize) -> Option<Signing<'_>> {
        Some(Signing::Agent(self.client.as_mut()?, self.identities.get(at)?))
    }

    /// The comment of the identity at this index; its fingerprint when it has none.
    pub(super) fn name(&self, at: usize) -> String {
        let identity = &self.identities[at];
        match identity.comment() {
            "" => {
                let key = PublicKey::new(identity.public_key().key_data().clone(), "");
                key.fingerprint(HashAlg::Sha256).to_string()
            }
            comment => comment.to_owned(),
        }
    }
}
