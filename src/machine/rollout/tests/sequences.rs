//! Whole rollouts, step by step: plans are carried out at once and Machines become available at once.

use super::super::*;
use super::notation::{NOW, at, case, machine};
use crate::machine::machine_set::{self, DeleteOrder, MachineSetGoal};

/// The sizes of all sets before each plan that changes something: `3 > 3+1 > …`. A Machine that is deleted is gone before
/// the next plan.
fn sequence(goal: &str, sets: &str) -> String {
    let mut case = case(goal, sets);
    let mut shown = Vec::new();
    for _ in 0..100 {
        let sizes: Vec<String> = case.world.sets.iter().map(|set| set.machines.len().to_string()).collect();
        let sizes = sizes.join("+");
        if shown.last() != Some(&sizes) {
            shown.push(sizes);
        }
        let plan = case.plan();
        if plan.is_empty() {
            return shown.join(" > ");
        }
        carry_out(&mut case.world, &plan, &case.goal);
    }
    panic!("does not end: {}", shown.join(" > "));
}

fn carry_out(world: &mut RolloutWorld, plan: &RolloutPlan, goal: &RolloutGoal) {
    for change in &plan.change {
        let set = world.sets.iter_mut().find(|set| set.name == change.name).unwrap();
        (set.replicas, set.revision) = (change.to, change.revision);
        (set.desired, set.most) = (change.desired, change.most);
    }
    world.sets.retain(|set| !plan.delete.contains(&set.name));
    if let Some(new) = &plan.create {
        world.sets.push(ObservedSet {
            name: new.hash.to_string(),
            created: at(i64::try_from(world.sets.len()).unwrap() + 1),
            hash: new.hash.clone(),
            deleting: false,
            observed: true,
            replicas: new.replicas,
            revision: new.revision,
            history: Vec::new(),
            desired: Some(new.desired),
            most: Some(new.most),
            machines: Vec::new(),
        });
    }
    for set in &mut world.sets {
        let own = MachineSetGoal {
            replicas: set.replicas,
            delete_order: DeleteOrder::Random,
            min_ready: goal.min_ready,
            deleting: false,
        };
        let plan = machine_set::plan(&own, &set.machines, at(NOW));
        set.machines.retain(|machine| !plan.delete.contains(&machine.name));
        for number in 0..plan.create {
            let name = format!("{}-n{}-{number}", set.name, set.machines.len());
            set.machines.push(machine(&name, 'a'));
        }
    }
}

#[test]
fn rollouts_take_the_golden_steps() {
    for (goal, sets, expected) in [
        // One new, one old, and so on: the default.
        ("3 +1 -0 to=v2", "v1: aaa", "3 > 3+1 > 2+1 > 2+2 > 1+2 > 1+3 > 0+3"),
        ("1 +1 -0 to=v2", "v1: a", "1 > 1+1 > 0+1"),
        // A full pool.
        ("3 +0 -1 to=v2", "v1: aaa", "3 > 2+0 > 2+1 > 1+1 > 1+2 > 0+2 > 0+3"),
        ("1 +0 -1 to=v2", "v1: a", "1 > 0+0 > 0+1"),
        ("6 +0 -10 to=v2", "v1: aaaaaa", "6 > 0+0 > 0+6"),
        ("6 +10 -0 to=v2", "v1: aaaaaa", "6 > 6+6 > 0+6"),
        ("6 +3 -1 to=v2", "v1: aaaaaa", "6 > 5+3 > 2+4 > 1+6 > 0+6"),
        ("6 +1 -3 to=v2", "v1: aaaaaa", "6 > 3+1 > 2+4 > 0+5 > 0+6"),
        ("4 +50% -50% to=v2", "v1: aaaa", "4 > 2+2 > 0+4"),
        // A third template in the middle.
        (
            "3 +1 -0 to=v3",
            "v1: aa | v2: aa",
            "2+2 > 1+2+0 > 1+2+1 > 0+2+1 > 0+2+2 > 0+1+2 > 0+1+3 > 0+0+3 > 0+3",
        ),
        // Back in the middle.
        ("3 +1 -0 to=v1", "v1: aa | v2: aa", "2+2 > 2+1 > 3+1 > 3+0"),
        // Another size in the middle.
        ("6 +1 -0", "v1 by 3/4: aa | v2 by 3/4: aa", "2+2 > 3+4 > 2+4 > 2+5 > 1+5 > 1+6 > 0+6"),
        ("2 +1 -0", "v1 by 4/5: aaa | v2 by 4/5: aa", "3+2 > 2+1 > 1+1 > 1+2 > 0+2"),
        ("0 +1 -0", "v1 by 4/5: aaa | v2 by 4/5: aa", "3+2 > 0+0"),
        // Old Machines that do not work.
        ("3 +1 -0 to=v2", "v1: aan", "3 > 3+1 > 2+1 > 2+2 > 1+2 > 1+3 > 0+3"),
        ("3 +0 -1 to=v2", "v1: aan", "3 > 2+0 > 2+1 > 1+1 > 1+2 > 0+2 > 0+3"),
    ] {
        assert_eq!(sequence(goal, sets), expected, "{goal}; {sets}");
    }
}
