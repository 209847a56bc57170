//! Conditions, counts, progress and the time to look again.

use jiff::SignedDuration;

use super::super::*;
use super::notation::{NOW, at, case};

fn condition(plan: &RolloutPlan, kind: RolloutConditionKind) -> String {
    let condition = plan.conditions.iter().find(|condition| condition.kind == kind).unwrap();
    let status = condition.status.map_or("Unknown".to_owned(), |status| status.to_string());
    format!("{status} {}: {}", condition.reason, condition.message)
}

#[test]
fn available_counts_against_the_minimum() {
    for (goal, sets, expected) in [
        ("3 +1 -0", "v1: aaa", "true MinimumReplicasAvailable: available machines: 3, required: 3"),
        ("3 +1 -0", "v1: aan", "false MinimumReplicasUnavailable: available machines: 2, required: 3"),
        ("3 +1 -1", "v1: aan", "true MinimumReplicasAvailable: available machines: 2, required: 2"),
        ("3 +1 -1", "v1: aar", "true MinimumReplicasAvailable: available machines: 2, required: 2"),
        ("3 +1 -1", "v1: ard", "false MinimumReplicasUnavailable: available machines: 1, required: 2"),
        ("3 +0 -0", "v1: aan", "true MinimumReplicasAvailable: available machines: 2, required: 2"),
        ("0 +1 -0", "v1:", "true MinimumReplicasAvailable: available machines: 0, required: 0"),
        ("3 +1 -0", "", "false MinimumReplicasUnavailable: available machines: 0, required: 3"),
        ("3 +1 -0", "v1: aa | v2: a", "true MinimumReplicasAvailable: available machines: 3, required: 3"),
    ] {
        assert_eq!(
            condition(&case(goal, sets).plan(), RolloutConditionKind::Available),
            expected,
            "{goal}; {sets}"
        );
    }
}

#[test]
fn a_rollout_that_no_host_lets_continue_is_blocked() {
    let blocked = "true NoHostAvailable: required hosts: 1, free: 0 (replicas 3, maxSurge 1, maxUnavailable 0): \
                   add hosts that match the template, or set maxUnavailable to 1 or more";
    let short = "true NoHostAvailable: required hosts: 2, free: 0 (replicas 3, maxSurge 1, maxUnavailable 0): \
                 add hosts that match the template";
    let budget = "true NoHostAvailable: required hosts: 1, free: 0 (replicas 3, maxSurge 1, maxUnavailable 1): \
                  add hosts that match the template";
    let needless = "false NotBlocked: no host is required";
    let free = "false NotBlocked: a host is free";
    for (goal, sets, expected) in [
        // A full pool.
        ("3 +1 -0 free=0", "v1: aaa | v2: w", blocked),
        ("3 +1 -0 free=0 to=v2", "v1: aaa", blocked),
        ("3 +1 -0 free=1 to=v2", "v1: aaa", free),
        ("3 +0 -1 free=0 to=v2", "v1: aaa", needless),
        ("3 +1 -0 free=0", "v1: aaa | v2=1:", blocked),
        ("3 +1 -0 free=0", "v1: aaa | v2:", blocked),
        ("3 +1 -0 free=1", "v1: aaa | v2: w", free),
        // Something else helps: an old one may go, a host is being reset, a new one is about to serve.
        ("3 +1 -1 free=0", "v1: aaa | v2: w", needless),
        ("3 +1 -0 free=0", "v1: aad | v2: aw", needless),
        ("3 +1 -0 free=0", "v1=2: aaa | v2: aw", needless),
        ("3 +2 -0 free=0", "v1: aaa | v2: jw", needless),
        ("3 +2 -0 free=0", "v1: aaa | v2: rw", needless),
        // The budget is used up by a Machine that failed.
        (
            "3 +1 -1 free=0",
            "v1: aa | v2: ww",
            "true NoHostAvailable: required hosts: 2, free: 0 (replicas 3, \
          maxSurge 1, maxUnavailable 1): add hosts that match the template",
        ),
        ("3 +1 -1 free=0", "v1: aa | v2: aw", needless),
        (
            "3 +1 -1 free=0",
            "v1: a | v2: aw",
            "true NoHostAvailable: required hosts: 2, free: 0 (replicas 3, \
          maxSurge 1, maxUnavailable 1): add hosts that match the template",
        ),
        // Too few hosts for the size.
        ("3 +1 -0 free=0", "v1: aww", short),
        ("3 +1 -1 free=0", "v1: aaw", budget),
        ("3 +1 -0 free=0", "v1: awwd", needless),
        ("3 +1 -0 free=0", "v1: ajw", needless),
        ("3 +1 -0 free=9", "v1: aww", free),
        ("3 +1 -0 free=0", "v1: aaa", needless),
        ("3 +1 -0 free=0 paused", "v1: aaw", needless),
        ("3 +1 -0 free=0 deleting", "v1: aaw", needless),
    ] {
        let plan = case(goal, sets).plan();
        assert_eq!(condition(&plan, RolloutConditionKind::RolloutBlocked), expected, "{goal}; {sets}");
        let blocked = expected.starts_with("true");
        let progressing = condition(&plan, RolloutConditionKind::Progressing);
        assert_eq!(
            progressing.starts_with("false NoHostAvailable"),
            blocked,
            "{goal}; {sets}: {progressing}"
        );
    }
}

#[test]
fn progressing_has_a_reason() {
    for (goal, sets, expected) in [
        ("3 +1 -0", "v1: aaa", "true RolloutComplete: updated machines: 3 of 3, available: 3, old: 0"),
        ("0 +1 -0", "v1:", "true RolloutComplete: updated machines: 0 of 0, available: 0, old: 0"),
        (
            "3 +1 -0",
            "v1: aaa | v2: j",
            "true RolloutProgressing: updated machines: 1 of 3, available: 3, old: 3",
        ),
        // A host of an old Machine is still being reset.
        (
            "3 +1 -0",
            "v1=0: d | v2: aaa",
            "true RolloutProgressing: updated machines: 3 of 3, available: 3, old: 1",
        ),
        ("3 +1 -0 paused", "v1: aaa | v2: j", "Unknown Paused: the rollout is paused"),
        ("3 +1 -0 deleting", "v1: aad", "Unknown Deleting: machines left: 3"),
        (
            "3 +1 -0 to=v1",
            "v1~: a | v2: aaa",
            "true WaitingForMachineSet: the machine set of this template is being deleted and is created again afterwards",
        ),
    ] {
        let plan = case(goal, sets).plan();
        assert_eq!(condition(&plan, RolloutConditionKind::Progressing), expected, "{goal}; {sets}");
    }
}

#[test]
fn counts_are_those_of_the_status() {
    let plan = case("9 +1 -0", "v1: aarnd | v2: ajwwD").plan();
    let expected = RolloutCounts {
        replicas: 8,
        updated: 4,
        ready: 4,
        available: 3,
        unavailable: 5,
        deleting: 2,
        waiting: 2,
    };
    assert_eq!(plan.counts, expected);
}

/// The deadline is 600 s; the last plan was at `before` seconds ago, with the last progress then.
#[test]
fn the_deadline_runs_from_the_last_progress() {
    let goal = "3 +1 -0 deadline=600";
    for (before, sets_before, sets, expected, wake) in [
        (10, "v1: aaa | v2: j", "v1: aaa | v2: j", "RolloutProgressing", Some(591)),
        (600, "v1: aaa | v2: j", "v1: aaa | v2: j", "RolloutProgressing", Some(1)),
        (601, "v1: aaa | v2: j", "v1: aaa | v2: j", "ProgressDeadlineExceeded", None),
        (601, "v1: aaa | v2: j", "v1: aaa | v2: n", "ProgressDeadlineExceeded", None),
        // Worse is no progress.
        (601, "v1: aaa | v2: j", "v1: aan | v2: j", "ProgressDeadlineExceeded", None),
        (601, "v1: aaa | v2: n", "v1: aaa | v2=1: d", "ProgressDeadlineExceeded", None),
        // Better: updated, ready, available, old, waiting.
        (601, "v1: aaa | v2:", "v1: aaa | v2: j", "RolloutProgressing", Some(601)),
        (601, "v1: aaa | v2: n", "v1: aaa | v2: r", "RolloutProgressing", Some(51)),
        (601, "v1: aaa | v2: r", "v1: aaa | v2: a", "RolloutProgressing", Some(601)),
        (601, "v1: aad | v2: a", "v1: aa | v2: a", "RolloutProgressing", Some(601)),
        (601, "v1: aaa | v2: w", "v1: aaa | v2: j", "RolloutProgressing", Some(601)),
        // Another template, or another size.
        (601, "v1: aaa", "v1: aaa | v2: j", "RolloutProgressing", Some(601)),
        // After a rest.
        (9_000, "v1: aaa", "v1: aan", "RolloutProgressing", Some(601)),
        (9_000, "v1: aan", "v1: aaa", "RolloutComplete", None),
        (9_000, "v1: aaa", "v1: aaa", "RolloutComplete", None),
    ] {
        let mut now = case(goal, sets);
        let earlier = case(goal, sets_before);
        let last = plan(&earlier.goal, &earlier.world, at(NOW - before));
        // Availability is judged at that time; what was available then is now.
        let mut record = earlier.plan().progress;
        record.since = last.progress.since;
        now.world.progress = Some(record);
        let plan = now.plan();
        let progressing = condition(&plan, RolloutConditionKind::Progressing);
        assert!(progressing.contains(expected), "{before} {sets_before} → {sets}: {progressing}");
        let wake = wake.map(|seconds| at(NOW) + SignedDuration::from_secs(seconds));
        assert_eq!(plan.wake, wake, "{before} {sets_before} → {sets}");
    }
}

#[test]
fn no_time_passes_without_a_deadline_or_while_paused() {
    let mut case = case("3 +1 -0", "v1: aaa | v2: j");
    case.world.progress = Some(case.plan().progress);
    case.world.progress.as_mut().unwrap().since = at(1);
    assert!(condition(&case.plan(), RolloutConditionKind::Progressing).contains("RolloutProgressing"));
    assert_eq!(case.plan().wake, None);

    case.goal.progress_deadline = Some(SignedDuration::from_secs(600));
    assert!(condition(&case.plan(), RolloutConditionKind::Progressing).contains("ProgressDeadlineExceeded"));
    case.goal.paused = true;
    let paused = case.plan();
    assert!(condition(&paused, RolloutConditionKind::Progressing).contains("Paused"));
    assert_eq!(paused.wake, None);
    // After the pause it has the whole time again.
    case.world.progress = Some(paused.progress);
    case.goal.paused = false;
    assert_eq!(case.plan().wake, Some(at(NOW + 601)));
}

#[test]
fn a_missing_host_is_not_a_missed_deadline() {
    let mut case = case("3 +1 -0 deadline=600 free=0", "v1: aaa | v2: w");
    case.world.progress = Some(case.plan().progress);
    case.world.progress.as_mut().unwrap().since = at(1);
    assert!(condition(&case.plan(), RolloutConditionKind::Progressing).starts_with("false NoHostAvailable"));
}

#[test]
fn it_looks_again_when_a_machine_becomes_available() {
    for (goal, sets, expected) in [
        ("3 +1 -0", "v1: aaa", None),
        // Ready for 10 of 60 seconds; the API cuts times to whole seconds.
        ("3 +1 -0", "v1: aar", Some(51)),
        ("3 +1 -0 min=20", "v1: aar", Some(11)),
        ("3 +1 -0 min=10", "v1: aar", Some(1)),
        ("3 +1 -0 min=9", "v1: aar", None),
        ("3 +1 -0 min=0", "v1: aar", None),
        ("3 +1 -0", "v1: aan", None),
    ] {
        let expected = expected.map(|seconds| at(NOW + seconds));
        assert_eq!(case(goal, sets).plan().wake, expected, "{goal}; {sets}");
    }
}

#[test]
fn the_same_world_results_in_the_same_record() {
    for sets in ["v1: aaa", "v1: aaa | v2: j", "v1: aaa | v2: w", "v1: nnn"] {
        let mut case = case("3 +1 -0 deadline=600", sets);
        let first = plan(&case.goal, &case.world, at(NOW));
        case.world.progress = Some(first.progress.clone());
        let second = plan(&case.goal, &case.world, at(NOW + 60));
        assert_eq!(first.progress, second.progress, "{sets}");
        assert_eq!(first.conditions, second.conditions, "{sets}");
    }
}
