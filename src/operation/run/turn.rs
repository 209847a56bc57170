//! One phase, asked again and again until it holds.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::RunError;
use super::patience::Patience;
use crate::model::event::Event;
use crate::operation::goal::Goal;
use crate::operation::phase::{Action, Condition, Look, Next, Phase};
use crate::operation::site::{Site, Trouble};
use crate::operation::world::World;

/// How long an API server or etcd may be away: a change of its own members makes it so.
const OUTAGE: Duration = Duration::from_secs(60);
/// How often a phase may have one thing done. What is still called for after that does not help.
const REPEATS: usize = 10;

/// A phase on its way.
pub(super) struct Turn<'a> {
    phase: &'a dyn Phase,
    goal: &'a Goal,
    site: &'a mut dyn Site,
    report: &'a (dyn Fn(Event) + Sync),
    began: Instant,
    waits: BTreeMap<String, Patience>,
    /// The wait that is on, and since when.
    waiting: Option<(String, Instant)>,
    /// What cannot be looked at or done just now, and since when.
    outages: BTreeMap<String, (Instant, Patience)>,
}

impl<'a> Turn<'a> {
    /// `began` is when the run did.
    pub(super) fn new(
        phase: &'a dyn Phase,
        goal: &'a Goal,
        site: &'a mut dyn Site,
        report: &'a (dyn Fn(Event) + Sync),
        began: Instant,
    ) -> Self {
        let (waits, outages) = (BTreeMap::new(), BTreeMap::new());
        Self { phase, goal, site, report, began, waits, waiting: None, outages }
    }

    /// How much was changed, and what was done, in order.
    pub(super) async fn until_it_holds(
        &mut self,
        world: &mut World,
    ) -> Result<(usize, Vec<String>), RunError> {
        let mut changed = 0;
        let mut actions: Vec<String> = Vec::new();
        loop {
            world.elapsed = self.began.elapsed();
            match self.phase.next(self.goal, world) {
                Next::Holds => return Ok((changed, actions)),
                Next::Look(look) => self.look(&look, world).await?,
                Next::Act(action) => {
                    self.end_wait();
                    let sentence = action.sentence();
                    if actions.iter().filter(|done| **done == sentence).count() >= REPEATS {
                        return Err(RunError::Futile {
                            phase: self.phase.title(),
                            action: sentence,
                            times: REPEATS,
                        });
                    }
                    // Another try is part of the outage that has been told.
                    if !self.outages.contains_key(&sentence) {
                        let host = self.goal.name.clone();
                        (self.report)(Event::Acted { host, action: sentence.clone() });
                    }
                    if let Some(count) = self.act(&action, world).await? {
                        changed += count;
                        actions.push(sentence);
                    }
                }
                Next::Wait(condition) => self.wait(condition, world).await?,
                Next::Blocked(blocker) => {
                    return Err(RunError::Blocked { phase: self.phase.title(), blocker });
                }
            }
        }
    }

    async fn look(&mut self, look: &Look, world: &mut World) -> Result<(), RunError> {
        let what = format!("look at {}", look.title());
        match self.site.look(look, world).await {
            Ok(seen) => {
                self.outages.remove(&what);
                world.put(self.goal, seen);
                Ok(())
            }
            Err(trouble) => self.outage(what, trouble, look, world).await,
        }
    }

    /// How much was changed; `None` when it failed and may be tried again.
    async fn act(&mut self, action: &Action, world: &mut World) -> Result<Option<usize>, RunError> {
        match self.site.act(action, world).await {
            Ok(done) => {
                self.outages.remove(&action.sentence());
                world.done(action);
                Ok(Some(done.changed))
            }
            Err(trouble) => {
                // What was done of it is not known: everything it touches is looked at again.
                for look in action.disturbs() {
                    world.forget(&look);
                }
                let look = action.disturbs().into_iter().next().unwrap_or(Look::Node);
                self.outage(action.sentence(), trouble, &look, world).await.map(|()| None)
            }
        }
    }

    /// Trouble that may pass is waited out; any other ends the run.
    async fn outage(
        &mut self,
        what: String,
        trouble: Trouble,
        look: &Look,
        world: &mut World,
    ) -> Result<(), RunError> {
        let phase = self.phase.title();
        let (since, patience) =
            self.outages.entry(what.clone()).or_insert_with(|| (Instant::now(), Patience::NEW));
        let elapsed = since.elapsed();
        if !trouble.may_pass() || elapsed > OUTAGE {
            return Err(RunError::Trouble { phase, what, source: trouble });
        }
        let (pause, tell) = patience.once_more(elapsed);
        if tell {
            let condition = format!("a chance to {what}");
            self.tell(condition, trouble.to_string(), elapsed);
        }
        sleep(pause).await;
        world.forget(look);
        Ok(())
    }

    async fn wait(&mut self, condition: Condition, world: &mut World) -> Result<(), RunError> {
        if self.waiting.as_ref().is_none_or(|(sentence, _)| *sentence != condition.sentence) {
            self.end_wait();
            self.waiting = Some((condition.sentence.clone(), Instant::now()));
        }
        let on = self.waiting.as_ref().map_or(Duration::ZERO, |(_, since)| since.elapsed());
        let patience = self.waits.entry(condition.sentence.clone()).or_insert(Patience::NEW);
        let elapsed = patience.spent + on;
        if elapsed >= condition.limit {
            return Err(RunError::TimedOut {
                phase: self.phase.title(),
                condition: condition.sentence,
                elapsed,
                last_seen: condition.last_seen,
            });
        }
        let (pause, tell) = patience.once_more(elapsed);
        if tell {
            self.tell(condition.sentence, condition.last_seen, elapsed);
        }
        sleep(pause).await;
        for look in &condition.looks {
            world.forget(look);
        }
        Ok(())
    }

    fn tell(&self, condition: String, last_seen: String, elapsed: Duration) {
        (self.report)(Event::Waiting { host: self.goal.name.clone(), condition, last_seen, elapsed });
    }

    /// Something else is done or waited for.
    fn end_wait(&mut self) {
        if let Some((sentence, since)) = self.waiting.take()
            && let Some(patience) = self.waits.get_mut(&sentence)
        {
            patience.spent += since.elapsed();
        }
    }
}
