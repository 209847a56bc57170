//! Authorities and certificates for the cases; keys are new in every run.

use std::collections::BTreeMap;

use jiff::civil::Date;
use metalform::resource::contract::step::{CertificateRequest, KeyUsage};
use rcgen::{
    BasicConstraints, CertificateParams, CertificateSigningRequestParams, DnType, ExtendedKeyUsagePurpose,
    IsCa, Issuer, KeyPair, date_time_ymd,
};
use serde::Deserialize;

/// A certificate that lies on the host.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Leaf {
    /// Who signed it: `kubernetes`, or `retired`, an older authority of the same subject.
    authority: String,
    common_name: String,
    #[serde(default)]
    organizations: Vec<String>,
    #[serde(default)]
    names: Vec<String>,
    usages: Vec<String>,
    from: Date,
    to: Date,
}

pub struct Authorities {
    issuers: BTreeMap<&'static str, Issuer<'static, KeyPair>>,
    /// What the run knows: not the retired one.
    certificates: BTreeMap<String, String>,
}

impl Authorities {
    pub fn new() -> Self {
        let mut issuers = BTreeMap::new();
        let mut certificates = BTreeMap::from([("broken".to_owned(), "not a certificate".to_owned())]);
        for name in ["kubernetes", "retired"] {
            let mut params = CertificateParams::default();
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            params.distinguished_name.push(DnType::CommonName, "the kubernetes authority");
            let key = KeyPair::generate().unwrap();
            if name != "retired" {
                certificates.insert(name.to_owned(), params.self_signed(&key).unwrap().pem());
            }
            issuers.insert(name, Issuer::new(params, key));
        }
        Self { issuers, certificates }
    }

    pub fn certificates(&self) -> &BTreeMap<String, String> {
        &self.certificates
    }

    pub fn issue(&self, leaf: &Leaf) -> String {
        let mut params = CertificateParams::new(leaf.names.clone()).unwrap();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, leaf.common_name.as_str());
        for organization in &leaf.organizations {
            params.distinguished_name.push(DnType::OrganizationName, organization.as_str());
        }
        params.extended_key_usages = leaf
            .usages
            .iter()
            .map(|usage| match usage.as_str() {
                "server" => ExtendedKeyUsagePurpose::ServerAuth,
                "client" => ExtendedKeyUsagePurpose::ClientAuth,
                "any" => ExtendedKeyUsagePurpose::Any,
                other => panic!("unknown usage {other}"),
            })
            .collect();
        let day = |date: Date| date_time_ymd(date.year().into(), date.month() as u8, date.day() as u8);
        params.not_before = day(leaf.from);
        params.not_after = day(leaf.to);
        let issuer = &self.issuers[leaf.authority.as_str()];
        params.signed_by(&KeyPair::generate().unwrap(), issuer).unwrap().pem()
    }

    /// Signs a host's request for what the certificate must contain, as an authority does.
    pub fn sign(&self, request: &CertificateRequest, csr: &str) -> Result<String, String> {
        let error = |error: rcgen::Error| error.to_string();
        let mut params = CertificateSigningRequestParams::from_pem(csr).map_err(error)?;
        let days = i64::from(request.days);
        let now = jiff::civil::date(2026, 11, 21);
        let day = |date: Date| date_time_ymd(date.year().into(), date.month() as u8, date.day() as u8);
        params.params.distinguished_name = rcgen::DistinguishedName::new();
        params.params.distinguished_name.push(DnType::CommonName, request.common_name.as_str());
        for organization in &request.organizations {
            params.params.distinguished_name.push(DnType::OrganizationName, organization.as_str());
        }
        params.params.extended_key_usages = request
            .usages
            .iter()
            .map(|usage| match usage {
                KeyUsage::Server => ExtendedKeyUsagePurpose::ServerAuth,
                KeyUsage::Client => ExtendedKeyUsagePurpose::ClientAuth,
            })
            .collect();
        params.params.not_before = day(now);
        params.params.not_after = day(now.saturating_add(jiff::Span::new().days(days)));
        let issuer = self.issuers.get(request.authority.as_str()).ok_or("no such CA")?;
        Ok(params.signed_by(issuer).map_err(error)?.pem())
    }
}
