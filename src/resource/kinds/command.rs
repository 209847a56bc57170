//! `command`: a shell command that runs only where all its guards hold.

use crate::resource::contract::change::{Change, Difference, Verdict};
use crate::resource::contract::context::Context;
use crate::resource::contract::probe::{Observed, PathState, Probe};
use crate::resource::contract::refusal::Refusal;
use crate::resource::contract::resource_id::{ResourceId, ids_text};
use crate::resource::contract::step::Step;
use crate::resource::fields::field_error::FieldError;
use crate::resource::fields::field_spec::{FieldSpec, FieldType};
use crate::resource::fields::field_values::FieldValues;
use crate::resource::fields::path;

/// At least one guard is required, and all that are set must hold.
pub const FIELDS: &[FieldSpec] = &[
    FieldSpec::required("run", FieldType::String, "Shell script."),
    FieldSpec::optional("creates", FieldType::String, "Guard: it runs where nothing exists at this path."),
    FieldSpec::optional(
        "unless",
        FieldType::String,
        "Guard: it runs where this shell script, which changes nothing, fails.",
    ),
    FieldSpec::optional(
        "only_if",
        FieldType::String,
        "Guard: it runs where this shell script, which changes nothing, succeeds.",
    ),
    FieldSpec::optional(
        "only_if_changed",
        FieldType::StringList,
        "Guard: it runs where one of these resources changes.",
    ),
];

/// A command. Its name is a sentence that describes its purpose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    script: String,
    sensitive: bool,
    creates: Option<String>,
    unless: Option<String>,
    only_if: Option<String>,
    only_if_changed: Vec<ResourceId>,
}

impl Command {
    pub fn parse(fields: &FieldValues) -> Result<Self, FieldError> {
        fields.require_present()?;
        let command = Self {
            script: fields.need("run")?,
            sensitive: fields.sensitive,
            creates: path::field(fields, "creates")?,
            unless: fields.string("unless"),
            only_if: fields.string("only_if"),
            only_if_changed: fields.ids("only_if_changed")?,
        };
        let texts = [&command.creates, &command.unless, &command.only_if];
        if texts.iter().all(|guard| guard.is_none()) && command.only_if_changed.is_empty() {
            let reason = "requires a guard: creates, unless, only_if or only_if_changed";
            return Err(fields.invalid("run", reason));
        }
        Ok(command)
    }

    pub fn probes(&self) -> Vec<Probe> {
        let creates = self.creates.as_deref().map(Probe::path);
        creates
            .into_iter()
            .chain([&self.unless, &self.only_if].into_iter().flatten().map(|script| guard_probe(script)))
            .collect()
    }

    pub fn diff(&self, observed: &Observed, context: &Context<'_>) -> Result<Verdict, Refusal> {
        if let Some(reason) = self.failed_guard(observed, context)? {
            return Ok(Verdict::NoChange { reason });
        }
        let difference = match self.sensitive {
            true => Difference::Hidden { what: "run (sensitive)".to_owned() },
            false => {
                Difference::Field { name: "run".to_owned(), before: None, after: Some(self.script.clone()) }
            }
        };
        let steps = vec![Step::Run { script: self.script.clone() }];
        Ok(Verdict::Change(Change { differences: vec![difference], steps }))
    }

    /// Why the first guard that does not hold prevents it.
    fn failed_guard(&self, observed: &Observed, context: &Context<'_>) -> Result<Option<String>, Refusal> {
        if let Some(path) = &self.creates
            && *observed.path(Probe::path(path), context.pending)? != PathState::Absent
        {
            return Ok(Some(format!("{path} exists")));
        }
        if let Some(script) = &self.unless
            && observed.holds(guard_probe(script))?
        {
            return Ok(Some("`unless` succeeds".to_owned()));
        }
        if let Some(script) = &self.only_if
            && !observed.holds(guard_probe(script))?
        {
            return Ok(Some("`only_if` fails".to_owned()));
        }
        if !self.only_if_changed.is_empty() && context.pending.first_of(&self.only_if_changed).is_none() {
            return Ok(Some(format!("none of {} changes", ids_text(&self.only_if_changed))));
        }
        Ok(None)
    }
}

fn guard_probe(script: &str) -> Probe {
    Probe::Guard { script: script.to_owned() }
}
