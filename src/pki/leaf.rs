//! What a leaf certificate contains, and a leaf with its own key.

use std::net::IpAddr;

use jiff::SignedDuration;
use rcgen::{
    CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, KeyUsagePurpose, SanType,
};

/// Extended key usages (RFC 5280 section 4.2.1.12).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Usage {
    /// `serverAuth`.
    Server,
    /// `clientAuth`.
    Client,
}

/// What a leaf certificate must contain, as decided by its issuer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leaf {
    /// Subject common name: the user, to Kubernetes.
    pub common_name: String,
    /// Subject organization: a group, to Kubernetes. At most one: rcgen writes each attribute
    /// of a subject once.
    pub organization: Option<String>,
    /// Subject alternative names: IP addresses and DNS names.
    pub names: Vec<String>,
    pub usages: Vec<Usage>,
    /// How long it is valid from now on; it ends with the CA's where that is sooner.
    pub lifetime: SignedDuration,
}

/// A certificate and its private key, for files on the bootstrap node.
#[derive(Clone, PartialEq, Eq)]
pub struct LeafPair {
    /// PEM.
    pub certificate: String,
    /// PKCS #8 PEM.
    pub key: String,
}

/// Why a leaf cannot be encoded as a certificate.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LeafError {
    /// A subject alternative name is neither an address nor ASCII.
    #[error("{name:?} is neither an IP address nor a DNS name")]
    Name { name: String },
}

impl Leaf {
    /// Everything but validity, serial number and key.
    pub(super) fn parameters(&self) -> Result<CertificateParams, LeafError> {
        let mut subject = DistinguishedName::new();
        if let Some(organization) = &self.organization {
            subject.push(DnType::OrganizationName, organization.as_str());
        }
        subject.push(DnType::CommonName, self.common_name.as_str());

        let mut parameters = CertificateParams::default();
        parameters.distinguished_name = subject;
        parameters.subject_alt_names =
            self.names.iter().map(|name| alternative_name(name)).collect::<Result<_, _>>()?;
        parameters.is_ca = IsCa::ExplicitNoCa;
        parameters.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        parameters.extended_key_usages = self
            .usages
            .iter()
            .map(|usage| match usage {
                Usage::Server => ExtendedKeyUsagePurpose::ServerAuth,
                Usage::Client => ExtendedKeyUsagePurpose::ClientAuth,
            })
            .collect();
        parameters.use_authority_key_identifier_extension = true;
        Ok(parameters)
    }
}

fn alternative_name(name: &str) -> Result<SanType, LeafError> {
    if let Ok(address) = name.parse::<IpAddr>() {
        return Ok(SanType::IpAddress(address));
    }
    let wrong = || LeafError::Name { name: name.to_owned() };
    let dns = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'*' | b'_');
    if name.is_empty() || !name.bytes().all(dns) {
        return Err(wrong());
    }
    name.try_into().map(SanType::DnsName).map_err(|_| wrong())
}
