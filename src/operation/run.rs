//! Performs what the driver answers: the only place of this module that waits.

mod error;
mod summary;

use std::collections::BTreeMap;
use std::time::Duration;

use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use tokio::time::{Instant, sleep_until};

pub use self::error::RunError;
pub(super) use self::error::error;
pub use self::summary::{PhaseRun, RunSummary};
use super::contract::{Operation, phases};
use super::driver::{self, Effect, EffectKind, Memory, Note, RunFault, RunOutcome, SettledEffect};
use super::effect::Returned;
use super::site::{EffectError, Site, in_time};
use crate::engine::cancel::{Cancel, CancelLevel};
use crate::model::event::Event;
use crate::model::name::HostName;

/// Who a run reports to, and who may cancel it.
pub struct RunContext<'a> {
    /// The host that events are about.
    pub host: HostName,
    /// Receives what happens.
    pub report: &'a (dyn Fn(Event) + Sync),
    /// First level: nothing new is begun. Second: what runs is dropped.
    pub cancel: Cancel,
}

/// Runs an operation until every phase holds or one cannot.
///
/// # Errors
/// At the first phase that cannot hold. What was done remains: the same call again resumes from what it observes.
pub async fn run<O: Operation>(
    goal: &O::Goal,
    site: &dyn Site,
    context: RunContext<'_>,
) -> Result<RunSummary, RunError> {
    let mut run = Run::<O>::new(goal, site, context);
    while !run.turn().await {}
    run.end()
}

type Performed = (Effect, Result<Returned, EffectError>);

/// A run on its way.
pub struct Run<'a, O: Operation> {
    /// What it remembers. Between two turns it may be written down and read back.
    pub memory: Memory<O::Begun>,
    goal: &'a O::Goal,
    site: &'a dyn Site,
    context: RunContext<'a>,
    world: O::World,
    began: Instant,
    flight: FuturesUnordered<BoxFuture<'a, Performed>>,
    errors: BTreeMap<u64, EffectError>,
    outcome: Option<RunOutcome>,
    stuck: bool,
}

impl<'a, O: Operation> Run<'a, O> {
    /// Nothing has been done yet.
    pub fn new(goal: &'a O::Goal, site: &'a dyn Site, context: RunContext<'a>) -> Self {
        Self {
            memory: Memory::default(),
            goal,
            site,
            context,
            world: O::World::default(),
            began: Instant::now(),
            flight: FuturesUnordered::new(),
            errors: BTreeMap::new(),
            outcome: None,
            stuck: false,
        }
    }

    /// One step of the driver, and waiting for what it waits for. True when the run has ended.
    pub async fn turn(&mut self) -> bool {
        if self.context.cancel.level() >= CancelLevel::AfterResource {
            self.memory.interrupt();
        }
        let step = driver::step::<O>(&mut self.memory, self.goal, &mut self.world, self.began.elapsed());
        self.report(step.notes);
        if step.outcome.is_some() {
            self.outcome = step.outcome;
            return true;
        }
        for effect in step.effects {
            self.flight.push(Box::pin(perform(self.site, effect)));
        }
        self.stuck = self.flight.is_empty() && step.wake.is_none();
        if self.stuck {
            return true;
        }
        let wake = self.began + step.wake.unwrap_or(Duration::MAX.min(Duration::from_secs(86_400)));
        let next = match self.context.cancel.level() {
            CancelLevel::Continue => CancelLevel::AfterResource,
            CancelLevel::AfterResource | CancelLevel::Now => CancelLevel::Now,
        };
        tokio::select! {
            biased;
            () = self.context.cancel.reached(next) => {
                if next == CancelLevel::Now {
                    self.flight.clear();
                    self.outcome = Some(RunOutcome::Interrupted);
                    return true;
                }
            }
            Some(performed) = self.flight.next(), if !self.flight.is_empty() => self.settle(performed),
            () = sleep_until(wake) => {}
        }
        false
    }

    fn settle(&mut self, (effect, result): Performed) {
        let result = result.map_err(|error| {
            let setback = error.setback();
            self.errors.insert(effect.number, error);
            setback
        });
        let changed = result.as_ref().is_ok_and(|returned| returned.changed > 0);
        let now = self.began.elapsed();
        let settled = SettledEffect { effect: &effect, result };
        let notes = driver::settle::<O>(&mut self.memory, self.goal, &mut self.world, settled, now);
        // An error that the run survived is of no more use.
        let number = effect.number;
        if !matches!(self.memory.failing(), Some(RunFault::Effect { number: fatal, .. }) if *fatal == number)
        {
            self.errors.remove(&number);
        }
        self.report(notes);
        if let EffectKind::Act(action) = &effect.work
            && let Some(milestone) = action.milestone().filter(|_| changed)
        {
            (self.context.report)(Event::Reached { host: self.context.host.clone(), milestone });
        }
    }

    fn report(&self, notes: Vec<Note>) {
        for note in notes {
            let host = self.context.host.clone();
            (self.context.report)(match note {
                Note::PhaseBegun { phase } => Event::PhaseBegun { host, phase },
                Note::PhaseEnded { phase, elapsed, holds } => {
                    Event::PhaseEnded { host, phase, elapsed, holds }
                }
                Note::Acted { sentence, .. } => Event::Acted { host, action: sentence },
                Note::Waiting { condition, last_seen, elapsed, .. } => {
                    Event::Waiting { host, condition, last_seen, elapsed }
                }
                Note::Warned { what, reason } => {
                    tracing::warn!(node = %host, "could not {what}: {reason}");
                    continue;
                }
            });
        }
    }

    /// How it ended.
    ///
    /// # Errors
    /// Unless every phase holds.
    pub fn end(mut self) -> Result<RunSummary, RunError> {
        match self.outcome.take() {
            Some(RunOutcome::Holds) => Ok(self.summary()),
            Some(RunOutcome::Interrupted) => Err(RunError::Interrupted),
            Some(RunOutcome::Failed(fault)) => Err(error(fault, self.errors)),
            None => Err(RunError::Stuck {
                phases: phases::<O>(self.goal)
                    .map(|entry| entry.phase.title())
                    .filter(|title| self.memory.phase(title).is_none_or(|phase| phase.held.is_none()))
                    .map(str::to_owned)
                    .collect(),
            }),
        }
    }

    /// What it has led to so far.
    pub fn summary(&self) -> RunSummary {
        let now = self.began.elapsed();
        let phases: Vec<PhaseRun> = phases::<O>(self.goal)
            .filter_map(|entry| {
                let title = entry.phase.title();
                let phase = self.memory.phase(title)?;
                // A phase that neither holds nor was begun has nothing to report.
                let began = phase.began.or(phase.held.map(|_| Duration::ZERO))?;
                Some(PhaseRun {
                    title,
                    began,
                    elapsed: phase.held.unwrap_or(now).saturating_sub(began),
                    changed: phase.changed,
                    actions: phase.actions.clone(),
                })
            })
            .collect();
        let changed = phases.iter().map(|phase| phase.changed).sum();
        RunSummary { phases, changed, elapsed: now }
    }
}

async fn perform(site: &dyn Site, effect: Effect) -> Performed {
    let work = async {
        match &effect.work {
            EffectKind::Look(look) => {
                let observation = site.look(look).await?;
                Ok(Returned { changed: 0, observed: vec![observation] })
            }
            EffectKind::Act(action) => site.act(action).await,
        }
    };
    let result = in_time((effect.deadline, effect.work.class()), work).await;
    (effect, result)
}

#[cfg(test)]
mod tests;
