//! One step of a rolling update.

use super::notation::check;

#[test]
fn the_first_set_is_created_at_its_size() {
    check(&[
        ("3 +1 -0", "", "+v1 3"),
        ("1 +1 -0", "", "+v1 1"),
        ("0 +1 -0", "", "+v1 0"),
        ("3 +0 -1", "", "+v1 3"),
        // Without hosts too: its Machines wait.
        ("3 +1 -0 free=0", "", "+v1 3"),
        ("3 +1 -0 paused", "", ""),
        ("3 +1 -0 deleting", "", ""),
    ]);
}

#[test]
fn a_new_template_gets_a_set_and_the_surge() {
    check(&[
        ("3 +1 -0 to=v2", "v1: aaa", "+v2 1"),
        ("3 +2 -0 to=v2", "v1: aaa", "+v2 2"),
        ("3 +10 -0 to=v2", "v1: aaa", "+v2 3"),
        ("3 +100% -0 to=v2", "v1: aaa", "+v2 3"),
        ("3 +25% -25% to=v2", "v1: aaa", "+v2 1"),
        ("10 +25% -25% to=v2", "v1: aaaaaaaaaa", "+v2 3, v1 10>8"),
        // Without surge an old Machine goes first.
        ("3 +0 -1 to=v2", "v1: aaa", "+v2 0, v1 3>2"),
        ("3 +0 -0 to=v2", "v1: aaa", "+v2 0, v1 3>2"),
        ("3 +0 -2 to=v2", "v1: aaa", "+v2 0, v1 3>1"),
        ("3 +0 -10 to=v2", "v1: aaa", "+v2 0, v1 3>0"),
        ("3 +0 -100% to=v2", "v1: aaa", "+v2 0, v1 3>0"),
        ("3 +1 -1 to=v2", "v1: aaa", "+v2 1, v1 3>2"),
        ("1 +1 -0 to=v2", "v1: a", "+v2 1"),
        ("1 +0 -1 to=v2", "v1: a", "+v2 0, v1 1>0"),
        ("1 +1 -1 to=v2", "v1: a", "+v2 1, v1 1>0"),
        ("3 +1 -0 to=v2 paused", "v1: aaa", ""),
        // A third template before the second is done.
        ("3 +1 -0 to=v3", "v1: aa | v2: aa", "+v3 0, v1 2>1"),
        ("3 +1 -0 to=v3", "v1: aaa | v2: j", "+v3 0, v2 1>0"),
        ("3 +2 -0 to=v3", "v1: aaa | v2: j", "+v3 1, v2 1>0"),
    ]);
}

/// Kubernetes `TestDeploymentController_reconcileNewReplicaSet`, old Machines not available so that they do not shrink.
#[test]
fn the_new_set_grows_up_to_the_surge() {
    check(&[
        ("10 +0 -1", "v1: nnnnnnnnnn | v2:", "v1 10>9"),
        ("10 +2 -0", "v1: nnnnnnnnnn | v2:", "v2 0>2"),
        ("10 +2 -0", "v1: nnnnn | v2:", "v2 0>7"),
        ("10 +2 -0", "v1: nnnnnnnnnn | v2: jj", ""),
        // Above replicas it is cut.
        ("10 +2 -0", "v1: nn | v2: jjjjjjjjjjj", "v2 11>10"),
    ]);
}

/// Cluster API `TestReconcileNewMachineSet`.
#[test]
fn deleting_machines_count_against_the_surge() {
    check(&[
        ("2 +2 -0", "v1:", "v1 0>2"),
        ("0 +2 -0", "v1: aa", "v1 2>0"),
        ("3 +2 -0", "v1: aaa | v2: j", "v2 1>2"),
        ("1 +0 -1", "v1=0: a | v2:", ""),
        ("1 +0 -1", "v1=0: d | v2:", ""),
        ("1 +0 -1", "v1: | v2:", "v2 0>1"),
        ("1 +1 -0", "v1=0: d | v2:", "v2 0>1"),
        ("3 +1 -0", "v1: aad | v2: a", ""),
        ("3 +1 -0", "v1: aa | v2: a", "v2 1>2"),
        ("3 +2 -0", "v1: aad | v2: a", "v2 1>2"),
        ("3 +1 -0", "v1=2: aaa | v2: a", ""),
        // Of the new set too.
        ("3 +1 -0", "v1: aaa | v2=0: d", ""),
        ("3 +1 -0", "v1: aaa | v2=1: d", ""),
        ("3 +0 -1", "v1: aa | v2: d", ""),
        ("3 +0 -1", "v1: aad | v2:", ""),
        ("3 +0 -1", "v1: aa | v2:", "v2 0>1"),
        ("3 +0 -3", "v1: ddd | v2:", ""),
        ("3 +0 -3", "v1: dd | v2:", "v2 0>1"),
        ("3 +0 -3", "v1: d | v2:", "v2 0>2"),
        // More than one resets, of several sets.
        ("5 +2 -0", "v1: aaad | v2: aad", ""),
        ("5 +2 -0", "v1: aaad | v2: aaad", "v1 3>2"),
        // Plain scaling waits for them as well.
        ("3 +0 -1", "v1=2: aad", ""),
        ("4 +1 -0", "v1=2: aadd", "v1 2>3"),
        ("4 +1 -0", "v1=2: aaddd", ""),
    ]);
}

/// Kubernetes `TestDeploymentController_reconcileOldReplicaSets`.
#[test]
fn old_machines_go_as_far_as_enough_stay_available() {
    check(&[
        ("10 +0 -0", "v1: aaaaaaaaaa | v2:", "v1 10>9"),
        ("10 +0 -2", "v1: aaaaaaaaaa | v2:", "v1 10>8"),
        ("10 +0 -2", "v1: aaaaaaaann | v2:", "v1 10>8"),
        ("10 +0 -2", "v1: aaaaaaaaan | v2:", "v1 10>8"),
        ("10 +0 -2", "v1: aaaaaaaa | v2: jj", ""),
        // Worked example of Kubernetes: 10 replicas, 2 unavailable, surge 3; 5 new ones are not available.
        ("10 +3 -2", "v1: aaaaaaaa | v2: jjjjj", ""),
        ("10 +3 -2", "v1: aaaaaaaa | v2: jaaaa", "v1 8>4"),
        ("10 +3 -2", "v1: aaaaaaaa | v2: aaaaa", "v1 8>3"),
        ("3 +1 -0", "v1: aaa | v2: a", "v1 3>2"),
        ("3 +1 -0", "v1: aaa | v2: r", ""),
        ("3 +1 -0", "v1: aaa | v2: n", ""),
        ("3 +1 -0", "v1: aaa | v2: w", ""),
        ("3 +1 -0 min=0", "v1: aaa | v2: r", "v1 3>2"),
        ("3 +3 -0", "v1: aaa | v2: aaj", "v1 3>1"),
        ("3 +3 -0", "v1: aaa | v2: aaa", "v1 3>0"),
        ("3 +1 -1", "v1: aa | v2: jj", ""),
        ("3 +1 -1", "v1: aa | v2: aj", "v1 2>1"),
        ("3 +1 -2", "v1: aaa | v2: j", "v1 3>1"),
        ("1 +1 -0", "v1: a | v2: a", "v1 1>0"),
        ("1 +1 -0", "v1: a | v2: j", ""),
        ("0 +1 -0", "v1: aaa | v2:", "v1 3>0"),
        ("0 +1 -0", "v1: aaa | v2: j", "v1 3>0, v2 1>0"),
    ]);
}

/// Cluster API `Test_reconcileOldMachineSetsRollingUpdate`.
#[test]
fn the_worst_case_of_what_is_not_carried_out_yet_counts() {
    check(&[
        ("10 +1 -0 limit=9", "v1: | v2: aaaaaaaaaa", ""),
        ("3 +1 -0", "v1: aa | v2=1: a", "v2 1>2"),
        ("3 +1 -0", "v1: an | v2: a", "v2 1>2"),
        // Deletions of a previous plan: the budget is used up.
        ("3 +1 -0", "v1=2: aaa | v2: a", ""),
        ("6 +3 -1", "v1=2: aaa | v2: aaa | v3=3:", ""),
        ("3 +1 -0", "v1=3: aaaa | v2: aa", "v1 3>1"),
        ("3 +1 -0", "v1=1: aa | v2: aa", ""),
        ("3 +1 -0", "v1=2: aaa | v2: aa", "v1 2>1"),
        ("3 +1 -0", "v1: aaa | v2: j", ""),
        // The set deletes what is not available, so this one goes at once (Cluster API breaks a deadlock later).
        ("3 +1 -0", "v1: aan | v2: a", "v1 3>2"),
        ("3 +1 -0", "v1: aaa | v2: a", "v1 3>2"),
        // A pending deletion may have chosen an available Machine before the other failed.
        ("3 +1 -0", "v1=2: aan | v2: a", ""),
        ("3 +1 -0", "v1=2: aann | v2: a", ""),
        ("3 +2 -0", "v1=2: aann | v2: aa", ""),
        ("3 +3 -0", "v1=2: aann | v2: aaa", "v1 2>0"),
        // Of the new set.
        ("3 +2 -0", "v1: aaa | v2=1: aa", "v1 3>2"),
        ("3 +2 -0", "v1: aa | v2=1: aa", "v2 1>2"),
    ]);
}

#[test]
fn what_is_not_available_goes_first_from_the_oldest_set_on() {
    check(&[
        ("3 +1 -0", "v1: aa | v2: n | v3: nn | v4: a", "v2 1>0, v3 2>0"),
        ("3 +1 -0", "v1: aaa | v2: n | v3: nn | v4: a", "v1 3>2, v2 1>0, v3 2>0"),
        // Replicas without a Machine cost nothing.
        ("3 +1 -0", "v1=4: aaa | v2=2: n | v3=5: nn | v4: a", "v1 4>2, v2 2>0, v3 5>0"),
        ("3 +1 -0", "v1=2: a | v2=3: n | v3=3: an | v4: a", "v1 2>1, v2 3>0, v3 3>1"),
        ("3 +1 -0", "v1: a | v2: n | v3: an | v4: a", "v2 1>0, v3 2>1"),
        ("4 +1 -0", "v1: aaan | v2: a", "v1 4>3"),
        ("4 +1 -0", "v1: aann | v2: a", "v1 4>3"),
        ("3 +1 -0", "v1: jaa | v2: a", "v1 3>2"),
        ("3 +1 -0", "v1: waa | v2: a", "v1 3>2"),
        ("3 +1 -0", "v1: laa | v2: a", "v1 3>2"),
        ("3 +1 -0", "v1: raa | v2: a", "v1 3>2"),
        ("3 +0 -1", "v1: naa | v2:", "v1 3>2"),
        ("3 +0 -1", "v1: nna | v2:", "v1 3>2"),
        // All nodes are unreachable for a moment: the old ones are kept.
        ("3 +1 -0", "v1: nnn | v2: n", ""),
        ("3 +1 -0", "v1: nnn | v2:", "v2 0>1"),
        ("5 +0 -2", "v1: nnnnn | v2:", "v1 5>3"),
        // Marked ones go first, available or not.
        ("3 +1 -0", "v1: Aan | v2: a", ""),
        ("3 +1 -0", "v1: Aaa | v2: a", "v1 3>2"),
        ("3 +1 -0", "v1: aaN | v2: a", "v1 3>2"),
        ("3 +1 -1", "v1: Aan | v2: a", "v1 3>1"),
        ("4 +2 -0", "v1: Aaan | v2: aa", "v1 4>2"),
    ]);
}

#[test]
fn a_rollout_whose_new_machines_fail_stops_with_the_old_ones_serving() {
    check(&[
        ("3 +1 -0", "v1: aaa | v2: n", ""),
        ("3 +1 -0", "v1: aaa | v2: l", ""),
        ("3 +1 -0", "v1: aaa | v2=1: d", ""),
        ("3 +1 -0", "v1: aaa | v2=1: jd", ""),
        ("3 +1 -1", "v1: aa | v2: nn", ""),
        ("3 +1 -1", "v1: aa | v2=2: nd", ""),
        ("3 +0 -1", "v1: aa | v2: n", ""),
        ("10 +3 -2", "v1: aaaaaaaa | v2: nnnnn", ""),
        ("10 +3 -2", "v1: aaaaaaaa | v2: nnnna", "v1 8>7"),
        ("4 +0 -2", "v1: aa | v2: nn", ""),
        ("4 +0 -2", "v1: aa | v2: na", "v1 2>1"),
        // One new Machine fails after others have replaced old ones.
        ("3 +1 -0", "v1: a | v2: aan", ""),
        ("3 +1 -0", "v1: aa | v2: an", ""),
        // The way out: another template.
        ("3 +1 -0 to=v3", "v1: aaa | v2: n", "+v3 0, v2 1>0"),
        ("3 +1 -0", "v1: aaa | v2=0: d | v3:", ""),
        ("3 +1 -0", "v1: aaa | v2: | v3:", "v3 0>1"),
        // Or back.
        ("3 +1 -0 to=v1", "v1: aaa | v2: n", "v2 1>0"),
        ("3 +1 -1 to=v1", "v1: aa | v2: nn", "v2 2>0"),
    ]);
}

#[test]
fn a_rollback_uses_the_set_of_the_template_again() {
    check(&[
        ("3 +1 -0 to=v1", "v1: | v2: aaa", "v1 0>1"),
        ("3 +1 -0 to=v1", "v1: aa | v2: aa", "v2 2>1"),
        ("3 +1 -0 to=v1", "v1: a | v2: aa", "v1 1>2"),
        ("3 +1 -0 to=v1", "v1: aaa | v2: j", "v2 1>0"),
        ("3 +1 -0 to=v1", "v1=2: aaa | v2: a", ""),
        ("3 +1 -0 to=v1", "v1=2: aad | v2: a", ""),
        ("3 +0 -1 to=v1", "v1: | v2: aaa", "v2 3>2"),
        ("3 +1 -0 to=v2", "v1: | v2: | v3: aaa", "v2 0>1"),
        // Of several equal ones, the oldest.
        ("3 +1 -0 to=v1", "v1: aa | v1': a", "v1 2>3"),
        ("3 +1 -0 to=v1", "v1: | v1': aaa", "v1 0>1"),
        ("3 +1 -0 to=v1", "v1: aaa | v1': a", "v1' 1>0"),
        // One that is being deleted is not used, and not created again before it is gone.
        ("3 +1 -0 to=v1", "v1~: aa | v2: aaa", ""),
        ("3 +1 -0 to=v1", "v1~: | v2: aaa", ""),
        ("3 +1 -0 to=v1", "v1~: | v1': aaa", ""),
        ("3 +1 -0 to=v1", "v2: aaa", "+v1 1"),
        // Machines of a set that is being deleted count, and do not serve.
        ("3 +1 -0", "v1~: aaa | v2: a", ""),
        ("3 +1 -0", "v0~: a | v1: aaa | v2:", ""),
        ("3 +1 -0", "v0~: a | v1: aaa | v2: a", "v1 3>2"),
        ("3 +1 -0", "v0~: a | v1: aa | v2: a", ""),
    ]);
}

#[test]
fn a_complete_rollout_writes_nothing() {
    check(&[
        ("3 +1 -0", "v1: aaa", ""),
        ("3 +1 -0", "v1: | v2: aaa", ""),
        ("0 +1 -0", "v1:", ""),
        ("0 +1 -0", "v1: | v2:", ""),
        ("3 +0 -1", "v1: | v2: aaa", ""),
        // Failures of single Machines are not its business.
        ("3 +1 -0", "v1: aan", ""),
        ("3 +1 -0", "v1: aal", ""),
        ("3 +1 -0", "v1=3: aad", ""),
        ("3 +1 -0", "v1=3: aawd", ""),
        ("3 +1 -0", "v1: nnn", ""),
        ("3 +1 -0", "v1: aaw", ""),
    ]);
}

#[test]
fn no_size_is_planned_before_the_sets_have_acted_on_theirs() {
    check(&[
        ("3 +1 -0", "v1?=2: aaa | v2: a", ""),
        ("3 +1 -0", "v1?: aaa | v2: a", ""),
        ("3 +1 -0", "v1: aaa | v2?: a", ""),
        // Fewer replicas than were written before: the set may still create what it has read.
        ("3 +1 -0", "v1?=1: a | v2: a", ""),
        ("3 +1 -0", "v1=1: a | v2: a", "v2 1>3"),
        ("3 +1 -0 to=v2", "v1?: aaa", ""),
        ("5 +1 -0", "v1? by 3/4: aaa", ""),
        ("5 +1 -0 paused", "v1? by 3/4: aaa", ""),
        ("5 +1 -0", "v1? by 3/4: aaa | v2 by 3/4: a", ""),
        // One that is being deleted is not waited for, and nothing is when all go.
        ("3 +1 -0", "v0~?: a | v1: aaa | v2: a", "v1 3>2"),
        ("3 +1 -0 deleting", "v1?: aaa", "v1 3>0"),
        ("3 +1 -0 limit=0", "v1?: | v2: aaa", ""),
        ("3 +1 -0 limit=0", "v1: | v2: aaa", "-v1"),
    ]);
}
