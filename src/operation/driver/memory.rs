//! What a run remembers from step to step.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::outcome::{RunFault, RunOutcome};
use super::patience::Patience;
use crate::operation::cause::Cause;
use crate::operation::effect::{Action, LookKey, Target};

/// What one run has begun. `B` are the flags of the operation's parts.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Memory<B> {
    /// By title.
    pub(super) phases: BTreeMap<String, PhaseMemory>,
    /// Effects that have not been settled, by number.
    pub(super) flight: BTreeMap<u64, InFlight>,
    /// What could not be looked at or done just now, by its sentence.
    pub(super) outages: BTreeMap<String, Outage>,
    /// What the phases remember.
    pub begun: B,
    /// In a dry run time does not pass: nothing that was observed, or predicted, is old.
    pub(super) timeless: bool,
    /// Why the run ends, once it does.
    pub(super) ending: Option<Ending>,
    /// What was let go of at the end.
    pub(super) let_go: BTreeSet<String>,
    /// Effects so far.
    pub(super) effects: u64,
}

/// An action that was completed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActionRecord {
    /// As [`Action::sentence`].
    pub sentence: String,
    /// Ids of the resources and objects that differed before.
    pub resources: Vec<String>,
    /// As [`Action::may_change_voters`].
    #[serde(default)]
    pub voters: bool,
}

impl From<&Action> for ActionRecord {
    fn from(action: &Action) -> Self {
        let resources = action.changes().into_iter().map(|change| change.id).collect();
        Self { sentence: action.sentence(), resources, voters: action.may_change_voters() }
    }
}

/// One phase of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhaseMemory {
    /// When it had its first effect or wait.
    pub began: Option<Duration>,
    /// When it was first found to hold.
    pub held: Option<Duration>,
    /// Resources and objects that it changed.
    pub changed: usize,
    /// Its completed actions, in order.
    pub actions: Vec<ActionRecord>,
    pub(super) waits: BTreeMap<String, Patience>,
    pub(super) waiting: Option<Waiting>,
}

/// The wait that a phase is in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Waiting {
    pub(super) sentence: String,
    pub(super) since: Duration,
    /// When its looks are due again; `None` while they are under way.
    pub(super) due: Option<Duration>,
    pub(super) causes: Vec<Cause>,
    /// When its causes are looked at next.
    pub(super) causes_due: Duration,
}

/// An effect that was started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct InFlight {
    pub(super) phase: String,
    pub(super) sentence: String,
    pub(super) kind: InFlightKind,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum InFlightKind {
    /// `disturbed`: an action that began meanwhile makes its result worthless. `cause`: no phase requires it.
    Look {
        key: LookKey,
        disturbed: bool,
        cause: bool,
    },
    Act {
        target: Target,
        disturbs: Vec<LookKey>,
    },
}

/// Something that failed in a manner that may pass.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Outage {
    pub(super) since: Duration,
    pub(super) patience: Patience,
    pub(super) retry_at: Duration,
}

/// The end of a run, while what is in flight finishes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Ending {
    Failed(RunFault),
    Interrupted,
}

impl Ending {
    pub(super) fn outcome(&self) -> RunOutcome {
        match self {
            Self::Failed(fault) => RunOutcome::Failed(fault.clone()),
            Self::Interrupted => RunOutcome::Interrupted,
        }
    }
}

impl<B: Default> Memory<B> {
    /// That of a dry run.
    pub fn timeless() -> Self {
        Self { timeless: true, ..Self::default() }
    }
}

impl<B> Memory<B> {
    /// The run starts nothing new, and ends when what is in flight has finished and was let go of.
    pub fn interrupt(&mut self) {
        self.ending.get_or_insert(Ending::Interrupted);
    }

    /// A phase by its title.
    pub fn phase(&self, title: &str) -> Option<&PhaseMemory> {
        self.phases.get(title)
    }

    /// Takes a phase as holding, whatever it needs, and the run as not failed: for a dry run.
    pub(in crate::operation) fn assume(&mut self, title: &str, now: Duration) {
        self.ending = None;
        self.flight.clear();
        self.phases.entry(title.to_owned()).or_default().held.get_or_insert(now);
    }

    /// Whether the run is about to end, and why.
    pub(in crate::operation) fn failing(&self) -> Option<&RunFault> {
        match &self.ending {
            Some(Ending::Failed(fault)) => Some(fault),
            Some(Ending::Interrupted) | None => None,
        }
    }

    /// The phases that wait, and for what.
    pub(in crate::operation) fn waiting(&self) -> impl Iterator<Item = (&str, &str)> {
        self.phases.iter().filter_map(|(title, phase)| {
            let waiting = phase.waiting.as_ref().filter(|_| phase.held.is_none())?;
            Some((title.as_str(), waiting.sentence.as_str()))
        })
    }
}

impl PhaseMemory {
    /// How long this wait has lasted in all.
    pub(super) fn waited(&self, sentence: &str, now: Duration) -> Duration {
        let spent = self.waits.get(sentence).map_or(Duration::ZERO, |patience| patience.spent);
        let on = self.waiting.as_ref().filter(|waiting| waiting.sentence == sentence);
        spent + on.map_or(Duration::ZERO, |waiting| now.saturating_sub(waiting.since))
    }

    /// Something else is done or waited for.
    pub(super) fn end_wait(&mut self, now: Duration) {
        if let Some(waiting) = self.waiting.take() {
            let patience = self.waits.entry(waiting.sentence).or_insert(Patience::NEW);
            patience.spent += now.saturating_sub(waiting.since);
        }
    }
}
