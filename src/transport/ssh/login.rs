//! Logging in with keys, and with nothing else.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use russh::client::{AuthResult, Handle};
use russh::keys::agent::AgentIdentity;
use russh::keys::agent::client::AgentClient;
use russh::keys::signature::Signer as _;
use russh::keys::ssh_key::Signature;
use russh::keys::ssh_key::private::KeypairData;
use russh::keys::{HashAlg, PrivateKey, PublicKey};
use russh::{MethodKind, SendError, Signer};
use tokio::net::UnixStream;
use tokio::time::timeout;

use super::client::SshClient;
use super::connection::{Ended, Ending, unreachable};
use super::host_key::HostKeyCheck;
use super::key_file::KeyFile;
use super::offer::{MOST_OFFERS, Named, Offer, Shown, SignedBy, offers};
use crate::model::ssh_target::SshTarget;
use crate::transport::error::TransportError;

/// A person may have to touch a token, or to confirm a use of the agent.
const TOUCH: Duration = Duration::from_secs(60);

/// How a login ended that was not refused.
pub(super) enum Login {
    /// The host let us in.
    Done,
    /// The host hung up while a person typed a passphrase. The key is open now: a new connection needs no person.
    Anew,
}

/// Shows the host the target's keys, in the order of [`offers`], until one is taken. A key that cannot be read is
/// passed over, and is the error only when no other could be offered. A passphrase is asked for only when the
/// host would take the key.
///
/// # Errors
/// `AuthenticationRefused`, `IdentityUnreadable`, `PassphraseMissing`; `Unreachable` when the host hung up before
/// it refused any.
pub(super) async fn log_in(
    handle: &mut Handle<HostKeyCheck>,
    target: &SshTarget,
    client: &SshClient,
    ending: &Ending,
) -> Result<Login, TransportError> {
    let mut failure = None;
    let mut files = Vec::new();
    for path in &target.identity_files {
        match client.keys.get(path, client.home.as_deref()).await {
            Ok(file) => files.push(file),
            Err(error) => {
                failure.get_or_insert(error);
            }
        }
    }
    let mut agent = Agent::connect(client.agent.as_deref(), client.deadline).await;
    let named: Vec<Named<'_>> = files
        .iter()
        .map(|file| Named {
            public: file.public.as_ref(),
            certificate: file.certificate.as_ref(),
            signs: file.ready().is_some() || file.is_locked(),
        })
        .collect();
    let offers = offers(&named, agent.identities(), target.identities_only);
    let mut refused: Vec<String> = Vec::new();
    for offer in offers.iter().take(MOST_OFFERS) {
        let attempted = attempt(handle, target, client, &mut agent, (offer, &files)).await;
        let hung_up = handle.is_closed();
        match attempted {
            Ok(AuthResult::Success) => return Ok(Login::Done),
            Ok(AuthResult::Failure { remaining_methods, .. }) if !hung_up => {
                refused.push(name(offer, &files, &agent));
                if !remaining_methods.contains(&MethodKind::PublicKey) {
                    let methods: Vec<String> = remaining_methods.iter().map(String::from).collect();
                    return Err(refusal(
                        target,
                        &refused,
                        &format!("; it takes only {}", methods.join(", ")),
                    ));
                }
            }
            Ok(AuthResult::Failure { .. }) | Err(Hindrance::HungUp) => {
                return Err(hung_up_on(target, &refused, ending));
            }
            Err(Hindrance::Withheld(_)) if hung_up && is_open(offer, &files) => return Ok(Login::Anew),
            Err(Hindrance::Withheld(error)) => {
                failure = Some(error);
            }
            Err(Hindrance::Agent(reason)) => {
                refused.push(format!("{}: the agent did not sign: {reason}", name(offer, &files, &agent)));
            }
            Err(Hindrance::Late(limit)) => {
                return Err(unreachable(target, format!("not logged in within {limit:?}")));
            }
        }
    }
    if let Some(error @ TransportError::PassphraseMissing { .. }) = failure {
        return Err(error);
    }
    match failure {
        Some(error) if refused.is_empty() => Err(error),
        _ => {
            let more = offers.len().saturating_sub(MOST_OFFERS);
            let rest = if more > 0 { format!("; {more} more were not offered") } else { String::new() };
            Err(refusal(target, &refused, &rest))
        }
    }
}

/// Why an attempt came to nothing.
enum Hindrance {
    /// The host did, or the link broke.
    HungUp,
    /// The key cannot be used.
    Withheld(TransportError),
    /// The agent would not.
    Agent(String),
    /// Nothing came back in time.
    Late(Duration),
}

async fn attempt(
    handle: &mut Handle<HostKeyCheck>,
    target: &SshTarget,
    client: &SshClient,
    agent: &mut Agent,
    (offer, files): (&Offer, &[Arc<KeyFile>]),
) -> Result<AuthResult, Hindrance> {
    let (mut signing, limit) = match offer.signed_by {
        SignedBy::Agent(at) => match (agent.client.as_mut(), agent.identities.get(at)) {
            (Some(client_of_agent), Some(identity)) => {
                (Signing::Agent(client_of_agent, identity), client.deadline + TOUCH)
            }
            _ => return Err(Hindrance::Agent("it is gone".to_owned())),
        },
        SignedBy::File(at) => match (files[at].ready(), &offer.shown) {
            (Some(key), _) => (Signing::Key(key), client.deadline),
            (None, Shown::Key(None)) => (Signing::Key(unlock(client, &files[at]).await?), client.deadline),
            (None, _) => (Signing::Locked, client.deadline),
        },
    };
    let shown = match (&offer.shown, &signing) {
        (Shown::Key(None), Signing::Key(key)) => Shown::Key(Some(key.public_key().clone())),
        (shown, _) => shown.clone(),
    };
    match timeout(limit, show(handle, &target.user, &shown, &mut signing)).await {
        Err(_) => Err(Hindrance::Late(limit)),
        Ok(Ok(result)) => Ok(result),
        Ok(Err(SigningError::HungUp)) => Err(Hindrance::HungUp),
        Ok(Err(SigningError::Failed(reason))) => Err(Hindrance::Agent(reason)),
        Ok(Err(SigningError::Locked)) => {
            let SignedBy::File(at) = offer.signed_by else { return Err(Hindrance::HungUp) };
            let mut signing = Signing::Key(unlock(client, &files[at]).await?);
            if handle.is_closed() {
                let error = unreachable(target, "it hung up while the passphrase was typed".to_owned());
                return Err(Hindrance::Withheld(error));
            }
            match timeout(client.deadline, show(handle, &target.user, &shown, &mut signing)).await {
                Ok(result) => result.map_err(|_| Hindrance::HungUp),
                Err(_) => Err(Hindrance::Late(client.deadline)),
            }
        }
    }
}

async fn unlock(client: &SshClient, file: &KeyFile) -> Result<Arc<PrivateKey>, Hindrance> {
    file.unlock(client.prompter.as_ref()).await.map_err(Hindrance::Withheld)
}

/// Whether a passphrase was given for the key of this offer.
fn is_open(offer: &Offer, files: &[Arc<KeyFile>]) -> bool {
    matches!(offer.signed_by, SignedBy::File(at) if files[at].ready().is_some())
}

/// One key, with SHA-512 where it is an RSA key (RFC 8332): every server that still gets updates takes that. One
/// that says it takes only SHA-256 is shown the key once more.
async fn show(
    handle: &mut Handle<HostKeyCheck>,
    user: &str,
    shown: &Shown,
    signing: &mut Signing<'_>,
) -> Result<AuthResult, SigningError> {
    let first = show_with(handle, user, shown, (HashAlg::Sha512, &mut *signing)).await?;
    let is_rsa = match shown {
        Shown::Key(key) => key.as_ref().is_some_and(|key| key.algorithm().is_rsa()),
        Shown::Certificate(certificate) => certificate.algorithm().is_rsa(),
    };
    if first.success() || !is_rsa || handle.is_closed() {
        return Ok(first);
    }
    match handle.best_supported_rsa_hash().await {
        Ok(Some(Some(HashAlg::Sha256))) => show_with(handle, user, shown, (HashAlg::Sha256, signing)).await,
        _ => Ok(first),
    }
}

async fn show_with(
    handle: &mut Handle<HostKeyCheck>,
    user: &str,
    shown: &Shown,
    (hash, signing): (HashAlg, &mut Signing<'_>),
) -> Result<AuthResult, SigningError> {
    match shown {
        Shown::Key(Some(key)) => {
            handle.authenticate_publickey_with(user, key.clone(), Some(hash), signing).await
        }
        Shown::Key(None) => Err(SigningError::Locked),
        Shown::Certificate(certificate) => {
            let certificate = certificate.as_ref().clone();
            handle.authenticate_certificate_with(user, certificate, Some(hash), signing).await
        }
    }
}

/// Who signs what the host asks for.
enum Signing<'a> {
    Key(Arc<PrivateKey>),
    /// Not yet: the host is asked first whether it would take the key.
    Locked,
    Agent(&'a mut AgentClient<UnixStream>, &'a AgentIdentity),
}

enum SigningError {
    Locked,
    Failed(String),
    HungUp,
}

impl From<SendError> for SigningError {
    fn from(_: SendError) -> Self {
        Self::HungUp
    }
}

impl Signer for Signing<'_> {
    type Error = SigningError;

    /// Gives `data` with the signature behind it, as a string (RFC 4252 section 7).
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
                .map_err(|e| SigningError::Failed(e.to_string())),
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

/// The agent, if there is one and it answers.
struct Agent {
    client: Option<AgentClient<UnixStream>>,
    identities: Vec<AgentIdentity>,
}

impl Agent {
    async fn connect(socket: Option<&Path>, deadline: Duration) -> Self {
        let none = Self { client: None, identities: Vec::new() };
        let Some(socket) = socket else { return none };
        let asking = async {
            let mut client = AgentClient::connect_uds(socket).await?;
            let identities = client.request_identities().await?;
            Ok::<_, russh::keys::Error>((client, identities))
        };
        match timeout(deadline, asking).await {
            Ok(Ok((client, identities))) => Self { client: Some(client), identities },
            Ok(Err(error)) => {
                tracing::debug!("ssh agent {}: {error}", socket.display());
                none
            }
            Err(_) => {
                tracing::warn!("ssh agent {}: it does not answer", socket.display());
                none
            }
        }
    }

    fn identities(&self) -> &[AgentIdentity] {
        &self.identities
    }
}

/// What is shown, for people.
fn name(offer: &Offer, files: &[Arc<KeyFile>], agent: &Agent) -> String {
    let certificate = if matches!(offer.shown, Shown::Certificate(_)) { "certificate of " } else { "" };
    match offer.signed_by {
        SignedBy::File(at) => format!("{certificate}{}", files[at].path.display()),
        SignedBy::Agent(at) => {
            let identity = &agent.identities[at];
            let comment = identity.comment();
            let key = PublicKey::new(identity.public_key().key_data().clone(), "");
            let fingerprint = key.fingerprint(HashAlg::Sha256).to_string();
            format!("{certificate}{} in the agent", if comment.is_empty() { &fingerprint } else { comment })
        }
    }
}

fn refusal(target: &SshTarget, refused: &[String], rest: &str) -> TransportError {
    let keys = if refused.is_empty() { "none".to_owned() } else { refused.join(", ") };
    TransportError::AuthenticationRefused {
        host: target.address(),
        user: target.user.clone(),
        keys: format!("{keys}{rest}"),
    }
}

/// Servers hang up, with a word, after a number of refusals. A link that breaks says nothing of our keys.
fn hung_up_on(target: &SshTarget, refused: &[String], ending: &Ending) -> TransportError {
    match ending.get() {
        Some(Ended::Broken(reason)) => {
            unreachable(target, format!("it hung up while we logged in: {reason}"))
        }
        Some(Ended::ByHost(reason)) if refused.is_empty() => {
            unreachable(target, format!("it hung up while we logged in: {reason}"))
        }
        None if refused.is_empty() => unreachable(target, "it hung up while we logged in".to_owned()),
        Some(Ended::ByHost(reason)) => refusal(target, refused, &format!("; then it hung up: {reason}")),
        None => refusal(target, refused, "; then it hung up"),
    }
}
