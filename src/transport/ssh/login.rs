//! Public key authentication (RFC 4252 section 7); no other method is used.
//!
//! [`offers`] decides which keys are offered, and in which order; [`Login::attempt`] makes one offer;
//! [`Failures`] decides what is reported when no offer is accepted.

use std::sync::Arc;
use std::time::Duration;

use russh::client::{AuthResult, Handle};
use russh::keys::PrivateKey;
use russh::{MethodKind, MethodSet};
use tokio::time::timeout;

use super::agent::Agent;
use super::client::SshClient;
use super::connection::unreachable;
use super::ending::{Ended, Ending};
use super::host_key::HostKeyCheck;
use super::key_file::KeyFile;
use super::offer::{Credential, KeyHolder, MAX_OFFERS, NamedIdentity, Offer, offers};
use super::signing::{Signing, SigningError, authenticate};
use crate::model::ssh_target::SshTarget;
use crate::transport::error::TransportError;

/// Added to the deadline of an offer that the agent signs: a person may have to touch a token, or to confirm the
/// use of the key.
const CONFIRMATION: Duration = Duration::from_secs(60);

/// How a login that was not refused ended.
pub(super) enum LoginEnd {
    /// The host accepted a key.
    Done,
    /// The host closed the connection while a passphrase was typed. The key is unlocked now: a login on a new
    /// connection prompts for nothing.
    Reconnect,
}

/// Offers the target's keys in the order of [`offers`] until the host accepts one. A key file that cannot be read is
/// skipped. A passphrase is prompted for only when the host would accept the key.
///
/// # Errors
/// See [`Failures::into_error`]; `Unreachable` when the host closed the connection before it refused any key.
pub(super) async fn log_in(
    handle: &mut Handle<HostKeyCheck>,
    target: &SshTarget,
    client: &SshClient,
    ending: &Ending,
) -> Result<LoginEnd, TransportError> {
    let mut failures = Failures::default();
    let files = identity_files(target, client, &mut failures).await;
    let agent = Agent::connect(client.agent.as_deref(), client.deadline).await;
    let named: Vec<NamedIdentity<'_>> = files.iter().map(|file| file.identity()).collect();
    let offers = offers(&named, &agent.identities, target.identities_only);
    let mut login = Login { handle, target, client, files: &files, agent };
    for offer in offers.iter().take(MAX_OFFERS) {
        match login.attempt(offer).await {
            OfferEnd::Accepted => return Ok(LoginEnd::Done),
            OfferEnd::ClosedWhilePrompting => return Ok(LoginEnd::Reconnect),
            OfferEnd::Refused(remaining) => {
                failures.refused.push(login.name(offer));
                if !remaining.contains(&MethodKind::PublicKey) {
                    let methods: Vec<String> = remaining.iter().map(String::from).collect();
                    return Err(
                        failures.refusal(target, &format!("; it accepts only {}", methods.join(", ")))
                    );
                }
            }
            OfferEnd::NotSigned(reason) => failures.refused.push(format!("{}: {reason}", login.name(offer))),
            OfferEnd::Unusable(error) => failures.unusable = Some(error),
            OfferEnd::Closed => return Err(failures.closed(target, ending.get())),
            OfferEnd::TimedOut(limit) => {
                return Err(unreachable(target, format!("not authenticated within {limit:?}")));
            }
        }
    }
    Err(failures.into_error(target, offers.len().saturating_sub(MAX_OFFERS)))
}

async fn identity_files(
    target: &SshTarget,
    client: &SshClient,
    failures: &mut Failures,
) -> Vec<Arc<KeyFile>> {
    let mut files = Vec::new();
    for path in &target.identity_files {
        match client.keys.get(path, client.home.as_deref()).await {
            Ok(file) => files.push(file),
            Err(error) => {
                failures.unreadable.get_or_insert(error);
            }
        }
    }
    files
}

/// What failed so far.
#[derive(Default)]
struct Failures {
    /// The first key file that could not be read.
    unreadable: Option<TransportError>,
    /// The last key that was not unlocked.
    unusable: Option<TransportError>,
    /// Names of the keys that the host refused, or that were not signed for.
    refused: Vec<String>,
}

impl Failures {
    /// What is reported when no offer was accepted, in this order: a missing passphrase, since the host would accept
    /// that key; the refusal, when any key was refused; a key that cannot be used or read; the refusal of no key.
    fn into_error(self, target: &SshTarget, not_offered: usize) -> TransportError {
        let rest = match not_offered {
            0 => String::new(),
            more => format!("; {more} more were not offered"),
        };
        let refusal = self.refusal(target, &rest);
        match self.unusable.or(self.unreadable) {
            Some(error @ TransportError::PassphraseMissing { .. }) => error,
            Some(error) if self.refused.is_empty() => error,
            _ => refusal,
        }
    }

    fn refusal(&self, target: &SshTarget, rest: &str) -> TransportError {
        let keys = if self.refused.is_empty() { "none".to_owned() } else { self.refused.join(", ") };
        TransportError::AuthenticationRefused {
            host: target.address(),
            user: target.user.clone(),
            keys: format!("{keys}{rest}"),
        }
    }

    /// After some refusals servers close the connection, with a message. A broken connection is no refusal.
    fn closed(&self, target: &SshTarget, ended: Option<Ended>) -> TransportError {
        const CLOSED: &str = "connection closed during authentication";
        match ended {
            Some(Ended::Broken(reason)) => unreachable(target, format!("{CLOSED}: {reason}")),
            Some(Ended::ByHost(reason)) if self.refused.is_empty() => {
                unreachable(target, format!("{CLOSED}: {reason}"))
            }
            None if self.refused.is_empty() => unreachable(target, CLOSED.to_owned()),
            Some(Ended::ByHost(reason)) => {
                self.refusal(target, &format!("; then it closed the connection: {reason}"))
            }
            None => self.refusal(target, "; then it closed the connection"),
        }
    }
}

/// How one offer ended.
enum OfferEnd {
    Accepted,
    /// With the methods that the host still accepts.
    Refused(MethodSet),
    /// No passphrase was given, or a wrong one.
    Unusable(TransportError),
    /// The key was not signed for: the reason.
    NotSigned(String),
    /// The host closed the connection, or it broke.
    Closed,
    /// As `Closed`, while a passphrase was typed that did unlock the key.
    ClosedWhilePrompting,
    TimedOut(Duration),
}

/// What the offers of one login share.
struct Login<'a> {
    handle: &'a mut Handle<HostKeyCheck>,
    target: &'a SshTarget,
    client: &'a SshClient,
    files: &'a [Arc<KeyFile>],
    agent: Agent,
}

impl Login<'_> {
    async fn attempt(&mut self, offer: &Offer) -> OfferEnd {
        let result = match offer.signed_by {
            KeyHolder::Agent(at) => self.attempt_by_agent(&offer.credential, at).await,
            KeyHolder::File(at) => {
                self.attempt_by_file(&offer.credential, &Arc::clone(&self.files[at])).await
            }
        };
        match result {
            Ok(AuthResult::Success) => OfferEnd::Accepted,
            Ok(AuthResult::Failure { .. }) if self.handle.is_closed() => OfferEnd::Closed,
            Ok(AuthResult::Failure { remaining_methods, .. }) => OfferEnd::Refused(remaining_methods),
            Err(OfferEnd::Unusable(_)) if self.handle.is_closed() && self.is_unlocked(offer) => {
                OfferEnd::ClosedWhilePrompting
            }
            Err(end) => end,
        }
    }

    async fn attempt_by_agent(&mut self, credential: &Credential, at: usize) -> Result<AuthResult, OfferEnd> {
        let limit = self.client.deadline + CONFIRMATION;
        let Some(mut signing) = self.agent.signing(at) else {
            return Err(OfferEnd::NotSigned("the agent is gone".to_owned()));
        };
        let sent = authenticate(self.handle, &self.target.user, credential, &mut signing);
        match timeout(limit, sent).await {
            Ok(result) => result.map_err(|error| match error {
                SigningError::Failed(reason) => {
                    OfferEnd::NotSigned(format!("the agent did not sign: {reason}"))
                }
                SigningError::Locked | SigningError::Disconnected => OfferEnd::Closed,
            }),
            Err(_) => Err(OfferEnd::TimedOut(limit)),
        }
    }

    /// A locked key is first offered as it is, so that a passphrase is prompted for only when the host would accept
    /// the key. Only a key whose public half is unknown must be unlocked before.
    async fn attempt_by_file(
        &mut self,
        credential: &Credential,
        file: &KeyFile,
    ) -> Result<AuthResult, OfferEnd> {
        match (file.ready(), credential) {
            (Some(key), _) => return self.send_signed(credential, key).await,
            (None, Credential::Key(None)) => {
                let key = self.unlock(file).await?;
                return self.send_signed(credential, key).await;
            }
            (None, _) => {}
        }
        match self.send(credential, &mut Signing::Locked).await? {
            Ok(result) => Ok(result),
            Err(SigningError::Failed(reason)) => Err(OfferEnd::NotSigned(reason)),
            Err(SigningError::Disconnected) => Err(OfferEnd::Closed),
            Err(SigningError::Locked) => {
                let key = self.unlock(file).await?;
                if self.handle.is_closed() {
                    let reason = "connection closed while the passphrase was typed".to_owned();
                    return Err(OfferEnd::Unusable(unreachable(self.target, reason)));
                }
                self.send_signed(credential, key).await
            }
        }
    }

    async fn send_signed(
        &mut self,
        credential: &Credential,
        key: Arc<PrivateKey>,
    ) -> Result<AuthResult, OfferEnd> {
        let public;
        let credential = match credential {
            Credential::Key(None) => {
                public = Credential::Key(Some(key.public_key().clone()));
                &public
            }
            known => known,
        };
        self.send(credential, &mut Signing::Key(key)).await?.map_err(|error| match error {
            SigningError::Failed(reason) => OfferEnd::NotSigned(format!("it does not sign: {reason}")),
            SigningError::Locked | SigningError::Disconnected => OfferEnd::Closed,
        })
    }

    async fn send(
        &mut self,
        credential: &Credential,
        signing: &mut Signing<'_>,
    ) -> Result<Result<AuthResult, SigningError>, OfferEnd> {
        let limit = self.client.deadline;
        let sent = authenticate(self.handle, &self.target.user, credential, signing);
        timeout(limit, sent).await.map_err(|_| OfferEnd::TimedOut(limit))
    }

    async fn unlock(&self, file: &KeyFile) -> Result<Arc<PrivateKey>, OfferEnd> {
        file.unlock(self.client.prompter.as_ref()).await.map_err(OfferEnd::Unusable)
    }

    fn is_unlocked(&self, offer: &Offer) -> bool {
        matches!(offer.signed_by, KeyHolder::File(at) if self.files[at].ready().is_some())
    }

    /// What is offered, for messages.
    fn name(&self, offer: &Offer) -> String {
        let certificate =
            if matches!(offer.credential, Credential::Certificate(_)) { "certificate of " } else { "" };
        match offer.signed_by {
            KeyHolder::File(at) => format!("{certificate}{}", self.files[at].path.display()),
            KeyHolder::Agent(at) => format!("{certificate}{} in the agent", self.agent.name(at)),
        }
    }
}
