//! `unit`: a unit file, `/etc/systemd/system/<name>`, that systemd has loaded.

use crate::resource::contract::change::Verdict;
use crate::resource::contract::context::Context;
use crate::resource::contract::ensure::Ensure;
use crate::resource::contract::probe::{Observed, Probe};
use crate::resource::contract::refusal::Refusal;
use crate::resource::contract::step::{Step, UnitFile, UnitVerb};
use crate::resource::fields::field_error::FieldError;
use crate::resource::fields::field_spec::{FieldSpec, FieldType};
use crate::resource::fields::field_values::FieldValues;
use crate::resource::fields::unit_name;
use crate::resource::text::contents::{Contents, removal};

pub const FIELDS: &[FieldSpec] = &[
    FieldSpec::required("content", FieldType::String, "The whole content."),
    FieldSpec::optional(
        "verify",
        FieldType::Boolean,
        "Whether the file is verified with systemd-analyze before it is installed, true by default. Missing programs and units are no error: they may be installed later.",
    ),
];

/// A unit file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unit {
    name: String,
    path: String,
    /// `None` when it should be absent.
    desired: Option<Contents>,
    verify: bool,
}

impl Unit {
    pub fn parse(name: &str, fields: &FieldValues) -> Result<Self, FieldError> {
        if !unit_name::has_suffix(name) {
            let reason = "must have a suffix such as .service or .timer";
            return Err(fields.invalid_name(name, reason));
        }
        let name = unit_name::named(fields, name)?;
        let path = format!("/etc/systemd/system/{name}");
        let desired = match fields.ensure {
            Ensure::Absent => None,
            Ensure::Present => {
                let text = fields.need("content")?;
                Some(Contents { sensitive: fields.sensitive, ..Contents::public(path.clone(), text) })
            }
        };
        Ok(Self { name, path, desired, verify: fields.boolean("verify", true) })
    }

    pub fn probes(&self) -> Vec<Probe> {
        let path = self.desired.as_ref().map_or_else(|| Probe::path(&self.path), Contents::probe);
        [path].into_iter().chain(self.unit_probe()).collect()
    }

    /// `None` for a template: only its instances are units, and `systemctl show` ends at the name of a template.
    fn unit_probe(&self) -> Option<Probe> {
        (!unit_name::is_template(&self.name)).then(|| Probe::Unit { name: self.name.clone() })
    }

    pub fn diff(&self, observed: &Observed, context: &Context<'_>) -> Result<Verdict, Refusal> {
        let unit = self.unit_probe().map(|probe| observed.unit(probe)).transpose()?;
        let mut change = match &self.desired {
            Some(desired) => desired.compare(observed, context.pending)?,
            None => removal(&self.path, observed, context.pending)?,
        };
        if self.desired.is_none()
            && !change.steps.is_empty()
            && let Some(unit) = unit
        {
            // Without the file systemd can neither run its ExecStop nor remove the links of its [Install] section.
            let before = [
                (!matches!(unit.active.as_str(), "inactive" | "failed"), UnitVerb::Stop),
                (unit.unit_file == "enabled", UnitVerb::Disable),
            ];
            let verbs = before.into_iter().filter(|(needed, _)| *needed);
            change.steps.splice(0..0, verbs.map(|(_, verb)| Step::Unit { name: self.name.clone(), verb }));
        }
        if let Some(desired) = &self.desired
            && self.verify
            && change.steps.iter().any(|step| matches!(step, Step::WriteFile { .. }))
        {
            change.steps.insert(0, verification(&self.name, desired));
        }
        if change.steps.is_empty() && unit.is_some_and(|unit| unit.needs_daemon_reload) {
            change.field("loaded by systemd", Some("an older file"), Some("this file"));
        }
        if !change.differences.is_empty() {
            change.steps.push(match self.desired {
                Some(_) => Step::ReloadUnit(self.name.clone()),
                None => Step::ReloadUnitFiles,
            });
        }
        Ok(change.into_verdict(match self.desired {
            Some(_) if unit.is_none() => "has this content",
            Some(_) => "has this content and is loaded by systemd",
            None => "is absent",
        }))
    }
}

fn verification(name: &str, desired: &Contents) -> Step {
    Step::VerifyUnit {
        name: name.to_owned(),
        files: vec![UnitFile { name: name.to_owned(), text: desired.text.clone() }],
        sensitive: desired.sensitive,
    }
}
