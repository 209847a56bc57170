//! Which keys are offered to a host, in which order, and what signs for each.

use russh::keys::agent::AgentIdentity;
use russh::keys::ssh_key::public::KeyData;
use russh::keys::{Certificate, PublicKey};

/// The most keys that one login offers. sshd closes the connection after six refusals (`MaxAuthTries`), and some
/// hosts lock a user out after too many.
pub(super) const MAX_OFFERS: usize = 6;

/// An identity that the target names, as far as the order depends on it.
#[derive(Debug, Clone, Copy)]
pub(super) struct NamedIdentity<'a> {
    pub(super) public: Option<&'a PublicKey>,
    pub(super) certificate: Option<&'a Certificate>,
    /// Whether its file can sign, now or once it is unlocked.
    pub(super) signs: bool,
}

/// What a host is offered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Credential {
    /// A bare key; `None` for an encrypted file in an old format, whose public key is unknown until it is unlocked.
    Key(Option<PublicKey>),
    /// A user certificate.
    Certificate(Box<Certificate>),
}

impl Credential {
    pub(super) fn is_rsa(&self) -> bool {
        match self {
            Self::Key(key) => key.as_ref().is_some_and(|key| key.algorithm().is_rsa()),
            Self::Certificate(certificate) => certificate.algorithm().is_rsa(),
        }
    }
}

/// Where the private key is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyHolder {
    /// In the file of the named identity at this index.
    File(usize),
    /// In the agent, as its identity at this index.
    Agent(usize),
}

/// One attempt to log in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Offer {
    pub(super) credential: Credential,
    pub(super) signed_by: KeyHolder,
}

/// The offers, best first: the named identities in their order, each with its certificate before its key, signed by
/// the agent where the agent has the key (then no passphrase is needed); after them, unless `named_only`, the other
/// identities of the agent, certificates first.
///
/// That is the order of OpenSSH's client, with one exception: a named file precedes the agent's keys that are not
/// named, because it was named on purpose.
pub(super) fn offers(named: &[NamedIdentity<'_>], agent: &[AgentIdentity], named_only: bool) -> Vec<Offer> {
    let mut offers: Vec<Offer> = Vec::new();
    let mut add = |credential: Credential, signed_by: KeyHolder| {
        if !offers
            .iter()
            .any(|offer| offer.credential == credential && !matches!(credential, Credential::Key(None)))
        {
            offers.push(Offer { credential, signed_by });
        }
    };
    for (at, identity) in named.iter().enumerate() {
        let data = identity.public.map(PublicKey::key_data);
        let in_agent = |certified: bool| {
            let same_key =
                |one: &AgentIdentity| Some(key_of(one)) == data && certified == is_certificate(one);
            agent.iter().position(same_key)
        };
        let signer = in_agent(false).map(KeyHolder::Agent).or(identity.signs.then_some(KeyHolder::File(at)));
        if let Some(certificate) = identity.certificate {
            let same = |one: &AgentIdentity| match one {
                AgentIdentity::Certificate { certificate: held, .. } => held == certificate,
                AgentIdentity::PublicKey { .. } => false,
            };
            let signer = agent.iter().position(same).map(KeyHolder::Agent).or(signer);
            if let Some(signer) = signer {
                add(Credential::Certificate(Box::new(certificate.clone())), signer);
            }
        }
        if let Some(place) = in_agent(true) {
            add(credential_of(&agent[place]), KeyHolder::Agent(place));
        }
        if let Some(signer) = signer {
            add(Credential::Key(identity.public.map(bare)), signer);
        }
    }
    if !named_only {
        for wanted in [true, false] {
            for (at, identity) in agent.iter().enumerate().filter(|(_, one)| is_certificate(one) == wanted) {
                add(credential_of(identity), KeyHolder::Agent(at));
            }
        }
    }
    offers
}

fn is_certificate(identity: &AgentIdentity) -> bool {
    matches!(identity, AgentIdentity::Certificate { .. })
}

fn key_of(identity: &AgentIdentity) -> &KeyData {
    match identity {
        AgentIdentity::PublicKey { key, .. } => key.key_data(),
        AgentIdentity::Certificate { certificate, .. } => certificate.public_key(),
    }
}

fn credential_of(identity: &AgentIdentity) -> Credential {
    match identity {
        AgentIdentity::PublicKey { key, .. } => Credential::Key(Some(bare(key))),
        AgentIdentity::Certificate { certificate, .. } => {
            Credential::Certificate(Box::new(certificate.clone()))
        }
    }
}

/// The key without its comment, which would make equal keys differ.
fn bare(key: &PublicKey) -> PublicKey {
    PublicKey::new(key.key_data().clone(), "")
}

#[cfg(test)]
mod tests {
    use russh::keys::PrivateKey;
    use russh::keys::ssh_key::certificate::{Builder, CertType};
    use russh::keys::ssh_key::private::Ed25519Keypair;

    use super::*;

    fn key(number: u8) -> PublicKey {
        PublicKey::from(Ed25519Keypair::from_seed(&[number; 32]).public)
    }

    fn certificate(number: u8) -> Certificate {
        let mut builder = Builder::new(vec![0; 16], key(number), 0, u64::MAX).unwrap();
        builder.cert_type(CertType::User).unwrap().key_id("ops").unwrap().all_principals_valid().unwrap();
        builder.sign(&PrivateKey::from(Ed25519Keypair::from_seed(&[99; 32]))).unwrap()
    }

    /// What is offered and what signs: `2 file 0`, `cert 3 agent 1`.
    fn order(named: &[(Option<u8>, bool, bool)], agent: &[&str], named_only: bool) -> Vec<String> {
        let keys: Vec<_> = named
            .iter()
            .map(|(number, with_certificate, signs)| {
                let certified = with_certificate.then(|| certificate(number.unwrap()));
                (
                    number.map(|number| PublicKey::new(key(number).key_data().clone(), "a comment")),
                    certified,
                    *signs,
                )
            })
            .collect();
        let named: Vec<_> = keys
            .iter()
            .map(|(public, certificate, signs)| NamedIdentity {
                public: public.as_ref(),
                certificate: certificate.as_ref(),
                signs: *signs,
            })
            .collect();
        let agent: Vec<AgentIdentity> = agent
            .iter()
            .map(|name| match name.strip_prefix("cert ") {
                Some(number) => AgentIdentity::Certificate {
                    certificate: certificate(number.parse().unwrap()),
                    comment: String::new(),
                },
                None => AgentIdentity::from(key(name.parse().unwrap())),
            })
            .collect();
        let number = |data: &KeyData| (1..9).find(|n| key(*n).key_data() == data).unwrap();
        let name = |credential: &Credential| match credential {
            Credential::Key(None) => "?".to_owned(),
            Credential::Key(Some(key)) => number(key.key_data()).to_string(),
            Credential::Certificate(certificate) => format!("cert {}", number(certificate.public_key())),
        };
        let signer = |signed_by| match signed_by {
            KeyHolder::File(at) => format!("file {at}"),
            KeyHolder::Agent(at) => format!("agent {at}"),
        };
        offers(&named, &agent, named_only)
            .iter()
            .map(|offer| format!("{} {}", name(&offer.credential), signer(offer.signed_by)))
            .collect()
    }

    #[test]
    fn named_keys_come_first_and_the_agent_signs_what_it_has() {
        let file = |number| (Some(number), false, true);
        let public_only = |number| (Some(number), false, false);
        let certified = |number| (Some(number), true, true);
        let old = (None, false, true);
        for (named, agent, named_only, expected) in [
            (vec![file(2), file(1)], vec![], false, vec!["2 file 0", "1 file 1"]),
            (vec![file(1)], vec!["3", "4"], false, vec!["1 file 0", "3 agent 0", "4 agent 1"]),
            (vec![file(1)], vec!["3", "4"], true, vec!["1 file 0"]),
            (vec![file(1), file(2)], vec!["3", "2"], true, vec!["1 file 0", "2 agent 1"]),
            (vec![file(1), file(2)], vec!["3", "2"], false, vec!["1 file 0", "2 agent 1", "3 agent 0"]),
            (vec![public_only(2)], vec!["2"], true, vec!["2 agent 0"]),
            (vec![public_only(2)], vec![], true, vec![]),
            (vec![certified(1)], vec![], true, vec!["cert 1 file 0", "1 file 0"]),
            (vec![certified(1)], vec!["1"], true, vec!["cert 1 agent 0", "1 agent 0"]),
            (vec![certified(1)], vec!["1", "cert 1"], true, vec!["cert 1 agent 1", "1 agent 0"]),
            (vec![file(1)], vec!["cert 1"], true, vec!["cert 1 agent 0", "1 file 0"]),
            (vec![], vec!["5", "cert 5"], false, vec!["cert 5 agent 1", "5 agent 0"]),
            (vec![], vec!["5", "cert 5"], true, vec![]),
            (vec![old, old], vec!["5"], true, vec!["? file 0", "? file 1"]),
        ] {
            assert_eq!(order(&named, &agent, named_only), expected, "{named:?} {agent:?} {named_only}");
        }
    }
}
