//! What must hold after every step.

use std::collections::BTreeMap;

use super::api::Api;
use crate::machine::observed_machine::MachineStage;
use crate::machine::rollout::{Fenceposts, RolloutGoal};

/// A size that a plan has written, and what it was based on.
#[derive(Debug, Clone, Copy)]
struct Decided {
    /// Failures that its cache has shown.
    failures: usize,
    /// The smallest number of Machines that any goal since then keeps available.
    min_available: u32,
}

#[derive(Default)]
pub(super) struct Limits {
    occupied: u32,
    /// The failures so far, each with the version of the Machines that shows it.
    failures: Vec<usize>,
    /// By set.
    decided: BTreeMap<String, Decided>,
}

impl Limits {
    /// A Machine becomes worse by itself, or a person interferes with it. Before the write.
    pub(super) fn fails(&mut self, api: &Api) {
        self.failures.push(api.machines.version() + 1);
    }

    /// The goal is another one.
    pub(super) fn goal_changes(&mut self, goal: &RolloutGoal) {
        let least = least(goal);
        for decided in self.decided.values_mut() {
            decided.min_available = decided.min_available.min(least);
        }
    }

    /// A plan writes a size, on Machines as of `version`, of which so many were available. Where these are too few already,
    /// none of them may go.
    pub(super) fn decides(&mut self, set: &str, (version, available): (usize, u32), goal: &RolloutGoal) {
        let failures = self.failures.iter().filter(|shown| **shown <= version).count();
        // Also what was decided before and is not carried out yet.
        let earlier = self.decided.get(set).map_or(failures, |decided| decided.failures);
        let decided = Decided { failures: failures.min(earlier), min_available: least(goal).min(available) };
        self.decided.insert(set.to_owned(), decided);
    }

    /// A set has carried out what was decided.
    pub(super) fn carried_out(&mut self, set: &str) {
        let failures = self.failures.len();
        if let Some(decided) = self.decided.get_mut(set) {
            decided.failures = failures;
        }
    }

    /// A set has deleted an available Machine, and so many are left.
    pub(super) fn check_deletion(&self, set: &str, left: u32) -> Result<(), String> {
        let Some(decided) = self.decided.get(set) else {
            return Err(format!("{set} deletes a machine without a plan"));
        };
        let failed = u32::try_from(self.failures.len() - decided.failures).unwrap();
        if left + failed < decided.min_available {
            let least = decided.min_available;
            return Err(format!(
                "{left} machines are available, {failed} have failed meanwhile, {least} must be"
            ));
        }
        Ok(())
    }

    /// After every step.
    pub(super) fn check(&mut self, api: &Api, goal: &RolloutGoal) -> Result<(), String> {
        let most = if goal.deleting { 0 } else { Fenceposts::of(goal).most(goal.replicas) };
        let occupied = api.occupied();
        if occupied > most.max(self.occupied) {
            return Err(format!("{occupied} machines, {most} may be, {} were before", self.occupied));
        }
        self.occupied = occupied;
        let mut noted: BTreeMap<usize, &str> = BTreeMap::new();
        for (name, object) in api.machines.now() {
            let host = object.noted.filter(|_| object.machine.stage != MachineStage::WaitingForHost);
            if let Some(other) = host.and_then(|host| noted.insert(host, name)) {
                return Err(format!("{name} and {other} have one host"));
            }
        }
        Ok(())
    }
}

fn least(goal: &RolloutGoal) -> u32 {
    if goal.deleting { 0 } else { Fenceposts::of(goal).min_available(goal.replicas) }
}
