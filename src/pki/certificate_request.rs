//! Certificate signing requests (PKCS #10, RFC 2986): the one type and the one parser.
//!
//! A request is parsed once, a caller decides on the value, and [`super::authority::Authority::issue`] signs for that
//! very value.

use std::collections::BTreeSet;
use std::net::IpAddr;

use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::cri_attributes::ParsedCriAttribute;
use x509_parser::extensions::{GeneralName, ParsedExtension, X509Extension};
use x509_parser::oid_registry::{OID_X509_COMMON_NAME, OID_X509_ORGANIZATION_NAME};
use x509_parser::prelude::FromDer;
use x509_parser::x509::AttributeTypeAndValue;

/// What a request contains. Only [`ParsedCsr::from_pem`] makes one, so its signature was verified: the requester
/// has the private key of [`ParsedCsr::public_key`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParsedCsr {
    /// Subject common name; empty where there is none.
    pub common_name: String,
    /// Subject organizations, in order.
    pub organizations: Vec<String>,
    /// Subject alternative names that are DNS names.
    pub dns_names: BTreeSet<String>,
    /// Subject alternative names that are IP addresses.
    pub addresses: BTreeSet<IpAddr>,
    /// Everything else that is requested, by object identifier: `extension 2.5.29.15`.
    pub extras: Vec<String>,
    public_key: Vec<u8>,
}

/// Why a request is not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CsrError {
    /// Not one PEM block of type `CERTIFICATE REQUEST`.
    #[error("the certificate request is not PEM of type CERTIFICATE REQUEST")]
    NotPem,
    /// The DER inside is not a request.
    #[error("cannot read the certificate request: {reason}")]
    Unreadable {
        /// The parser's message.
        reason: String,
    },
    /// It is not signed with its own key.
    #[error("the certificate request is not signed with its own key")]
    Signature,
    /// A second common name, an attribute other than common name and organization, or one that is not a string.
    #[error("the subject attribute {attribute} is not allowed in a certificate request")]
    SubjectAttribute {
        /// Its object identifier.
        attribute: String,
    },
    /// An alternative name that is neither a DNS name nor an IP address: a URI, an e-mail address.
    #[error("the certificate request contains the name {name}; only DNS names and IP addresses are allowed")]
    AlternativeName {
        /// As printed by the parser.
        name: String,
    },
}

impl ParsedCsr {
    /// Reads a request and verifies its signature.
    ///
    /// # Errors
    /// [`CsrError`]; none of them is transient.
    pub fn from_pem(pem: &[u8]) -> Result<Self, CsrError> {
        let block = pem::parse(pem).map_err(|_| CsrError::NotPem)?;
        // OpenSSL before 3.0 could write the older label "NEW CERTIFICATE REQUEST"; RFC 7468 section 7 has one.
        if block.tag() != "CERTIFICATE REQUEST" {
            return Err(CsrError::NotPem);
        }
        let (rest, request) = X509CertificationRequest::from_der(block.contents())
            .map_err(|error| CsrError::Unreadable { reason: error.to_string() })?;
        if !rest.is_empty() {
            return Err(CsrError::Unreadable { reason: format!("{} bytes follow it", rest.len()) });
        }
        request.verify_signature().map_err(|_| CsrError::Signature)?;

        let info = &request.certification_request_info;
        let mut parsed = Self {
            common_name: String::new(),
            organizations: Vec::new(),
            dns_names: BTreeSet::new(),
            addresses: BTreeSet::new(),
            extras: Vec::new(),
            public_key: info.subject_pki.raw.to_vec(),
        };
        for attribute in info.subject.iter_attributes() {
            parsed.add_subject_attribute(attribute)?;
        }
        for attribute in info.iter_attributes() {
            match attribute.parsed_attribute() {
                ParsedCriAttribute::ExtensionRequest(request) => {
                    for extension in &request.extensions {
                        parsed.add_extension(extension)?;
                    }
                }
                _ => parsed.extras.push(format!("attribute {}", attribute.oid)),
            }
        }
        Ok(parsed)
    }

    /// SubjectPublicKeyInfo, DER.
    pub fn public_key(&self) -> &[u8] {
        &self.public_key
    }

    fn add_subject_attribute(&mut self, attribute: &AttributeTypeAndValue<'_>) -> Result<(), CsrError> {
        let oid = attribute.attr_type();
        let refused = || CsrError::SubjectAttribute { attribute: oid.to_id_string() };
        let value = attribute.as_str().map_err(|_| refused())?.to_owned();
        if *oid == OID_X509_COMMON_NAME {
            // Of several common names each reader would use another one.
            if !self.common_name.is_empty() {
                return Err(refused());
            }
            self.common_name = value;
        } else if *oid == OID_X509_ORGANIZATION_NAME {
            self.organizations.push(value);
        } else {
            return Err(refused());
        }
        Ok(())
    }

    fn add_extension(&mut self, extension: &X509Extension<'_>) -> Result<(), CsrError> {
        match extension.parsed_extension() {
            ParsedExtension::SubjectAlternativeName(names) => {
                names.general_names.iter().try_for_each(|name| self.add_name(name))
            }
            _ => {
                self.extras.push(format!("extension {}", extension.oid));
                Ok(())
            }
        }
    }

    fn add_name(&mut self, name: &GeneralName<'_>) -> Result<(), CsrError> {
        let refused = || CsrError::AlternativeName { name: name.to_string() };
        match name {
            GeneralName::DNSName(name) => {
                self.dns_names.insert((*name).to_owned());
            }
            GeneralName::IPAddress(octets) => {
                self.addresses.insert(address(octets).ok_or_else(refused)?);
            }
            _ => return Err(refused()),
        }
        Ok(())
    }
}

/// An address of an alternative name: 4 octets or 16.
pub(super) fn address(octets: &[u8]) -> Option<IpAddr> {
    if let Ok(four) = <[u8; 4]>::try_from(octets) {
        return Some(four.into());
    }
    <[u8; 16]>::try_from(octets).ok().map(IpAddr::from)
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DnType, KeyPair, SanType};

    use super::*;

    fn parse(pem: &str) -> Result<ParsedCsr, CsrError> {
        ParsedCsr::from_pem(pem.as_bytes())
    }

    fn request(change: impl FnOnce(&mut CertificateParams)) -> String {
        let mut parameters = CertificateParams::default();
        parameters.distinguished_name = rcgen::DistinguishedName::new();
        parameters.distinguished_name.push(DnType::OrganizationName, "system:nodes");
        parameters.distinguished_name.push(DnType::CommonName, "system:node:node-1");
        change(&mut parameters);
        parameters.serialize_request(&KeyPair::generate().unwrap()).unwrap().pem().unwrap()
    }

    #[test]
    fn a_kubelet_request_is_read() {
        let csr = parse(&request(|parameters| {
            parameters.subject_alt_names = vec![
                SanType::DnsName("node-1".try_into().unwrap()),
                SanType::IpAddress("10.0.0.1".parse().unwrap()),
                SanType::IpAddress("fd00::1".parse().unwrap()),
            ];
        }))
        .unwrap();
        assert_eq!(csr.common_name, "system:node:node-1");
        assert_eq!(csr.organizations, ["system:nodes"]);
        assert_eq!(csr.dns_names, BTreeSet::from(["node-1".to_owned()]));
        assert_eq!(csr.addresses, BTreeSet::from(["10.0.0.1".parse().unwrap(), "fd00::1".parse().unwrap()]));
        assert_eq!(csr.extras, Vec::<String>::new());
    }

    #[test]
    fn a_request_that_openssl_made_on_a_host_is_read() {
        let csr = parse(include_str!("../../tests/config/pki/openssl.csr")).unwrap();
        assert_eq!(csr.common_name, "system:node:node-1");
        assert_eq!(csr.organizations, ["system:nodes"]);
        assert_eq!(csr.dns_names, BTreeSet::from(["node-1".to_owned()]));
        assert_eq!(csr.addresses, BTreeSet::from(["10.0.0.1".parse().unwrap()]));
    }

    #[test]
    fn names_and_attributes_that_no_node_needs_are_refused() {
        let uri = request(|p| p.subject_alt_names = vec![SanType::URI("https://a".try_into().unwrap())]);
        assert!(matches!(parse(&uri), Err(CsrError::AlternativeName { .. })));
        let mail = request(|p| p.subject_alt_names = vec![SanType::Rfc822Name("a@b".try_into().unwrap())]);
        assert!(matches!(parse(&mail), Err(CsrError::AlternativeName { .. })));
        let country = request(|p| p.distinguished_name.push(DnType::CountryName, "FR"));
        assert_eq!(parse(&country), Err(CsrError::SubjectAttribute { attribute: "2.5.4.6".into() }));
    }

    #[test]
    fn two_common_names_are_refused() {
        let second = DnType::CustomDnType(vec![2, 5, 4, 3]);
        let two = request(|p| p.distinguished_name.push(second, "system:node:node-2"));
        assert_eq!(parse(&two), Err(CsrError::SubjectAttribute { attribute: "2.5.4.3".into() }));
    }

    #[test]
    fn other_extensions_are_listed() {
        let csr = parse(&request(|p| p.key_usages.push(rcgen::KeyUsagePurpose::KeyCertSign))).unwrap();
        assert_eq!(csr.extras, ["extension 2.5.29.15"]);
    }

    #[test]
    fn a_request_that_its_key_did_not_sign_is_refused() {
        let block = pem::parse(request(|_| ())).unwrap();
        let mut der = block.contents().to_vec();
        // The subject is inside what is signed.
        let at = der.windows(6).position(|window| window == b"node-1").unwrap();
        der[at + 5] = b'2';
        let forged = pem::encode(&pem::Pem::new("CERTIFICATE REQUEST", der));
        assert_eq!(parse(&forged), Err(CsrError::Signature));
    }

    #[test]
    fn what_is_not_a_request_is_refused() {
        assert_eq!(parse("hello"), Err(CsrError::NotPem));
        let other = pem::encode(&pem::Pem::new("CERTIFICATE", vec![0]));
        assert_eq!(parse(&other), Err(CsrError::NotPem));
        let rubbish = pem::encode(&pem::Pem::new("CERTIFICATE REQUEST", vec![0, 1, 2]));
        assert!(matches!(parse(&rubbish), Err(CsrError::Unreadable { .. })));
    }
}
