use std::collections::BTreeSet;

use super::*;
use crate::machine::api::conflict::HostConflict;
use crate::machine::host_job::{HostJob, JobFailure};
use crate::machine::job_queue::JobQueue;

/// Of all tables.
const NOW: i64 = 100_000;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn state(text: &str) -> HostState {
    serde_json::from_value(serde_json::Value::from(text)).unwrap()
}

fn job(text: &str) -> HostJob {
    match text {
        "inspect" => HostJob::Inspect,
        "check" => HostJob::Check,
        "upgrade" => HostJob::UpgradePackages,
        "deploy" => HostJob::Deploy,
        "stop" => HostJob::StopKubelet,
        "reset" => HostJob::Reset,
        "power" => HostJob::PowerOff,
        other => panic!("{other}"),
    }
}

/// `InUse claim joined silent=30 done=stop,reset failed=reset:3:10 runs=deploy@7 node …`: the state, then what differs from
/// a host that answers, has token 7, and was never used. `claim` is by a Machine that exists.
fn scene(text: &str) -> HostScene {
    let mut words = text.split_whitespace();
    let present = state(words.next().unwrap());
    let words: Vec<&str> = words.collect();
    let has = |word: &str| words.contains(&word);
    let value = |key: &str| words.iter().find_map(|word| word.strip_prefix(key)?.strip_prefix('='));
    let claim = ClaimView {
        machine_uid: "u-1".to_owned(),
        machine: "a/web".to_owned(),
        since: at(0),
        queue: JobQueue::default(),
    };
    let failure = value("failed").map(|text| {
        let parts: Vec<&str> = text.split(':').collect();
        let last = at(NOW - parts[2].parse::<i64>().unwrap());
        JobFailure {
            job: job(parts[0]),
            attempts: parts[1].parse().unwrap(),
            last,
            message: "broken".to_owned(),
        }
    });
    let done: BTreeSet<HostJob> =
        value("done").into_iter().flat_map(|jobs| jobs.split(',')).map(job).collect();
    let work = value("runs").map_or(HostWork::Idle, |text| {
        let (name, token) = text.split_once('@').unwrap();
        HostWork::Running { job: job(name), token: token.parse().unwrap(), phase: String::new() }
    });
    let present_claimant = Claimant::Present {
        deleting: has("deleting"),
        drained: has("drained"),
        joined: has("joined"),
        join_failed: has("join-failed"),
    };
    HostScene {
        host: HostView {
            name: "h1".parse().unwrap(),
            version: "1".to_owned(),
            state: present,
            claim: (has("claim") || has("gone")).then_some(claim),
            last_token: 7,
            failures: value("failures").map_or(0, |text| text.parse().unwrap()),
            finalizer: !has("bare"),
            deleting: has("host-deleted"),
            done,
            failure,
            residue: value("residue").into_iter().map(str::to_owned).collect(),
            silent_since: value("silent").map(|seconds| at(NOW - seconds.parse::<i64>().unwrap())),
            orders: HostOrders {
                lost: has("order-lost"),
                powered_off: has("order-off"),
                quarantine: has("order-quarantine"),
                release: has("order-release"),
                inspect: has("order-inspect"),
            },
            has_power_hook: has("hook"),
            hook_reports_off: has("hook-off"),
        },
        claimant: if has("gone") { Claimant::Gone } else { present_claimant },
        node_exists: has("node"),
        conflict: has("conflict").then_some(HostConflict::NameOfNode),
        work,
        failed_joins: 3,
    }
}

fn shown(plan: &HostLifePlan) -> String {
    let step = match &plan.step {
        None => String::new(),
        Some(HostStep::AddFinalizer) => ", add finalizer".to_owned(),
        Some(HostStep::RemoveFinalizer) => ", remove finalizer".to_owned(),
        Some(HostStep::ClearReleaseOrder) => ", clear order".to_owned(),
        Some(HostStep::Enter(state)) => format!(", enter {state}"),
        Some(HostStep::BeginReset { token, failures: 0 }) => format!(", begin reset {token}"),
        Some(HostStep::BeginReset { token, failures }) => {
            format!(", begin reset {token}, failures {failures}")
        }
        Some(HostStep::Begin(job, fence)) => format!(", {job} {}", fence.token),
        Some(HostStep::Cancel(job)) => format!(", cancel {job}"),
        Some(HostStep::DeleteNode(id)) => format!(", delete {id}"),
        Some(HostStep::Release { state, failures }) => format!(", release {state} {failures}"),
        Some(HostStep::Quarantine) => ", quarantine".to_owned(),
    };
    let wake = plan.wake.map(|wake| format!(", in {} s", wake.as_second() - NOW));
    format!("{} {}{step}{}", plan.state, plan.reason.name(), wake.unwrap_or_default())
}

#[track_caller]
fn check(cases: &[(&str, &str)]) {
    for (text, expected) in cases {
        assert_eq!(shown(&next(&scene(text), at(NOW))), *expected, "{text}");
    }
}

#[test]
fn a_host_is_available_only_after_a_clean_inspection() {
    check(&[
        ("Unknown bare", "Unknown NoFinalizer, add finalizer"),
        ("Unknown", "Inspecting Inspecting, enter Inspecting"),
        ("Inspecting", "Inspecting Inspecting, inspection 7"),
        ("Inspecting runs=inspect@7", "Inspecting Inspecting"),
        ("Available order-inspect", "Unknown NotInspected, enter Unknown"),
        ("Inspecting order-inspect", "Inspecting Inspecting, inspection 7"),
        ("Inspecting runs=inspect@6", "Inspecting Inspecting, cancel inspection"),
        ("Inspecting runs=deploy@7", "Inspecting Inspecting, cancel deployment"),
        ("Inspecting failed=inspect:1:5", "Inspecting InspectionFailed, in 10 s"),
        ("Inspecting failed=inspect:1:15", "Inspecting InspectionFailed, inspection 7"),
        ("Inspecting done=inspect", "Available Clean, enter Available"),
        // Not ours to clean.
        ("Inspecting done=inspect residue=etcd", "Quarantined NotClean, quarantine"),
        ("Available", "Available Clean"),
        ("Available silent=60", "Available Clean"),
        ("Available silent=61", "Unreachable NoAnswer, enter Unreachable"),
        ("Unreachable silent=61", "Unreachable NoAnswer"),
        // Anything may have happened meanwhile.
        ("Unreachable", "Unknown NotInspected, enter Unknown"),
        ("Lost", "Unknown NotInspected, enter Unknown"),
        ("InUse", "Unknown NotInspected, enter Unknown"),
        ("Available order-lost", "Lost DeclaredLost, enter Lost"),
        ("Lost order-lost", "Lost DeclaredLost"),
        ("Available order-quarantine", "Quarantined QuarantineOrdered, quarantine"),
        ("Available order-release", "Available Resetting, clear order"),
        ("Unknown conflict", "Unknown HostConflict, in 60 s"),
        ("Unknown bare conflict", "Unknown NoFinalizer, add finalizer"),
        ("Unknown conflict silent=61", "Unknown HostConflict, in 60 s"),
        ("Unreachable conflict silent=61", "Unknown HostConflict, enter Unknown, in 60 s"),
        ("Inspecting conflict runs=inspect@7", "Unknown HostConflict, enter Unknown, in 60 s"),
        ("Available conflict", "Unknown HostConflict, enter Unknown, in 60 s"),
        ("Available conflict order-quarantine", "Quarantined QuarantineOrdered, quarantine"),
        ("Unknown conflict host-deleted", "Unknown NotInspected, remove finalizer"),
        ("Available host-deleted", "Available NotInspected, remove finalizer"),
        ("Available host-deleted bare", "Available NotInspected"),
        ("Inspecting host-deleted runs=inspect@7", "Inspecting NotInspected, cancel inspection"),
    ]);
}

#[test]
fn only_an_operator_ends_a_quarantine_and_with_a_reset() {
    check(&[
        ("Quarantined", "Quarantined QuarantineOrdered"),
        ("Quarantined residue=etcd", "Quarantined NotClean"),
        ("Quarantined failures=3", "Quarantined JoinsFailed"),
        ("Quarantined silent=9000", "Quarantined QuarantineOrdered"),
        ("Quarantined order-release", "Resetting Resetting, begin reset 8"),
        ("Quarantined order-release silent=1", "Quarantined QuarantineOrdered"),
        ("Quarantined order-release order-quarantine", "Quarantined QuarantineOrdered"),
        ("Quarantined gone order-release", "Resetting Resetting, begin reset 8"),
        ("Resetting order-release", "Resetting Resetting, clear order"),
        ("Resetting", "Resetting Resetting, stop of the kubelet 7"),
        ("Resetting done=stop", "Resetting Resetting, reset 7"),
        ("Resetting done=stop,reset failures=3", "Available Clean, release Available 0"),
        ("Resetting failed=reset:3:0 done=stop", "Quarantined ResetFailed, quarantine"),
    ]);
}

#[test]
fn the_state_of_a_claimed_host_is_that_of_its_machine() {
    check(&[
        ("Claimed claim", "Claimed Claimed"),
        ("Claimed claim runs=check@7", "Claimed Claimed"),
        // In the write that records the check.
        ("Claimed claim done=check", "Provisioning Provisioning, enter Provisioning"),
        ("Claimed claim failed=check:1:0", "Claimed Claimed"),
        ("Claimed claim runs=deploy@7", "Provisioning Provisioning, enter Provisioning"),
        ("Claimed claim failed=deploy:1:0", "Provisioning Provisioning, enter Provisioning"),
        ("Provisioning claim", "Provisioning Provisioning"),
        ("Provisioning claim joined", "InUse InUse, enter InUse"),
        ("InUse claim joined node", "InUse InUse"),
        ("InUse claim joined node silent=60", "InUse InUse"),
        ("InUse claim joined node silent=61", "Unreachable NoAnswer, enter Unreachable"),
        // For as long as it takes: its node may still run.
        ("Unreachable claim joined node silent=99999", "Unreachable NoAnswer"),
        ("Unreachable claim joined node", "InUse InUse, enter InUse"),
        ("InUse claim joined node order-quarantine", "InUse InUse"),
        ("InUse claim joined node host-deleted", "InUse InUse"),
        ("InUse claim joined deleting node", "Draining Draining, enter Draining"),
        ("Draining claim joined deleting node", "Draining Draining"),
    ]);
}

#[test]
fn a_claim_ends_when_the_host_is_clean_and_its_node_deleted() {
    check(&[
        ("Draining claim joined deleting drained node", "Resetting Resetting, begin reset 8"),
        ("InUse gone node", "Resetting Resetting, begin reset 8"),
        ("Unreachable gone node", "Resetting Resetting, begin reset 8"),
        ("Resetting gone node", "Resetting Resetting, stop of the kubelet 7"),
        // A worker of the claim.
        ("Resetting gone node runs=deploy@6", "Resetting Resetting, cancel deployment"),
        ("Resetting gone node runs=stop@6", "Resetting Resetting, cancel stop of the kubelet"),
        ("Resetting gone node runs=stop@7", "Resetting Resetting"),
        ("Resetting gone node done=stop", "Resetting Resetting, reset 7"),
        ("Resetting gone node done=stop failed=reset:1:0", "Resetting ResetFailed, in 15 s"),
        ("Resetting gone node done=stop failed=reset:2:30", "Resetting ResetFailed, reset 7"),
        ("Resetting gone node done=stop failed=reset:3:0", "Quarantined ResetFailed, quarantine"),
        ("Resetting gone node failed=stop:3:0", "Quarantined ResetFailed, quarantine"),
        ("Resetting gone node done=stop,reset", "Resetting Resetting, delete metalform://h1/u-1"),
        ("Resetting gone done=stop,reset", "Available Clean, release Available 0"),
        ("Resetting gone done=stop,reset failures=2", "Available Clean, release Available 2"),
        // A cache that shows the Machine as it was does not end a cleanup.
        ("Resetting claim joined node done=stop", "Resetting Resetting, reset 7"),
        ("InUse claim joined node done=stop", "Resetting Resetting, begin reset 8"),
        (
            "Resetting claim deleting drained joined done=stop,reset failures=2",
            "Available Clean, release Available 0",
        ),
        // A join that failed is counted once, when the reset begins.
        (
            "Resetting claim deleting drained join-failed done=stop,reset failures=2",
            "Available Clean, release Available 2",
        ),
        (
            "Resetting claim deleting drained join-failed done=stop,reset failures=3",
            "Quarantined JoinsFailed, release Quarantined 3",
        ),
        (
            "Resetting gone order-quarantine done=stop,reset",
            "Quarantined QuarantineOrdered, release Quarantined 0",
        ),
    ]);
}

#[test]
fn a_failed_join_is_counted_where_a_job_has_begun_to_make_a_node_of_the_host() {
    let began = |claim: &str, expected: &str| {
        let text = format!("Provisioning {claim} deleting drained join-failed failures=1");
        assert_eq!(
            shown(&next(&scene(&text), at(NOW))),
            format!("Resetting Resetting, {expected}"),
            "{text}"
        );
    };
    let (counted, not_counted) = ("begin reset 8, failures 2", "begin reset 8, failures 1");
    for (jobs, expected) in [
        ("", not_counted),
        ("failed=check:9:5", not_counted),
        // It waited for its turn.
        ("done=check", not_counted),
        ("done=check failed=deploy:1:5", counted),
        // Another process works on the host.
        ("done=check failed=deploy:0:5", not_counted),
        ("done=check failed=upgrade:1:5", counted),
        ("done=check,upgrade", counted),
        ("done=check,deploy", counted),
        // Its reset begins again.
        ("done=stop failed=reset:3:5", not_counted),
    ] {
        began(&format!("claim {jobs}"), expected);
    }
    began("gone done=check,deploy", not_counted);
}

#[test]
fn the_node_of_a_host_that_does_not_answer_stays_until_the_host_is_confirmed_off() {
    check(&[
        ("Resetting gone node silent=30", "Resetting NoAnswer, in 3570 s"),
        ("Resetting gone node silent=100", "Unreachable NoAnswer, enter Unreachable, in 3500 s"),
        ("Unreachable gone node silent=100", "Unreachable NoAnswer, in 3500 s"),
        ("Unreachable gone node silent=3600", "Quarantined ResetUnreachable, quarantine"),
        ("Quarantined gone node silent=9000", "Quarantined ResetUnreachable"),
        ("Quarantined gone node silent=9000 order-off", "Quarantined PoweredOff, delete metalform://h1/u-1"),
        ("Quarantined gone silent=9000 order-off", "Quarantined PoweredOff"),
        ("Quarantined gone node silent=9000 hook-off", "Quarantined PoweredOff, delete metalform://h1/u-1"),
        // What was confirmed does not count while it answers.
        ("Quarantined gone node order-off", "Quarantined ResetUnreachable"),
        ("Quarantined gone node hook-off", "Quarantined ResetUnreachable"),
        // The kubelet was stopped before the reset failed.
        (
            "Quarantined gone node done=stop failed=reset:3:0",
            "Quarantined ResetFailed, delete metalform://h1/u-1",
        ),
        ("Resetting gone node silent=1 order-off", "Resetting PoweredOff, delete metalform://h1/u-1"),
        ("Resetting gone silent=1 order-off", "Quarantined PoweredOff, quarantine"),
        ("InUse claim joined node silent=1 order-lost", "Lost DeclaredLost, enter Lost"),
        ("Lost claim joined node silent=1 order-lost", "Lost DeclaredLost, delete metalform://h1/u-1"),
        ("Lost claim joined silent=1 order-lost", "Lost DeclaredLost"),
        ("Lost gone node order-lost", "Resetting Resetting, begin reset 8"),
        ("Lost gone silent=1 order-lost host-deleted", "Lost DeclaredLost, remove finalizer"),
        ("Quarantined gone host-deleted", "Quarantined ResetUnreachable"),
        ("Quarantined gone done=stop host-deleted", "Quarantined ResetUnreachable, remove finalizer"),
        ("Quarantined claim done=stop host-deleted", "Quarantined ResetUnreachable"),
    ]);
}

#[test]
fn a_power_hook_is_called_for_a_host_that_cannot_be_reset() {
    let deleting = "claim joined deleting drained node hook";
    let with = |text: &str| text.replace("DELETING", deleting);
    let cases = [
        // Not before it is unreachable, and that is written.
        ("Draining DELETING silent=30", "Draining NoAnswer, in 3570 s"),
        ("Draining DELETING silent=61", "Unreachable NoAnswer, enter Unreachable, in 3539 s"),
        ("Unreachable DELETING silent=61", "Unreachable PoweringOff, power-off 7, in 3539 s"),
        ("Unreachable DELETING silent=61 runs=power@7", "Unreachable PoweringOff, in 3539 s"),
        (
            "Unreachable DELETING silent=61 runs=power@6",
            "Unreachable PoweringOff, cancel power-off, in 3539 s",
        ),
        ("Unreachable DELETING silent=61 runs=reset@7", "Unreachable PoweringOff, cancel reset, in 3539 s"),
        ("Unreachable DELETING silent=61 failed=power:1:5", "Unreachable PowerHookFailed, in 10 s"),
        (
            "Unreachable DELETING silent=99 failed=power:1:15",
            "Unreachable PowerHookFailed, power-off 7, in 3501 s",
        ),
        ("Unreachable DELETING silent=99 failed=power:9:99", "Unreachable PowerHookFailed, in 381 s"),
        (
            "Unreachable DELETING silent=99 failed=reset:1:5",
            "Unreachable PoweringOff, power-off 7, in 3501 s",
        ),
        ("Unreachable gone node hook silent=61", "Unreachable PoweringOff, power-off 7, in 3539 s"),
        // Its Machine may still run on it.
        ("Unreachable claim joined node hook silent=9000", "Unreachable NoAnswer"),
        ("Unreachable claim joined deleting node hook silent=9000", "Unreachable NoAnswer"),
        ("Draining claim joined deleting node hook", "Draining Draining"),
        ("Unreachable hook silent=9000", "Unreachable NoAnswer"),
        // Confirmed: as by an operator.
        (
            "Unreachable DELETING silent=99 hook-off done=power",
            "Unreachable PoweredOff, delete metalform://h1/u-1",
        ),
        ("Unreachable gone hook silent=99 hook-off", "Quarantined PoweredOff, quarantine"),
        ("Unreachable DELETING silent=99 order-off", "Unreachable PoweredOff, delete metalform://h1/u-1"),
        // It answers again: it is reset as any other.
        ("Unreachable DELETING done=power", "Resetting Resetting, begin reset 8"),
        ("Resetting DELETING runs=power@7", "Resetting Resetting, cancel power-off"),
        // In quarantine, until it is confirmed to be off.
        ("Unreachable DELETING silent=3600 failed=power:9:99", "Quarantined ResetUnreachable, quarantine"),
        ("Quarantined DELETING silent=3600", "Quarantined PoweringOff, power-off 7"),
        ("Quarantined DELETING silent=3600 failed=power:9:99", "Quarantined PowerHookFailed, in 381 s"),
        ("Quarantined DELETING silent=3600 hook-off", "Quarantined PoweredOff, delete metalform://h1/u-1"),
        ("Quarantined gone hook silent=3600 hook-off", "Quarantined PoweredOff"),
        (
            "Quarantined gone node hook silent=3600 done=stop",
            "Quarantined ResetUnreachable, delete metalform://h1/u-1",
        ),
        ("Quarantined gone hook silent=3600 done=stop", "Quarantined ResetUnreachable"),
        ("Quarantined gone node hook silent=60", "Quarantined ResetUnreachable"),
        ("Quarantined hook silent=3600", "Quarantined QuarantineOrdered"),
    ];
    let cases = cases.map(|(text, expected)| (with(text), expected));
    let cases: Vec<(&str, &str)> = cases.iter().map(|(text, expected)| (text.as_str(), *expected)).collect();
    check(&cases);
}

#[test]
fn messages_are_sentences_of_their_own() {
    for (text, expected) in [
        ("Inspecting failed=inspect:1:5", "the inspection failed and is repeated: broken"),
        (
            "Inspecting done=inspect residue=/etc/kubernetes",
            "the host is not clean: /etc/kubernetes; clean it or let it be reset, and release it",
        ),
        ("InUse claim joined", "runs the node of machine a/web"),
        ("Resetting gone done=stop failed=reset:2:1", "the reset of the host failed, attempts: 2: broken"),
        (
            "Quarantined gone node silent=9000",
            "the host does not answer over SSH and was not reset; its Node stays until the host is confirmed off",
        ),
        (
            "Unreachable gone node hook silent=99 failed=power:2:1",
            "the host does not answer over SSH, and is not confirmed to be off, attempts: 2: broken",
        ),
    ] {
        assert_eq!(next(&scene(text), at(NOW)).reason.to_string(), expected, "{text}");
    }
}
