//! `kmod`: a kernel module, live and after a reboot (`/etc/modules-load.d/metalform-<name>.conf`).

use super::change::{Change, Verdict};
use super::contents::{Contents, removal, removal_probe};
use super::context::Context;
use super::ensure::Ensure;
use super::field::FieldSpec;
use super::given::{FieldError, Given};
use super::probe::{Observed, Probe};
use super::refusal::Refusal;
use super::step::Step;

/// It has none.
pub const FIELDS: &[FieldSpec] = &[];

/// A kernel module; one that is built into the kernel counts as loaded. When it should be absent its file
/// goes, and the module stays loaded until a reboot: something may use it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kmod {
    name: String,
    path: String,
    /// `None` when it should be absent.
    file: Option<Contents>,
}

impl Kmod {
    pub(super) fn parse(name: &str, given: &Given) -> Result<Self, FieldError> {
        let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if name.is_empty() || name.starts_with('-') || !name.chars().all(allowed) {
            let reason = "use letters, digits, '_' and '-'";
            return Err(FieldError::Name { kind: "kmod", name: name.to_owned(), reason });
        }
        let path = format!("/etc/modules-load.d/metalform-{name}.conf");
        let present = given.ensure == Ensure::Present;
        let file = present.then(|| Contents::public(path.clone(), format!("{name}\n")));
        Ok(Self { name: name.to_owned(), path, file })
    }

    pub(super) fn probes(&self) -> Vec<Probe> {
        match &self.file {
            Some(file) => vec![file.probe(), self.live_probe()],
            None => vec![removal_probe(&self.path)],
        }
    }

    fn live_probe(&self) -> Probe {
        Probe::Module { name: self.name.clone() }
    }

    pub(super) fn diff(&self, observed: &Observed, context: &Context<'_>) -> Result<Verdict, Refusal> {
        let Some(file) = &self.file else {
            return Ok(removal(&self.path, observed, context.pending)?.or("is not loaded by metalform"));
        };
        let mut change = Change::default();
        if !observed.holds(self.live_probe())? {
            change.field("loaded", Some("false"), Some("true"));
            change.steps.push(Step::LoadModule(self.name.clone()));
        }
        change.append(file.compare(observed, context.pending)?);
        Ok(change.or("is loaded, now and after a reboot"))
    }
}
