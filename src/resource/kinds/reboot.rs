//! `reboot`: reboots the host when required; later resources run once it is back.
//!
//! A reboot is required by a file, or by a change. Times are not compared: a clock that is wrong until
//! the network corrects it would cause a reboot in every run.

use crate::resource::contract::change::{Change, Verdict};
use crate::resource::contract::context::Context;
use crate::resource::contract::kind::Kind;
use crate::resource::contract::probe::{Observed, PathState, Probe};
use crate::resource::contract::refusal::Refusal;
use crate::resource::contract::resource_id::{ResourceId, ids_text};
use crate::resource::contract::step::Step;
use crate::resource::fields::field_error::FieldError;
use crate::resource::fields::field_spec::{FieldSpec, FieldType};
use crate::resource::fields::field_values::FieldValues;
use crate::resource::fields::path;

/// `only_if_changed`, a shared key, replaces `when_file`.
pub const FIELDS: &[FieldSpec] = &[
    FieldSpec::optional(
        "when_file",
        FieldType::String,
        "A reboot is required where this file exists, /run/reboot-required by default; not allowed with `only_if_changed`.",
    ),
    FieldSpec::optional(
        "only_if_changed",
        FieldType::StringList,
        "Ids of earlier resources; a reboot is required where one of them changes.",
    ),
    FieldSpec::optional(
        "deadline",
        FieldType::Integer,
        "Seconds until the host must be back, 600 by default.",
    ),
];

/// Created by Debian's packages (reboot-notifier, update-notifier-common).
const REQUIRED: &str = "/run/reboot-required";

/// A reboot. Its name is a sentence that describes its purpose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reboot {
    reason: Reason,
    seconds: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Reason {
    File(String),
    Changed(Vec<ResourceId>),
}

impl Reboot {
    pub fn parse(fields: &FieldValues) -> Result<Self, FieldError> {
        fields.require_present()?;
        let reason = match (path::field(fields, "when_file")?, fields.ids("only_if_changed")?) {
            (Some(_), ids) if !ids.is_empty() => {
                return Err(fields.invalid("when_file", "not allowed with only_if_changed"));
            }
            (Some(path), _) => Reason::File(path),
            (None, ids) if ids.is_empty() => Reason::File(REQUIRED.to_owned()),
            (None, ids) => Reason::Changed(ids),
        };
        Ok(Self { reason, seconds: fields.integer("deadline", 1..=86_400, 600)? })
    }

    pub fn probes(&self) -> Vec<Probe> {
        let needed = match &self.reason {
            Reason::File(path) => Some(Probe::path(path)),
            Reason::Changed(_) => None,
        };
        [boot_probe()].into_iter().chain(needed).collect()
    }

    pub fn diff(&self, observed: &Observed, context: &Context<'_>) -> Result<Verdict, Refusal> {
        let boot_id = observed.line(boot_probe())?.ok_or(Refusal::NoBootId)?.to_owned();
        let because = match self.required(observed, context)? {
            Ok(because) => because,
            Err(reason) => return Ok(Verdict::NoChange { reason }),
        };
        if context.own_boot_id == Some(boot_id.as_str()) {
            return Err(Refusal::OwnMachine);
        }
        let mut change = Change::default();
        change.field("reboot", None, Some(&because));
        change.steps.push(Step::Reboot { boot_id, seconds: self.seconds });
        Ok(Verdict::Change(change))
    }

    /// The resources whose change requires it.
    pub fn causes(&self) -> &[ResourceId] {
        match &self.reason {
            Reason::File(_) => &[],
            Reason::Changed(ids) => ids,
        }
    }

    /// Why it is required, or why not.
    fn required(
        &self,
        observed: &Observed,
        context: &Context<'_>,
    ) -> Result<Result<String, String>, Refusal> {
        Ok(match &self.reason {
            Reason::File(path) => {
                let exists = *observed.path(Probe::path(path), context.pending)? != PathState::Absent;
                // Files in /run do not survive a reboot (file-hierarchy(7)).
                let rebooted = path.starts_with("/run/") && context.pending.adds_any(Kind::Reboot);
                match exists && !rebooted {
                    true => Ok(format!("{path} exists")),
                    false if rebooted => Err("an earlier reboot suffices".to_owned()),
                    false => Err(format!("{path} does not exist")),
                }
            }
            Reason::Changed(ids) => match context.pending.first_of(ids) {
                Some(cause) => Ok(cause.to_string()),
                None => Err(format!("none of {} changes", ids_text(ids))),
            },
        })
    }
}

/// Differs in each boot (random(4)).
fn boot_probe() -> Probe {
    Probe::Sysctl { key: "kernel.random.boot_id".to_owned() }
}
