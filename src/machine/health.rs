//! Which unhealthy Machines are replaced, as Cluster API's MachineHealthCheck does, with a brake: when too many are
//! unhealthy at once, the cause is probably not the Machines.

use jiff::{SignedDuration, Timestamp};

use super::count_or_percent::CountOrPercent;

/// When a Machine is unhealthy, and how many are replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HealthRules {
    /// A Node with one of these for longer than its timeout is unhealthy.
    pub unhealthy: Vec<UnhealthyCondition>,
    /// The brake: with more unhealthy Machines than this, none is replaced. Of all Machines, rounded down; 100 % is none.
    pub max_unhealthy: CountOrPercent,
    /// Machines that are replaced at the same time. Of all Machines, rounded up; `None` is no limit.
    pub max_in_flight: Option<CountOrPercent>,
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

/// A Machine that is checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HealthTarget {
    /// Of the Machine.
    pub name: String,
    /// Of the Machine.
    pub created: Timestamp,
    /// The conditions of its Node; empty while it has none: joining has a deadline of its own
    /// ([`super::join_deadline`]).
    pub conditions: Vec<NodeStatusCondition>,
    /// Its Node is gone for good, or its host was declared lost.
    pub lost: bool,
    /// It is of the current template. Others are replaced by the rollout.
    pub current: bool,
    /// A person requests its replacement by annotation: healthy or not, it goes first, and no brake holds it.
    pub requested: bool,
    /// A person excludes it by annotation.
    pub excluded: bool,
    /// It is being deleted: it counts as unhealthy and as being replaced.
    pub deleting: bool,
}

/// Which Machines to replace.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HealthPlan {
    /// The Machines to delete; their set creates others.
    pub replace: Vec<String>,
    /// Unhealthy Machines, those that are being deleted included.
    pub unhealthy: u32,
    /// The limit of the brake, in Machines.
    pub allowed: u32,
    /// The brake holds: more are unhealthy than allowed.
    pub braked: bool,
    /// When another Machine may have become unhealthy.
    pub wake: Option<Timestamp>,
}

/// The health of one Node.
enum NodeHealth {
    Unhealthy,
    /// Until then, unless a condition changes.
    Healthy(Option<Timestamp>),
}

/// What to replace now.
pub fn plan(rules: &HealthRules, targets: &[HealthTarget], now: Timestamp) -> HealthPlan {
    let total = count(targets.len());
    let checked: Vec<(&HealthTarget, NodeHealth)> =
        targets.iter().map(|target| (target, health(rules, target, now))).collect();
    let is_unhealthy = |(target, health): &&(&HealthTarget, NodeHealth)| {
        target.deleting || matches!(health, NodeHealth::Unhealthy)
    };
    let unhealthy = count(checked.iter().filter(is_unhealthy).count());
    let allowed = rules.max_unhealthy.rounded_down(total);
    let braked = unhealthy > allowed;
    let mut replace: Vec<&HealthTarget> = checked
        .iter()
        .filter(|(target, health)| {
            let is_due = matches!(health, NodeHealth::Unhealthy) && target.current && !braked;
            !target.deleting && !target.excluded && (target.requested || is_due)
        })
        .map(|(target, _)| *target)
        .collect();
    // Requested ones first, then the newest: it serves the least.
    replace.sort_by(|one, other| {
        let key = |target: &HealthTarget| (!target.requested, std::cmp::Reverse(target.created));
        key(one).cmp(&key(other)).then_with(|| one.name.cmp(&other.name))
    });
    let deleting = targets.iter().filter(|target| target.deleting).count();
    let in_flight = rules.max_in_flight.map_or(total, |limit| limit.rounded_up(total));
    let free = usize::try_from(in_flight).unwrap_or(usize::MAX).saturating_sub(deleting);
    let wake = checked.iter().filter_map(|(target, health)| match health {
        NodeHealth::Healthy(until) if !target.deleting && !target.excluded => *until,
        _ => None,
    });
    HealthPlan {
        wake: wake.min(),
        replace: replace.into_iter().take(free).map(|target| target.name.clone()).collect(),
        unhealthy,
        allowed,
        braked,
    }
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

fn health(rules: &HealthRules, target: &HealthTarget, now: Timestamp) -> NodeHealth {
    if target.lost {
        return NodeHealth::Unhealthy;
    }
    let mut until: Option<Timestamp> = None;
    for rule in &rules.unhealthy {
        let holds =
            |condition: &&NodeStatusCondition| condition.kind == rule.kind && condition.status == rule.status;
        let Some(condition) = target.conditions.iter().find(holds) else { continue };
        match condition.since.checked_add(rule.timeout) {
            Ok(deadline) if now >= deadline => return NodeHealth::Unhealthy,
            Ok(deadline) => until = Some(until.map_or(deadline, |until| until.min(deadline))),
            // Beyond what a time can be.
            Err(_) => {}
        }
    }
    NodeHealth::Healthy(until)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    /// `a Ready=False@100 lost old`: a name, then conditions with their times and marks.
    fn target(text: &str) -> HealthTarget {
        let mut words = text.split_whitespace();
        let name = words.next().unwrap().to_owned();
        let words: Vec<&str> = words.collect();
        let has = |word: &str| words.contains(&word);
        let condition = |word: &&str| {
            let (condition, since) = word.split_once('@')?;
            let (kind, status) = condition.split_once('=')?;
            let since = at(since.parse().unwrap());
            Some(NodeStatusCondition { kind: kind.to_owned(), status: status.to_owned(), since })
        };
        let created = words.iter().find_map(|word| word.strip_prefix("created=")?.parse().ok()).unwrap_or(0);
        HealthTarget {
            name,
            created: at(created),
            conditions: words.iter().filter_map(condition).collect(),
            lost: has("lost"),
            current: !has("old"),
            requested: has("requested"),
            excluded: has("excluded"),
            deleting: has("deleting"),
        }
    }

    fn rules(max_unhealthy: &str, max_in_flight: &str) -> HealthRules {
        let rule = |status: &str, seconds| UnhealthyCondition {
            kind: "Ready".to_owned(),
            status: status.to_owned(),
            timeout: SignedDuration::from_secs(seconds),
        };
        HealthRules {
            unhealthy: vec![rule("False", 300), rule("Unknown", 600)],
            max_unhealthy: max_unhealthy.parse().unwrap(),
            max_in_flight: max_in_flight.parse().ok(),
        }
    }

    #[test]
    fn unhealthy_machines_are_replaced_unless_too_many_are() {
        // At 1000: False since 700 or Unknown since 400 is too long.
        for (max_unhealthy, max_in_flight, machines, replaced, unhealthy) in [
            ("100%", "", "", "", "0/0"),
            ("100%", "", "a Ready=True@0", "", "0/1"),
            ("100%", "", "a Ready=False@700", "a", "1/1"),
            ("100%", "", "a Ready=False@701", "", "0/1"),
            ("100%", "", "a Ready=Unknown@400", "a", "1/1"),
            ("100%", "", "a Ready=Unknown@700", "", "0/1"),
            ("100%", "", "a DiskPressure=True@0", "", "0/1"),
            // No Node yet.
            ("100%", "", "a", "", "0/1"),
            ("100%", "", "a lost", "a", "1/1"),
            // The brake: rounded down, and held only above it.
            ("40%", "", "a lost / b lost / c / d / e", "a b", "2/2"),
            ("40%", "", "a lost / b lost / c lost / d / e", "", "3/2 braked"),
            ("40%", "", "a lost / b / c / d", "a", "1/1"),
            ("34%", "", "a lost / b / c", "a", "1/1"),
            ("33%", "", "a lost / b / c", "", "1/0 braked"),
            ("0", "", "a lost / b", "", "1/0 braked"),
            ("1", "", "a lost / b / c", "a", "1/1"),
            ("1", "", "a lost / b lost / c", "", "2/1 braked"),
            ("9", "", "a lost / b lost", "a b", "2/9"),
            // Those that go already count for it.
            ("1", "", "a lost / b deleting / c", "", "2/1 braked"),
            ("100%", "", "a lost / b lost deleting / c", "a", "2/3"),
            // Newest first, then by name.
            (
                "100%",
                "",
                "a lost created=1 / b lost created=3 / d lost created=2 / c lost created=2",
                "b c d a",
                "4/4",
            ),
            // In flight: rounded up.
            ("100%", "1", "a lost / b lost / c", "a", "2/3"),
            ("100%", "50%", "a lost / b lost / c lost", "a b", "3/3"),
            ("100%", "1", "a lost / b lost / c deleting", "", "3/3"),
            ("100%", "0", "a lost", "", "1/1"),
            ("100%", "2", "a lost / b lost / c deleting", "a", "3/3"),
            // Old templates are the rollout's.
            ("100%", "", "a lost old / b lost", "b", "2/2"),
            ("100%", "", "a lost excluded / b lost", "b", "2/2"),
            // On request: first, and whatever the brake.
            ("100%", "1", "a lost created=9 / b requested created=1", "b", "1/2"),
            ("0", "", "a lost / b requested", "b", "1/0 braked"),
            ("100%", "", "a requested old", "a", "0/1"),
            ("100%", "", "a requested excluded", "", "0/1"),
            ("100%", "", "a requested deleting", "", "1/1"),
        ] {
            let targets: Vec<_> =
                machines.split('/').filter(|text| !text.trim().is_empty()).map(target).collect();
            let plan = plan(&rules(max_unhealthy, max_in_flight), &targets, at(1_000));
            let braked = if plan.braked { " braked" } else { "" };
            let counts = format!("{}/{}{braked}", plan.unhealthy, plan.allowed);
            assert_eq!(
                (plan.replace.join(" "), counts),
                (replaced.to_owned(), unhealthy.to_owned()),
                "{machines}"
            );
        }
    }

    #[test]
    fn it_looks_again_when_the_next_machine_may_be_unhealthy() {
        for (machines, expected) in [
            ("a Ready=True@0", None),
            ("a Ready=False@900", Some(1_200)),
            ("a Ready=False@900 / b Ready=Unknown@500", Some(1_100)),
            ("a Ready=False@100 / b Ready=Unknown@500", Some(1_100)),
            ("a Ready=False@900 excluded", None),
            ("a Ready=False@900 deleting", None),
        ] {
            let targets: Vec<_> = machines.split('/').map(target).collect();
            let plan = plan(&rules("100%", ""), &targets, at(1_000));
            assert_eq!(plan.wake, expected.map(at), "{machines}");
        }
    }
}
