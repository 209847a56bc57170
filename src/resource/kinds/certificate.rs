//! `certificate`: a certificate and its private key, which is created on the host and never leaves it.

pub(in crate::resource) mod issued;

use crate::resource::contract::change::{Change, Verdict};
use crate::resource::contract::context::Context;
use crate::resource::contract::ensure::Ensure;
use crate::resource::contract::probe::{Observed, PathState, Probe};
use crate::resource::contract::refusal::Refusal;
use crate::resource::contract::step::{Access, CertificateRequest, KeyUsage, Step};
use crate::resource::fields::field_error::FieldError;
use crate::resource::fields::field_spec::{FieldSpec, FieldType};
use crate::resource::fields::field_values::FieldValues;
use crate::resource::fields::path;
use crate::resource::kinds::certificate::issued::Issued;
use crate::resource::text::contents::removal;

pub const FIELDS: &[FieldSpec] = &[
    FieldSpec::required("key", FieldType::String, "Path of the private key."),
    FieldSpec::required(
        "authority",
        FieldType::String,
        "The CA that signs: kubernetes, etcd or front-proxy.",
    ),
    FieldSpec::required("common_name", FieldType::String, "Common name of the subject."),
    FieldSpec::optional(
        "organizations",
        FieldType::StringList,
        "Organizations of the subject, which Kubernetes reads as groups.",
    ),
    FieldSpec::optional(
        "names",
        FieldType::StringList,
        "Subject alternative names: IP addresses and DNS names.",
    ),
    FieldSpec::required("usages", FieldType::StringList, "server, client or both."),
    FieldSpec::optional("days", FieldType::Integer, "Days of validity, 365 by default."),
    FieldSpec::optional(
        "renew_before",
        FieldType::Integer,
        "Days before its expiry at which it is renewed, 90 by default; fewer than `days`.",
    ),
    FieldSpec::optional(
        "mode",
        FieldType::Mode,
        "Permission bits of the certificate, \"0644\" by default; the key has 0600.",
    ),
    FieldSpec::optional("owner", FieldType::String, "Owner of both files, root by default."),
    FieldSpec::optional("group", FieldType::String, "Group of both files, root by default."),
];

/// A certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Certificate {
    path: String,
    key: Option<String>,
    /// `None` when both files should be absent.
    desired: Option<Desired>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Desired {
    request: CertificateRequest,
    renew_before: u32,
}

impl Certificate {
    pub fn parse(name: &str, fields: &FieldValues) -> Result<Self, FieldError> {
        Self::at(path::named(fields, name)?, fields, |fields| {
            Ok(Purpose { usages: usages(fields)?, names: names(fields)?, mode: fields.access(0o644).mode })
        })
    }

    /// The client certificate of a resource of another kind, whose fields have the same names.
    pub fn of_client(path: String, fields: &FieldValues) -> Result<Self, FieldError> {
        Self::at(path, fields, |_| {
            Ok(Purpose { usages: vec![KeyUsage::Client], names: Vec::new(), mode: 0o644 })
        })
    }

    fn at(
        path: String,
        fields: &FieldValues,
        purpose: impl FnOnce(&FieldValues) -> Result<Purpose, FieldError>,
    ) -> Result<Self, FieldError> {
        let key = path::field(fields, "key")?;
        let desired = match fields.ensure {
            Ensure::Absent => None,
            Ensure::Present => Some(desired(&path, fields, purpose(fields)?)?),
        };
        Ok(Self { path, key, desired })
    }

    pub fn probes(&self) -> Vec<Probe> {
        match &self.desired {
            Some(Desired { request, .. }) => vec![
                Probe::path(&self.path),
                Probe::path(&request.key),
                Probe::Content { path: self.path.clone() },
                pair_probe(request),
            ],
            None => {
                [Some(&self.path), self.key.as_ref()].into_iter().flatten().map(|p| Probe::path(p)).collect()
            }
        }
    }

    pub fn diff(&self, observed: &Observed, context: &Context<'_>) -> Result<Verdict, Refusal> {
        let reason = match &self.desired {
            None => "is absent".to_owned(),
            Some(Desired { request, renew_before }) => {
                format!("is signed by {} and valid for at least {renew_before} days", request.authority)
            }
        };
        Ok(self.compare(observed, context)?.into_verdict(reason))
    }

    pub fn compare(&self, observed: &Observed, context: &Context<'_>) -> Result<Change, Refusal> {
        let Some(Desired { request, renew_before }) = &self.desired else {
            let mut change = removal(&self.path, observed, context.pending)?;
            if let Some(key) = &self.key {
                change.append(removal(key, observed, context.pending)?);
            }
            return Ok(change);
        };
        let Some(authority) = context.authorities.get(&request.authority) else {
            return Err(Refusal::NoAuthority {
                authority: request.authority.clone(),
                certificate: self.path.clone(),
            });
        };
        let mut change = Change::default();
        match observed.content(Probe::Content { path: self.path.clone() })?.map(Issued::parse) {
            None => {
                change.field("certificate", None, Some(&format!("for {}", request.common_name)));
            }
            Some(None) => change.field("certificate", Some("not a certificate"), Some("a new one")),
            Some(Some(issued)) => {
                issued.compare(request, authority, &mut change)?;
                issued.compare_validity(context.now, *renew_before, &mut change);
                if !observed.holds(pair_probe(request))? {
                    change.field(
                        "private key",
                        Some("missing, or of another certificate"),
                        Some("of this certificate"),
                    );
                }
            }
        }
        if change.differences.is_empty() {
            for (path, mode) in [(&self.path, request.access.mode), (&request.key, 0o600)] {
                set_access(path, &Access { mode, ..request.access.clone() }, observed, context, &mut change)?;
            }
        } else {
            change.steps.push(Step::IssueCertificate(request.clone()));
        }
        Ok(change)
    }
}

fn pair_probe(request: &CertificateRequest) -> Probe {
    Probe::KeyPair { key: request.key.clone(), certificate: request.certificate.clone() }
}

fn set_access(
    path: &str,
    desired: &Access,
    observed: &Observed,
    context: &Context<'_>,
    change: &mut Change,
) -> Result<(), Refusal> {
    // Anything but a regular file is a link to a good certificate, which has no mode of its own.
    if let PathState::File { mode, owner, group, .. } = observed.path(Probe::path(path), context.pending)? {
        let before = Access { owner: owner.clone(), group: group.clone(), mode: *mode };
        if before != *desired {
            change.access(Some(&before), desired);
            change.steps.push(Step::SetAccess { path: path.to_owned(), access: desired.clone() });
        }
    }
    Ok(())
}

/// What differs between the kinds that have a certificate.
struct Purpose {
    usages: Vec<KeyUsage>,
    names: Vec<String>,
    mode: u32,
}

fn usages(fields: &FieldValues) -> Result<Vec<KeyUsage>, FieldError> {
    let usage = |text: &String| match text.as_str() {
        "server" => Ok(KeyUsage::Server),
        "client" => Ok(KeyUsage::Client),
        other => Err(fields.invalid("usages", format!("must be server or client, not {other:?}"))),
    };
    let usages = fields.list("usages").iter().map(usage).collect::<Result<Vec<_>, _>>()?;
    if usages.is_empty() {
        return Err(fields.invalid("usages", "must not be empty"));
    }
    Ok(usages)
}

fn names(fields: &FieldValues) -> Result<Vec<String>, FieldError> {
    let names = fields.list("names");
    let bad = |name: &String| name.is_empty() || name.contains(|c: char| c.is_whitespace() || c.is_control());
    if names.iter().any(bad) {
        return Err(fields.invalid("names", "must be a list of IP addresses and DNS names"));
    }
    Ok(names)
}

fn desired(path: &str, fields: &FieldValues, purpose: Purpose) -> Result<Desired, FieldError> {
    let days = fields.days("days", 365)?;
    let renew_before = fields.days("renew_before", 90)?;
    if renew_before >= days {
        return Err(fields.invalid("renew_before", "must be less than days"));
    }
    let request = CertificateRequest {
        certificate: path.to_owned(),
        key: fields.need("key")?,
        authority: fields.need("authority")?,
        common_name: fields.need_line("common_name")?,
        organizations: fields.list("organizations"),
        names: purpose.names,
        usages: purpose.usages,
        access: Access { mode: purpose.mode, ..fields.access(0o644) },
        days,
    };
    Ok(Desired { request, renew_before })
}
