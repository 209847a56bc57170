//! SSH settings of a host.

use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Everything that is needed to open a session.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SshTarget {
    /// An address or a resolvable name.
    pub host: String,
    /// TCP port; 22 by default.
    pub port: u16,
    /// Login user; root by default.
    pub user: String,
    /// Private keys to offer, in this order; `~/` is the home directory of the user who runs metalform. A public key, or
    /// one without its private key, selects that key of the agent. A key that is held in memory has a path that is no
    /// file's.
    pub identity_files: Vec<PathBuf>,
    /// Whether only the keys of `identity_files` are offered, from files or the agent (`IdentitiesOnly`).
    pub identities_only: bool,
    /// Whether programs run under `sudo`.
    pub sudo: bool,
    /// The accepted host keys.
    pub host_key: HostKeyPolicy,
    /// The jump host to connect through, which may have one itself.
    pub bastion: Option<Box<SshTarget>>,
}

impl SshTarget {
    /// Address and port, for messages: `10.0.0.5:22`, `[fd00::5]:22`.
    pub fn address(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }
}

/// A host key that the operator has verified, of one machine on the way to a host: `SHA256:...` of the host itself,
/// `192.0.2.1:22=SHA256:...` of a bastion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifiedHostKey {
    /// As [`SshTarget::address`]; `None` for the host itself.
    pub address: Option<String>,
    /// `SHA256:...`.
    pub fingerprint: String,
}

impl FromStr for VerifiedHostKey {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // The fingerprint is base64 without padding, so that the first equals sign is the separator.
        let (address, fingerprint) = match text.split_once('=') {
            Some((address, fingerprint)) => (Some(address.to_owned()), fingerprint),
            None => (None, text),
        };
        if address.as_ref().is_some_and(String::is_empty) || !fingerprint.starts_with("SHA256:") {
            return Err("expected SHA256:..., or ADDRESS:PORT=SHA256:... for a bastion".to_owned());
        }
        Ok(Self { address, fingerprint: fingerprint.to_owned() })
    }
}

impl SshTarget {
    /// The same host, reached in one connection that accepts these keys, each of its own machine alone. A pinned key
    /// stays.
    ///
    /// # Errors
    /// The address of a key that is on no machine on the way.
    pub fn accepting(&self, keys: &[VerifiedHostKey]) -> Result<Self, String> {
        let on_the_way: Vec<String> = self.bastions().map(Self::address).collect();
        let unknown = |address: &&String| **address != self.address() && !on_the_way.contains(address);
        if let Some(unknown) = keys.iter().filter_map(|key| key.address.as_ref()).find(unknown) {
            return Err(unknown.clone());
        }
        Ok(self.accept(keys, true))
    }

    fn accept(&self, keys: &[VerifiedHostKey], is_host: bool) -> Self {
        let address = self.address();
        let own = |key: &&VerifiedHostKey| match &key.address {
            Some(of) => *of == address,
            None => is_host,
        };
        let host_key = match (&self.host_key, keys.iter().find(own)) {
            (HostKeyPolicy::Known | HostKeyPolicy::AcceptNew, Some(key)) => {
                HostKeyPolicy::Fingerprint(key.fingerprint.clone())
            }
            (policy, _) => policy.clone(),
        };
        let bastion = self.bastion.as_ref().map(|bastion| Box::new(bastion.accept(keys, false)));
        Self { host_key, bastion, ..self.clone() }
    }

    /// The bastions, the nearest to the host first.
    pub fn bastions(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(self.bastion.as_deref(), |bastion| bastion.bastion.as_deref())
    }
}

/// The accepted host keys. There is no policy that accepts any key.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum HostKeyPolicy {
    /// Exactly this public key, as in a known_hosts line: `ssh-ed25519 AAAA...`.
    Pinned(String),
    /// The keys in `known_hosts`; an unknown host is refused.
    Known,
    /// As `Known`, but the key of an unknown host is added.
    AcceptNew,
    /// The key with this fingerprint (`SHA256:...`), which the operator has verified. It is remembered, in place of any
    /// other key of the host.
    Fingerprint(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(host: &str, bastion: Option<SshTarget>) -> SshTarget {
        SshTarget {
            host: host.to_owned(),
            port: 22,
            user: "root".to_owned(),
            identity_files: Vec::new(),
            identities_only: true,
            sudo: false,
            host_key: HostKeyPolicy::Known,
            bastion: bastion.map(Box::new),
        }
    }

    /// The policies of the host, and of its bastions behind it.
    fn policies(target: &SshTarget) -> Vec<HostKeyPolicy> {
        std::iter::once(target).chain(target.bastions()).map(|one| one.host_key.clone()).collect()
    }

    #[test]
    fn a_verified_key_is_accepted_of_its_own_machine_alone() {
        let chain = target("host", Some(target("near", Some(target("far", None)))));
        let accepting = |keys: &[&str]| {
            let keys: Vec<VerifiedHostKey> = keys.iter().map(|key| key.parse().unwrap()).collect();
            chain.accepting(&keys).map(|target| policies(&target))
        };
        let key = |name: &str| HostKeyPolicy::Fingerprint(format!("SHA256:{name}"));
        let known = HostKeyPolicy::Known;
        assert_eq!(accepting(&["SHA256:h"]), Ok(vec![key("h"), known.clone(), known.clone()]));
        assert_eq!(accepting(&["far:22=SHA256:f"]), Ok(vec![known.clone(), known.clone(), key("f")]));
        assert_eq!(
            accepting(&["near:22=SHA256:n", "host:22=SHA256:h", "far:22=SHA256:f"]),
            Ok(vec![key("h"), key("n"), key("f")])
        );
        assert_eq!(accepting(&["elsewhere:22=SHA256:e"]), Err("elsewhere:22".to_owned()));
    }

    #[test]
    fn a_pinned_key_stays() {
        let mut pinned = target("host", None);
        pinned.host_key = HostKeyPolicy::Pinned("ssh-ed25519 AAAA".to_owned());
        let accepting = pinned.accepting(&["SHA256:h".parse().unwrap()]).unwrap();
        assert_eq!(accepting, pinned);
    }

    #[test]
    fn what_is_no_fingerprint_is_refused() {
        for text in ["", "MD5:00", "=SHA256:a", "host:22=", "host:22"] {
            assert!(text.parse::<VerifiedHostKey>().is_err(), "{text}");
        }
    }
}
