//! What a certificate signing request (RFC 2986) asks for.

use std::collections::BTreeSet;
use std::net::IpAddr;

use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::cri_attributes::ParsedCriAttribute;
use x509_parser::extensions::{GeneralName, ParsedExtension, X509Extension};
use x509_parser::oid_registry::{OID_X509_COMMON_NAME, OID_X509_ORGANIZATION_NAME};
use x509_parser::prelude::FromDer;
use x509_parser::x509::X509Name;

/// Everything in a request that a verdict may rest on. What has no field of its own is in `others`, so that
/// nothing is signed that nobody looked at.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CsrFacts {
    /// Common names of the subject; a well-formed request has one.
    pub common_names: Vec<String>,
    /// Organizations of the subject, which Kubernetes reads as groups.
    pub organizations: Vec<String>,
    /// Subject alternative names that are DNS names.
    pub dns_names: BTreeSet<String>,
    /// Subject alternative names that are addresses.
    pub addresses: BTreeSet<IpAddr>,
    /// What else it asks for: other attributes of the subject, other sorts of names, other extensions.
    pub others: Vec<String>,
}

/// Why a request cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CsrError {
    /// It is not PEM with the label of a request.
    #[error("it is not one PEM block of a certificate request")]
    NotPem,
    /// The PEM block holds something else.
    #[error("it is not a certificate request")]
    NotARequest,
    /// Who asks does not have the key.
    #[error("its signature does not belong to its key")]
    NotSigned,
}

impl CsrFacts {
    /// Reads a request and checks that who made it has its key.
    ///
    /// # Errors
    /// [`CsrError`]; none of them passes by itself.
    pub fn parse(pem: &[u8]) -> Result<Self, CsrError> {
        let block = pem::parse(pem).map_err(|_| CsrError::NotPem)?;
        if block.tag() != "CERTIFICATE REQUEST" {
            return Err(CsrError::NotPem);
        }
        let (rest, request) =
            X509CertificationRequest::from_der(block.contents()).map_err(|_| CsrError::NotARequest)?;
        if !rest.is_empty() {
            return Err(CsrError::NotARequest);
        }
        request.verify_signature().map_err(|_| CsrError::NotSigned)?;
        let mut facts = Self::default();
        facts.read_subject(&request.certification_request_info.subject);
        for attribute in request.certification_request_info.iter_attributes() {
            match attribute.parsed_attribute() {
                ParsedCriAttribute::ExtensionRequest(asked) => {
                    asked.extensions.iter().for_each(|extension| facts.read(extension))
                }
                _ => facts.others.push(format!("attribute {}", attribute.oid)),
            }
        }
        Ok(facts)
    }

    fn read_subject(&mut self, subject: &X509Name<'_>) {
        for attribute in subject.iter_attributes() {
            let oid = attribute.attr_type();
            match attribute.as_str() {
                Ok(text) if *oid == OID_X509_COMMON_NAME => {
                    self.common_names.push(text.to_owned());
                }
                Ok(text) if *oid == OID_X509_ORGANIZATION_NAME => {
                    self.organizations.push(text.to_owned());
                }
                Ok(_) | Err(_) => self.others.push(format!("subject attribute {oid}")),
            }
        }
    }

    fn read(&mut self, extension: &X509Extension<'_>) {
        match extension.parsed_extension() {
            ParsedExtension::SubjectAlternativeName(names) => {
                names.general_names.iter().for_each(|name| self.read_name(name));
            }
            _ => self.others.push(format!("extension {}", extension.oid)),
        }
    }

    fn read_name(&mut self, name: &GeneralName<'_>) {
        match name {
            GeneralName::DNSName(name) => {
                self.dns_names.insert((*name).to_owned());
            }
            GeneralName::IPAddress(bytes) => match address(bytes) {
                Some(address) => {
                    self.addresses.insert(address);
                }
                None => self.others.push("malformed address".to_owned()),
            },
            other => self.others.push(format!("name {other}")),
        }
    }
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    if let Ok(four) = <[u8; 4]>::try_from(bytes) {
        return Some(four.into());
    }
    <[u8; 16]>::try_from(bytes).ok().map(IpAddr::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::csr_verdict::tests::request;
    use rcgen::{CertificateParams, DnType, DnValue, KeyPair, SanType};

    #[test]
    fn a_request_is_read_whole() {
        let pem = request("system:node:n1", &["system:nodes"], &["n1"], &["192.0.2.11", "2001:db8::11"]);
        assert_eq!(
            CsrFacts::parse(pem.as_bytes()),
            Ok(CsrFacts {
                common_names: vec!["system:node:n1".to_owned()],
                organizations: vec!["system:nodes".to_owned()],
                dns_names: BTreeSet::from(["n1".to_owned()]),
                addresses: BTreeSet::from(["192.0.2.11".parse().unwrap(), "2001:db8::11".parse().unwrap()]),
                others: Vec::new(),
            })
        );
    }

    #[test]
    fn what_is_out_of_the_ordinary_is_not_overlooked() {
        let mut asked = CertificateParams::default();
        asked.distinguished_name.push(DnType::OrganizationalUnitName, DnValue::Utf8String("x".to_owned()));
        asked.subject_alt_names.push(SanType::Rfc822Name("a@b.example".try_into().unwrap()));
        asked.key_usages.push(rcgen::KeyUsagePurpose::KeyCertSign);
        let pem = asked.serialize_request(&KeyPair::generate().unwrap()).unwrap().pem().unwrap();
        let facts = CsrFacts::parse(pem.as_bytes()).unwrap();
        assert_eq!(
            facts.others,
            ["subject attribute 2.5.4.11", "extension 2.5.29.15", "name RFC822Name(a@b.example)"]
        );
    }

    #[test]
    fn a_changed_request_is_refused() {
        let pem = request("system:node:n1", &["system:nodes"], &[], &[]);
        let mut der = pem::parse(&pem).unwrap().into_contents();
        let name = der.windows(2).position(|two| two == b"n1").unwrap();
        der[name + 1] = b'2';
        let changed = pem::encode(&pem::Pem::new("CERTIFICATE REQUEST", der.clone()));
        assert_eq!(CsrFacts::parse(changed.as_bytes()), Err(CsrError::NotSigned));
        let other = pem::encode(&pem::Pem::new("CERTIFICATE", der));
        assert_eq!(CsrFacts::parse(other.as_bytes()), Err(CsrError::NotPem));
        let empty = pem::encode(&pem::Pem::new("CERTIFICATE REQUEST", vec![1, 2, 3]));
        assert_eq!(CsrFacts::parse(empty.as_bytes()), Err(CsrError::NotARequest));
    }
}
