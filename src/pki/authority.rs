//! A certificate authority and what it signs.

use jiff::Timestamp;
use rand::CryptoRng;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    PublicKeyData, SubjectPublicKeyInfo,
};
use x509_parser::prelude::X509Certificate;

use super::certificate_request::ParsedCsr;
use super::ecdsa;
use super::leaf::{Leaf, LeafError, LeafPair};
use super::serial::Serial;
use super::validity::{Validity, days};

/// Ten years, as in kubeadm and MetalK8s.
const CA_DAYS: u32 = 3650;

/// A certificate that may sign others, and its private key. The two belong together.
pub struct Authority {
    certificate: String,
    key: String,
    issuer: Issuer<'static, KeyPair>,
    validity: Validity,
}

/// Why a CA cannot be used, or does not sign.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AuthorityError {
    /// Not PEM, or not an X.509 certificate.
    #[error("cannot read the CA certificate: {reason}")]
    Certificate {
        /// The parser's message.
        reason: String,
    },
    /// The private key is not PKCS #8 PEM (ring reads neither PKCS #1 nor SEC1, which kubeadm and MetalK8s
    /// write; `openssl pkey` converts them).
    #[error("cannot read the CA's private key as PKCS #8 PEM: {reason}")]
    Key {
        /// The parser's message.
        reason: String,
    },
    /// The certificate has another public key.
    #[error("the CA certificate and the private key do not belong together")]
    Mismatch,
    /// The certificate may not sign certificates (basic constraints).
    #[error("the certificate of {subject} is not a CA certificate")]
    NotAnAuthority {
        /// Its subject.
        subject: String,
    },
    /// The CA's certificate is expired or not yet valid.
    #[error("the CA certificate is valid from {from} until {until} only")]
    NotValidNow {
        /// First moment.
        from: Timestamp,
        /// Last moment.
        until: Timestamp,
    },
    /// The leaf cannot be encoded.
    #[error(transparent)]
    Leaf(#[from] LeafError),
    /// A key could not be generated or used.
    #[error("cannot make the certificate: {reason}")]
    Signing {
        /// rcgen's message.
        reason: String,
    },
}

impl Authority {
    /// Generates a CA with an ECDSA P-256 key, valid for ten years. It may sign leaf certificates only (path
    /// length 0).
    ///
    /// # Errors
    /// When the certificate cannot be encoded.
    pub fn create(
        common_name: &str,
        now: Timestamp,
        rng: &mut impl CryptoRng,
    ) -> Result<Self, AuthorityError> {
        let key = ecdsa::generate(rng).map_err(signing)?;
        let mut subject = DistinguishedName::new();
        subject.push(DnType::CommonName, common_name);
        let mut parameters = CertificateParams::default();
        parameters.distinguished_name = subject;
        parameters.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        parameters.key_usages =
            vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        parameters.serial_number = Some(Serial::random(rng).into());
        Validity::starting(now, days(CA_DAYS)).put(&mut parameters);
        let certificate = parameters.self_signed(&key).map_err(signing)?;
        Self::from_pem(&certificate.pem(), &key.serialize_pem())
    }

    /// Reads a CA from PEM: ECDSA or RSA, the key in PKCS #8.
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

    /// PEM.
    pub fn certificate(&self) -> &str {
        &self.certificate
    }

    /// PEM. A secret.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The period in which it may sign.
    pub fn validity(&self) -> Validity {
        self.validity
    }

    /// Issues `leaf` for the public key of `request`. Nothing else of the request is used; whether the leaf
    /// grants what was requested is decided by the caller. Returns the certificate, PEM.
    ///
    /// # Errors
    /// When the leaf cannot be encoded, or the CA is not valid now.
    pub fn issue(
        &self,
        leaf: &Leaf,
        request: &ParsedCsr,
        now: Timestamp,
        serial: Serial,
    ) -> Result<String, AuthorityError> {
        let public_key = SubjectPublicKeyInfo::from_der(request.public_key()).map_err(signing)?;
        self.sign(leaf, &public_key, now, serial)
    }

    /// Issues a leaf with a new ECDSA P-256 key, for files on the bootstrap node itself.
    ///
    /// # Errors
    /// As [`Authority::issue`].
    pub fn issue_pair(
        &self,
        leaf: &Leaf,
        now: Timestamp,
        rng: &mut impl CryptoRng,
    ) -> Result<LeafPair, AuthorityError> {
        let key = ecdsa::generate(rng).map_err(signing)?;
        let certificate = self.sign(leaf, &key, now, Serial::random(rng))?;
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
        let wanted = Validity::starting(now, leaf.lifetime);
        let mut parameters = leaf.parameters()?;
        parameters.serial_number = Some(serial.into());
        // A leaf that outlives its CA would be rejected before its own end.
        Validity { not_before: wanted.not_before.max(from), not_after: wanted.not_after.min(until) }
            .put(&mut parameters);
        Ok(parameters.signed_by(public_key, &self.issuer).map_err(signing)?.pem())
    }
}

pub(super) fn validity(certificate: &X509Certificate<'_>) -> Result<Validity, jiff::Error> {
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
