//! Waiting: the looks of a condition at their pace, and those at its causes at a slower one.

use std::time::Duration;

use super::memory::{PhaseMemory, Waiting};
use super::outcome::RunFault;
use super::patience::Patience;
use super::step::Note;
use super::turn::Turn;
use crate::operation::cause::Cause;
use crate::operation::condition::Condition;
use crate::operation::contract::{Operation, World};

/// What a wait depends on is first looked at after this: most waits are over sooner.
const FIRST_CAUSE: Duration = Duration::from_millis(1500);
/// Between two looks at what a wait depends on.
const CAUSES: Duration = Duration::from_secs(3);

impl<O: Operation> Turn<'_, O> {
    /// True when its looks are due: they were forgotten, and the phase is to be asked again.
    pub(super) fn wait(&mut self, title: &str, condition: Condition) -> bool {
        self.begin(title);
        let now = self.now;
        let waits = |phase: &PhaseMemory| {
            phase.waiting.as_ref().is_some_and(|waiting| waiting.sentence == condition.sentence)
        };
        if !waits(self.phase(title)) {
            // What was seen of the causes before may be of another time.
            for cause in &condition.causes {
                self.world.forget(&cause.look().key());
            }
            let phase = self.phase(title);
            phase.end_wait(now);
            phase.waiting = Some(Waiting {
                sentence: condition.sentence.clone(),
                since: now,
                due: None,
                causes: condition.causes.clone(),
                causes_due: now + FIRST_CAUSE,
            });
        }
        let phase = self.phase(title);
        let elapsed = phase.waited(&condition.sentence, now);
        if let Some(due) = phase.waiting.as_ref().and_then(|waiting| waiting.due) {
            if due > now {
                self.wake(due);
                self.give_up(title, condition);
                return false;
            }
            if let Some(waiting) = &mut self.phase(title).waiting {
                waiting.due = None;
            }
            for key in &condition.looks {
                self.world.forget(key);
            }
            return true;
        }
        if elapsed >= condition.limit {
            self.fail(RunFault::TimedOut {
                phase: title.to_owned(),
                condition: condition.sentence,
                class: condition.class,
                elapsed,
                last_seen: condition.last_seen,
            });
            return false;
        }
        let patience = phase.waits.entry(condition.sentence.clone()).or_insert(Patience::NEW);
        let (pause, report) = patience.once_more(elapsed);
        if let Some(waiting) = &mut phase.waiting {
            waiting.due = Some(now + pause);
        }
        self.wake(now + pause);
        if report {
            self.step.notes.push(Note::Waiting {
                phase: title.to_owned(),
                condition: condition.sentence.clone(),
                last_seen: condition.last_seen.clone(),
                elapsed,
            });
        }
        self.give_up(title, condition);
        false
    }

    /// Ends the wait when its causes show that it is in vain.
    fn give_up(&mut self, title: &str, condition: Condition) {
        if let Some(reason) = condition.hopeless {
            let Condition { sentence, class, .. } = condition;
            self.fail(RunFault::Hopeless { phase: title.to_owned(), condition: sentence, class, reason });
        }
    }

    /// Looks at what a wait depends on, beside its own looks and at a slower pace.
    pub(super) fn look_at_causes(&mut self, title: &str) {
        let now = self.now;
        let Some(waiting) = &mut self.phase(title).waiting else { return };
        if waiting.causes.is_empty() {
            return;
        }
        if waiting.causes_due > now {
            let due = waiting.causes_due;
            return self.wake(due);
        }
        waiting.causes_due = now + CAUSES;
        let causes = waiting.causes.clone();
        self.wake(now + CAUSES);
        for look in causes.iter().map(Cause::look) {
            if !self.is_looked_at(&look.key()) {
                self.start_look(title, look, true);
            }
        }
    }
}
