//! `package_repository`: a signed repository of packages for apt or dnf, and on demand the only one.

use crate::resource::contract::change::{Change, Difference, Verdict};
use crate::resource::contract::context::Context;
use crate::resource::contract::ensure::Ensure;
use crate::resource::contract::probe::{Observed, Probe};
use crate::resource::contract::refusal::Refusal;
use crate::resource::contract::step::Step;
use crate::resource::fields::field::{FieldSort, FieldSpec};
use crate::resource::fields::given::{FieldError, Given};
use crate::resource::text::apt_source;
use crate::resource::text::contents::{Contents, removal, removal_probe};
use crate::resource::text::dnf_source;
use crate::resource::text::package_source::{Layout, MakeTexts, Texts};

/// Its fields.
pub const FIELDS: &[FieldSpec] = &[
    FieldSpec {
        name: "format",
        sort: FieldSort::Text,
        required: false,
        about: "deb, for apt, by default; rpm, for dnf.",
    },
    FieldSpec {
        name: "uri",
        sort: FieldSort::Text,
        required: true,
        about: "Where it is: http, https or file.",
    },
    FieldSpec {
        name: "suite",
        sort: FieldSort::Text,
        required: false,
        about: "A suite, or a path that ends with /; needed with deb, and only there.",
    },
    FieldSpec {
        name: "components",
        sort: FieldSort::TextList,
        required: false,
        about: "Needed with deb unless the suite is a path.",
    },
    FieldSpec {
        name: "key",
        sort: FieldSort::Text,
        required: true,
        about: "The armored OpenPGP public key that must have signed it.",
    },
    FieldSpec {
        name: "signed_index",
        sort: FieldSort::Boolean,
        required: false,
        about: "With rpm: whether its index is signed, as its packages are, true by default. With deb the index always is.",
    },
    FieldSpec {
        name: "ca",
        sort: FieldSort::Text,
        required: false,
        about: "Path on the host of the authority that https is checked against; the system's by default.",
    },
    FieldSpec {
        name: "exclusive",
        sort: FieldSort::Boolean,
        required: false,
        about: "Whether every other package source of the host is disabled, false by default.",
    },
];

/// A repository. When it should be absent, the sources that it disabled come back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackageRepository {
    layout: Layout,
    exclusive: bool,
    /// `None` when it should be absent.
    wanted: Option<Wanted>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Wanted {
    source: Contents,
    key: Contents,
    /// `None` when nothing beside the source says whom https is checked against; then no file of ours may.
    ca: Option<Contents>,
}

impl PackageRepository {
    pub(in crate::resource) fn parse(name: &str, given: &Given) -> Result<Self, FieldError> {
        // Each skips a source whose file name or id holds anything else (sources.list(5), dnf.conf(5)).
        let allowed = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
        if !name.starts_with(|c: char| c.is_ascii_alphanumeric()) || !name.chars().all(allowed) {
            let reason = "use letters, digits, '_', '-' and '.'";
            return Err(FieldError::Name { kind: "package_repository", name: name.to_owned(), reason });
        }
        let (layout, texts): (Layout, MakeTexts) = match given.text("format").as_deref() {
            None | Some("deb") => (apt_source::layout(name), apt_source::texts),
            Some("rpm") => (dnf_source::layout(name), dnf_source::texts),
            Some(other) => {
                return Err(given.invalid("format", format!("{other:?} is neither deb nor rpm")));
            }
        };
        let wanted = match given.ensure {
            Ensure::Absent => None,
            Ensure::Present => {
                let key = key(given)?;
                let Texts { source, ca } = texts(&layout, given)?;
                Some(Wanted {
                    source: Contents::public(layout.source.clone(), source),
                    key: Contents::public(layout.key.clone(), key),
                    ca: layout.ca.clone().zip(ca).map(|(path, text)| Contents::public(path, text)),
                })
            }
        };
        Ok(Self { layout, exclusive: given.boolean("exclusive", false), wanted })
    }

    pub(in crate::resource) fn probes(&self) -> Vec<Probe> {
        let ca = self.layout.ca.as_deref().map(removal_probe);
        let mut probes: Vec<Probe> = match &self.wanted {
            Some(Wanted { source, key, ca: wanted_ca }) => {
                let ca = wanted_ca.as_ref().map(Contents::probe).or(ca);
                [key.probe()].into_iter().chain(ca).chain([source.probe()]).collect()
            }
            None => [removal_probe(&self.layout.source)]
                .into_iter()
                .chain(ca)
                .chain([removal_probe(&self.layout.key)])
                .collect(),
        };
        if self.exclusive {
            probes.push(self.others_probe());
        }
        probes
    }

    pub(in crate::resource) fn diff(
        &self,
        observed: &Observed,
        context: &Context<'_>,
    ) -> Result<Verdict, Refusal> {
        let others = self.exclusive && observed.holds(self.others_probe())?;
        let Layout { source, key, ca, .. } = &self.layout;
        let mut change = Change::default();
        let Some(wanted) = &self.wanted else {
            for path in [Some(source), ca.as_ref(), Some(key)].into_iter().flatten() {
                change.append(removal(path, observed, context.pending)?);
            }
            if others {
                change.field("other sources", Some("disabled"), Some("enabled"));
                change.steps.push(Step::Run { script: self.layout.enable_others() });
            }
            return Ok(change.or("is absent"));
        };
        let mut key = wanted.key.compare(observed, context.pending)?;
        if !key.steps.is_empty() {
            // Armor says nothing to a reader.
            key.differences = vec![Difference::Hidden { what: format!("signing key ({})", wanted.key.path) }];
        }
        change.append(key);
        match (&wanted.ca, ca) {
            (Some(ca), _) => change.append(ca.compare(observed, context.pending)?),
            (None, Some(path)) => change.append(removal(path, observed, context.pending)?),
            (None, None) => {}
        }
        if others {
            change.field("other sources", Some("enabled"), Some("disabled"));
            change.steps.push(Step::Run { script: self.layout.disable_others() });
        }
        change.append(wanted.source.compare(observed, context.pending)?);
        Ok(change.or(if self.exclusive { "is the only package source" } else { "is a package source" }))
    }

    /// Whether there are other sources to disable, or disabled ones to bring back.
    fn others_probe(&self) -> Probe {
        let script = match self.wanted {
            Some(_) => self.layout.each_other("exit 0") + "exit 1",
            None => self.layout.each_disabled("exit 0") + "exit 1",
        };
        Probe::Guard { script }
    }
}

fn key(given: &Given) -> Result<String, FieldError> {
    let key = given.need("key")?;
    if !key.trim_start().starts_with("-----BEGIN PGP PUBLIC KEY BLOCK-----") {
        return Err(given.invalid("key", "it must be an armored OpenPGP public key"));
    }
    Ok(key)
}
