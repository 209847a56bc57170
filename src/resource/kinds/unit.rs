//! `unit`: a unit file of the administrator, `/etc/systemd/system/<name>`, that systemd has read.

use crate::resource::contract::change::Verdict;
use crate::resource::contract::context::Context;
use crate::resource::contract::ensure::Ensure;
use crate::resource::contract::probe::{Observed, Probe};
use crate::resource::contract::refusal::Refusal;
use crate::resource::contract::step::{Step, UnitFile, UnitVerb};
use crate::resource::fields::field::{FieldSort, FieldSpec};
use crate::resource::fields::given::{FieldError, Given};
use crate::resource::fields::unit_name;
use crate::resource::text::contents::{Contents, removal, removal_probe};

/// Its fields.
pub const FIELDS: &[FieldSpec] = &[
    FieldSpec { name: "content", sort: FieldSort::Text, required: true, about: "The whole unit file." },
    FieldSpec {
        name: "verify",
        sort: FieldSort::Boolean,
        required: false,
        about: "Whether it is installed only if systemd-analyze finds nothing in it that systemd would ignore or refuse, true by default. Programs and units that are missing do not count: they may come later.",
    },
];

/// A unit file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unit {
    name: String,
    path: String,
    /// `None` when it should be absent.
    wanted: Option<Contents>,
    verify: bool,
}

impl Unit {
    pub(in crate::resource) fn parse(name: &str, given: &Given) -> Result<Self, FieldError> {
        if !unit_name::has_suffix(name) {
            let reason = "it needs a suffix such as .service or .timer";
            return Err(FieldError::Name { kind: "unit", name: name.to_owned(), reason });
        }
        let name = unit_name::named("unit", name)?;
        let path = format!("/etc/systemd/system/{name}");
        let wanted = match given.ensure {
            Ensure::Absent => None,
            Ensure::Present => {
                let text = given.need("content")?;
                Some(Contents { sensitive: given.sensitive, ..Contents::public(path.clone(), text) })
            }
        };
        Ok(Self { name, path, wanted, verify: given.boolean("verify", true) })
    }

    pub(in crate::resource) fn probes(&self) -> Vec<Probe> {
        let path = self.wanted.as_ref().map_or_else(|| removal_probe(&self.path), Contents::probe);
        vec![path, self.unit_probe()]
    }

    fn unit_probe(&self) -> Probe {
        Probe::Unit { name: self.name.clone() }
    }

    pub(in crate::resource) fn diff(
        &self,
        observed: &Observed,
        context: &Context<'_>,
    ) -> Result<Verdict, Refusal> {
        let unit = observed.unit(self.unit_probe())?;
        let mut change = match &self.wanted {
            Some(wanted) => wanted.compare(observed, context.pending)?,
            None => removal(&self.path, observed, context.pending)?,
        };
        if self.wanted.is_none() && !change.steps.is_empty() {
            // Without its file systemd can neither stop it in order nor find the links of its [Install].
            let before = [
                (!matches!(unit.active.as_str(), "inactive" | "failed"), UnitVerb::Stop),
                (unit.unit_file == "enabled", UnitVerb::Disable),
            ];
            let verbs = before.into_iter().filter(|(needed, _)| *needed);
            change.steps.splice(0..0, verbs.map(|(_, verb)| Step::Unit { name: self.name.clone(), verb }));
        }
        if let Some(wanted) = &self.wanted
            && self.verify
            && change.steps.iter().any(|step| matches!(step, Step::WriteFile { .. }))
        {
            change.steps.insert(0, verification(&self.name, wanted));
        }
        if change.steps.is_empty() && unit.needs_daemon_reload {
            change.field("read by systemd", Some("an older file"), Some("this file"));
        }
        if !change.differences.is_empty() {
            change.steps.push(Step::ReloadUnitFiles);
        }
        Ok(change.or(match self.wanted {
            Some(_) => "has this content, and systemd has read it",
            None => "is absent",
        }))
    }
}

fn verification(name: &str, wanted: &Contents) -> Step {
    Step::VerifyUnit {
        name: name.to_owned(),
        files: vec![UnitFile { name: name.to_owned(), text: wanted.text.clone() }],
        sensitive: wanted.sensitive,
    }
}
