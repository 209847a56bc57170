//! Asks each phase what it would do, and leaves the doing out (design law 3).
//!
//! # Guarantees
//! - It only looks: [`Site::act`] is never called, so not one byte changes anywhere.
//! - What a phase would do first is what [`super::run`] would do first: both ask [`Phase::next`] of the same
//!   world. What it would do after that is asked of a world in which the first is taken as done.
//!
//! # Caveats
//! What depends on an effect that cannot be foreseen is not guessed: the phase says where its foresight ends.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tokio::time::timeout;

use super::goal::Goal;
use super::phase::{Action, Blocker, Look, Next, Phase};
use super::run::RunError;
use super::site::Site;
use super::world::World;
use crate::resource::contract::change::Difference;

/// How long a look may take that may be in vain, because what it looks at would be there only after a run.
const PATIENCE: Duration = Duration::from_secs(10);

/// What a run would do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Preview {
    /// Phases in order.
    pub phases: Vec<PhasePreview>,
}

impl Preview {
    /// Whether anything would be different after the run.
    pub fn changes(&self) -> bool {
        self.phases.iter().flat_map(|phase| &phase.actions).any(|planned| planned.action.lasts())
    }
}

/// What one phase would do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PhasePreview {
    /// Its title.
    pub title: &'static str,
    /// In order.
    pub actions: Vec<PlannedAction>,
    /// Why it cannot be told what comes after them; `None` where the phase would then hold.
    pub end: Option<Unforeseen>,
}

/// One action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedAction {
    /// What.
    pub action: Action,
    /// Resources of the host that it would change, where it is about those.
    pub changes: Vec<(String, Vec<Difference>)>,
}

/// Where foresight ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unforeseen {
    /// It would wait for this.
    Wait {
        /// A sentence.
        condition: String,
        /// What is there now.
        last_seen: String,
    },
    /// What it decides by cannot be seen before an earlier action is done.
    Unseen {
        /// What.
        look: Look,
        /// Why not.
        reason: String,
    },
    /// What it does next depends on what that action comes to.
    Depends(Action),
    /// As things are it would be refused; an earlier action may change that.
    Blocked(Blocker),
}

/// Asks phases in order.
///
/// # Errors
/// What a run would fail with before it did anything.
pub async fn dry_run(phases: &[&dyn Phase], goal: &Goal, site: &mut dyn Site) -> Result<Preview, RunError> {
    let mut world = World::default();
    let mut preview = Preview::default();
    let mut told = BTreeMap::new();
    for phase in phases.iter().filter(|phase| phase.applies(goal)) {
        let behind = preview.phases.iter().any(|before| !before.actions.is_empty() || before.end.is_some());
        let mut turn =
            Turn { phase: *phase, goal, site: &mut *site, behind, told: &mut told, actions: Vec::new() };
        let end = turn.foresee(&mut world).await?;
        preview.phases.push(PhasePreview { title: phase.title(), actions: turn.actions, end });
    }
    Ok(preview)
}

struct Turn<'a> {
    phase: &'a dyn Phase,
    goal: &'a Goal,
    site: &'a mut dyn Site,
    /// Whether something that this phase relies on was left undone.
    behind: bool,
    /// Resources that an earlier action would have changed already: layers share some.
    told: &'a mut BTreeMap<String, Vec<Difference>>,
    actions: Vec<PlannedAction>,
}

impl Turn<'_> {
    async fn foresee(&mut self, world: &mut World) -> Result<Option<Unforeseen>, RunError> {
        let mut asked = BTreeSet::new();
        loop {
            match self.phase.next(self.goal, world) {
                Next::Holds => return Ok(None),
                // A look that leaves its question open would be asked for again and again.
                Next::Look(look) if !asked.insert(look.clone()) => {
                    return Ok(Some(Unforeseen::Unseen { look, reason: "it tells nothing yet".to_owned() }));
                }
                Next::Look(look) => {
                    if let Some(end) = self.look(look, world).await? {
                        return Ok(Some(end));
                    }
                }
                Next::Act(action) => {
                    let foreseen = !self.actions.iter().any(|planned| planned.action == action);
                    if foreseen {
                        self.plan(&action, world);
                    }
                    if !(foreseen && world.assume(&action)) {
                        return Ok(Some(Unforeseen::Depends(action)));
                    }
                }
                Next::Wait(condition) => {
                    let (condition, last_seen) = (condition.sentence, condition.last_seen);
                    return Ok(Some(Unforeseen::Wait { condition, last_seen }));
                }
                Next::Blocked(blocker) if self.is_behind() => return Ok(Some(Unforeseen::Blocked(blocker))),
                Next::Blocked(blocker) => {
                    return Err(RunError::Blocked { phase: self.phase.title(), blocker });
                }
            }
        }
    }

    async fn look(&mut self, look: Look, world: &mut World) -> Result<Option<Unforeseen>, RunError> {
        let behind = self.is_behind();
        let looking = self.site.look(&look, world);
        let seen = if behind {
            match timeout(PATIENCE, looking).await {
                Ok(seen) => seen,
                Err(_) => {
                    let reason = format!("there was no answer in {} s", PATIENCE.as_secs());
                    return Ok(Some(Unforeseen::Unseen { look, reason }));
                }
            }
        } else {
            looking.await
        };
        match seen {
            Ok(seen) => {
                world.put(self.goal, seen);
                Ok(None)
            }
            Err(trouble) if behind => Ok(Some(Unforeseen::Unseen { look, reason: trouble.to_string() })),
            Err(source) => {
                let what = format!("look at {}", look.title());
                Err(RunError::Trouble { phase: self.phase.title(), what, source })
            }
        }
    }

    fn is_behind(&self) -> bool {
        self.behind || !self.actions.is_empty()
    }

    /// An action on resources that were all told of before is none.
    fn plan(&mut self, action: &Action, world: &World) {
        let mut changes = Vec::new();
        if let Action::Apply(layer) = action {
            let planned = world.plans.get(layer).map(|plan| plan.changes.as_slice()).unwrap_or_default();
            for (id, differences) in planned {
                if self.told.get(id) != Some(differences) {
                    self.told.insert(id.clone(), differences.clone());
                    changes.push((id.clone(), differences.clone()));
                }
            }
            if changes.is_empty() {
                return;
            }
        }
        self.actions.push(PlannedAction { action: action.clone(), changes });
    }
}

#[cfg(test)]
#[path = "dry_run_tests.rs"]
mod tests;
