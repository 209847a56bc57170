//! `package_repository`: a signed package repository for apt or dnf, optionally the only one.

mod apt_source;
mod dnf_source;
mod other_sources;
mod package_source;

pub use other_sources::other_package_sources;

use crate::resource::contract::change::{Change, Difference, Verdict};
use crate::resource::contract::context::Context;
use crate::resource::contract::ensure::Ensure;
use crate::resource::contract::probe::{Observed, Probe};
use crate::resource::contract::refusal::Refusal;
use crate::resource::contract::step::Step;
use crate::resource::fields::field_error::FieldError;
use crate::resource::fields::field_spec::{FieldSpec, FieldType};
use crate::resource::fields::field_values::FieldValues;
use crate::resource::kinds::package_repository::package_source::{MakeTexts, SourceLayout, Texts};
use crate::resource::text::contents::{Contents, removal};

pub const FIELDS: &[FieldSpec] = &[
    FieldSpec::optional("format", FieldType::String, "deb (apt) or rpm (dnf); deb by default."),
    FieldSpec::required("uri", FieldType::String, "URL of the repository: http, https or file."),
    FieldSpec::optional(
        "suite",
        FieldType::String,
        "A suite, or a path that ends with /; required with deb, not allowed with rpm.",
    ),
    FieldSpec::optional("components", FieldType::StringList, "Required with deb unless the suite is a path."),
    FieldSpec::required("key", FieldType::String, "The armored OpenPGP public key that signs it."),
    FieldSpec::optional(
        "signed_index",
        FieldType::Boolean,
        "With rpm: whether the index is signed with the key, true by default. With deb it always is.",
    ),
    FieldSpec::optional(
        "signed_packages",
        FieldType::Boolean,
        "With rpm: whether each package is signed with the key, true by default; a signed index has their digests. With deb \
         none is.",
    ),
    FieldSpec::optional(
        "ca",
        FieldType::String,
        "Path on the host of the CA certificate that verifies https, without a proxy; the system's store by default.",
    ),
    FieldSpec::optional(
        "exclusive",
        FieldType::Boolean,
        "Whether every other package source of the host is disabled, false by default.",
    ),
];

/// A repository. With `ensure: absent` the sources that it disabled are enabled again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackageRepository {
    layout: SourceLayout,
    exclusive: bool,
    /// `None` when it should be absent.
    desired: Option<Desired>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Desired {
    source: Contents,
    key: Contents,
    /// `None` where no file besides the source sets the CA of https.
    ca: Option<Contents>,
}

impl PackageRepository {
    pub fn parse(name: &str, fields: &FieldValues) -> Result<Self, FieldError> {
        // apt and dnf skip sources with other characters in file name or id (sources.list(5), dnf.conf(5)).
        let allowed = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
        if !name.starts_with(|c: char| c.is_ascii_alphanumeric()) || !name.chars().all(allowed) {
            let reason = "use letters, digits, '_', '-' and '.'";
            return Err(fields.invalid_name(name, reason));
        }
        let (layout, texts): (SourceLayout, MakeTexts) = match fields.string("format").as_deref() {
            None | Some("deb") => (apt_source::layout(name), apt_source::texts),
            Some("rpm") => (dnf_source::layout(name), dnf_source::texts),
            Some(other) => {
                return Err(fields.invalid("format", format!("must be deb or rpm, not {other:?}")));
            }
        };
        let desired = match fields.ensure {
            Ensure::Absent => None,
            Ensure::Present => {
                let key = key(fields)?;
                let Texts { source, ca } = texts(&layout, fields)?;
                Some(Desired {
                    source: Contents::public(layout.source.clone(), source),
                    key: Contents::public(layout.key.clone(), key),
                    ca: layout.ca.clone().zip(ca).map(|(path, text)| Contents::public(path, text)),
                })
            }
        };
        Ok(Self { layout, exclusive: fields.boolean("exclusive", false), desired })
    }

    pub fn probes(&self) -> Vec<Probe> {
        let ca = self.layout.ca.as_deref().map(Probe::path);
        let mut probes: Vec<Probe> = match &self.desired {
            Some(Desired { source, key, ca: wanted_ca }) => {
                let ca = wanted_ca.as_ref().map(Contents::probe).or(ca);
                [key.probe()].into_iter().chain(ca).chain([source.probe()]).collect()
            }
            None => [Probe::path(&self.layout.source)]
                .into_iter()
                .chain(ca)
                .chain([Probe::path(&self.layout.key)])
                .collect(),
        };
        if self.exclusive {
            probes.push(self.others_probe());
        }
        probes
    }

    pub fn diff(&self, observed: &Observed, context: &Context<'_>) -> Result<Verdict, Refusal> {
        let others = self.exclusive && observed.holds(self.others_probe())?;
        let SourceLayout { source, key, ca, .. } = &self.layout;
        let mut change = Change::default();
        let Some(desired) = &self.desired else {
            for path in [Some(source), ca.as_ref(), Some(key)].into_iter().flatten() {
                change.append(removal(path, observed, context.pending)?);
            }
            if others {
                change.field("other sources", Some("disabled"), Some("enabled"));
                change.steps.push(Step::Run { script: self.layout.enable_others() });
            }
            return Ok(change.into_verdict("is absent"));
        };
        let mut key = desired.key.compare(observed, context.pending)?;
        if !key.steps.is_empty() {
            // A diff of armored data is not readable.
            key.differences =
                vec![Difference::Hidden { what: format!("signing key ({})", desired.key.path) }];
        }
        change.append(key);
        match (&desired.ca, ca) {
            (Some(ca), _) => change.append(ca.compare(observed, context.pending)?),
            (None, Some(path)) => change.append(removal(path, observed, context.pending)?),
            (None, None) => {}
        }
        if others {
            change.field("other sources", Some("enabled"), Some("disabled"));
            change.steps.push(Step::Run { script: self.layout.disable_others() });
        }
        change.append(desired.source.compare(observed, context.pending)?);
        Ok(change.into_verdict(if self.exclusive {
            "is the only package source"
        } else {
            "is a package source"
        }))
    }

    /// Whether there are other sources to disable, or disabled ones to enable.
    fn others_probe(&self) -> Probe {
        let script = match self.desired {
            Some(_) => self.layout.each_other("exit 0") + "exit 1",
            None => self.layout.each_disabled("exit 0") + "exit 1",
        };
        Probe::Guard { script }
    }
}

fn key(fields: &FieldValues) -> Result<String, FieldError> {
    let key = fields.need("key")?;
    if !key.trim_start().starts_with("-----BEGIN PGP PUBLIC KEY BLOCK-----") {
        return Err(fields.invalid("key", "must be an armored OpenPGP public key"));
    }
    Ok(key)
}
