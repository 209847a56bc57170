//! Plan and apply until nothing differs.

use std::collections::BTreeSet;

use super::{Events, Host, HostError, Signer};
use crate::engine::Desired;
use crate::engine::apply::PackageManager;
use crate::engine::plan::Plan;
use crate::model::event::Event;
use crate::resource::change::Verdict;

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
    /// Makes the host what it should be, and looks again whether it is. A host that is already right costs
    /// one round trip.
    ///
    /// # Errors
    /// When something is refused or fails, and when a resource differs again after it was changed.
    pub async fn converge(
        &self,
        desired: &dyn Desired,
        packages: PackageManager,
        signer: Signer<'_>,
        events: Events<'_>,
    ) -> Result<Outcome, HostError> {
        let mut changed: Vec<String> = Vec::new();
        for pass in 0.. {
            let plan = self.plan(desired).await?;
            let changes: Vec<String> = plan.works().into_iter().map(|work| work.id).collect();
            let refusals = plan.refusals();
            if !refusals.is_empty() {
                return Err(HostError::Refused { refusals });
            }
            if changes.is_empty() {
                break;
            }
            let again = still_differing(&plan, &changed, pass);
            if !again.is_empty() {
                return Err(HostError::StillDiffers { resources: again });
            }
            events(Event::Planned {
                host: self.name.clone(),
                changes: changes.clone(),
                unchanged: plan.unchanged(),
            });
            self.apply(&plan, packages, signer, events).await?;
            changed.extend(changes);
        }
        let unchanged = desired.items().len() - changed.len();
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
