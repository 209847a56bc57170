//! A CA for etcd, and what members and clients have of it.

use std::net::{IpAddr, Ipv4Addr};

use metalform::etcd::client::EtcdCredentials;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, SanType,
};

pub struct EtcdCa {
    issuer: Issuer<'static, KeyPair>,
    pub certificate: String,
}

/// A certificate and its key, PEM.
pub struct Pair {
    pub certificate: String,
    pub key: String,
}

impl EtcdCa {
    pub fn new() -> Self {
        let mut parameters = CertificateParams::default();
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        parameters.distinguished_name.push(DnType::CommonName, "etcd-ca");
        let key = KeyPair::generate().unwrap();
        let certificate = parameters.self_signed(&key).unwrap().pem();
        Self { issuer: Issuer::new(parameters, key), certificate }
    }

    /// For a member at this address, in both directions. A connection to any loopback address comes from 127.0.0.1,
    /// and etcd compares the address that a peer comes from with its certificate.
    pub fn member(&self, address: IpAddr) -> Pair {
        let mut parameters = CertificateParams::default();
        parameters.subject_alt_names =
            vec![SanType::IpAddress(address), SanType::IpAddress(Ipv4Addr::LOCALHOST.into())];
        parameters.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        self.issue(parameters)
    }

    /// As metalform has them on the bootstrap node.
    pub fn credentials(&self) -> EtcdCredentials {
        let mut parameters = CertificateParams::default();
        parameters.distinguished_name.push(DnType::CommonName, "metalform");
        parameters.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let Pair { certificate, key } = self.issue(parameters);
        EtcdCredentials::from_pem(self.certificate.as_bytes(), certificate, key)
    }

    fn issue(&self, parameters: CertificateParams) -> Pair {
        let key = KeyPair::generate().unwrap();
        let certificate = parameters.signed_by(&key, &self.issuer).unwrap().pem();
        Pair { certificate, key: key.serialize_pem() }
    }
}
