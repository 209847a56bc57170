//! Sends one authentication request, and signs what it has to prove.

use std::sync::Arc;

use russh::client::{AuthResult, Handle};
use russh::keys::agent::AgentIdentity;
use russh::keys::agent::client::AgentClient;
use russh::keys::signature::Signer as _;
use russh::keys::ssh_key::Signature;
use russh::keys::ssh_key::private::KeypairData;
use russh::keys::{HashAlg, PrivateKey};
use russh::{SendError, Signer};
use tokio::net::UnixStream;

use super::host_key::HostKeyCheck;
use super::offer::Credential;

/// What signs a request.
pub(super) enum Signing<'a> {
    Key(Arc<PrivateKey>),
    /// A key that is still locked: [`SigningError::Locked`] then means that the host would accept it.
    Locked,
    Agent(&'a mut AgentClient<UnixStream>, &'a AgentIdentity),
}

/// Why a request has no result.
pub(super) enum SigningError {
    Locked,
    Failed(String),
    Disconnected,
}

impl From<SendError> for SigningError {
    fn from(_: SendError) -> Self {
        Self::Disconnected
    }
}

/// Requests authentication by one credential; an RSA key with SHA-512 (RFC 8332), which every maintained server
/// accepts, and once more with SHA-256 for a server that announces only that.
pub(super) async fn authenticate(
    handle: &mut Handle<HostKeyCheck>,
    user: &str,
    credential: &Credential,
    signing: &mut Signing<'_>,
) -> Result<AuthResult, SigningError> {
    let mut request = Request { handle, user, credential };
    let first = request.send(HashAlg::Sha512, signing).await?;
    if first.success() || !credential.is_rsa() || request.handle.is_closed() {
        return Ok(first);
    }
    match request.handle.best_supported_rsa_hash().await {
        Ok(Some(Some(HashAlg::Sha256))) => request.send(HashAlg::Sha256, signing).await,
        _ => Ok(first),
    }
}

struct Request<'a> {
    handle: &'a mut Handle<HostKeyCheck>,
    user: &'a str,
    credential: &'a Credential,
}

impl Request<'_> {
    async fn send(&mut self, hash: HashAlg, signing: &mut Signing<'_>) -> Result<AuthResult, SigningError> {
        match self.credential {
            Credential::Key(Some(key)) => {
                self.handle.authenticate_publickey_with(self.user, key.clone(), Some(hash), signing).await
            }
            Credential::Key(None) => Err(SigningError::Locked),
            Credential::Certificate(certificate) => {
                let certificate = certificate.as_ref().clone();
                self.handle.authenticate_certificate_with(self.user, certificate, Some(hash), signing).await
            }
        }
    }
}

impl Signer for Signing<'_> {
    type Error = SigningError;

    /// Returns `data` followed by the signature, as a string (RFC 4252 section 7).
    async fn auth_sign(
        &mut self,
        _: &AgentIdentity,
        hash: Option<HashAlg>,
        data: Vec<u8>,
    ) -> Result<Vec<u8>, SigningError> {
        match self {
            Signing::Locked => Err(SigningError::Locked),
            Signing::Key(key) => signed(key, hash, data).map_err(SigningError::Failed),
            // Its own identity: a certificate beside a file may belong to a bare key in the agent.
            Signing::Agent(agent, identity) => agent
                .sign_request(identity, hash, data)
                .await
                .map_err(|error| SigningError::Failed(error.to_string())),
        }
    }
}

fn signed(key: &PrivateKey, hash: Option<HashAlg>, mut data: Vec<u8>) -> Result<Vec<u8>, String> {
    let signature: Signature = match key.key_data() {
        KeypairData::Rsa(rsa) => (rsa, hash).try_sign(&data).map_err(|error| error.to_string())?,
        other => other.try_sign(&data).map_err(|error| error.to_string())?,
    };
    let bytes = Vec::<u8>::try_from(signature).map_err(|error| error.to_string())?;
    let length = u32::try_from(bytes.len()).map_err(|error| error.to_string())?;
    data.extend_from_slice(&length.to_be_bytes());
    data.extend_from_slice(&bytes);
    Ok(data)
}
