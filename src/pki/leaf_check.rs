//! Whether an issued certificate is still the one that its CA would issue.

use std::collections::BTreeSet;
use std::net::IpAddr;

use jiff::Timestamp;
use rcgen::{KeyPair, PublicKeyData};
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::X509Certificate;

use super::authority::{self, Authority};
use super::certificate_request::address;
use super::leaf::{Leaf, LeafPair, Usage};

/// Why a certificate must be issued again.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LeafFault {
    /// Not PEM, not X.509, or with an unreadable extension.
    #[error("cannot be read")]
    Unreadable,
    /// The signature does not verify with the CA's key.
    #[error("issued by another CA")]
    OtherIssuer,
    /// The private key is not readable, or does not belong to the certificate.
    #[error("the private key does not belong to the certificate")]
    OtherKey,
    /// It ends too soon.
    #[error("expires {not_after}")]
    Expires {
        /// Its last second.
        not_after: Timestamp,
    },
    /// Subject, alternative names or usages differ.
    #[error("issued for another {field}")]
    Other {
        /// What differs: `subject`, `name`, `usage`.
        field: &'static str,
    },
}

impl Authority {
    /// Checks a certificate and its key: issued by this CA, for exactly `leaf`, and valid beyond `needed_until`
    /// or as long as the CA itself.
    ///
    /// # Errors
    /// The first [`LeafFault`].
    pub fn check(&self, pair: &LeafPair, leaf: &Leaf, needed_until: Timestamp) -> Result<(), LeafFault> {
        let unreadable = |_| LeafFault::Unreadable;
        let own = pem::parse(self.certificate()).map_err(unreadable)?;
        let (_, own) =
            x509_parser::parse_x509_certificate(own.contents()).map_err(|_| LeafFault::Unreadable)?;
        let block = pem::parse(&pair.certificate).map_err(unreadable)?;
        let (_, certificate) =
            x509_parser::parse_x509_certificate(block.contents()).map_err(|_| LeafFault::Unreadable)?;

        let signed = certificate.verify_signature(Some(own.public_key())).is_ok();
        if !signed || certificate.issuer() != own.subject() {
            return Err(LeafFault::OtherIssuer);
        }
        let key = KeyPair::from_pem(&pair.key).map_err(|_| LeafFault::OtherKey)?;
        if key.subject_public_key_info() != certificate.public_key().raw {
            return Err(LeafFault::OtherKey);
        }
        let not_after = authority::validity(&certificate).map_err(|_| LeafFault::Unreadable)?.not_after;
        if not_after <= needed_until && not_after < self.validity().not_after {
            return Err(LeafFault::Expires { not_after });
        }
        check_content(&certificate, leaf)
    }
}

fn check_content(certificate: &X509Certificate<'_>, leaf: &Leaf) -> Result<(), LeafFault> {
    let subject = certificate.subject();
    let attributes = subject.iter_attributes().count();
    let common_name = subject.iter_common_name().next().and_then(|name| name.as_str().ok());
    let organization = subject.iter_organization().next().and_then(|name| name.as_str().ok());
    if attributes != 1 + usize::from(leaf.organization.is_some())
        || common_name != Some(leaf.common_name.as_str())
        || organization != leaf.organization.as_deref()
    {
        return Err(LeafFault::Other { field: "subject" });
    }
    if names(certificate) != Some(leaf.names.iter().map(|name| canonical(name)).collect()) {
        return Err(LeafFault::Other { field: "name" });
    }
    let usages = certificate.extended_key_usage().map_err(|_| LeafFault::Unreadable)?;
    let usages = usages.map(|usages| (usages.value.server_auth, usages.value.client_auth));
    let wanted = (leaf.usages.contains(&Usage::Server), leaf.usages.contains(&Usage::Client));
    if usages != Some(wanted) {
        return Err(LeafFault::Other { field: "usage" });
    }
    Ok(())
}

/// `None` when they contain something else than DNS names and addresses.
fn names(certificate: &X509Certificate<'_>) -> Option<BTreeSet<String>> {
    let Some(names) = certificate.subject_alternative_name().ok()? else { return Some(BTreeSet::new()) };
    let name = |name: &GeneralName<'_>| match name {
        GeneralName::DNSName(name) => Some((*name).to_owned()),
        GeneralName::IPAddress(octets) => address(octets).map(|address| address.to_string()),
        _ => None,
    };
    names.value.general_names.iter().map(name).collect()
}

/// The one spelling of an address.
fn canonical(name: &str) -> String {
    name.parse::<IpAddr>().map_or_else(|_| name.to_owned(), |address| address.to_string())
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;
    use rand::SeedableRng;
    use rand::rngs::StdRng;

    use super::*;

    const NOW: Timestamp = Timestamp::constant(1_800_000_000, 0);

    fn ca(seed: u64) -> Authority {
        Authority::create("metalform-etcd", NOW, &mut StdRng::seed_from_u64(seed)).unwrap()
    }

    fn leaf() -> Leaf {
        Leaf {
            common_name: "metalform-serve".to_owned(),
            organization: None,
            names: vec!["bootstrap".to_owned(), "192.0.2.1".to_owned(), "2001:DB8::1".to_owned()],
            usages: vec![Usage::Server],
            lifetime: crate::pki::validity::days(365),
        }
    }

    fn issued(ca: &Authority, seed: u64) -> LeafPair {
        ca.issue_pair(&leaf(), NOW, &mut StdRng::seed_from_u64(seed)).unwrap()
    }

    #[test]
    fn a_certificate_is_good_for_the_ca_and_content_that_it_was_issued_with() {
        let (first, second) = (ca(1), ca(2));
        let pair = issued(&first, 3);
        assert_eq!(first.check(&pair, &leaf(), NOW), Ok(()));
        // The second CA has the same name.
        assert_eq!(second.check(&pair, &leaf(), NOW), Err(LeafFault::OtherIssuer));
        let other_key = LeafPair { key: issued(&first, 4).key, ..pair.clone() };
        assert_eq!(first.check(&other_key, &leaf(), NOW), Err(LeafFault::OtherKey));
        let no_certificate = LeafPair { certificate: "none".to_owned(), ..pair.clone() };
        assert_eq!(first.check(&no_certificate, &leaf(), NOW), Err(LeafFault::Unreadable));

        let changed = |change: fn(&mut Leaf)| {
            let mut leaf = leaf();
            change(&mut leaf);
            first.check(&pair, &leaf, NOW).unwrap_err()
        };
        let other = |field| LeafFault::Other { field };
        assert_eq!(changed(|leaf| leaf.common_name.push('2')), other("subject"));
        assert_eq!(changed(|leaf| leaf.organization = Some("system:masters".to_owned())), other("subject"));
        assert_eq!(changed(|leaf| leaf.names[1] = "192.0.2.2".to_owned()), other("name"));
        assert_eq!(changed(|leaf| leaf.usages.push(Usage::Client)), other("usage"));
    }

    #[test]
    fn a_certificate_that_ends_too_soon_is_issued_again_unless_its_ca_ends_with_it() {
        let ca = ca(1);
        let pair = issued(&ca, 3);
        let end = NOW + SignedDuration::from_hours(24 * 365);
        assert_eq!(ca.check(&pair, &leaf(), end - SignedDuration::from_secs(1)), Ok(()));
        assert_eq!(ca.check(&pair, &leaf(), end), Err(LeafFault::Expires { not_after: end }));

        let last_year = ca.validity().not_after - SignedDuration::from_hours(24);
        let pair = ca.issue_pair(&leaf(), last_year, &mut StdRng::seed_from_u64(5)).unwrap();
        assert_eq!(ca.check(&pair, &leaf(), ca.validity().not_after), Ok(()));
    }
}
