//! What a MachineSet does next: how many Machines it creates, and which it deletes.
//!
//! # Assumptions
//! Before it deletes, the caller lists the Machines of the set from the API server, not from a cache: [`super::rollout`]
//! counts on a scale-down deleting Machines that are not available before available ones, as they are by then.
//! Creating may go by a cache that shows the caller's own writes.

use std::cmp::Reverse;

use jiff::{SignedDuration, Timestamp};

use super::observed_machine::{MachineStage, ObservedMachine};

/// `deletePolicy`: which of equal Machines goes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DeleteOrder {
    /// By name; names end in a random suffix. The default.
    #[default]
    Random,
    /// The newest first, then by name.
    Newest,
    /// The oldest first, then by name.
    Oldest,
}

/// The specification of a MachineSet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MachineSetGoal {
    /// `spec.replicas`.
    pub replicas: u32,
    /// `spec.deletePolicy`.
    pub delete_order: DeleteOrder,
    /// `spec.minReadySeconds`.
    pub min_ready: SignedDuration,
    /// The set has a deletion timestamp: all of its Machines go.
    pub deleting: bool,
}

/// What a MachineSet does next.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MachineSetPlan {
    /// The number of Machines to create.
    pub create: u32,
    /// The names of the Machines to delete, in order.
    pub delete: Vec<String>,
}

/// How little a Machine is missed. Lost before waiting for a host: a lost one needs its replacement, whatever the size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Loss {
    Lost,
    WaitingForHost,
    Joining,
    NotReady,
    NotYetAvailable,
    Available,
}

impl Loss {
    fn of(machine: &ObservedMachine, min_ready: SignedDuration, now: Timestamp) -> Self {
        match machine.stage {
            MachineStage::Lost => Self::Lost,
            MachineStage::WaitingForHost => Self::WaitingForHost,
            MachineStage::Joining => Self::Joining,
            MachineStage::Joined { ready_since: None } => Self::NotReady,
            MachineStage::Joined { .. } if machine.is_available(min_ready, now) => Self::Available,
            MachineStage::Joined { .. } => Self::NotYetAvailable,
        }
    }
}

/// What the set does next. Machines that are being deleted do not count: their replacement is created at once, and waits
/// for a host if there is none.
pub fn plan(goal: &MachineSetGoal, machines: &[ObservedMachine], now: Timestamp) -> MachineSetPlan {
    let live: Vec<&ObservedMachine> = machines.iter().filter(|machine| !machine.deleting).collect();
    let count = u32::try_from(live.len()).unwrap_or(u32::MAX);
    let replicas = if goal.deleting { 0 } else { goal.replicas };
    let excess = usize::try_from(count.saturating_sub(replicas)).unwrap_or(usize::MAX);
    let mut victims = live;
    victims.sort_by(|one, other| {
        let key = |machine: &&ObservedMachine| (!machine.marked, Loss::of(machine, goal.min_ready, now));
        let by_policy = match goal.delete_order {
            DeleteOrder::Random => std::cmp::Ordering::Equal,
            DeleteOrder::Newest => Reverse(one.created).cmp(&Reverse(other.created)),
            DeleteOrder::Oldest => one.created.cmp(&other.created),
        };
        key(one).cmp(&key(other)).then(by_policy).then_with(|| one.name.cmp(&other.name))
    });
    MachineSetPlan {
        create: replicas.saturating_sub(count),
        delete: victims.into_iter().take(excess).map(|machine| machine.name.clone()).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIN_READY: SignedDuration = SignedDuration::from_secs(30);

    fn now() -> Timestamp {
        Timestamp::from_second(10_000).unwrap()
    }

    /// `b-joining!@3`: named b, in that stage, marked, created at 3. Deleting ones end in `~`.
    fn machine(text: &str) -> ObservedMachine {
        let (text, deleting) = text.strip_suffix('~').map_or((text, false), |text| (text, true));
        let (text, created) = text.split_once('@').unwrap_or((text, "0"));
        let (text, marked) = text.strip_suffix('!').map_or((text, false), |text| (text, true));
        let (name, stage) = text.split_once('-').unwrap();
        let ready =
            |second| MachineStage::Joined { ready_since: Some(Timestamp::from_second(second).unwrap()) };
        let stage = match stage {
            "lost" => MachineStage::Lost,
            "waiting" => MachineStage::WaitingForHost,
            "joining" => MachineStage::Joining,
            "notready" => MachineStage::Joined { ready_since: None },
            "fresh" => ready(9_990),
            "available" => ready(100),
            other => panic!("{other}"),
        };
        let created = Timestamp::from_second(created.parse().unwrap()).unwrap();
        ObservedMachine { name: name.to_owned(), created, deleting, stage, marked }
    }

    #[test]
    fn what_serves_least_goes_first() {
        use DeleteOrder::{Newest, Oldest, Random};
        for (order, replicas, machines, create, delete) in [
            (Random, 0, "", 0, ""),
            (Random, 2, "", 2, ""),
            (Random, 2, "a-available b-available", 0, ""),
            (Random, 3, "a-available b-waiting", 1, ""),
            // Those that are deleted already do not count.
            (Random, 2, "a-available b-available~", 1, ""),
            (Random, 1, "a-available b-available~ c-available", 0, "a"),
            (Random, 0, "a-available~ b-lost~", 0, ""),
            // By name.
            (Random, 1, "c-available a-available b-available", 0, "a b"),
            // The whole order.
            (
                Random,
                0,
                "a-available b-fresh c-notready d-joining e-waiting f-lost g-available!",
                0,
                "g f e d c b a",
            ),
            (Random, 4, "a-available b-fresh c-notready d-joining e-waiting f-lost g-available!", 0, "g f e"),
            // Among the marked ones too.
            (Random, 2, "a-available! b-waiting! c-lost d-available", 0, "b a"),
            (Random, 3, "a-available! b-waiting! c-lost d-available", 0, "b"),
            // A mark alone deletes nothing.
            (Random, 2, "a-available! b-available", 0, ""),
            (Newest, 1, "a-available@1 b-available@3 c-available@2", 0, "b c"),
            (Oldest, 1, "a-available@2 b-available@3 c-available@1", 0, "c a"),
            (Newest, 1, "b-available@1 a-available@1", 0, "a"),
            (Oldest, 1, "b-available@1 a-available@1", 0, "a"),
            // The policy decides among equals only.
            (Oldest, 1, "a-available@1 b-notready@9", 0, "b"),
            (Newest, 1, "a-available@9 b-notready@1", 0, "b"),
            (Oldest, 1, "a-notready@1 b-waiting@9", 0, "b"),
            (Newest, 1, "a-available@1 b-available@9 c-available!@5", 0, "c b"),
        ] {
            let goal =
                MachineSetGoal { replicas, delete_order: order, min_ready: MIN_READY, deleting: false };
            let mut machines: Vec<_> = machines.split_whitespace().map(machine).collect();
            for _ in 0..2 {
                let plan = plan(&goal, &machines, now());
                assert_eq!((plan.create, plan.delete.join(" ")), (create, delete.to_owned()), "{machines:?}");
                // Whatever the order in which they are listed.
                machines.reverse();
            }
        }
    }

    #[test]
    fn a_set_that_is_deleted_deletes_all_and_creates_none() {
        let goal = MachineSetGoal {
            replicas: 3,
            delete_order: DeleteOrder::Random,
            min_ready: MIN_READY,
            deleting: true,
        };
        let machines = ["a-available", "b-waiting", "c-available~"].map(machine);
        let plan = plan(&goal, &machines, now());
        assert_eq!((plan.create, plan.delete.join(" ")), (0, "b a".to_owned()));
    }
}
