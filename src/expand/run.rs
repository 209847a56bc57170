//! Asks each phase until it holds.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::goal::Goal;
use super::phase::{Action, Blocker, Condition, Look, Next, Phase};
use super::site::{Site, Trouble};
use super::world::World;
use crate::model::event::Event;

/// Between the first two looks of a wait; it doubles up to [`SLOWEST`].
const FIRST: Duration = Duration::from_millis(100);
/// Between two looks of a wait, at most.
const SLOWEST: Duration = Duration::from_secs(1);
/// How long an API server or etcd may be away: a change of its own members makes it so.
const OUTAGE: Duration = Duration::from_secs(60);
/// How often a phase may have one thing done. What is still called for after that does not help.
const REPEATS: usize = 10;

/// What a run came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// Phases in order, with their time.
    pub phases: Vec<PhaseRun>,
    /// Resources of hosts that were changed.
    pub changed: usize,
    /// From first to last.
    pub elapsed: Duration,
}

/// One phase of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PhaseRun {
    /// Its title.
    pub title: &'static str,
    /// How long it took to hold.
    pub elapsed: Duration,
    /// Resources of hosts that it changed.
    pub changed: usize,
    /// What it did, in order.
    pub actions: Vec<String>,
}

/// Why a phase does not hold.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// It never will without a person.
    #[error("{phase} is blocked")]
    Blocked {
        /// Its title.
        phase: &'static str,
        /// Why.
        blocker: Blocker,
    },
    /// A condition did not come about in time.
    #[error("{phase}: waited {} s for {condition}; last seen: {last_seen}", elapsed.as_secs())]
    TimedOut {
        /// Its title.
        phase: &'static str,
        /// What was waited for.
        condition: String,
        /// How long.
        elapsed: Duration,
        /// What was there instead.
        last_seen: String,
    },
    /// An action succeeds, and changes nothing of what called for it.
    #[error("{phase}: it was done {REPEATS} times and is still called for: {action}")]
    Futile {
        /// Its title.
        phase: &'static str,
        /// What was done.
        action: String,
    },
    /// Something could not be seen or done.
    #[error("{phase}: could not {what}")]
    Trouble {
        /// Its title.
        phase: &'static str,
        /// What was tried.
        what: String,
        /// Why not.
        #[source]
        source: Trouble,
    },
}

/// Runs phases in order, until all hold or one cannot.
///
/// # Errors
/// At the first phase that cannot hold. Nothing is undone: the same call again goes on from what is there.
pub async fn run(
    phases: &[&dyn Phase],
    goal: &Goal,
    site: &mut dyn Site,
    report: &(dyn Fn(Event) + Sync),
) -> Result<Summary, RunError> {
    let began = Instant::now();
    let mut world = World::default();
    let mut held = Vec::new();
    for phase in phases.iter().filter(|phase| phase.applies(goal)) {
        report(Event::PhaseBegun { host: goal.name.clone(), phase: phase.title().to_owned() });
        let phase_began = Instant::now();
        let mut turn = Turn {
            phase: *phase,
            goal,
            site: &mut *site,
            report,
            began,
            waits: BTreeMap::new(),
            waiting: None,
            outages: BTreeMap::new(),
        };
        let outcome = turn.until_it_holds(&mut world).await;
        report(Event::PhaseEnded {
            host: goal.name.clone(),
            phase: phase.title().to_owned(),
            elapsed: phase_began.elapsed(),
            holds: outcome.is_ok(),
        });
        let (changed, actions) = match outcome {
            Ok(done) => done,
            Err(error) => {
                let_go(&mut world, site).await;
                return Err(error);
            }
        };
        held.push(PhaseRun { title: phase.title(), elapsed: phase_began.elapsed(), changed, actions });
    }
    let changed = held.iter().map(|phase| phase.changed).sum();
    Ok(Summary { phases: held, changed, elapsed: began.elapsed() })
}

/// Others must not wait for the lease of a run that failed. If it cannot be released it expires by itself.
async fn let_go(world: &mut World, site: &mut dyn Site) {
    if world.lease {
        if let Err(error) = site.act(&Action::ReleaseLease, world).await {
            tracing::warn!(%error, "the lease on etcd's membership was not released; it expires");
        }
        world.lease = false;
    }
}

struct Turn<'a> {
    phase: &'a dyn Phase,
    goal: &'a Goal,
    site: &'a mut dyn Site,
    report: &'a (dyn Fn(Event) + Sync),
    began: Instant,
    waits: BTreeMap<String, Patience>,
    /// The wait that is on, and since when.
    waiting: Option<(String, Instant)>,
    /// What cannot be looked at or done just now: since when, and the pause before the next try.
    outages: BTreeMap<String, (Instant, Duration)>,
}

/// What is known of a wait. Only the time counts during which it was waited for: a condition that held in
/// between, and a wait for something else, take nothing from its limit.
#[derive(Clone, Copy)]
struct Patience {
    spent: Duration,
    pause: Duration,
}

impl Turn<'_> {
    async fn until_it_holds(&mut self, world: &mut World) -> Result<(usize, Vec<String>), RunError> {
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
                        return Err(RunError::Futile { phase: self.phase.title(), action: sentence });
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
        let (since, pause) = *self.outages.entry(what.clone()).or_insert_with(|| (Instant::now(), FIRST));
        if !trouble.may_pass() || since.elapsed() > OUTAGE {
            return Err(RunError::Trouble { phase, what, source: trouble });
        }
        if pause == FIRST || pause == SLOWEST {
            (self.report)(Event::Waiting {
                host: self.goal.name.clone(),
                condition: format!("a chance to {what}"),
                last_seen: trouble.to_string(),
                elapsed: since.elapsed(),
            });
        }
        self.outages.insert(what, (since, longer(pause)));
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
        let patience = self
            .waits
            .entry(condition.sentence.clone())
            .or_insert(Patience { spent: Duration::ZERO, pause: FIRST });
        let (elapsed, pause) = (patience.spent + on, patience.pause);
        patience.pause = longer(pause);
        if elapsed >= condition.limit {
            return Err(RunError::TimedOut {
                phase: self.phase.title(),
                condition: condition.sentence,
                elapsed,
                last_seen: condition.last_seen,
            });
        }
        if pause == FIRST || pause == SLOWEST {
            (self.report)(Event::Waiting {
                host: self.goal.name.clone(),
                condition: condition.sentence,
                last_seen: condition.last_seen,
                elapsed,
            });
        }
        sleep(pause).await;
        for look in &condition.looks {
            world.forget(look);
        }
        Ok(())
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

fn longer(pause: Duration) -> Duration {
    SLOWEST.min(pause * 2)
}
