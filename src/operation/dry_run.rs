//! What a run would do: the same driver over a predicted world (design law 3).
//!
//! # Guarantees
//! - It only looks: [`Site::act`] is never called, so nothing changes anywhere.
//! - What comes first is what [`super::run`] would do first: both take [`driver::step`] of the same world. What comes
//!   after an action is decided in a world in which each part has predicted the action's result.
//!
//! # Caveats
//! What depends on a result that cannot be predicted is not guessed: the phase has an end to its foresight.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::contract::{Blocker, Operation, phases};
use super::driver::{self, Effect, EffectKind, Memory, RunFault, RunOutcome};
use super::effect::{Action, Look, LookKey, Observation, Returned};
use super::foreseen_changes::ForeseenChanges;
use super::resource_change::ResourceChange;
use super::run::RunError;
use super::site::{EffectError, Site, in_time};
use crate::resource::contract::change::Difference;

/// How long a look may take that may be in vain, because what it looks at would exist only after a run.
const PATIENCE: Duration = Duration::from_secs(10);
/// More steps than any dry run that ends.
const ENDLESS: usize = 10_000;

/// What a run would do.
#[derive(Debug, Clone, Default)]
pub struct Preview {
    /// Phases in order.
    pub phases: Vec<PhasePreview>,
    /// The machine id of the host that was looked at.
    pub machine_id: Option<String>,
    /// What it would change on that host.
    pub foreseen: ForeseenChanges,
}

impl Preview {
    /// Whether anything would be different after the run.
    pub fn changes(&self) -> bool {
        self.phases.iter().flat_map(|phase| &phase.actions).any(|planned| planned.action.lasts())
    }
}

/// What one phase would do.
#[derive(Debug, Clone)]
pub struct PhasePreview {
    /// Its title.
    pub title: &'static str,
    /// In order.
    pub actions: Vec<PlannedAction>,
    /// Why nothing is known of what comes after them; `None` where the phase would then hold.
    pub end: Option<Unforeseen>,
}

/// One action.
#[derive(Debug, Clone)]
pub struct PlannedAction {
    /// The action.
    pub action: Action,
    /// Resources, files and objects that it would change.
    pub changes: Vec<ResourceChange>,
}

/// The end of foresight.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unforeseen {
    /// The run would wait for this.
    Wait {
        /// A sentence.
        condition: String,
        /// What is there now.
        last_seen: String,
    },
    /// What the phase decides by cannot be observed before an earlier action is done.
    Unseen {
        /// What: a sentence.
        look: String,
        /// Why not.
        reason: String,
    },
    /// As things are it would be refused; an earlier action may change that.
    Blocked(Blocker),
}

/// Predicts a run.
///
/// # Errors
/// What a run would fail with before it did anything.
pub async fn dry_run<O: Operation>(goal: &O::Goal, site: &dyn Site) -> Result<Preview, RunError> {
    let mut forecast = Forecast::<O> {
        goal,
        site,
        world: O::World::default(),
        memory: Memory::timeless(),
        planned: BTreeMap::new(),
        ends: BTreeMap::new(),
        predicted: BTreeSet::new(),
        shown: BTreeMap::new(),
        waits: BTreeMap::new(),
        machine_id: None,
        foreseen: ForeseenChanges::default(),
    };
    for _ in 0..ENDLESS {
        if forecast.advance().await? {
            return Ok(forecast.preview());
        }
    }
    Err(RunError::Stuck { phases: forecast.open() })
}

struct Forecast<'a, O: Operation> {
    goal: &'a O::Goal,
    site: &'a dyn Site,
    world: O::World,
    memory: Memory<O::Begun>,
    planned: BTreeMap<String, Vec<PlannedAction>>,
    ends: BTreeMap<String, Unforeseen>,
    /// What the planned actions would disturb: a look at it shows the time before them.
    predicted: BTreeSet<LookKey>,
    /// Resources that an earlier action would have changed already: layers share some.
    shown: BTreeMap<String, Vec<Difference>>,
    /// What was last seen of each condition.
    waits: BTreeMap<String, String>,
    machine_id: Option<String>,
    foreseen: ForeseenChanges,
}

impl<O: Operation> Forecast<'_, O> {
    /// True at the end.
    async fn advance(&mut self) -> Result<bool, RunError> {
        // Time does not pass in a dry run.
        let step = driver::step::<O>(&mut self.memory, self.goal, &mut self.world, Duration::ZERO);
        match step.outcome {
            Some(RunOutcome::Holds) => return Ok(true),
            Some(RunOutcome::Interrupted) => return Err(RunError::Interrupted),
            Some(RunOutcome::Failed(fault)) => {
                self.fault(fault, None)?;
                return Ok(false);
            }
            None => {}
        }
        if let Some(fault) = self.memory.failing().cloned() {
            self.fault(fault, None)?;
            return Ok(false);
        }
        for note in step.notes {
            if let driver::Note::Waiting { condition, last_seen, .. } = note {
                self.waits.insert(condition, last_seen);
            }
        }
        if step.effects.is_empty() {
            return self.end_waits();
        }
        for effect in step.effects {
            match &effect.work {
                EffectKind::Look(look) => self.look(look.clone(), &effect).await?,
                EffectKind::Act(action) => self.predict(action.clone(), &effect),
            }
        }
        Ok(false)
    }

    async fn look(&mut self, look: Look, effect: &Effect) -> Result<(), RunError> {
        let in_vain = self.predicted.iter().any(|key| key.includes(&look.key())) || !self.ends.is_empty();
        let limit = if in_vain { PATIENCE } else { effect.deadline };
        match in_time((limit, look.class()), self.site.look(&look)).await {
            Ok(observation) => {
                match &observation {
                    Observation::Facts(facts, _) => self.machine_id = Some(facts.machine_id.clone()),
                    Observation::Plan(layer, plan) => self.foreseen.put(layer, plan),
                    _ => {}
                }
                let returned = Returned { changed: 0, observed: vec![observation] };
                self.settle(effect, Ok(returned));
                Ok(())
            }
            Err(error) => {
                let setback = driver::Setback { passes: false, ..error.setback() };
                self.settle(effect, Err(setback));
                match self.memory.failing().cloned() {
                    Some(fault) => self.fault(fault, Some((look, error))),
                    None => Ok(()),
                }
            }
        }
    }

    fn settle(&mut self, effect: &Effect, result: Result<Returned, driver::Setback>) {
        let settled = driver::SettledEffect { effect, result };
        let (memory, world) = (&mut self.memory, &mut self.world);
        driver::settle::<O>(memory, self.goal, world, settled, Duration::ZERO);
    }

    /// An action on resources that were all shown before is none.
    fn predict(&mut self, action: Action, effect: &Effect) {
        let phase = driver::predict::<O>(&mut self.memory, self.goal, &mut self.world, &action, effect);
        self.predicted.extend(action.disturbs());
        let all = action.changes();
        let planned_before = !all.is_empty();
        let changes: Vec<_> = all
            .into_iter()
            .filter(|change| self.shown.get(&change.id) != Some(&change.differences))
            .collect();
        self.shown.extend(changes.iter().map(|change| (change.id.clone(), change.differences.clone())));
        if planned_before && changes.is_empty() {
            return;
        }
        self.planned.entry(phase).or_default().push(PlannedAction { action, changes });
    }

    /// A fault ends the dry run as long as nothing was predicted, and else the foresight of its phase.
    fn fault(&mut self, fault: RunFault, error: Option<(Look, EffectError)>) -> Result<(), RunError> {
        let phase = fault.phase().to_owned();
        let behind = self.planned.values().any(|actions| !actions.is_empty()) || !self.ends.is_empty();
        if !behind {
            let errors = match (&fault, error) {
                (RunFault::Effect { number, .. }, Some((_, error))) => BTreeMap::from([(*number, error)]),
                _ => BTreeMap::new(),
            };
            return Err(super::run::error(fault, errors));
        }
        let end = match (fault, error) {
            (RunFault::Blocked { blocker, .. }, _) => Unforeseen::Blocked(blocker),
            (RunFault::Effect { what, reason, .. }, _) => Unforeseen::Unseen { look: what, reason },
            (RunFault::Hopeless { condition, reason, .. }, _) => {
                Unforeseen::Wait { condition, last_seen: reason }
            }
            (RunFault::TimedOut { condition, last_seen, .. }, _) => Unforeseen::Wait { condition, last_seen },
            (RunFault::Futile { action, .. }, _) => {
                Unforeseen::Unseen { look: action, reason: "its result cannot be predicted".to_owned() }
            }
        };
        self.end(&phase, end);
        Ok(())
    }

    fn end(&mut self, phase: &str, end: Unforeseen) {
        self.ends.entry(phase.to_owned()).or_insert(end);
        self.memory.assume(phase, Duration::ZERO);
    }

    /// Nothing is left to look at or to predict but what the run would wait for.
    fn end_waits(&mut self) -> Result<bool, RunError> {
        let waits: Vec<(String, String)> = self
            .memory
            .waiting()
            .map(|(phase, condition)| (phase.to_owned(), condition.to_owned()))
            .collect();
        if waits.is_empty() {
            return Err(RunError::Stuck { phases: self.open() });
        }
        for (phase, condition) in waits {
            let last_seen = self.waits.get(&condition).cloned().unwrap_or_default();
            self.end(&phase, Unforeseen::Wait { condition, last_seen });
        }
        Ok(false)
    }

    fn open(&self) -> Vec<String> {
        phases::<O>(self.goal)
            .map(|entry| entry.phase.title())
            .filter(|title| self.memory.phase(title).is_none_or(|phase| phase.held.is_none()))
            .map(str::to_owned)
            .collect()
    }

    fn preview(mut self) -> Preview {
        let phases = phases::<O>(self.goal).map(|entry| {
            let title = entry.phase.title();
            PhasePreview {
                title,
                actions: self.planned.remove(title).unwrap_or_default(),
                end: self.ends.remove(title),
            }
        });
        Preview { phases: phases.collect(), machine_id: self.machine_id, foreseen: self.foreseen }
    }
}

#[cfg(test)]
#[path = "dry_run_tests.rs"]
mod tests;
