//! `package`: a package of the distribution.

use crate::resource::contract::change::{Change, Verdict};
use crate::resource::contract::ensure::Ensure;
use crate::resource::contract::probe::{InstalledPackage, Observed, Probe};
use crate::resource::contract::refusal::Refusal;
use crate::resource::contract::step::{PackageVersion, Step};
use crate::resource::fields::field_error::FieldError;
use crate::resource::fields::field_spec::{FieldSpec, FieldType};
use crate::resource::fields::field_values::FieldValues;

pub const FIELDS: &[FieldSpec] = &[
    FieldSpec::optional(
        "version",
        FieldType::String,
        "Exact version as the package manager writes it; without it any installed version is accepted.",
    ),
    FieldSpec::optional(
        "hold",
        FieldType::Boolean,
        "Whether upgrades are blocked; unchanged where it is not set.",
    ),
];

/// A package of the distribution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Package {
    name: String,
    ensure: Ensure,
    version: Option<String>,
    hold: Option<bool>,
}

impl Package {
    pub fn parse(name: &str, fields: &FieldValues) -> Result<Self, FieldError> {
        // Debian Policy 5.6.1 and 5.6.12, and what RPM allows too: both are passed as one word, `name=version`.
        let word = |text: &str, more: &str| {
            text.starts_with(|first: char| first.is_ascii_alphanumeric())
                && text.chars().all(|c| c.is_ascii_alphanumeric() || more.contains(c))
        };
        if !word(name, "+-._:") {
            let reason = "use letters, digits, '+', '-', '.', '_' and ':'";
            return Err(fields.invalid_name(name, reason));
        }
        let version = fields.string("version");
        if version.as_deref().is_some_and(|version| !word(version, "+-._:~^")) {
            return Err(fields.invalid("version", "must be a package version"));
        }
        Ok(Self {
            name: name.to_owned(),
            ensure: fields.ensure,
            version,
            hold: fields.optional_boolean("hold"),
        })
    }

    pub fn probes(&self) -> Vec<Probe> {
        vec![Probe::Package { name: self.name.clone() }]
    }

    /// The index is refreshed before each installation: an index that is missing or older than the repository does
    /// not have the version. The engine merges adjacent installations.
    pub fn diff(&self, observed: &Observed) -> Result<Verdict, Refusal> {
        let installed = observed.package(Probe::Package { name: self.name.clone() })?;
        Ok(match (self.ensure, installed) {
            (Ensure::Present, found) => self.install(found),
            (Ensure::Absent, Some(installed)) => self.remove(installed),
            (Ensure::Absent, None) => Verdict::NoChange { reason: "is not installed".to_owned() },
        })
    }

    fn install(&self, found: Option<&InstalledPackage>) -> Verdict {
        let held = found.is_some_and(|package| package.held);
        let hold = self.hold.unwrap_or(held);
        // Installing one that is only unpacked configures it.
        let before = found.filter(|package| package.configured).map(|package| package.version.as_str());
        let mut change = Change::default();
        let another =
            self.version.as_deref().is_some_and(|version| Some(epochless(version)) != before.map(epochless));
        if before.is_none() || another {
            change.field(
                "version",
                before,
                Some(self.version.as_deref().unwrap_or("newest in the repository")),
            );
            change.steps.push(Step::RefreshPackageIndex);
            change.steps.push(Step::InstallPackages(vec![PackageVersion {
                name: self.name.clone(),
                version: self.version.clone(),
                hold,
            }]));
        } else if hold != held {
            change.steps.push(Step::HoldPackage { name: self.name.clone(), hold });
        }
        if hold != held {
            change.field("hold", found.map(|_| held.to_string()).as_deref(), Some(&hold.to_string()));
        }
        change.into_verdict(format!(
            "{} is installed{}",
            before.unwrap_or("nothing"),
            if held { " and held" } else { "" }
        ))
    }

    fn remove(&self, installed: &InstalledPackage) -> Verdict {
        let mut change = Change::default();
        change.field("version", Some(&installed.version), None);
        if installed.held {
            change.field("hold", Some("true"), None);
            change.steps.push(Step::HoldPackage { name: self.name.clone(), hold: false });
        }
        change.steps.push(Step::RemovePackages(vec![self.name.clone()]));
        Verdict::Change(change)
    }
}

/// An epoch of 0 equals none (Debian Policy 5.6.12; RPM), and package managers write either.
fn epochless(version: &str) -> &str {
    version.strip_prefix("0:").unwrap_or(version)
}
