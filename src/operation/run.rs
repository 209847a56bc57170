//! Asks each phase until it holds.

mod patience;
mod turn;

use std::time::Duration;

use tokio::time::Instant;

use self::turn::Turn;
use super::goal::Goal;
use super::phase::{Action, Blocker, Phase};
use super::site::{Site, Trouble};
use super::world::World;
use crate::model::event::Event;

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
    #[error("{phase}: it was done {times} times and is still called for: {action}")]
    Futile {
        /// Its title.
        phase: &'static str,
        /// What was done.
        action: String,
        /// How often.
        times: usize,
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
        let mut turn = Turn::new(*phase, goal, &mut *site, report, began);
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

#[cfg(test)]
mod tests;
