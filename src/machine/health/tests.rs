use super::*;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

/// `a Ready=False@100 old`: a name, then conditions with their times and marks. `ill` is a Node that is unhealthy at 1000.
fn target(text: &str) -> HealthTarget {
    let mut words = text.split_whitespace();
    let name = words.next().unwrap().to_owned();
    let words: Vec<&str> = words.map(|word| if word == "ill" { "Ready=False@0" } else { word }).collect();
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
        node: match () {
            () if has("joining") => TargetNode::NotJoined,
            () if has("missing") => TargetNode::Missing,
            () => TargetNode::Present(words.iter().filter_map(condition).collect()),
        },
        current: !has("old"),
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
        max_in_flight: max_in_flight.parse().unwrap(),
    }
}

fn targets(text: &str) -> Vec<HealthTarget> {
    text.split('/').filter(|text| !text.trim().is_empty()).map(target).collect()
}

/// Each case: `maxUnhealthy`, `maxInFlight`, the Machines, those that are replaced, and `UNHEALTHY of TOTAL, ALLOWED`.
#[track_caller]
fn check(cases: &[(&str, &str, &str, &str, &str)]) {
    for (max_unhealthy, max_in_flight, machines, replaced, counts) in cases {
        let plan = plan(&rules(max_unhealthy, max_in_flight), &targets(machines), at(1_000));
        let braked = if plan.is_braked() { " braked" } else { "" };
        let found = format!("{} of {}, {}{braked}", plan.unhealthy, plan.total, plan.allowed);
        assert_eq!((plan.replace.join(" ").as_str(), found.as_str()), (*replaced, *counts), "{machines}");
    }
}

#[test]
fn a_machine_is_unhealthy_when_the_timeout_of_a_condition_has_passed() {
    // At 1000: False since 700 or Unknown since 400 is too long.
    check(&[
        ("100%", "9", "", "", "0 of 0, 0"),
        ("100%", "9", "a Ready=True@0", "", "0 of 1, 1"),
        ("100%", "9", "a Ready=False@700", "a", "1 of 1, 1"),
        ("100%", "9", "a Ready=False@701", "", "0 of 1, 1"),
        ("100%", "9", "a Ready=False@699", "a", "1 of 1, 1"),
        ("100%", "9", "a Ready=Unknown@400", "a", "1 of 1, 1"),
        ("100%", "9", "a Ready=Unknown@401", "", "0 of 1, 1"),
        // The timeout of the other status.
        ("100%", "9", "a Ready=Unknown@700", "", "0 of 1, 1"),
        // A clock that is ahead of this one.
        ("100%", "9", "a Ready=False@2000", "", "0 of 1, 1"),
        ("100%", "9", "a DiskPressure=True@0", "", "0 of 1, 1"),
        ("100%", "9", "a DiskPressure=True@0 Ready=False@0", "a", "1 of 1, 1"),
        ("100%", "9", "a Ready=Maybe@0", "", "0 of 1, 1"),
    ]);
}

#[test]
fn a_machine_without_a_node_is_not_replaced_for_its_health() {
    check(&[
        ("100%", "9", "a", "", "0 of 1, 1"),
        ("100%", "9", "a joining", "", "0 of 1, 1"),
        ("100%", "9", "a missing", "", "1 of 1, 1"),
        // It counts for the brake.
        ("1", "9", "a missing / b ill / c", "", "2 of 3, 1 braked"),
        ("2", "9", "a missing / b ill / c", "b", "2 of 3, 2"),
        ("1", "9", "a joining / b ill / c", "b", "1 of 3, 1"),
    ]);
}

#[test]
fn the_brake_is_rounded_down_and_holds_above_it() {
    check(&[
        ("40%", "9", "a ill / b ill / c / d / e", "a b", "2 of 5, 2"),
        ("40%", "9", "a ill / b ill / c ill / d / e", "", "3 of 5, 2 braked"),
        ("40%", "9", "a ill / b / c / d", "a", "1 of 4, 1"),
        ("34%", "9", "a ill / b / c", "a", "1 of 3, 1"),
        ("33%", "9", "a ill / b / c", "", "1 of 3, 0 braked"),
        ("99%", "9", "a ill", "", "1 of 1, 0 braked"),
        ("0", "9", "a ill / b", "", "1 of 2, 0 braked"),
        ("0%", "9", "a / b", "", "0 of 2, 0"),
        ("1", "9", "a ill / b / c", "a", "1 of 3, 1"),
        ("1", "9", "a ill / b ill / c", "", "2 of 3, 1 braked"),
        ("9", "9", "a ill / b ill", "a b", "2 of 2, 9"),
        // Excluded ones and those of old templates are unhealthy too.
        ("1", "9", "a ill excluded / b ill / c", "", "2 of 3, 1 braked"),
        ("1", "9", "a ill old / b ill / c", "", "2 of 3, 1 braked"),
    ]);
}

#[test]
fn a_machine_that_is_being_deleted_counts_as_what_its_node_is() {
    check(&[
        ("100%", "9", "a ill deleting", "", "1 of 1, 1"),
        ("1", "9", "a ill / b ill deleting / c", "", "2 of 3, 1 braked"),
        // One that a rollout replaces.
        ("1", "1", "a ill / b deleting / c", "a", "1 of 3, 1"),
        ("100%", "1", "a ill / b ill deleting / c", "", "2 of 3, 3"),
        ("100%", "1", "a ill / b missing deleting / c", "", "2 of 3, 3"),
        ("100%", "2", "a ill / b ill / c ill deleting", "a", "3 of 3, 3"),
        ("100%", "1", "a ill / b joining deleting", "a", "1 of 2, 2"),
    ]);
}

#[test]
fn so_many_are_replaced_at_a_time_the_newest_first() {
    check(&[
        ("100%", "1", "a ill / b ill / c", "a", "2 of 3, 3"),
        // Rounded up.
        ("100%", "50%", "a ill / b ill / c ill", "a b", "3 of 3, 3"),
        ("100%", "1%", "a ill / b ill / c ill", "a", "3 of 3, 3"),
        ("100%", "100%", "a ill / b ill / c ill", "a b c", "3 of 3, 3"),
        (
            "100%",
            "9",
            "a ill created=1 / b ill created=3 / d ill created=2 / c ill created=2",
            "b c d a",
            "4 of 4, 4",
        ),
        ("100%", "1", "a ill created=1 / b ill created=3", "b", "2 of 2, 2"),
        ("100%", "1", "a ill created=1 / b ill excluded created=3", "a", "2 of 2, 2"),
        ("100%", "1", "a ill created=1 / b ill old created=3", "a", "2 of 2, 2"),
    ]);
}

#[test]
fn it_looks_again_when_the_next_timeout_passes() {
    for (machines, expected) in [
        ("a Ready=True@0", None),
        ("a joining", None),
        ("a missing", None),
        ("a Ready=False@701", Some(1_001)),
        ("a Ready=False@900", Some(1_200)),
        ("a Ready=False@900 / b Ready=Unknown@500", Some(1_100)),
        ("a ill / b Ready=Unknown@500", Some(1_100)),
        ("a Ready=False@900 excluded", None),
        ("a Ready=False@900 old", None),
        ("a Ready=False@900 deleting", None),
    ] {
        // Also while the brake holds.
        for max_unhealthy in ["100%", "0"] {
            let plan = plan(&rules(max_unhealthy, "1"), &targets(machines), at(1_000));
            assert_eq!(plan.wake, expected.map(at), "{machines}");
        }
    }
    let forever = UnhealthyCondition { timeout: SignedDuration::MAX, ..rules("1", "1").unhealthy[0].clone() };
    let rules = HealthRules { unhealthy: vec![forever], ..rules("1", "1") };
    assert_eq!(plan(&rules, &targets("a ill"), at(1_000)).wake, None);
}
