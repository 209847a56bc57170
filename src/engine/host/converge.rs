//! Plan and apply until nothing differs.

use std::collections::BTreeSet;

use super::work::Callbacks;
use super::{CertificateSigner, EventSink, HostError, HostSession, Looked};
use crate::engine::apply::PackageManager;
use crate::engine::plan::Plan;
use crate::engine::{Desired, stale};
use crate::model::event::Event;
use crate::resource::contract::change::{Difference, Verdict};
use crate::resource::contract::owed::Owed;
use crate::resource::contract::probe::{Answer, Probe};
use crate::resource::contract::resource_id::ResourceId;

/// Some changes are known only after others are applied (a package contains a unit, which is then enabled); a chain of
/// more than three is an error in the states.
const PASSES: usize = 3;

/// The result of a convergence.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Convergence {
    /// Ids of the changed resources, in the order of their changes.
    pub changed: Vec<String>,
    /// How many resources required no change.
    pub unchanged: usize,
}

impl HostSession<'_> {
    /// Applies a plan until nothing differs. What is changed, and what that can make stale, is observed again by the same
    /// program that applies it: a host without differences costs no round trip, and one with differences a single one,
    /// where no change depends on another. The result is verified.
    ///
    /// # Errors
    /// When something is refused or fails, and when a resource still differs after it was changed.
    pub async fn converge<D: Desired>(
        &self,
        looked: Looked<D>,
        signer: CertificateSigner<'_>,
        events: EventSink<'_>,
    ) -> Result<Convergence, HostError> {
        let packages = PackageManager::of_host(looked.facts.as_ref());
        let Looked { desired, mut observed, .. } = looked;
        let (items, reactions) = (desired.items(), desired.reactions());
        let mut changed: Vec<String> = Vec::new();
        let mut overdue = BTreeSet::new();
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
            let callbacks = Callbacks { signer, events };
            let fresh =
                self.apply_and_observe(&plan, (&reactions, &overdue, &stale), packages, callbacks).await?;
            changed.extend(changes);
            observed.0.extend(fresh.0);
            overdue = missed(&reactions, &changed);
            observed.0.extend(overdue.iter().map(|owed| (Probe::Owed(owed.clone()), Answer::Owed(true))));
        }
        let unchanged = items.len() - changed.len();
        Ok(Convergence { changed, unchanged })
    }
}

/// Reactions to what was changed that were not possible yet: the file of a line did not exist, a guard did not hold. The
/// next pass compares them as if an earlier run owed them. No marker is on the host, so these are not observed.
fn missed(reactions: &[Owed], changed: &[String]) -> BTreeSet<Owed> {
    let changed: BTreeSet<&str> = changed.iter().map(String::as_str).collect();
    let is_changed = |id: &ResourceId| changed.contains(id.to_string().as_str());
    let missed = reactions.iter().filter(|owed| is_changed(&owed.cause) && !is_changed(&owed.reaction));
    missed.cloned().collect()
}

/// The changes that prove a failure, one line each: to what was changed before, and after the last pass any.
fn still_differing(plan: &Plan, changed: &[String], pass: usize) -> Vec<String> {
    let changed: BTreeSet<&String> = changed.iter().collect();
    let verdicts = plan.verdicts.iter().filter(|(id, _)| pass >= PASSES || changed.contains(id));
    verdicts
        .filter_map(|(id, verdict)| match verdict {
            Verdict::Change(change) => Some(Difference::line(id, &change.differences)),
            Verdict::NoChange { .. } | Verdict::Refuse { .. } => None,
        })
        .collect()
}
