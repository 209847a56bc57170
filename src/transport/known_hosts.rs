//! Known host keys, and the verdict on the key that a host presents.
//!
//! The format is that of OpenSSH (sshd(8), "SSH_KNOWN_HOSTS FILE FORMAT"): plain, negated, wildcard and
//! hashed names, ports in brackets, `@revoked`, `@cert-authority`. A line that cannot be parsed is skipped, as by
//! OpenSSH.

pub mod certificate;
pub mod file;
pub mod pattern;

use russh::keys::ssh_key::known_hosts::{Entry, Marker};
use russh::keys::{Algorithm, EcdsaCurve, HashAlg, PublicKey};

use self::pattern::{host_field, matches};
use crate::model::ssh_target::HostKeyPolicy;

/// The lines of known_hosts files that could be parsed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KnownHosts(Vec<Line>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Line {
    /// `FILE:LINE`, counted from 1.
    place: String,
    entry: Entry,
}

/// The verdict on a host key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyVerdict {
    /// The key is the expected one.
    Accept,
    /// The host is new, and its key may be remembered.
    Remember,
    /// The host is new.
    Unknown,
    /// The key is not the expected one.
    Mismatch {
        /// Fingerprint, and its source.
        expected: String,
    },
}

impl KnownHosts {
    /// Parses the content of the file of this name. Never fails: see the module.
    pub fn parse(file: &str, text: &str) -> Self {
        let entry = |line: &str| -> Option<Entry> {
            if line.starts_with('#') {
                return None;
            }
            // OpenSSH accepts any blanks between fields; the parser of entries accepts one space.
            let fields: Vec<&str> = line.split_whitespace().collect();
            let kept = if line.starts_with('@') { 4 } else { 3 };
            fields.get(..kept)?.join(" ").parse().ok()
        };
        let lines = text.lines().zip(1..).filter_map(|(line, number)| {
            Some(Line { place: format!("{file}:{number}"), entry: entry(line.trim())? })
        });
        Self(lines.collect())
    }

    /// Adds the lines of another file.
    pub fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    fn of<'a>(&'a self, host: &str, port: u16, marker: Option<Marker>) -> impl Iterator<Item = &'a Line> {
        let name = host_field(host, port);
        self.0.iter().filter(move |line| {
            line.entry.marker().copied() == marker && matches(line.entry.host_patterns(), &name)
        })
    }
}

/// The verdict on a key. A revoked key is never accepted, not even a pinned one; a host with any known key is never
/// treated as new, whatever type of key it presents.
pub fn verdict(
    policy: &HostKeyPolicy,
    known: &KnownHosts,
    host: &str,
    port: u16,
    key: &PublicKey,
) -> KeyVerdict {
    let same = |line: &&Line| line.entry.public_key().key_data() == key.key_data();
    if let Some(line) = known.of(host, port, Some(Marker::Revoked)).find(same) {
        return KeyVerdict::Mismatch {
            expected: format!("another key (this one is revoked in {})", line.place),
        };
    }
    if let HostKeyPolicy::Pinned(text) = policy {
        return match PublicKey::from_openssh(text) {
            Ok(pinned) if pinned.key_data() == key.key_data() => KeyVerdict::Accept,
            Ok(pinned) => KeyVerdict::Mismatch { expected: format!("{} (pinned)", describe(&pinned)) },
            Err(error) => {
                KeyVerdict::Mismatch { expected: format!("a pinned key that cannot be parsed ({error})") }
            }
        };
    }
    if let HostKeyPolicy::Fingerprint(expected) = policy {
        return match key.fingerprint(HashAlg::Sha256).to_string() == *expected {
            true if known.of(host, port, None).any(|line| same(&line)) => KeyVerdict::Accept,
            true => KeyVerdict::Remember,
            false => KeyVerdict::Mismatch { expected: expected.clone() },
        };
    }
    let mut lines = known.of(host, port, None);
    match (lines.next(), policy) {
        (Some(first), _) if same(&first) || lines.any(|line| same(&line)) => KeyVerdict::Accept,
        (Some(first), _) => KeyVerdict::Mismatch {
            expected: format!("{} ({})", describe(first.entry.public_key()), first.place),
        },
        (None, HostKeyPolicy::AcceptNew) => KeyVerdict::Remember,
        (None, _) => KeyVerdict::Unknown,
    }
}

/// Algorithm and fingerprint, as in `ssh-keygen -l`: `ssh-ed25519 SHA256:...`.
pub fn describe(key: &PublicKey) -> String {
    format!("{} {}", key.algorithm(), key.fingerprint(HashAlg::Sha256))
}

/// The host key algorithms to request, those of known keys first: otherwise a host with several keys would present
/// another one than was remembered.
pub fn algorithms(policy: &HostKeyPolicy, known: &KnownHosts, host: &str, port: u16) -> Vec<Algorithm> {
    let known: Vec<Algorithm> = match policy {
        HostKeyPolicy::Pinned(text) => {
            PublicKey::from_openssh(text).iter().map(PublicKey::algorithm).collect()
        }
        HostKeyPolicy::Fingerprint(_) => Vec::new(),
        _ => known.of(host, port, None).map(|line| line.entry.public_key().algorithm()).collect(),
    };
    // Without SHA-1 signatures (ssh-rsa): RFC 8332 uses the same keys with a secure signature.
    let mut all = vec![
        Algorithm::Ed25519,
        Algorithm::Ecdsa { curve: EcdsaCurve::NistP256 },
        Algorithm::Ecdsa { curve: EcdsaCurve::NistP384 },
        Algorithm::Ecdsa { curve: EcdsaCurve::NistP521 },
        Algorithm::Rsa { hash: Some(HashAlg::Sha512) },
        Algorithm::Rsa { hash: Some(HashAlg::Sha256) },
    ];
    let rsa = |algorithm: &Algorithm| matches!(algorithm, Algorithm::Rsa { .. });
    let is_known = |algorithm: &Algorithm| {
        known.iter().any(|known| known == algorithm || (rsa(known) && rsa(algorithm)))
    };
    all.sort_by_key(|algorithm| !is_known(algorithm));
    all
}

#[cfg(test)]
mod tests;
