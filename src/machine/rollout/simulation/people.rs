//! What happens to Machines, and what people do.

use jiff::Timestamp;

use super::api::Api;
use super::limits::Limits;
use crate::machine::count_or_percent::CountOrPercent;
use crate::machine::dice::Dice;
use crate::machine::observed_machine::MachineStage;
use crate::machine::revision_hash::RevisionHash;
use crate::machine::rollout::{Fenceposts, RolloutGoal};

/// Machines of this template never join.
pub(super) const BROKEN: &str = "v3";

/// Some Machine gets further: joins, becomes Ready, or is reset. `all`: every Machine that can.
pub(super) fn work(api: &mut Api, dice: &mut Dice, now: Timestamp, all: bool) -> bool {
    let mut worked = false;
    for (name, object) in api.machines.now().clone() {
        if !all && !dice.one_in(3) {
            continue;
        }
        if object.machine.deleting {
            api.remove_machine(&name);
            worked = true;
            continue;
        }
        let next = match object.machine.stage {
            MachineStage::Joining if object.set != BROKEN => MachineStage::Joined { ready_since: None },
            MachineStage::Joined { ready_since: None } => MachineStage::Joined { ready_since: Some(now) },
            _ => continue,
        };
        api.change_machine(&name, |object| object.machine.stage = next);
        worked = true;
    }
    worked
}

/// A Machine fails, is deleted or marked.
pub(super) fn disturb(api: &mut Api, dice: &mut Dice, limits: &mut Limits) -> Option<String> {
    let live: Vec<String> = api
        .machines
        .now()
        .iter()
        .filter(|(_, object)| !object.machine.deleting)
        .map(|(name, _)| name.clone())
        .collect();
    let name = dice.pick(&live)?;
    let stage = api.stage(&name)?;
    let is_joined = matches!(stage, MachineStage::Joined { .. });
    limits.fails(api);
    Some(match dice.roll(5) {
        0 | 1 if is_joined => {
            let stage = MachineStage::Joined { ready_since: None };
            api.change_machine(&name, |object| object.machine.stage = stage);
            format!("{name} is not ready")
        }
        2 if is_joined => {
            api.change_machine(&name, |object| object.machine.stage = MachineStage::Lost);
            format!("{name} is lost")
        }
        3 => {
            api.change_machine(&name, |object| object.machine.marked = true);
            format!("{name} is marked")
        }
        _ => {
            api.change_machine(&name, |object| (object.machine.deleting, object.by_itself) = (true, true));
            format!("{name} is deleted by hand")
        }
    })
}

/// Lost Machines, and those that never join, are deleted for their health.
pub(super) fn replace_unhealthy(api: &mut Api, limits: &mut Limits) -> bool {
    let lost = api.machines.now().iter().find(|(_, object)| {
        let never_joins = object.set == BROKEN && object.machine.stage == MachineStage::Joining;
        (object.machine.stage == MachineStage::Lost || never_joins) && !object.machine.deleting
    });
    let Some(name) = lost.map(|(name, _)| name.clone()) else { return false };
    limits.fails(api);
    api.change_machine(&name, |object| (object.machine.deleting, object.by_itself) = (true, true));
    true
}

/// A person edits the MachineDeployment.
pub(super) fn edit(goal: &mut RolloutGoal, dice: &mut Dice, hosts: usize) -> String {
    let shares = [0, 0, 1, 1, 2].map(CountOrPercent::Count);
    let percents = [25, 50, 100].map(CountOrPercent::Percent);
    let shares = [shares.as_slice(), percents.as_slice()].concat();
    match dice.roll(6) {
        0 => goal.replicas = u32::try_from(dice.roll(hosts + 1)).unwrap(),
        1 => goal.paused = !goal.paused,
        2 => {
            goal.max_surge = dice.pick(&shares).unwrap();
            goal.max_unavailable = dice.pick(&shares).unwrap();
        }
        _ => goal.hash = RevisionHash::from_label(&format!("v{}", dice.roll(4) + 1)),
    }
    shown(goal)
}

/// What is possible: a template that works, hosts for it, and room to roll.
pub(super) fn settle(goal: &mut RolloutGoal, hosts: usize) -> String {
    goal.paused = false;
    if goal.hash.as_str() == BROKEN {
        goal.hash = RevisionHash::from_label("v4");
    }
    let hosts = u32::try_from(hosts).unwrap();
    goal.replicas = goal.replicas.min(hosts);
    if goal.replicas == hosts && Fenceposts::of(goal).unavailable == 0 {
        goal.max_unavailable = CountOrPercent::Count(1);
    }
    shown(goal)
}

pub(super) fn shown(goal: &RolloutGoal) -> String {
    let paused = if goal.paused { " paused" } else { "" };
    format!("goal {} +{} -{} {}{paused}", goal.replicas, goal.max_surge, goal.max_unavailable, goal.hash)
}
