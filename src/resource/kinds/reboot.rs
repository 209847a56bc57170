//! `reboot`: the host is started anew when it must be, and what follows runs once it is back.
//!
//! That something has changed is known in the run that changes it, and a file says it for longer: a clock that
//! is wrong until the network sets it right would turn a comparison of times into a reboot with every run.

use crate::resource::contract::change::{Change, Verdict};
use crate::resource::contract::context::Context;
use crate::resource::contract::ensure::Ensure;
use crate::resource::contract::probe::{Observed, PathState, Probe};
use crate::resource::contract::refusal::Refusal;
use crate::resource::contract::step::Step;
use crate::resource::fields::field::{FieldSort, FieldSpec};
use crate::resource::fields::given::{FieldError, Given};
use crate::resource::fields::path;

/// Its fields. `only_if_changed`, which every kind has, takes the place of `when_file`.
pub const FIELDS: &[FieldSpec] = &[
    FieldSpec {
        name: "when_file",
        sort: FieldSort::Text,
        required: false,
        about: "Path of a file that says by being there that a reboot is needed, /run/reboot-required by default; goes without `only_if_changed`.",
    },
    FieldSpec {
        name: "only_if_changed",
        sort: FieldSort::TextList,
        required: false,
        about: "Ids of earlier resources; it is needed when one of them changes in the same run.",
    },
    FieldSpec {
        name: "deadline",
        sort: FieldSort::Integer,
        required: false,
        about: "Seconds within which the host must be back, 600 by default.",
    },
];

/// What Debian's packages leave for the administrator (reboot-notifier, update-notifier-common).
const REQUIRED: &str = "/run/reboot-required";

/// A reboot. Its name is a sentence that says what it is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reboot {
    reason: Reason,
    seconds: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Reason {
    File(String),
    Changed(Vec<String>),
}

impl Reboot {
    pub(in crate::resource) fn parse(given: &Given) -> Result<Self, FieldError> {
        if given.ensure == Ensure::Absent {
            return Err(FieldError::NotRemovable { kind: "reboot" });
        }
        let reason = match (path::field(given, "when_file")?, given.list("only_if_changed")) {
            (Some(_), ids) if !ids.is_empty() => {
                return Err(given.invalid("when_file", "it goes without only_if_changed"));
            }
            (Some(path), _) => Reason::File(path),
            (None, ids) if ids.is_empty() => Reason::File(REQUIRED.to_owned()),
            (None, ids) => Reason::Changed(ids),
        };
        Ok(Self { reason, seconds: given.number("deadline", 1..=86_400, 600)? })
    }

    pub(in crate::resource) fn probes(&self) -> Vec<Probe> {
        let needed = match &self.reason {
            Reason::File(path) => Some(file_probe(path)),
            Reason::Changed(_) => None,
        };
        [boot_probe()].into_iter().chain(needed).collect()
    }

    pub(in crate::resource) fn diff(
        &self,
        observed: &Observed,
        context: &Context<'_>,
    ) -> Result<Verdict, Refusal> {
        let boot_id = observed.line(boot_probe())?.ok_or(Refusal::NoBootId)?.to_owned();
        let because = match self.because(observed, context)? {
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

    /// Why it is needed, or why not.
    fn because(&self, observed: &Observed, context: &Context<'_>) -> Result<Result<String, String>, Refusal> {
        Ok(match &self.reason {
            Reason::File(path) => {
                let there = *observed.path(file_probe(path), context.pending)? != PathState::Absent;
                // What lies below /run does not outlive a reboot (file-hierarchy(7)).
                let goes = path.starts_with("/run/") && context.pending.brings("reboot");
                match there && !goes {
                    true => Ok(format!("{path} exists")),
                    false if goes => Err("an earlier reboot is enough".to_owned()),
                    false => Err(format!("{path} does not exist")),
                }
            }
            Reason::Changed(ids) => match context.pending.first_of(ids) {
                Some(id) => Ok(format!("{id} changes")),
                None => Err(format!("nothing of {} changes", ids.join(", "))),
            },
        })
    }
}

/// A number of each boot (random(4)).
fn boot_probe() -> Probe {
    Probe::Sysctl { key: "kernel.random.boot_id".to_owned() }
}

fn file_probe(path: &str) -> Probe {
    Probe::Path { path: path.to_owned(), unless_sha256: None }
}
