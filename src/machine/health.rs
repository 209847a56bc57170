//! Which unhealthy Machines are replaced, as Cluster API's MachineHealthCheck does, with a brake: when too many are
//! unhealthy at once, the cause is probably not the Machines.
//!
//! # Guarantees
//! - A Machine that is being deleted is not deleted again; it counts as what its Node is.
//! - With more unhealthy Machines than the brake allows none is replaced, and never more at a time than may be in flight.
//!
//! A Machine without a Node is not replaced here: joining has a deadline ([`super::join_deadline`]), and a Node that was
//! deleted another one ([`super::lifecycle`]).

use std::cmp::Reverse;

use jiff::{SignedDuration, Timestamp};

use super::count_or_percent::CountOrPercent;

/// When a Machine is unhealthy, and how many are replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HealthRules {
    /// A Node with one of these for longer than its timeout is unhealthy.
    pub unhealthy: Vec<UnhealthyCondition>,
    /// The brake: with more unhealthy Machines than this, none is replaced. Of all Machines, rounded down.
    pub max_unhealthy: CountOrPercent,
    /// Machines that are replaced at the same time. Of all Machines, rounded up.
    pub max_in_flight: CountOrPercent,
}

/// `unhealthyConditions`: a condition of the Node in this status for this long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnhealthyCondition {
    /// `Ready`.
    pub kind: String,
    /// `False`, `Unknown`.
    pub status: String,
    /// How long.
    pub timeout: SignedDuration,
}

/// A condition of a Node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeStatusCondition {
    /// `Ready`.
    pub kind: String,
    /// `True`, `False`, `Unknown`.
    pub status: String,
    /// `lastTransitionTime`.
    pub since: Timestamp,
}

/// The Node of a Machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TargetNode {
    /// It has not joined yet.
    NotJoined,
    /// It has joined, and no longer exists.
    Missing,
    /// It has these conditions.
    Present(Vec<NodeStatusCondition>),
}

/// A Machine that is checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HealthTarget {
    /// Of the Machine.
    pub name: String,
    /// Of the Machine.
    pub created: Timestamp,
    /// Its Node.
    pub node: TargetNode,
    /// It is of the present template. Others are replaced by the rollout, unhealthy ones first.
    pub current: bool,
    /// A person excludes it by annotation.
    pub excluded: bool,
    /// It has a deletion timestamp.
    pub deleting: bool,
}

/// Which Machines to replace.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HealthPlan {
    /// The Machines to delete, in order; their sets create others.
    pub replace: Vec<String>,
    /// All Machines.
    pub total: u32,
    /// Those that are unhealthy, or whose Node no longer exists.
    pub unhealthy: u32,
    /// The limit of the brake, in Machines.
    pub allowed: u32,
    /// When another Machine becomes unhealthy unless its Node changes.
    pub wake: Option<Timestamp>,
}

impl HealthPlan {
    /// Whether the brake holds.
    pub fn is_braked(&self) -> bool {
        self.unhealthy > self.allowed
    }
}

/// The health of one Machine.
enum Health {
    /// A condition has had its status for too long.
    Unhealthy,
    Missing,
    /// Until then, unless a condition changes.
    Healthy(Option<Timestamp>),
}

/// What to replace now.
pub fn plan(rules: &HealthRules, targets: &[HealthTarget], now: Timestamp) -> HealthPlan {
    let checked: Vec<(&HealthTarget, Health)> =
        targets.iter().map(|target| (target, health(rules, target, now))).collect();
    let is_ill = |(_, health): &&(&HealthTarget, Health)| !matches!(health, Health::Healthy(_));
    let total = count(targets.len());
    let wakes = checked.iter().filter_map(|(target, health)| match health {
        Health::Healthy(until) if target.is_judged() => *until,
        _ => None,
    });
    let plan = HealthPlan {
        replace: Vec::new(),
        total,
        unhealthy: count(checked.iter().filter(is_ill).count()),
        allowed: rules.max_unhealthy.rounded_down(total),
        wake: wakes.min(),
    };
    if plan.is_braked() {
        return plan;
    }
    let in_flight = count(checked.iter().filter(is_ill).filter(|(target, _)| target.deleting).count());
    let free = rules.max_in_flight.rounded_up(total).saturating_sub(in_flight);
    let due =
        checked.iter().filter(|(target, health)| target.is_judged() && matches!(health, Health::Unhealthy));
    let mut due: Vec<&HealthTarget> = due.map(|(target, _)| *target).collect();
    // The newest first: it serves the least.
    due.sort_by_key(|target| (Reverse(target.created), target.name.clone()));
    let replace = due.into_iter().take(usize::try_from(free).unwrap_or(usize::MAX));
    HealthPlan { replace: replace.map(|target| target.name.clone()).collect(), ..plan }
}

impl HealthTarget {
    /// Whether it may be replaced for its health.
    fn is_judged(&self) -> bool {
        self.current && !self.excluded && !self.deleting
    }
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

fn health(rules: &HealthRules, target: &HealthTarget, now: Timestamp) -> Health {
    let conditions = match &target.node {
        TargetNode::NotJoined => return Health::Healthy(None),
        TargetNode::Missing => return Health::Missing,
        TargetNode::Present(conditions) => conditions,
    };
    let mut until: Option<Timestamp> = None;
    for rule in &rules.unhealthy {
        let Some(condition) = conditions.iter().find(|condition| rule.holds(condition)) else { continue };
        match condition.since.checked_add(rule.timeout) {
            Ok(deadline) if now >= deadline => return Health::Unhealthy,
            Ok(deadline) => until = Some(until.map_or(deadline, |until| until.min(deadline))),
            // Beyond what a time can be.
            Err(_) => {}
        }
    }
    Health::Healthy(until)
}

impl UnhealthyCondition {
    /// Whether the condition is of this type and status, however long.
    pub fn holds(&self, condition: &NodeStatusCondition) -> bool {
        condition.kind == self.kind && condition.status == self.status
    }
}

#[cfg(test)]
mod tests;
