//! `kmod`: a kernel module, loaded now and at boot (`/etc/modules-load.d/metalform-<name>.conf`, or a line of a file
//! that several modules share).

use crate::resource::contract::change::{Change, Verdict};
use crate::resource::contract::context::Context;
use crate::resource::contract::ensure::Ensure;
use crate::resource::contract::probe::{Observed, Probe};
use crate::resource::contract::refusal::Refusal;
use crate::resource::contract::step::Step;
use crate::resource::fields::field_error::FieldError;
use crate::resource::fields::field_spec::{FieldSpec, FieldType};
use crate::resource::fields::field_values::FieldValues;
use crate::resource::text::edited::Edited;
use crate::resource::text::persisted::Persisted;

pub const FIELDS: &[FieldSpec] = &[FieldSpec::optional(
    "file",
    FieldType::String,
    "A file NAME.conf in /etc/modules-load.d that contains it as a line; a file of its own by default.",
)];

/// A kernel module; one that is built into the kernel counts as loaded. With `ensure: absent` its file or line is
/// removed, and the module stays loaded until a reboot, because it may be in use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kmod {
    name: String,
    ensure: Ensure,
    persisted: Persisted,
}

impl Kmod {
    pub fn parse(name: &str, fields: &FieldValues) -> Result<Self, FieldError> {
        let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if name.is_empty() || name.starts_with('-') || !name.chars().all(allowed) {
            let reason = "use letters, digits, '_' and '-'";
            return Err(fields.invalid_name(name, reason));
        }
        let line = (fields.ensure == Ensure::Present).then(|| name.to_owned());
        let own = format!("metalform-{name}.conf");
        let persisted = Persisted::parse(fields, "/etc/modules-load.d", &own, line)?;
        Ok(Self { name: name.to_owned(), ensure: fields.ensure, persisted })
    }

    pub fn file(&self) -> Option<&Edited> {
        self.persisted.file()
    }

    pub fn probes(&self) -> Vec<Probe> {
        let live = (self.ensure == Ensure::Present).then(|| self.live_probe());
        self.persisted.probes().into_iter().chain(live).collect()
    }

    fn live_probe(&self) -> Probe {
        Probe::Module { name: self.name.clone() }
    }

    pub fn diff(&self, observed: &Observed, context: &Context<'_>) -> Result<Verdict, Refusal> {
        // In the name of a module '-' and '_' are the same (modprobe(8)).
        let underscored = |name: &str| name.trim().replace('-', "_");
        let ours = |line: &str| underscored(line) == underscored(&self.name);
        let persisted = self.persisted.compare(observed, context, ours)?;
        if self.ensure == Ensure::Absent {
            return Ok(persisted.into_verdict("is not configured by metalform"));
        }
        let mut change = Change::default();
        if !observed.holds(self.live_probe())? {
            change.field("loaded", Some("false"), Some("true"));
            change.steps.push(Step::LoadModule(self.name.clone()));
        }
        change.append(persisted);
        Ok(change.into_verdict("is loaded, now and at boot"))
    }
}
