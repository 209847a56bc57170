//! `certificate`: a certificate and its private key, which is made on the host and never leaves it.

use crate::resource::contract::change::{Change, Verdict};
use crate::resource::contract::context::Context;
use crate::resource::contract::ensure::Ensure;
use crate::resource::contract::issued::Issued;
use crate::resource::contract::probe::{Observed, PathState, Probe};
use crate::resource::contract::refusal::Refusal;
use crate::resource::contract::step::{Access, CertificateRequest, KeyUsage, Step};
use crate::resource::fields::field::{FieldSort, FieldSpec};
use crate::resource::fields::given::{FieldError, Given};
use crate::resource::fields::path;
use crate::resource::text::contents::{access_differences, removal, removal_probe};

/// Its fields.
pub const FIELDS: &[FieldSpec] = &[
    FieldSpec { name: "key", sort: FieldSort::Text, required: true, about: "Path of the private key." },
    FieldSpec {
        name: "authority",
        sort: FieldSort::Text,
        required: true,
        about: "Who signs: kubernetes, etcd or front-proxy.",
    },
    FieldSpec {
        name: "common_name",
        sort: FieldSort::Text,
        required: true,
        about: "Common name of its subject.",
    },
    FieldSpec {
        name: "organizations",
        sort: FieldSort::TextList,
        required: false,
        about: "Organizations of its subject, which Kubernetes reads as groups.",
    },
    FieldSpec {
        name: "names",
        sort: FieldSort::TextList,
        required: false,
        about: "IP addresses and DNS names that it is for.",
    },
    FieldSpec { name: "usages", sort: FieldSort::TextList, required: true, about: "server, client or both." },
    FieldSpec {
        name: "days",
        sort: FieldSort::Integer,
        required: false,
        about: "Days of validity, 365 by default.",
    },
    FieldSpec {
        name: "renew_before",
        sort: FieldSort::Integer,
        required: false,
        about: "Days before its end at which it is renewed, 90 by default; fewer than `days`.",
    },
    FieldSpec {
        name: "mode",
        sort: FieldSort::Mode,
        required: false,
        about: "Permission bits of the certificate, \"0644\" by default; the key has 0600.",
    },
    FieldSpec {
        name: "owner",
        sort: FieldSort::Text,
        required: false,
        about: "User of both, root by default.",
    },
    FieldSpec {
        name: "group",
        sort: FieldSort::Text,
        required: false,
        about: "Group of both, root by default.",
    },
];

/// A certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Certificate {
    path: String,
    key: Option<String>,
    /// `None` when both files should be absent.
    wanted: Option<Wanted>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Wanted {
    request: CertificateRequest,
    renew_before: u32,
}

impl Certificate {
    pub(in crate::resource) fn parse(name: &str, given: &Given) -> Result<Self, FieldError> {
        Self::at(path::named("certificate", name)?, given, |given| {
            Ok(Purpose { usages: usages(given)?, names: names(given)?, mode: given.access(0o644).mode })
        })
    }

    /// The client certificate that a resource of another kind brings along. The fields have the same names
    /// there.
    pub(in crate::resource) fn of_client(path: String, given: &Given) -> Result<Self, FieldError> {
        Self::at(path, given, |_| {
            Ok(Purpose { usages: vec![KeyUsage::Client], names: Vec::new(), mode: 0o644 })
        })
    }

    fn at(
        path: String,
        given: &Given,
        purpose: impl FnOnce(&Given) -> Result<Purpose, FieldError>,
    ) -> Result<Self, FieldError> {
        let key = path::field(given, "key")?;
        let wanted = match given.ensure {
            Ensure::Absent => None,
            Ensure::Present => Some(wanted(&path, given, purpose(given)?)?),
        };
        Ok(Self { path, key, wanted })
    }

    pub(in crate::resource) fn probes(&self) -> Vec<Probe> {
        match &self.wanted {
            Some(Wanted { request, .. }) => vec![
                removal_probe(&self.path),
                removal_probe(&request.key),
                Probe::Content { path: self.path.clone() },
                pair_probe(request),
            ],
            None => [Some(&self.path), self.key.as_ref()]
                .into_iter()
                .flatten()
                .map(|p| removal_probe(p))
                .collect(),
        }
    }

    pub(in crate::resource) fn diff(
        &self,
        observed: &Observed,
        context: &Context<'_>,
    ) -> Result<Verdict, Refusal> {
        let reason = match &self.wanted {
            None => "is absent".to_owned(),
            Some(Wanted { request, renew_before }) => {
                format!("is signed by {} and valid for at least {renew_before} days", request.authority)
            }
        };
        Ok(self.compare(observed, context)?.or(reason))
    }

    pub(in crate::resource) fn compare(
        &self,
        observed: &Observed,
        context: &Context<'_>,
    ) -> Result<Change, Refusal> {
        let Some(Wanted { request, renew_before }) = &self.wanted else {
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
            Some(None) => change.field("certificate", Some("not readable"), Some("a new one")),
            Some(Some(issued)) => {
                issued.compare(request, authority, &mut change)?;
                issued.compare_validity(context.now, *renew_before, &mut change);
                if !observed.holds(pair_probe(request))? {
                    change.field(
                        "private key",
                        Some("missing, or another certificate's"),
                        Some("this one's"),
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
    wanted: &Access,
    observed: &Observed,
    context: &Context<'_>,
    change: &mut Change,
) -> Result<(), Refusal> {
    // What is not a regular file here is a link that was followed to a good certificate: it has no access.
    if let PathState::File { mode, owner, group, .. } = observed.path(removal_probe(path), context.pending)? {
        let before = Access { owner: owner.clone(), group: group.clone(), mode: *mode };
        if before != *wanted {
            access_differences(Some(&before), wanted, change);
            change.steps.push(Step::SetAccess { path: path.to_owned(), access: wanted.clone() });
        }
    }
    Ok(())
}

/// What a certificate is for, and who may read it.
struct Purpose {
    usages: Vec<KeyUsage>,
    names: Vec<String>,
    mode: u32,
}

fn usages(given: &Given) -> Result<Vec<KeyUsage>, FieldError> {
    let usage = |text: &String| match text.as_str() {
        "server" => Ok(KeyUsage::Server),
        "client" => Ok(KeyUsage::Client),
        other => Err(given.invalid("usages", format!("{other:?} is neither server nor client"))),
    };
    let usages = given.list("usages").iter().map(usage).collect::<Result<Vec<_>, _>>()?;
    if usages.is_empty() {
        return Err(given.invalid("usages", "it needs at least one"));
    }
    Ok(usages)
}

fn names(given: &Given) -> Result<Vec<String>, FieldError> {
    let names = given.list("names");
    let bad = |name: &String| name.is_empty() || name.contains(|c: char| c.is_whitespace() || c.is_control());
    if names.iter().any(bad) {
        return Err(given.invalid("names", "each must be an IP address or a DNS name"));
    }
    Ok(names)
}

fn wanted(path: &str, given: &Given, purpose: Purpose) -> Result<Wanted, FieldError> {
    let days = given.days("days", 365)?;
    let renew_before = given.days("renew_before", 90)?;
    if renew_before >= days {
        return Err(
            given.invalid("renew_before", "it must be fewer than days, or it would be renewed at once")
        );
    }
    let request = CertificateRequest {
        certificate: path.to_owned(),
        key: given.need("key")?,
        authority: given.need("authority")?,
        common_name: given.need_line("common_name")?,
        organizations: given.list("organizations"),
        names: purpose.names,
        usages: purpose.usages,
        access: Access { mode: purpose.mode, ..given.access(0o644) },
        days,
    };
    Ok(Wanted { request, renew_before })
}
