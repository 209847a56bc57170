//! A certificate authority: made once, loaded ever after, and what it signs.

use jiff::Timestamp;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    PublicKeyData, SubjectPublicKeyInfo,
};
use x509_parser::prelude::X509Certificate;

use super::certificate_request::{CsrError, parse_csr};
use super::leaf::{Leaf, LeafError, LeafPair};
use super::serial::Serial;
use super::validity::Validity;

/// Ten years, as kubeadm and MetalK8s have it.
const AUTHORITY_DAYS: u32 = 3650;

/// A certificate that may sign others, and its private key. The two belong together.
pub struct Authority {
    certificate: String,
    key: String,
    issuer: Issuer<'static, KeyPair>,
    validity: Validity,
}

/// Why an authority cannot be used, or does not sign.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AuthorityError {
    /// The certificate is not PEM, or not an X.509 certificate.
    #[error("the authority's certificate cannot be read: {reason}")]
    Certificate {
        /// What the parser said.
        reason: String,
    },
    /// The private key is not PKCS #8 PEM (ring reads neither PKCS #1 nor SEC1, which kubeadm and MetalK8s
    /// write; `openssl pkey` converts them).
    #[error("the authority's private key cannot be read as PKCS #8 PEM: {reason}")]
    Key {
        /// What the parser said.
        reason: String,
    },
    /// The certificate has another public key.
    #[error("the authority's certificate and private key do not belong together")]
    Mismatch,
    /// The certificate may not sign certificates (basic constraints).
    #[error("the certificate of {subject} is not an authority's")]
    NotAnAuthority {
        /// Its subject.
        subject: String,
    },
    /// The authority's certificate is no longer, or not yet, valid.
    #[error("the authority is valid from {from} until {until} only")]
    NotValidNow {
        /// First moment.
        from: Timestamp,
        /// Last moment.
        until: Timestamp,
    },
    /// The request is not acceptable.
    #[error(transparent)]
    Request(#[from] CsrError),
    /// The leaf cannot be written.
    #[error(transparent)]
    Leaf(#[from] LeafError),
    /// A key could not be made or used.
    #[error("the certificate cannot be made: {reason}")]
    Signing {
        /// What rcgen said.
        reason: String,
    },
}

impl Authority {
    /// Makes a new one with a fresh ECDSA P-256 key, valid for ten years. It may sign leaves only (path
    /// length 0).
    ///
    /// # Errors
    /// When the system has no randomness to give.
    pub fn create(common_name: &str, now: Timestamp, serial: Serial) -> Result<Self, AuthorityError> {
        let key = KeyPair::generate().map_err(signing)?;
        let mut subject = DistinguishedName::new();
        subject.push(DnType::CommonName, common_name);
        let mut parameters = CertificateParams::default();
        parameters.distinguished_name = subject;
        parameters.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        parameters.key_usages =
            vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        parameters.serial_number = Some(serial.into());
        Validity::starting(now, AUTHORITY_DAYS).put(&mut parameters);
        let certificate = parameters.self_signed(&key).map_err(signing)?;
        Self::from_pem(&certificate.pem(), &key.serialize_pem())
    }

    /// Reads one from PEM texts: ECDSA or RSA, the key in PKCS #8.
    ///
    /// # Errors
    /// When either cannot be read, when they do not belong together, or when the certificate may not sign.
    pub fn from_pem(certificate: &str, key: &str) -> Result<Self, AuthorityError> {
        let unreadable = |reason: String| AuthorityError::Certificate { reason };
        let block = pem::parse(certificate).map_err(|error| unreadable(error.to_string()))?;
        let (_, parsed) = x509_parser::parse_x509_certificate(block.contents())
            .map_err(|error| unreadable(error.to_string()))?;
        if !parsed.is_ca() {
            return Err(AuthorityError::NotAnAuthority { subject: parsed.subject().to_string() });
        }
        let pair =
            KeyPair::from_pem(key).map_err(|error| AuthorityError::Key { reason: error.to_string() })?;
        if pair.subject_public_key_info() != parsed.public_key().raw {
            return Err(AuthorityError::Mismatch);
        }
        Ok(Self {
            validity: validity(&parsed).map_err(|error| unreadable(error.to_string()))?,
            issuer: Issuer::from_ca_cert_pem(certificate, pair)
                .map_err(|error| unreadable(error.to_string()))?,
            certificate: certificate.to_owned(),
            key: key.to_owned(),
        })
    }

    /// Its certificate, PEM.
    pub fn certificate(&self) -> &str {
        &self.certificate
    }

    /// Its private key, PEM. A secret.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// From when until when it may sign.
    pub fn validity(&self) -> Validity {
        self.validity
    }

    /// Answers a request: the public key is taken from it, and nothing else. The request must be signed
    /// with that key, which proves possession. Gives the certificate, PEM.
    ///
    /// # Errors
    /// When the request is not acceptable, the leaf cannot be written, or the authority is not valid now.
    pub fn issue(
        &self,
        leaf: &Leaf,
        request: &str,
        now: Timestamp,
        serial: Serial,
    ) -> Result<String, AuthorityError> {
        let facts = parse_csr(request)?;
        let public_key = SubjectPublicKeyInfo::from_der(&facts.public_key).map_err(signing)?;
        self.sign(leaf, &public_key, now, serial)
    }

    /// Issues with a fresh ECDSA P-256 key, for files on the very node that issues.
    ///
    /// # Errors
    /// As [`Authority::issue`].
    pub fn issue_pair(
        &self,
        leaf: &Leaf,
        now: Timestamp,
        serial: Serial,
    ) -> Result<LeafPair, AuthorityError> {
        let key = KeyPair::generate().map_err(signing)?;
        let certificate = self.sign(leaf, &key, now, serial)?;
        Ok(LeafPair { certificate, key: key.serialize_pem() })
    }

    fn sign(
        &self,
        leaf: &Leaf,
        public_key: &impl PublicKeyData,
        now: Timestamp,
        serial: Serial,
    ) -> Result<String, AuthorityError> {
        let Validity { not_before: from, not_after: until } = self.validity;
        if !(from..=until).contains(&now) {
            return Err(AuthorityError::NotValidNow { from, until });
        }
        let wanted = Validity::starting(now, leaf.days);
        let mut parameters = leaf.parameters()?;
        parameters.serial_number = Some(serial.into());
        // A leaf that outlives its authority would fail long before its own date says so.
        Validity { not_before: wanted.not_before.max(from), not_after: wanted.not_after.min(until) }
            .put(&mut parameters);
        Ok(parameters.signed_by(public_key, &self.issuer).map_err(signing)?.pem())
    }
}

fn validity(certificate: &X509Certificate<'_>) -> Result<Validity, jiff::Error> {
    Ok(Validity {
        not_before: Timestamp::from_second(certificate.validity().not_before.timestamp())?,
        not_after: Timestamp::from_second(certificate.validity().not_after.timestamp())?,
    })
}

fn signing(error: rcgen::Error) -> AuthorityError {
    AuthorityError::Signing { reason: error.to_string() }
}

#[cfg(test)]
#[path = "authority_tests.rs"]
mod tests;
