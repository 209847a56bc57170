//! Changes of `replicas`.

use super::notation::{case, check};

#[test]
fn a_single_set_follows_replicas() {
    check(&[
        ("5 +1 -0", "v1 by 3/4: aaa", "v1 3>5"),
        ("5 +0 -1", "v1 by 3/3: aaa", "v1 3>5"),
        ("3 +1 -0", "v1 by 5/6: aaaaa", "v1 5>3"),
        ("1 +1 -0", "v1 by 3/4: aaa", "v1 3>1"),
        ("0 +1 -0", "v1 by 3/4: aaa", "v1 3>0"),
        ("3 +1 -0", "v1 by 0/0:", "v1 0>3"),
        // A marked Machine goes, unless the others do not suffice.
        ("2 +1 -0", "v1 by 3/4: Aaa", "v1 3>2"),
        ("2 +1 -0", "v1 by 3/4: Aan", ""),
        ("2 +1 -1", "v1 by 3/4: Aan", "v1 3>2"),
        ("1 +1 -0", "v1 by 3/4: Aan", "v1 3>1"),
        ("2 +1 -0", "v1 by 3/4: Ann", ""),
        ("2 +1 -0", "v1 by 3/4: aaN", "v1 3>2"),
        ("2 +1 -0", "v1 by 3/4: ann", "v1 3>2"),
        // Old sets without Machines do not count.
        ("5 +1 -0", "v1 by 3/4: | v2 by 3/4: aaa", "v2 3>5"),
        // With the growth, the new template goes first: no host is provisioned for the old one.
        ("5 +1 -0 to=v2", "v1 by 3/4: aaa", "+v2 3"),
        ("3 +1 -0 to=v2", "v1 by 5/6: aaaaa", "+v2 0, v1 5>3"),
        ("0 +1 -0 to=v2", "v1 by 5/6: aaaaa", "+v2 0, v1 5>0"),
        ("12 +2 -0", "v1 by 10/10: aaaaaaaaaa", "v1 10>12"),
        ("5 +0 -1", "v1 by 10/10: aaaaaaaaaa", "v1 10>5"),
    ]);
}

/// Kubernetes `TestScale`, whose deployments have neither surge nor budget, and whose replicas are all available.
#[test]
fn each_set_gets_its_share_in_the_middle_of_a_rollout() {
    check(&[
        ("10 +0 -0", "v1 by 5/5: aaa | v2 by 5/5: aa", "v1 3>6, v2 2>4"),
        ("3 +0 -0", "v1 by 5/5: aaa | v2 by 5/5: aa", "v1 3>2, v2 2>1"),
        ("4 +0 -0", "v1 by 9/9: a | v2 by 9/9: aaaaaaaa", "v1 1>0, v2 8>4"),
        ("10 +0 -0", "v1 by 7/7: aa | v2 by 7/7: aaa | v3 by 7/7: aa", "v1 2>3, v2 3>4, v3 2>3"),
        ("8 +0 -0", "v1 by 13/13: aaa | v2 by 13/13: aaaaaaaa | v3 by 13/13: aa", "v1 3>2, v2 8>5, v3 2>1"),
        // What is left goes to the largest and newest, or is taken from the largest and oldest.
        ("4 +0 -0", "v1 by 3/3: a | v2 by 3/3: a | v3 by 3/3: a", "v3 1>2"),
        ("2 +0 -0", "v1 by 3/3: a | v2 by 3/3: a | v3 by 3/3: a", "v1 1>0"),
        ("0 +0 -0", "v1 by 6/6: a | v2 by 6/6: aa | v3 by 6/6: aaa", "v1 1>0, v2 2>0, v3 3>0"),
        ("6 +0 -0", "v1 by 0/0: | v2 by 0/0: | v3 by 0/0:", "v3 0>6"),
        ("20 +2 -0", "v1 by 10/12: aaaaaa | v2 by 10/12: aaaaaa", "v1 6>11, v2 6>11"),
        ("50 +6 -0", "v1 by 10/13: aaaaaaaa | v2 by 10/13: aaaaa", "v1 8>34, v2 5>22"),
        // The writes of one set failed: only the others follow.
        ("5 +0 -0", "v1 by 5/5: a | v2 by 3/3: a | v3 by 5/5: aa", "v2 1>2"),
        ("2 +1 -1", "v1: a | v2: nn", ""),
    ]);
}

#[test]
fn shares_keep_to_the_limits() {
    check(&[
        // Machines that are reset take the room.
        ("10 +0 -1", "v1 by 5/5: aaadd | v2 by 5/5: aa", "v1 3>6"),
        ("6 +0 -1", "v1 by 5/5: aad | v2 by 5/5: aa", "v2 2>3"),
        ("5 +0 -1", "v1 by 3/3: addd | v2 by 3/3: aa", ""),
        // What serves is kept where the share would take it: the rest follows when the new Machines serve.
        ("5 +0 -1", "v1 by 10/10: aaaaaaaa | v2 by 10/10: nn", "v1 8>4, v2 2>1"),
        ("5 +1 -0", "v1 by 10/11: aaaaaaaa | v2 by 10/11: nnn", "v1 8>5, v2 3>2"),
        // Without the record of a size, the present one counts.
        ("10 +0 -1", "v1 by 5/0: aaa | v2 by 5/0: aa", "v1 3>6, v2 2>4"),
        // Nothing to divide before the first new Machine.
        ("6 +1 -0", "v1 by 3/4: aaa | v2 by 3/4:", "v2 0>4"),
        // Cluster API scales the new set alone: "scale up to 12" with surge 3 and unavailable 1.
        ("12 +3 -1", "v1 by 6/9: aaa | v2 by 6/9: aaa", "v1 3>5, v2 3>10"),
    ]);
}

#[test]
fn a_scaled_set_records_the_size_that_it_was_scaled_for() {
    let case = case("5 +1 -0", "v1 by 5/6: aa | v2 by 3/4: aa");
    let plan = case.plan();
    let records: Vec<_> = plan
        .change
        .iter()
        .map(|change| (change.name.as_str(), change.from, change.to, change.desired, change.most))
        .collect();
    assert_eq!(records, [("v1", 2, 2, Some(5), Some(6)), ("v2", 2, 4, Some(5), Some(6))][1..].to_vec());
}

#[test]
fn a_record_alone_is_written_too() {
    let mut case = case("3 +1 -0", "v1: aaa");
    case.world.sets[0].desired = None;
    let plan = case.plan();
    assert_eq!(plan.change.len(), 1);
    assert_eq!((plan.change[0].to, plan.change[0].desired, plan.change[0].most), (3, Some(3), Some(4)));
    // Not of a set without replicas: it gets one when it is scaled.
    let mut case = super::notation::case("3 +1 -0", "v1: | v2: aaa");
    case.world.sets[0].desired = None;
    assert!(case.plan().is_empty());
}

#[test]
fn paused_sets_follow_replicas_and_nothing_else() {
    check(&[
        ("3 +1 -0 paused", "v1: aaa", ""),
        ("5 +1 -0 paused", "v1 by 3/4: aaa", "v1 3>5"),
        ("2 +1 -0 paused", "v1 by 3/4: aaa", "v1 3>2"),
        ("0 +1 -0 paused", "v1 by 3/4: aaa", "v1 3>0"),
        // The template is not rolled out.
        ("3 +1 -0 paused to=v2", "v1: aaa", ""),
        ("5 +1 -0 paused to=v2", "v1 by 3/4: aaa", "v1 3>5"),
        // In the middle of a rollout: what is between replicas and the surge stays.
        ("3 +1 -0 paused", "v1: aaa | v2: a", ""),
        ("3 +1 -0 paused", "v1: aa | v2: a", ""),
        ("5 +0 -1 paused", "v1 by 4/4: aa | v2 by 4/4: aa", "v2 2>3"),
        // Kubernetes `TestScale`: no new set, and one that has yet to be created.
        ("5 +0 -0 paused to=v3", "v1 by 4/4: aa | v2 by 4/4: aa", "v2 2>3"),
        ("14 +0 -0 paused to=v3", "v1 by 10/10: aaa | v2 by 10/10: aaaaaaa", "v1 3>4, v2 7>10"),
        ("4 +1 -0 paused", "v1 by 10/11: aaaaa | v2 by 10/11: aaaaaa", "v1 5>2, v2 6>3"),
        // Old ones go once the current set serves alone.
        ("3 +1 -0 paused", "v1: a | v2: aaa", "v1 1>0"),
        ("3 +1 -0 paused", "v1: a | v2: aan", ""),
        ("3 +1 -0 paused", "v1: | v2=0:", "v2 0>3"),
        ("3 +1 -0 paused to=v9", "v1: | v2=0:", "v2 0>3"),
        ("3 +1 -0 paused", "v1=0: dd | v2=0:", "v2 0>2"),
    ]);
}
