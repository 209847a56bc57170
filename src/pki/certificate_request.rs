//! Reading PKCS #10 certificate requests (RFC 2986), without trusting what they ask for.

use std::net::IpAddr;

use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::extensions::{GeneralName, ParsedExtension};
use x509_parser::prelude::FromDer;
use x509_parser::x509::AttributeTypeAndValue;

/// What a request asks for. Its signature was verified, so whoever made it has the private key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CsrFacts {
    /// Subject common name; empty where there is none.
    pub common_name: String,
    /// Subject organizations, in order.
    pub organizations: Vec<String>,
    /// DNS names asked for, in order.
    pub dns_names: Vec<String>,
    /// IP addresses asked for, in order.
    pub ip_addresses: Vec<IpAddr>,
    /// The public key as SubjectPublicKeyInfo, DER.
    pub public_key: Vec<u8>,
}

/// Why a request is not acceptable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CsrError {
    /// Not one PEM block of type `CERTIFICATE REQUEST`.
    #[error("the certificate request is not PEM of type CERTIFICATE REQUEST")]
    NotPem,
    /// The DER inside cannot be read.
    #[error("the certificate request cannot be read: {reason}")]
    Unreadable {
        /// What the parser said.
        reason: String,
    },
    /// The key in it did not sign it.
    #[error("the certificate request is not signed with its own key")]
    Signature,
    /// A subject attribute other than common name and organization, or one that is not text.
    #[error("the certificate request has a subject attribute {attribute} that is not allowed")]
    SubjectAttribute {
        /// Its object identifier.
        attribute: String,
    },
    /// An alternative name that is neither a DNS name nor an IP address: a URI, an e-mail address.
    #[error(
        "the certificate request asks for the name {name}, but only DNS names and IP addresses are allowed"
    )]
    AlternativeName {
        /// As the parser shows it.
        name: String,
    },
}

/// Reads a request in PEM and verifies its signature. Usages and other extensions asked for are left out:
/// whoever issues decides them.
///
/// # Errors
/// When it cannot be read, is not signed with its own key, or asks for a name of another sort than a DNS
/// name or an IP address.
pub fn parse_csr(pem_text: &str) -> Result<CsrFacts, CsrError> {
    let block = pem::parse(pem_text).map_err(|_| CsrError::NotPem)?;
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

    let mut facts = CsrFacts {
        common_name: String::new(),
        organizations: Vec::new(),
        dns_names: Vec::new(),
        ip_addresses: Vec::new(),
        public_key: request.certification_request_info.subject_pki.raw.to_vec(),
    };
    for attribute in request.certification_request_info.subject.iter_attributes() {
        facts.take_attribute(attribute)?;
    }
    for extension in request.requested_extensions().into_iter().flatten() {
        if let ParsedExtension::SubjectAlternativeName(names) = extension {
            for name in &names.general_names {
                facts.take_name(name)?;
            }
        }
    }
    Ok(facts)
}

impl CsrFacts {
    fn take_attribute(&mut self, attribute: &AttributeTypeAndValue<'_>) -> Result<(), CsrError> {
        let refused = || CsrError::SubjectAttribute { attribute: attribute.attr_type().to_id_string() };
        let text = attribute.as_str().map_err(|_| refused())?.to_owned();
        if *attribute.attr_type() == x509_parser::oid_registry::OID_X509_COMMON_NAME {
            // Of several common names each reader would take another one.
            if !self.common_name.is_empty() {
                return Err(refused());
            }
            self.common_name = text;
        } else if *attribute.attr_type() == x509_parser::oid_registry::OID_X509_ORGANIZATION_NAME {
            self.organizations.push(text);
        } else {
            return Err(refused());
        }
        Ok(())
    }

    fn take_name(&mut self, name: &GeneralName<'_>) -> Result<(), CsrError> {
        let refused = || CsrError::AlternativeName { name: name.to_string() };
        match name {
            GeneralName::DNSName(name) => self.dns_names.push((*name).to_owned()),
            GeneralName::IPAddress(octets) => {
                let address = <[u8; 4]>::try_from(*octets)
                    .map(IpAddr::from)
                    .or_else(|_| <[u8; 16]>::try_from(*octets).map(IpAddr::from))
                    .map_err(|_| refused())?;
                self.ip_addresses.push(address);
            }
            _ => return Err(refused()),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DnType, KeyPair, SanType};

    use super::*;

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
        let facts = parse_csr(&request(|parameters| {
            parameters.subject_alt_names = vec![
                SanType::DnsName("node-1".try_into().unwrap()),
                SanType::IpAddress("10.0.0.1".parse().unwrap()),
                SanType::IpAddress("fd00::1".parse().unwrap()),
            ];
        }))
        .unwrap();
        assert_eq!(facts.common_name, "system:node:node-1");
        assert_eq!(facts.organizations, ["system:nodes"]);
        assert_eq!(facts.dns_names, ["node-1"]);
        assert_eq!(facts.ip_addresses, ["10.0.0.1".parse::<IpAddr>().unwrap(), "fd00::1".parse().unwrap()]);
    }

    #[test]
    fn a_request_that_openssl_made_on_a_host_is_read() {
        let facts = parse_csr(include_str!("../../tests/config/pki/openssl.csr")).unwrap();
        assert_eq!(facts.common_name, "system:node:node-1");
        assert_eq!(
            (facts.organizations, facts.dns_names),
            (vec!["system:nodes".into()], vec!["node-1".into()])
        );
        assert_eq!(facts.ip_addresses, ["10.0.0.1".parse::<IpAddr>().unwrap()]);
    }

    #[test]
    fn names_and_attributes_that_no_node_needs_are_refused() {
        let uri = request(|p| p.subject_alt_names = vec![SanType::URI("https://a".try_into().unwrap())]);
        assert!(matches!(parse_csr(&uri), Err(CsrError::AlternativeName { .. })));
        let mail = request(|p| p.subject_alt_names = vec![SanType::Rfc822Name("a@b".try_into().unwrap())]);
        assert!(matches!(parse_csr(&mail), Err(CsrError::AlternativeName { .. })));
        let country = request(|p| p.distinguished_name.push(DnType::CountryName, "FR"));
        assert_eq!(parse_csr(&country), Err(CsrError::SubjectAttribute { attribute: "2.5.4.6".into() }));
    }

    #[test]
    fn a_request_that_its_key_did_not_sign_is_refused() {
        let block = pem::parse(request(|_| ())).unwrap();
        let mut der = block.contents().to_vec();
        // The subject is inside what is signed.
        let at = der.windows(6).position(|window| window == b"node-1").unwrap();
        der[at + 5] = b'2';
        let forged = pem::encode(&pem::Pem::new("CERTIFICATE REQUEST", der));
        assert_eq!(parse_csr(&forged), Err(CsrError::Signature));
    }

    #[test]
    fn what_is_not_a_request_is_refused() {
        assert_eq!(parse_csr("hello"), Err(CsrError::NotPem));
        let other = pem::encode(&pem::Pem::new("CERTIFICATE", vec![0]));
        assert_eq!(parse_csr(&other), Err(CsrError::NotPem));
        let rubbish = pem::encode(&pem::Pem::new("CERTIFICATE REQUEST", vec![0, 1, 2]));
        assert!(matches!(parse_csr(&rubbish), Err(CsrError::Unreadable { .. })));
    }
}
