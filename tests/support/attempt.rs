//! One run of a recipe over the simulated cluster, and how it ended.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use metalform::model::event::Event;
use metalform::operation::phase::Blocker;
use metalform::operation::run::{RunError, Summary, run};
use metalform::operation::{BOOTSTRAP, DEPLOY};
use tokio::sync::Notify;

use super::fault::Faults;
use super::site::{FakeSite, Shared};
use super::{given, values};

pub enum Ended {
    Held(Summary),
    Failed(RunError),
    Killed,
}

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recipe {
    Bootstrap,
    Deploy,
}

/// Runs it once. `number` tells this run from all others; `tell` gets what an operator would see.
pub async fn attempt(
    world: &Shared,
    recipe: Recipe,
    name: &str,
    number: usize,
    (faults, tell): (Faults, &Mutex<Vec<String>>),
) -> Ended {
    let goal = {
        let cluster = world.lock().unwrap();
        let host = &cluster.hosts[name];
        let mut goal = given::goal(name, &host.roles, host.number);
        goal.authority = cluster.trust.then(|| given::AUTHORITY.to_owned());
        goal
    };
    let killed = Arc::new(Notify::new());
    let fit = Arc::new(AtomicBool::new(false));
    let mut site = FakeSite {
        world: world.clone(),
        goal: goal.clone(),
        run: format!("run {number} of {name}"),
        faults,
        killed: killed.clone(),
        fit: fit.clone(),
        given: values::cluster(),
        count: 0,
    };
    let waited = Mutex::new(String::new());
    let report = |event: Event| {
        if let Event::PhaseEnded { phase, holds: true, .. } = &event
            && phase == "Preflight"
        {
            fit.store(true, Ordering::Relaxed);
        }
        if let Some(line) = line(&event, &mut waited.lock().unwrap()) {
            tell.lock().unwrap().push(line);
        }
    };
    let phases = match recipe {
        Recipe::Bootstrap => BOOTSTRAP,
        Recipe::Deploy => DEPLOY,
    };
    tokio::select! {
        biased;
        () = killed.notified() => Ended::Killed,
        outcome = run(phases, &goal, &mut site, &report) => match outcome {
            Ok(summary) => Ended::Held(summary),
            Err(error) => Ended::Failed(error),
        }
    }
}

/// A wait is told once, with what was seen first.
fn line(event: &Event, waited: &mut String) -> Option<String> {
    match event {
        Event::PhaseBegun { phase, .. } => Some(phase.clone()),
        Event::Acted { action, .. } => {
            waited.clear();
            Some(format!("  {action}"))
        }
        Event::Waiting { condition, last_seen, .. } if waited != condition => {
            waited.clone_from(condition);
            Some(format!("  wait for {condition}: {last_seen}"))
        }
        _ => None,
    }
}

/// The last lines of a run.
pub fn outcome(ended: &Ended) -> Vec<String> {
    match ended {
        Ended::Held(summary) => vec![format!("holds, {} changed", summary.changed)],
        Ended::Killed => vec!["killed".to_owned()],
        Ended::Failed(error) => {
            let mut text = error.to_string();
            let sources = std::iter::successors(std::error::Error::source(error), |error| error.source());
            for source in sources {
                text = format!("{text}: {source}");
            }
            let mut lines = vec![format!("fails: {text}")];
            if let RunError::Blocked { blocker, .. } = error {
                lines.extend(blocked(blocker));
            }
            lines
        }
    }
}

fn blocked(blocker: &Blocker) -> Vec<String> {
    match blocker {
        Blocker::Preflight(failures) => {
            failures.iter().map(|failure| format!("  {}", failure.what)).collect()
        }
        Blocker::Refused(refusals) => refusals.iter().map(|(id, why)| format!("  {id}: {why}")).collect(),
        Blocker::StillDiffers(ids) => vec![format!("  still differs: {}", ids.join(", "))],
        Blocker::Etcd(obstacle) => vec![format!("  {obstacle}")],
        Blocker::LearnerRemoved(why) => vec![format!("  the learner was removed: it {why}")],
    }
}
