//! The MachineDeployment is deleted.

use super::notation::{case, check};

#[test]
fn all_sets_are_emptied_and_then_deleted() {
    check(&[
        ("3 +1 -0 deleting", "v1: aaa", "v1 3>0"),
        ("3 +1 -0 deleting", "v1: aa | v2: aj", "v1 2>0, v2 2>0"),
        ("3 +1 -0 deleting", "v1=0: ddd", ""),
        ("3 +1 -0 deleting", "v1=0: aaa", ""),
        ("3 +1 -0 deleting", "v1: | v2=0: d", "-v1"),
        ("3 +1 -0 deleting", "v1=2: | v2=0: d", "v1 2>0"),
        ("3 +1 -0 deleting", "v1: | v2:", "-v1, -v2"),
        ("3 +1 -0 deleting", "v1~: | v2~: d", ""),
        ("3 +1 -0 deleting paused", "v1: aaa", "v1 3>0"),
        ("0 +1 -0 deleting", "v1:", "-v1"),
        ("3 +1 -0 deleting to=v2", "v1: aaa", "v1 3>0"),
    ]);
}

#[test]
fn it_is_finished_when_no_set_is_left() {
    for (goal, sets, expected) in [
        ("3 +1 -0 deleting", "", true),
        ("3 +1 -0 deleting", "v1:", false),
        ("3 +1 -0 deleting", "v1~:", false),
        ("3 +1 -0", "", false),
    ] {
        assert_eq!(case(goal, sets).plan().finished, expected, "{goal}; {sets}");
    }
}

#[test]
fn nothing_but_sizes_is_written() {
    let mut case = case("3 +1 -0 deleting", "v1 no 0: a | v2=0: d");
    case.world.sets[1].desired = None;
    let plan = case.plan();
    assert_eq!(plan.change.len(), 1);
    assert_eq!((plan.change[0].revision, plan.change[0].desired), (0, Some(3)));
}
