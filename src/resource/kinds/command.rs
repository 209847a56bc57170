//! `command`: a shell command, run only where its guards let it.

use crate::resource::contract::change::{Change, Difference, Verdict};
use crate::resource::contract::context::Context;
use crate::resource::contract::ensure::Ensure;
use crate::resource::contract::probe::{Observed, PathState, Probe};
use crate::resource::contract::refusal::Refusal;
use crate::resource::contract::step::Step;
use crate::resource::fields::field::{FieldSort, FieldSpec};
use crate::resource::fields::given::{FieldError, Given};
use crate::resource::fields::path;

/// Its fields; at least one guard must be given, and all that are given must let it run.
pub const FIELDS: &[FieldSpec] = &[
    FieldSpec { name: "run", sort: FieldSort::Text, required: true, about: "Shell text." },
    FieldSpec {
        name: "creates",
        sort: FieldSort::Text,
        required: false,
        about: "Guard: it runs when nothing is at this path.",
    },
    FieldSpec {
        name: "unless",
        sort: FieldSort::Text,
        required: false,
        about: "Guard: it runs when this shell text, which changes nothing, fails.",
    },
    FieldSpec {
        name: "only_if",
        sort: FieldSort::Text,
        required: false,
        about: "Guard: it runs when this shell text, which changes nothing, succeeds.",
    },
    FieldSpec {
        name: "only_if_changed",
        sort: FieldSort::TextList,
        required: false,
        about: "Guard: it runs when one of these resources changes.",
    },
];

/// A command. Its name is a sentence that says what it is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    script: String,
    sensitive: bool,
    creates: Option<String>,
    unless: Option<String>,
    only_if: Option<String>,
    only_if_changed: Vec<String>,
}

impl Command {
    pub(in crate::resource) fn parse(given: &Given) -> Result<Self, FieldError> {
        if given.ensure == Ensure::Absent {
            return Err(FieldError::NotRemovable { kind: "command" });
        }
        let command = Self {
            script: given.need("run")?,
            sensitive: given.sensitive,
            creates: path::field(given, "creates")?,
            unless: given.text("unless"),
            only_if: given.text("only_if"),
            only_if_changed: given.list("only_if_changed"),
        };
        let texts = [&command.creates, &command.unless, &command.only_if];
        if texts.iter().all(|guard| guard.is_none()) && command.only_if_changed.is_empty() {
            let reason = "it needs a guard: creates, unless, only_if or only_if_changed";
            return Err(given.invalid("run", reason));
        }
        Ok(command)
    }

    pub(in crate::resource) fn probes(&self) -> Vec<Probe> {
        let creates = self.creates.as_deref().map(creates_probe);
        creates
            .into_iter()
            .chain([&self.unless, &self.only_if].into_iter().flatten().map(|script| guard_probe(script)))
            .collect()
    }

    pub(in crate::resource) fn diff(
        &self,
        observed: &Observed,
        context: &Context<'_>,
    ) -> Result<Verdict, Refusal> {
        if let Some(reason) = self.hindrance(observed, context)? {
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

    /// What the first guard that does not let it run says.
    fn hindrance(&self, observed: &Observed, context: &Context<'_>) -> Result<Option<String>, Refusal> {
        if let Some(path) = &self.creates
            && *observed.path(creates_probe(path), context.pending)? != PathState::Absent
        {
            return Ok(Some(format!("{path} exists")));
        }
        if let Some(script) = &self.unless
            && observed.holds(guard_probe(script))?
        {
            return Ok(Some("what it is for already holds (unless)".to_owned()));
        }
        if let Some(script) = &self.only_if
            && !observed.holds(guard_probe(script))?
        {
            return Ok(Some("there is no need for it (only_if)".to_owned()));
        }
        if !self.only_if_changed.is_empty() && context.pending.first_of(&self.only_if_changed).is_none() {
            return Ok(Some(format!("nothing of {} changes", self.only_if_changed.join(", "))));
        }
        Ok(None)
    }
}

fn creates_probe(path: &str) -> Probe {
    Probe::Path { path: path.to_owned(), unless_sha256: None }
}

fn guard_probe(script: &str) -> Probe {
    Probe::Guard { script: script.to_owned() }
}
