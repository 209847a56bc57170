//! Revisions, and the deletion of old sets.

use super::notation::{case, check};

/// Kubernetes `TestDeploymentController_cleanupDeployment`.
#[test]
fn old_sets_beyond_the_limit_are_deleted() {
    check(&[
        ("1 +1 -0 limit=1", "v1: | v2: | v3: | v4: a", "-v1, -v2"),
        ("1 +1 -0 limit=0", "v1: | v2: | v4: a", "-v1, -v2"),
        ("1 +1 -0 limit=2", "v1: | v2: | v4: a", ""),
        ("1 +1 -0 limit=4294967295", "v1: | v2: | v3: | v4: a", ""),
        ("1 +1 -0 limit=0", "v1~: | v4: a", ""),
        ("0 +1 -0 limit=0", "v1: | v2:", "-v1"),
        // Not while one has Machines: the rollout is not complete.
        ("1 +1 -0 limit=0", "v1: | v2=0: d | v4: a", ""),
        ("1 +1 -0 limit=0", "v1: | v2: a | v4: a", "v2 1>0"),
        ("1 +1 -0 limit=0", "v1: | v2=1: | v4: a", "v2 1>0"),
        ("1 +1 -0 limit=0", "v1: | v4: n", ""),
        ("1 +1 -0 limit=0", "v1: | v4: r", ""),
        ("2 +1 -0 limit=0", "v1: | v4=2: a", ""),
        ("1 +1 -0 limit=0 paused", "v1: | v4: n", ""),
        // By revision, not by age: the oldest may have been used again.
        ("1 +1 -0 limit=1", "v1 no 5: | v2 no 2: | v4 no 6: a", "-v2"),
        ("1 +1 -0 limit=1 to=v1", "v1 no 4: a | v2 no 2: | v3 no 3:", "-v2"),
        // Equal templates are no history.
        ("1 +1 -0 limit=0 to=v1", "v1 no 3: a | v1' no 2:", "-v1'"),
    ]);
}

#[test]
fn the_current_set_has_the_greatest_revision() {
    for (goal, sets, own, changed) in [
        ("1 +1 -0", "", 1, ""),
        ("1 +1 -0 to=v2", "v1 no 1: a", 2, ""),
        ("1 +1 -0 to=v2", "v1 no 7: a", 8, ""),
        ("1 +1 -0", "v1 no 1: | v2 no 2: a", 2, ""),
        ("1 +1 -0", "v1 no 1: | v2 no 9: a", 9, ""),
        // Back to an older one: the next number, and what it was.
        ("1 +1 -0 to=v1", "v1 no 1: | v2 no 2: a", 3, "v1 3 [1]"),
        ("1 +1 -0 to=v1", "v1 no 3: | v2 no 2: a", 3, ""),
        ("1 +1 -0", "v1 no 5: a | v2 no 5: a", 6, "v2 6 [5]"),
        // Sets without a number.
        ("1 +1 -0", "v1 no 0: a", 1, "v1 1 []"),
        ("1 +1 -0 to=v1", "v1 no 0: a | v2 no 0:", 1, "v1 1 []"),
        // Those that are being deleted count: their numbers are not used again.
        ("1 +1 -0", "v1~ no 4: | v2 no 2: a", 5, "v2 5 [2]"),
    ] {
        let plan = case(goal, sets).plan();
        let created = plan.create.as_ref().map(|new| new.revision);
        assert_eq!((plan.revision, created.unwrap_or(own)), (Some(own), own), "{goal}; {sets}");
        let changes = plan.change.iter().filter(|change| change.revision == own && created.is_none());
        let changes: Vec<String> = changes
            .map(|change| format!("{} {} {:?}", change.name, change.revision, change.history))
            .collect();
        let is_written = !changed.is_empty();
        assert!(changes.join(", ").contains(changed), "{goal}; {sets}: {changes:?}");
        assert!(is_written || changes.iter().all(|text| text.ends_with("[]")), "{goal}; {sets}: {changes:?}");
    }
}

#[test]
fn without_a_current_set_the_revision_stays() {
    assert_eq!(case("1 +1 -0 paused to=v2", "v1: a").plan().revision, None);
    assert_eq!(case("1 +1 -0 to=v1", "v1~: a | v2: a").plan().revision, None);
    assert_eq!(case("1 +1 -0 deleting", "v1: a").plan().revision, None);
}
