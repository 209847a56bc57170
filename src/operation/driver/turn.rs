//! One step: every phase that may begin is asked, and what it requires is started unless something in flight forbids
//! it.

use std::time::Duration;

use super::memory::{Ending, InFlight, InFlightKind, Memory, PhaseMemory};
use super::outcome::{RunFault, RunOutcome};
use super::step::{DriverStep, Effect, EffectKind, Note};
use crate::operation::contract::{Begun, Operation, PhaseEntry, PhaseStatus, Scene, World, phases};
use crate::operation::effect::{Action, Look, LookKey, Target};

/// How often a phase may do the same thing. What is still required after that does not help.
const ATTEMPTS: usize = 10;
pub(super) struct Turn<'a, O: Operation> {
    memory: &'a mut Memory<O::Begun>,
    goal: &'a O::Goal,
    pub(super) world: &'a mut O::World,
    pub(super) now: Duration,
    pub(super) step: DriverStep,
}

/// What asking a phase led to.
enum Asked {
    /// It holds now: others may begin.
    Holds,
    /// It has its answer for this step.
    Settled,
}

impl<'a, O: Operation> Turn<'a, O> {
    pub(super) fn new(
        memory: &'a mut Memory<O::Begun>,
        goal: &'a O::Goal,
        world: &'a mut O::World,
        now: Duration,
    ) -> Self {
        Self { memory, goal, world, now, step: DriverStep::default() }
    }

    pub(super) fn into_step(self) -> DriverStep {
        self.step
    }

    pub(super) fn take(&mut self) {
        if self.memory.ending.is_none() {
            self.ask_phases();
        }
        if self.memory.ending.is_some() {
            self.wind_down();
        } else if phases::<O>(self.goal).all(|entry| self.holds(entry.phase.title())) {
            self.step.outcome = Some(RunOutcome::Holds);
        }
    }

    fn holds(&self, title: &str) -> bool {
        self.memory.phases.get(title).is_some_and(|phase| phase.held.is_some())
    }

    fn ask_phases(&mut self) {
        loop {
            let mut moved = false;
            for entry in phases::<O>(self.goal) {
                if self.holds(entry.phase.title()) || !self.may_begin(entry) {
                    continue;
                }
                moved |= matches!(self.ask(entry), Asked::Holds);
                if self.memory.ending.is_some() {
                    return;
                }
            }
            if !moved {
                return;
            }
        }
    }

    fn may_begin(&self, entry: &PhaseEntry<O>) -> bool {
        let applies = |title: &str| phases::<O>(self.goal).any(|other| other.phase.title() == title);
        entry.needs.iter().all(|need| self.holds(need) || !applies(need))
    }

    fn ask(&mut self, entry: &'static PhaseEntry<O>) -> Asked {
        let title = entry.phase.title();
        let acting =
            |flight: &InFlight| flight.phase == title && matches!(flight.kind, InFlightKind::Act { .. });
        if self.memory.flight.values().any(acting) {
            return Asked::Settled;
        }
        let begins = self.memory.phases.get(title).is_none_or(|phase| phase.began.is_none());
        if begins && !self.memory.timeless {
            entry.phase.looks_again().iter().for_each(|key| self.world.forget(key));
        }
        loop {
            let scene =
                Scene { goal: self.goal, world: &*self.world, begun: &self.memory.begun, now: self.now };
            match entry.phase.status(&scene) {
                PhaseStatus::Holds => {
                    self.hold(title);
                    return Asked::Holds;
                }
                PhaseStatus::Look(look) => self.look(title, look),
                PhaseStatus::Act(action) => self.act(title, action),
                PhaseStatus::All(statuses) => {
                    for status in statuses {
                        match status {
                            PhaseStatus::Look(look) => self.look(title, look),
                            PhaseStatus::Act(action) => self.act(title, action),
                            _ => {}
                        }
                    }
                }
                PhaseStatus::Wait(condition) => {
                    if self.wait(title, *condition) {
                        continue;
                    }
                }
                PhaseStatus::Blocked(blocker) => {
                    self.fail(RunFault::Blocked { phase: title.to_owned(), blocker });
                }
            }
            self.look_at_causes(title);
            return Asked::Settled;
        }
    }

    pub(super) fn phase(&mut self, title: &str) -> &mut PhaseMemory {
        self.memory.phases.entry(title.to_owned()).or_default()
    }

    pub(super) fn begin(&mut self, title: &str) {
        let now = self.now;
        let phase = self.phase(title);
        if phase.began.is_none() {
            phase.began = Some(now);
            self.step.notes.push(Note::PhaseBegun { phase: title.to_owned() });
        }
    }

    fn hold(&mut self, title: &str) {
        self.begin(title);
        let now = self.now;
        let phase = self.phase(title);
        phase.end_wait(now);
        phase.held = Some(now);
        let elapsed = now.saturating_sub(phase.began.unwrap_or(now));
        self.step.notes.push(Note::PhaseEnded { phase: title.to_owned(), elapsed, holds: true });
    }

    pub(super) fn fail(&mut self, fault: RunFault) {
        self.memory.ending = Some(Ending::Failed(fault));
    }

    pub(super) fn wake(&mut self, at: Duration) {
        self.step.wake = Some(self.step.wake.map_or(at, |wake| wake.min(at)));
    }

    /// Starts a look, unless it is under way already, would be disturbed, or failed a moment ago.
    fn look(&mut self, title: &str, look: Look) {
        self.begin(title);
        let key = look.key();
        if self.is_disturbed(&key) {
            // The time until it can be looked at is not the wait's.
            let now = self.now;
            self.phase(title).end_wait(now);
            return;
        }
        if !self.is_looked_at(&key) && !self.is_out(&look.sentence()) {
            self.start_look(title, look, false);
        }
    }

    pub(super) fn start_look(&mut self, title: &str, look: Look, cause: bool) {
        let kind = InFlightKind::Look { key: look.key(), disturbed: false, cause };
        let deadline = look.deadline();
        self.start(title, kind, EffectKind::Look(look), deadline);
    }

    fn is_disturbed(&self, key: &LookKey) -> bool {
        self.memory.flight.values().any(|flight| match &flight.kind {
            InFlightKind::Act { disturbs, .. } => disturbs.iter().any(|other| other.includes(key)),
            InFlightKind::Look { .. } => false,
        })
    }

    pub(super) fn is_looked_at(&self, key: &LookKey) -> bool {
        self.memory.flight.values().any(|flight| {
            matches!(&flight.kind, InFlightKind::Look { key: other, disturbed: false, .. } if other == key)
        })
    }

    /// Whether it failed a moment ago, and is tried again later.
    fn is_out(&mut self, sentence: &str) -> bool {
        match self.memory.outages.get(sentence).map(|outage| outage.retry_at) {
            Some(retry_at) if retry_at > self.now => {
                self.wake(retry_at);
                true
            }
            _ => false,
        }
    }

    fn act(&mut self, title: &str, action: Action) {
        self.begin(title);
        let (now, sentence) = (self.now, action.sentence());
        self.phase(title).end_wait(now);
        let done = self.phase(title).actions.iter().filter(|done| done.sentence == sentence).count();
        if done >= ATTEMPTS {
            let (phase, class) = (title.to_owned(), action.class());
            return self.fail(RunFault::Futile { phase, action: sentence, class, times: ATTEMPTS });
        }
        if self.is_in_use(&action.target()) || self.is_out(&sentence) {
            return;
        }
        // Another attempt is part of the outage that was reported.
        if !self.memory.outages.contains_key(&sentence) {
            self.step.notes.push(Note::Acted { phase: title.to_owned(), sentence });
        }
        self.start_act(title, action);
    }

    fn is_in_use(&self, target: &Target) -> bool {
        self.memory
            .flight
            .values()
            .any(|flight| matches!(&flight.kind, InFlightKind::Act { target: other, .. } if other == target))
    }

    fn start_act(&mut self, title: &str, action: Action) {
        self.memory.begun.attempt(&action);
        let disturbs = action.disturbs();
        for flight in self.memory.flight.values_mut() {
            if let InFlightKind::Look { key, disturbed, .. } = &mut flight.kind {
                *disturbed |= disturbs.iter().any(|other| other.includes(key));
            }
        }
        let kind = InFlightKind::Act { target: action.target(), disturbs };
        let deadline = action.deadline();
        self.start(title, kind, EffectKind::Act(action), deadline);
    }

    fn start(&mut self, title: &str, kind: InFlightKind, work: EffectKind, deadline: Duration) {
        self.memory.effects += 1;
        let number = self.memory.effects;
        let flight = InFlight { phase: title.to_owned(), sentence: work.sentence(), kind };
        self.memory.flight.insert(number, flight);
        self.step.effects.push(Effect { number, work, deadline });
    }

    /// Nothing new is begun; when the actions in flight have finished, the run lets go of what it holds.
    fn wind_down(&mut self) {
        let acting = |flight: &InFlight| matches!(flight.kind, InFlightKind::Act { .. });
        self.memory.flight.retain(|_, flight| acting(flight));
        self.step.effects.retain(|effect| matches!(effect.work, EffectKind::Act(_)));
        self.step.wake = None;
        if self.memory.flight.is_empty() {
            self.let_go();
        }
        if self.memory.flight.is_empty() && self.step.wake.is_none() {
            self.end();
        }
    }

    /// What failed in a manner that may pass is tried again, and what comes after it on the same target waits.
    fn let_go(&mut self) {
        let mut waiting: Vec<Target> = Vec::new();
        for action in self.memory.begun.let_go() {
            let (sentence, target) = (action.sentence(), action.target());
            if self.memory.let_go.contains(&sentence) || self.is_in_use(&target) || waiting.contains(&target)
            {
                continue;
            }
            if self.is_out(&sentence) {
                waiting.push(target);
                continue;
            }
            self.memory.let_go.insert(sentence.clone());
            if !self.memory.outages.contains_key(&sentence) {
                self.step.notes.push(Note::Acted { phase: String::new(), sentence });
            }
            self.start_act("", action);
        }
    }

    fn end(&mut self) {
        let open = self.memory.phases.iter().filter(|(_, phase)| phase.held.is_none());
        let ended = open.filter_map(|(title, phase)| Some((title.clone(), phase.began?)));
        let notes = ended.map(|(phase, began)| Note::PhaseEnded {
            phase,
            elapsed: self.now.saturating_sub(began),
            holds: false,
        });
        self.step.notes.extend(notes.collect::<Vec<_>>());
        self.step.outcome = self.memory.ending.as_ref().map(Ending::outcome);
    }
}
