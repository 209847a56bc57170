//! Which keys a host is shown, in which order, and who signs for each.

use russh::keys::agent::AgentIdentity;
use russh::keys::ssh_key::public::KeyData;
use russh::keys::{Certificate, PublicKey};

/// As many keys as a host is shown. sshd hangs up after six refusals (`MaxAuthTries`), so that more would be in
/// vain, and some hosts lock a user out who is refused too often.
pub(super) const MOST_OFFERS: usize = 6;

/// An identity that the target names, as far as the order depends on it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Named<'a> {
    pub(super) public: Option<&'a PublicKey>,
    pub(super) certificate: Option<&'a Certificate>,
    /// Whether its file can sign, now or after a passphrase.
    pub(super) signs: bool,
}

/// What a host is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Shown {
    /// A bare key; `None`: that of an old file, which only its passphrase tells.
    Key(Option<PublicKey>),
    /// A user certificate.
    Certificate(Box<Certificate>),
}

/// Who has the private key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SignedBy {
    /// The named identity at this place.
    File(usize),
    /// The agent, for its identity at this place.
    Agent(usize),
}

/// One attempt to log in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Offer {
    pub(super) shown: Shown,
    pub(super) signed_by: SignedBy,
}

/// The offers, best first: the named identities in their order, each with its certificate before its key, by the
/// agent where the agent has it (then no passphrase is needed); after them, unless `named_only`, what else
/// the agent has, certificates first.
///
/// That is the order of OpenSSH's client, but for one thing: a named file comes before keys of the agent that
/// nobody named, because who names a key means it.
pub(super) fn offers(named: &[Named<'_>], agent: &[AgentIdentity], named_only: bool) -> Vec<Offer> {
    let mut offers: Vec<Offer> = Vec::new();
    let mut add = |shown: Shown, signed_by: SignedBy| {
        if !offers.iter().any(|offer| offer.shown == shown && !matches!(shown, Shown::Key(None))) {
            offers.push(Offer { shown, signed_by });
        }
    };
    for (at, identity) in named.iter().enumerate() {
        let data = identity.public.map(PublicKey::key_data);
        let in_agent = |certified: bool| {
            let is_it = |one: &AgentIdentity| Some(key_of(one)) == data && certified == is_certificate(one);
            agent.iter().position(is_it)
        };
        let signer = in_agent(false).map(SignedBy::Agent).or(identity.signs.then_some(SignedBy::File(at)));
        if let Some(certificate) = identity.certificate {
            let same = |one: &AgentIdentity| match one {
                AgentIdentity::Certificate { certificate: held, .. } => held == certificate,
                AgentIdentity::PublicKey { .. } => false,
            };
            let signer = agent.iter().position(same).map(SignedBy::Agent).or(signer);
            if let Some(signer) = signer {
                add(Shown::Certificate(Box::new(certificate.clone())), signer);
            }
        }
        if let Some(place) = in_agent(true) {
            add(shown(&agent[place]), SignedBy::Agent(place));
        }
        if let Some(signer) = signer {
            add(Shown::Key(identity.public.map(bare)), signer);
        }
    }
    if !named_only {
        for wanted in [true, false] {
            for (at, identity) in agent.iter().enumerate().filter(|(_, one)| is_certificate(one) == wanted) {
                add(shown(identity), SignedBy::Agent(at));
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

fn shown(identity: &AgentIdentity) -> Shown {
    match identity {
        AgentIdentity::PublicKey { key, .. } => Shown::Key(Some(bare(key))),
        AgentIdentity::Certificate { certificate, .. } => Shown::Certificate(Box::new(certificate.clone())),
    }
}

/// Without its comment, which makes the same key differ.
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

    /// Names of what is shown and who signs: `2 file 0`, `cert 3 agent 1`.
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
            .map(|(public, certificate, signs)| Named {
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
        let name = |shown: &Shown| match shown {
            Shown::Key(None) => "?".to_owned(),
            Shown::Key(Some(key)) => number(key.key_data()).to_string(),
            Shown::Certificate(certificate) => format!("cert {}", number(certificate.public_key())),
        };
        let signer = |signed_by| match signed_by {
            SignedBy::File(at) => format!("file {at}"),
            SignedBy::Agent(at) => format!("agent {at}"),
        };
        offers(&named, &agent, named_only)
            .iter()
            .map(|offer| format!("{} {}", name(&offer.shown), signer(offer.signed_by)))
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
