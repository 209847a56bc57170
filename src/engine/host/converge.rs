//! Plan and apply until nothing differs.

use std::collections::BTreeSet;

use super::{Events, Host, HostError, Looked, Signer};
use crate::engine::apply::PackageManager;
use crate::engine::plan::Plan;
use crate::engine::{Desired, stale};
use crate::model::event::Event;
use crate::resource::contract::change::Verdict;

/// Some changes cannot be known before others are done (a package brings a unit, which is then enabled); a
/// chain of more than three is a fault of the states.
const PASSES: usize = 3;

/// What a host that converged needed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Ids of the resources that were changed, in the order in which they were.
    pub changed: Vec<String>,
    /// How many needed nothing.
    pub unchanged: usize,
}

impl Host<'_> {
    /// Makes the host what it should be, starting from what was seen of it. What was changed, and what that
    /// can have made stale, is observed again by the program that changes it; so a host that is already
    /// right costs nothing more, and one that is not a single run where no change depends on another.
    ///
    /// # Errors
    /// When something is refused or fails, and when a resource differs again after it was changed.
    pub async fn converge<D: Desired>(
        &self,
        looked: Looked<D>,
        signer: Signer<'_>,
        events: Events<'_>,
    ) -> Result<Outcome, HostError> {
        let packages = PackageManager::of_host(looked.facts.as_ref());
        let Looked { desired, mut observed, .. } = looked;
        let items = desired.items();
        let mut changed: Vec<String> = Vec::new();
        for pass in 0.. {
            let plan = Plan { verdicts: desired.verdicts(&observed) };
            let works = plan.works();
            let refusals = plan.refusals();
            if !refusals.is_empty() {
                return Err(HostError::Refused { refusals });
            }
            if works.is_empty() {
                break;
            }
            let again = still_differing(&plan, &changed, pass);
            if !again.is_empty() {
                return Err(HostError::StillDiffers { resources: again });
            }
            let steps = works.iter().flat_map(|work| &work.steps);
            let ids = works.iter().map(|work| work.id.as_str()).collect();
            let stale = stale::probes(steps, &ids, &items);
            let changes: Vec<String> = works.into_iter().map(|work| work.id).collect();
            events(Event::Planned {
                host: self.name.clone(),
                changes: changes.clone(),
                unchanged: plan.unchanged(),
            });
            let fresh = self.apply_and_observe(&plan, &stale, packages, (signer, events)).await?;
            observed.0.extend(fresh.0);
            changed.extend(changes);
        }
        let unchanged = items.len() - changed.len();
        Ok(Outcome { changed, unchanged })
    }
}

/// The changes that must not be made: of what was changed before, and all of them after the last pass.
fn still_differing(plan: &Plan, changed: &[String], pass: usize) -> Vec<(String, Verdict)> {
    let changed: BTreeSet<&String> = changed.iter().collect();
    plan.verdicts
        .iter()
        .filter(|(id, verdict)| {
            matches!(verdict, Verdict::Change(_)) && (pass >= PASSES || changed.contains(id))
        })
        .cloned()
        .collect()
}
