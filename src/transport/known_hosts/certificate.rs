//! Host certificates, and the CAs of `@cert-authority` lines.

use jiff::Timestamp;
use russh::keys::ssh_key::certificate::CertType;
use russh::keys::ssh_key::known_hosts::Marker;
use russh::keys::{Certificate, HashAlg, PublicKey};

use super::pattern::glob;
use super::{KeyVerdict, KnownHosts, describe, verdict};
use crate::model::ssh_target::HostKeyPolicy;

/// The host that a certificate must be valid for.
#[derive(Debug, Clone, Copy)]
pub struct KnownName<'a> {
    /// Name or address, as in the target.
    pub host: &'a str,
    /// TCP port.
    pub port: u16,
}

/// Whether a CA is known for this host, so that a certificate is worth requesting.
pub fn has_ca(policy: &HostKeyPolicy, known: &KnownHosts, host: &str, port: u16) -> bool {
    !matches!(policy, HostKeyPolicy::Pinned(_) | HostKeyPolicy::Fingerprint(_))
        && known.of(host, port, Some(Marker::CertAuthority)).next().is_some()
}

/// Verifies a host's certificate (OpenSSH's PROTOCOL.certkeys) at the time `now`. When no known CA has signed it, its
/// bare key is verified instead.
pub fn certificate_verdict(
    policy: &HostKeyPolicy,
    known: &KnownHosts,
    KnownName { host, port }: KnownName<'_>,
    certificate: &Certificate,
    now: Timestamp,
) -> KeyVerdict {
    let key = PublicKey::new(certificate.public_key().clone(), "");
    let ca = PublicKey::new(certificate.signature_key().clone(), "");
    let is_known = known
        .of(host, port, Some(Marker::CertAuthority))
        .any(|line| line.entry.public_key().key_data() == ca.key_data());
    if !is_known || matches!(policy, HostKeyPolicy::Pinned(_) | HostKeyPolicy::Fingerprint(_)) {
        return verdict(policy, known, host, port, &key);
    }
    let refused = |reason: &str| KeyVerdict::Mismatch {
        expected: format!("a certificate of {} {reason}", describe(&ca)),
    };
    let revoked = known.of(host, port, Some(Marker::Revoked)).any(|line| {
        let revoked = line.entry.public_key().key_data();
        revoked == key.key_data() || revoked == ca.key_data()
    });
    if revoked {
        return refused("that is not revoked");
    }
    let names = certificate.valid_principals();
    let lowercase = host.to_lowercase();
    if certificate.cert_type() != CertType::Host {
        return refused("of the host type");
    }
    if !names.is_empty() && !names.iter().any(|name| glob(&name.to_lowercase(), &lowercase)) {
        return refused(&format!("for this host; it is for {}", names.join(", ")));
    }
    if certificate.critical_options().iter().next().is_some() {
        return refused("without unsupported critical options");
    }
    let seconds = u64::try_from(now.as_second()).unwrap_or_default();
    match certificate.validate_at(seconds, &[ca.fingerprint(HashAlg::Sha256)]) {
        Ok(()) => KeyVerdict::Accept,
        Err(_) => refused("that is valid now"),
    }
}

#[cfg(test)]
mod tests {
    use russh::keys::PrivateKey;
    use russh::keys::ssh_key::certificate::Builder;
    use russh::keys::ssh_key::private::Ed25519Keypair;

    use super::*;

    fn private(number: u8) -> PrivateKey {
        PrivateKey::from(Ed25519Keypair::from_seed(&[number; 32]))
    }

    fn line(marker: &str, names: &str, number: u8) -> String {
        format!("{marker} {names} {}\n", private(number).public_key().to_openssh().unwrap())
    }

    /// Host 1's certificate by CA 9, from second 100 to 200.
    fn certificate(kind: CertType, names: &[&str]) -> Certificate {
        let key = private(1).public_key().clone();
        let mut builder = Builder::new(vec![0; 16], key, 100, 200).unwrap();
        builder.cert_type(kind).unwrap().key_id("host").unwrap();
        if names.is_empty() {
            builder.all_principals_valid().unwrap();
        }
        for name in names {
            builder.valid_principal(*name).unwrap();
        }
        builder.sign(&private(9)).unwrap()
    }

    #[test]
    fn a_certificate_is_accepted_for_its_hosts_and_its_time() {
        let authority = line("@cert-authority", "*.example,[*.example]:2222", 9);
        let host = certificate(CertType::Host, &["a.example", "b*.example"]);
        let any = certificate(CertType::Host, &[]);
        let user = certificate(CertType::User, &["a.example"]);
        let revoked = authority.clone() + &line("@revoked", "*", 1);
        let distrusted = authority.clone() + &line("@revoked", "*", 9);
        let other = line("@cert-authority", "*", 8);
        let bare = format!("a.example {}\n", private(1).public_key().to_openssh().unwrap());
        for (file, name, port, certificate, second, accepted) in [
            (&authority, "a.example", 22, &host, 150, true),
            (&authority, "A.example", 2222, &host, 150, true),
            (&authority, "bb.example", 22, &host, 150, true),
            (&authority, "c.example", 22, &host, 150, false),
            (&authority, "c.example", 22, &any, 150, true),
            (&authority, "c.elsewhere", 22, &any, 150, false),
            (&authority, "a.example", 22, &user, 150, false),
            (&authority, "a.example", 22, &host, 99, false),
            (&authority, "a.example", 22, &host, 200, false),
            (&revoked, "a.example", 22, &host, 150, false),
            (&distrusted, "a.example", 22, &host, 150, false),
            (&other, "a.example", 22, &host, 150, false),
            // Then its bare key is verified.
            (&(other.clone() + &bare), "a.example", 22, &host, 150, true),
        ] {
            let known = KnownHosts::parse("known_hosts", file);
            let now = Timestamp::from_second(second).unwrap();
            let host = KnownName { host: name, port };
            let verdict = certificate_verdict(&HostKeyPolicy::Known, &known, host, certificate, now);
            assert_eq!(
                verdict == KeyVerdict::Accept,
                accepted,
                "{name}:{port} at {second}: {verdict:?}\n{file}"
            );
        }
    }
}
