//! Comparison of an observed certificate with the desired one (RFC 5280).

use std::collections::BTreeSet;
use std::net::IpAddr;

use jiff::Timestamp;
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;
use x509_parser::pem::{Pem, parse_x509_pem};

use crate::resource::contract::change::Change;
use crate::resource::contract::refusal::Refusal;
use crate::resource::contract::step::{CertificateRequest, KeyUsage};

const SECONDS_A_DAY: i64 = 86_400;

/// The first certificate of a PEM file. It parses.
pub struct Issued(Pem);

impl Issued {
    /// `None` where it is not a certificate.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let (_, pem) = parse_x509_pem(text).ok()?;
        pem.parse_x509().ok()?;
        Some(Self(pem))
    }

    fn certificate(&self) -> X509Certificate<'_> {
        self.0.parse_x509().expect("it parses, because parse() checked it")
    }

    /// Compares subject, names, usages and signature.
    pub fn compare(
        &self,
        request: &CertificateRequest,
        authority: &str,
        change: &mut Change,
    ) -> Result<(), Refusal> {
        let found = self.certificate();
        let common_name: BTreeSet<String> = strings(found.subject().iter_common_name());
        let organizations = strings(found.subject().iter_organization());
        compare_sets("common_name", &common_name, &[request.common_name.clone()].into(), change);
        compare_sets(
            "organizations",
            &organizations,
            &request.organizations.iter().cloned().collect(),
            change,
        );
        compare_sets(
            "names",
            &names(&found),
            &request.names.iter().map(|name| normal(name)).collect(),
            change,
        );
        compare_sets(
            "usages",
            &usages(&found),
            &request.usages.iter().map(|usage| usage_name(*usage)).collect(),
            change,
        );

        let broken = || Refusal::BrokenAuthority { authority: request.authority.clone() };
        let signer = Self::parse(authority.as_bytes()).ok_or_else(broken)?;
        let signer = signer.certificate();
        let signed = found.issuer().as_raw() == signer.subject().as_raw()
            && found.verify_signature(Some(signer.public_key())).is_ok();
        if !signed {
            change.field("signed by", Some(&found.issuer().to_string()), Some(&signer.subject().to_string()));
        }
        Ok(())
    }

    /// Compares the validity: it must begin by now, and not end within `renew_before` days.
    pub fn compare_validity(&self, now: Timestamp, renew_before: u32, change: &mut Change) {
        let found = self.certificate();
        let validity = found.validity();
        let days_left = (validity.not_after.timestamp() - now.as_second()).div_euclid(SECONDS_A_DAY);
        if validity.not_before.timestamp() > now.as_second() {
            change.field("validity", Some("starts in the future"), Some("renewed"));
        } else if days_left < 0 {
            change.field("validity", Some(&format!("expired {} days ago", -days_left)), Some("renewed"));
        } else if days_left < i64::from(renew_before) {
            change.field("validity", Some(&format!("expires in {days_left} days")), Some("renewed"));
        }
    }
}

fn strings<'a>(
    attributes: impl Iterator<Item = &'a x509_parser::x509::AttributeTypeAndValue<'a>>,
) -> BTreeSet<String> {
    attributes.map(|attribute| attribute.as_str().unwrap_or("(not a string)").to_owned()).collect()
}

/// Names of other types are included, so that they differ.
fn names(certificate: &X509Certificate<'_>) -> BTreeSet<String> {
    let Ok(Some(extension)) = certificate.subject_alternative_name() else { return BTreeSet::new() };
    let text = |name: &GeneralName<'_>| match name {
        GeneralName::DNSName(name) => normal(name),
        GeneralName::IPAddress(bytes) => match (<[u8; 4]>::try_from(*bytes), <[u8; 16]>::try_from(*bytes)) {
            (Ok(v4), _) => IpAddr::from(v4).to_string(),
            (_, Ok(v6)) => IpAddr::from(v6).to_string(),
            _ => format!("{name}"),
        },
        _ => format!("{name}"),
    };
    extension.value.general_names.iter().map(text).collect()
}

/// An address has several spellings; DNS names are case-insensitive.
fn normal(name: &str) -> String {
    name.parse::<IpAddr>().map_or_else(|_| name.to_ascii_lowercase(), |address| address.to_string())
}

fn usages(certificate: &X509Certificate<'_>) -> BTreeSet<String> {
    let Ok(Some(extension)) = certificate.extended_key_usage() else { return BTreeSet::new() };
    let usage = extension.value;
    let known = [(usage.server_auth, KeyUsage::Server), (usage.client_auth, KeyUsage::Client)];
    let mut texts: BTreeSet<String> =
        known.into_iter().filter(|(has, _)| *has).map(|(_, usage)| usage_name(usage)).collect();
    if usage.any
        || usage.code_signing
        || usage.email_protection
        || usage.time_stamping
        || usage.ocsp_signing
        || !usage.other.is_empty()
    {
        texts.insert("others".to_owned());
    }
    texts
}

fn usage_name(usage: KeyUsage) -> String {
    match usage {
        KeyUsage::Server => "server",
        KeyUsage::Client => "client",
    }
    .to_owned()
}

fn compare_sets(field: &str, found: &BTreeSet<String>, desired: &BTreeSet<String>, change: &mut Change) {
    if found != desired {
        let [found, desired] =
            [found, desired].map(|set| set.iter().map(String::as_str).collect::<Vec<_>>().join(", "));
        change.field(field, Some(&found), Some(&desired));
    }
}
