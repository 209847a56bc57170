//! The driver: what to do next, from a goal, what was observed and what was begun.
//!
//! # Guarantees
//! [`step`] and [`settle`] are pure but for the values that they are given: no clock, no I/O, no sleep. Time is a
//! [`Duration`] since the run began. [`Memory`] serialises, so that another process can take the next step.
//!
//! # How it is used
//! The caller alternates: it takes a [`step`], performs the effects of its answer, and gives each result to
//! [`settle`]. It takes the next step when a result was settled or the time to wake has come.

mod memory;
mod outcome;
mod patience;
mod settle;
mod step;
mod turn;
mod waits;

pub use self::memory::{ActionRecord, Memory, PhaseMemory};
pub use self::outcome::{RunFault, RunOutcome};
pub use self::settle::{Setback, SettledEffect, settle};
pub use self::step::{DriverStep, Effect, EffectKind, Note};

use std::time::Duration;

use self::turn::Turn;
use super::contract::{Begun, Operation, World};
use super::effect::Action;

/// What to do at `now`. What a wait must look at again is forgotten in `world`.
pub fn step<O: Operation>(
    memory: &mut Memory<O::Begun>,
    goal: &O::Goal,
    world: &mut O::World,
    now: Duration,
) -> DriverStep {
    let mut turn = Turn::<O>::new(memory, goal, world, now);
    turn.take();
    turn.into_step()
}

/// Takes an action as done without doing it, for a dry run; the answer is the title of its phase.
pub(super) fn predict<O: Operation>(
    memory: &mut Memory<O::Begun>,
    goal: &O::Goal,
    world: &mut O::World,
    action: &Action,
    effect: &Effect,
) -> String {
    let phase = memory.flight.remove(&effect.number).map(|flight| flight.phase).unwrap_or_default();
    world.predict(goal, &mut memory.begun, action);
    memory.begun.remember(action);
    if let Some(phase) = memory.phases.get_mut(&phase) {
        phase.actions.push(action.into());
    }
    phase
}
