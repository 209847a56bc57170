//! Taking in what an effect came back with.

use std::time::Duration;

use super::memory::{Ending, InFlightKind, Memory, Outage};
use super::outcome::RunFault;
use super::patience::Patience;
use super::step::{Effect, EffectKind, Note};
use crate::operation::class::FailureClass;
use crate::operation::contract::{Begun, Operation, World};
use crate::operation::effect::{Observation, Returned};

/// How long an API server or etcd may be away: a change of its own members makes it so.
const OUTAGE: Duration = Duration::from_secs(60);

/// How long a run that ends tries to let go of one thing.
const LET_GO: Duration = Duration::from_secs(15);

/// Why an effect failed, as far as deciding goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setback {
    /// Decides the exit code.
    pub class: FailureClass,
    /// Whether another attempt may succeed without a person.
    pub passes: bool,
    /// With its causes.
    pub reason: String,
}

/// An effect that has ended.
#[derive(Debug)]
pub struct SettledEffect<'a> {
    /// The effect.
    pub effect: &'a Effect,
    /// What it came back with.
    pub result: Result<Returned, Setback>,
}

/// Takes in the result of an effect; the answer is what people shall see of it.
pub fn settle<O: Operation>(
    memory: &mut Memory<O::Begun>,
    goal: &O::Goal,
    world: &mut O::World,
    settled: SettledEffect<'_>,
    now: Duration,
) -> Vec<Note> {
    let SettledEffect { effect, result } = settled;
    // Of a run that has ended its phases, or a look that was dropped.
    let Some(flight) = memory.flight.remove(&effect.number) else { return Vec::new() };
    let mut notes = Vec::new();
    let result = result.or_else(|setback| match without_answer(&effect.work, &setback) {
        Some(observation) => {
            notes.push(Note::Warned { what: flight.sentence.clone(), reason: setback.reason });
            Ok(Returned { changed: 0, observed: vec![observation] })
        }
        None => Err(setback),
    });
    if let InFlightKind::Look { disturbed: true, .. } = flight.kind {
        return notes;
    }
    if let EffectKind::Act(action) = &effect.work {
        // When it failed, it is not known how much of it was done: all that it touches is looked at again.
        for key in action.disturbs() {
            world.forget(&key);
        }
        if result.is_ok() {
            memory.begun.remember(action);
        }
    }
    match result {
        Ok(returned) => {
            memory.outages.remove(&flight.sentence);
            for observation in returned.observed {
                world.put(goal, &mut memory.begun, observation, now);
            }
            if let (EffectKind::Act(action), Some(phase)) =
                (&effect.work, memory.phases.get_mut(&flight.phase))
            {
                phase.changed += returned.changed;
                phase.actions.push(action.into());
            }
        }
        Err(setback) if memory.ending.is_some() => {
            let letting_go = memory.let_go.contains(&flight.sentence);
            if letting_go && may_let_go_later(memory, &flight.sentence, &setback, now) {
                return notes;
            }
            notes.push(Note::Warned { what: flight.sentence, reason: setback.reason });
        }
        Err(setback) => {
            let cause = matches!(flight.kind, InFlightKind::Look { cause: true, .. });
            // What a wait depends on may be unknown; a host that is out of reach ends the wait.
            if !cause || setback.class == FailureClass::Ssh {
                notes.extend(outage(memory, effect.number, (&flight.phase, flight.sentence), setback, now));
            }
        }
    }
    notes
}

fn without_answer(work: &EffectKind, setback: &Setback) -> Option<Observation> {
    if setback.class != FailureClass::Ssh {
        return None;
    }
    match work {
        EffectKind::Look(look) => look.without_answer(&setback.reason),
        EffectKind::Act(action) => action.without_answer(&setback.reason),
    }
}

/// Whether what could not be let go of is tried again. A member of etcd that is elected takes seconds.
fn may_let_go_later<B>(memory: &mut Memory<B>, sentence: &str, setback: &Setback, now: Duration) -> bool {
    let new = Outage { since: now, patience: Patience::NEW, retry_at: now };
    let outage = memory.outages.entry(sentence.to_owned()).or_insert(new);
    let elapsed = now.saturating_sub(outage.since);
    if !setback.passes || elapsed > LET_GO {
        return false;
    }
    outage.retry_at = now + outage.patience.once_more(elapsed).0;
    memory.let_go.remove(sentence);
    true
}

/// A setback that may pass is waited out; any other ends the run.
fn outage<B>(
    memory: &mut Memory<B>,
    number: u64,
    (phase, what): (&str, String),
    setback: Setback,
    now: Duration,
) -> Option<Note> {
    let new = Outage { since: now, patience: Patience::NEW, retry_at: now };
    let outage = memory.outages.entry(what.clone()).or_insert(new);
    if now > outage.retry_at + OUTAGE {
        // Another one: nothing was tried for so long.
        *outage = Outage { since: now, patience: Patience::NEW, retry_at: now };
    }
    let elapsed = now.saturating_sub(outage.since);
    if !setback.passes || elapsed > OUTAGE {
        let Setback { class, reason, .. } = setback;
        let fault = RunFault::Effect { phase: phase.to_owned(), what, number, class, reason };
        memory.ending = Some(Ending::Failed(fault));
        return None;
    }
    let (pause, report) = outage.patience.once_more(elapsed);
    outage.retry_at = now + pause;
    report.then(|| Note::Waiting {
        phase: phase.to_owned(),
        condition: format!("a chance to {what}"),
        last_seen: setback.reason,
        elapsed,
    })
}
