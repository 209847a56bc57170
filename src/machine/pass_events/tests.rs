use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::json;

use super::condition_table::report;
use super::*;
use crate::kube_api::pod_name::PodName;
use crate::machine::drain::DrainEnd;
use crate::machine::host_choice::HostShortage;
use crate::machine::host_job::{HostJob, JobFailure};
use crate::machine::host_state::HostReason;
use crate::machine::kubelet_refusal::AbsentVersion;
use crate::machine::lifecycle::MachineConditionKind as Kind;
use crate::machine::lifecycle::MachineReason as Reason;
use crate::model::name::HostName;
use crate::model::skew::SkewError;

fn host() -> HostName {
    "h1".parse().unwrap()
}

fn failed(job: HostJob) -> Reason {
    Reason::Failed(JobFailure { job, attempts: 1, last: Timestamp::UNIX_EPOCH, message: "m".to_owned() })
}

fn shown(kind: &str, reason: &str) -> String {
    report(kind, reason).map_or("-".to_owned(), |report| {
        let condition = if report.was_true { " after True" } else { "" };
        format!("{} {}{condition}", if report.warning { "Warning" } else { "Normal" }, report.reason)
    })
}

#[test]
fn the_conditions_of_a_machine_that_joins_are_reported_so() {
    let foreign = Reason::ForeignNode { node: host(), provider_id: String::new() };
    let skew = Reason::VersionSkew(SkewError::Syntax("1".to_owned()).into());
    let absent = Reason::VersionSkew(AbsentVersion::new("1.33.0", &["1.35.4"]).into());
    let running = |job| Reason::InProgress(job, String::new());
    let table = [
        (Kind::HostClaimed, Reason::NoHost, "-"),
        (Kind::HostClaimed, Reason::NoHostAvailable(HostShortage::default()), "Warning NoHostAvailable"),
        (Kind::HostClaimed, Reason::Claiming(host()), "-"),
        (Kind::HostClaimed, Reason::HostNotAvailable(host()), "Warning HostNotAvailable"),
        (Kind::HostClaimed, skew, "Warning VersionSkew"),
        (Kind::HostClaimed, absent, "Warning VersionNotInBundle"),
        (Kind::HostClaimed, Reason::Claimed(host()), "Normal HostClaimed"),
        (Kind::HostChecked, Reason::Pending(HostJob::Check), "-"),
        (Kind::HostChecked, running(HostJob::Check), "Normal CheckingHost"),
        (Kind::HostChecked, Reason::Succeeded(HostJob::Check), "Normal HostChecked"),
        (Kind::HostChecked, failed(HostJob::Check), "Warning HostCheckFailed"),
        (Kind::PackagesUpgraded, running(HostJob::UpgradePackages), "Normal UpgradingPackages"),
        (Kind::PackagesUpgraded, Reason::Succeeded(HostJob::UpgradePackages), "Normal PackagesUpgraded"),
        (Kind::PackagesUpgraded, failed(HostJob::UpgradePackages), "Warning PackageUpgradeFailed"),
        (Kind::Deployed, Reason::Pending(HostJob::Deploy), "-"),
        (Kind::Deployed, running(HostJob::Deploy), "Normal Deploying"),
        (Kind::Deployed, Reason::Succeeded(HostJob::Deploy), "Normal Deployed"),
        (Kind::Deployed, failed(HostJob::Deploy), "Warning DeploymentFailed"),
        (Kind::Deployed, Reason::HostUnreachable(host()), "Warning HostUnreachable"),
        (Kind::Ready, Reason::HostLost(host()), "Warning HostLost"),
        (Kind::NodeLinked, Reason::NotDeployed, "-"),
        (Kind::NodeLinked, Reason::NodeNotFound(host()), "-"),
        (Kind::NodeLinked, foreign, "Warning ForeignNode"),
        (Kind::NodeLinked, Reason::NodeLinked(host()), "Normal NodeLinked"),
        (Kind::NodeLinked, Reason::NodeMissing(host()), "Warning NodeMissing"),
        (Kind::Ready, Reason::NodeLost(host()), "Warning NodeLost"),
        (Kind::Ready, Reason::NodeNotReady(String::new()), "Warning NodeNotReady after True"),
        (Kind::Ready, Reason::NoPodNetwork, "Warning NoPodNetwork after True"),
        (Kind::Ready, Reason::NodeChanging, "-"),
        (Kind::Ready, Reason::NodeReady, "Normal NodeReady"),
    ];
    for (kind, reason, expected) in table {
        assert_eq!(shown(kind.name(), reason.name()), expected, "{} {}", kind.name(), reason.name());
    }
}

#[test]
fn the_conditions_of_a_machine_that_is_deleted_are_reported_so() {
    let ended = Reason::DrainEnded;
    let cleanup = |reason| Reason::HostCleanup(host(), reason);
    let reset_failed = HostReason::ResetFailed { attempts: 1, message: String::new() };
    let power_failed = HostReason::PowerHookFailed { attempts: 1, message: String::new() };
    let table = [
        (Kind::Ready, Reason::Deleting, "Normal Deleting"),
        (Kind::Drained, Reason::InProgress(HostJob::Deploy, String::new()), "-"),
        (Kind::Drained, Reason::Draining(Vec::new()), "Normal Draining"),
        (
            Kind::Drained,
            Reason::DrainTimeout(Vec::new(), Timestamp::UNIX_EPOCH),
            "Warning DrainTimeoutAnnounced",
        ),
        (Kind::Drained, ended(DrainEnd::Drained), "Normal Drained"),
        (Kind::Drained, ended(DrainEnd::Forced), "Warning DrainTimeout"),
        (Kind::Drained, ended(DrainEnd::NoNode), "Normal DrainSkipped"),
        (Kind::Drained, ended(DrainEnd::NodeNotReady), "Warning DrainSkipped"),
        (Kind::Drained, ended(DrainEnd::HostOff), "Warning DrainSkipped"),
        (Kind::Drained, ended(DrainEnd::NowhereToGo), "Warning DrainSkipped"),
        (Kind::HostReleased, Reason::DrainPending, "-"),
        (Kind::HostReleased, cleanup(HostReason::Resetting), "Normal ResettingHost"),
        (Kind::HostReleased, cleanup(reset_failed), "Warning HostResetFailed"),
        (Kind::HostReleased, cleanup(HostReason::ResetUnreachable), "Warning HostUnreachable"),
        (Kind::HostReleased, cleanup(HostReason::PoweringOff), "Normal PoweringOffHost"),
        (Kind::HostReleased, cleanup(power_failed), "Warning PowerHookFailed"),
        (Kind::HostReleased, Reason::HostQuarantined(host()), "Warning HostQuarantined"),
        (Kind::HostReleased, Reason::Released, "-"),
    ];
    for (kind, reason, expected) in table {
        assert_eq!(shown(kind.name(), reason.name()), expected, "{} {}", kind.name(), reason.name());
    }
}

#[test]
fn the_condition_of_a_host_is_reported_so() {
    let machine = || "a/m1".to_owned();
    let table = [
        (HostReason::NoFinalizer, "-"),
        (HostReason::NotInspected, "-"),
        (HostReason::Inspecting, "Normal Inspecting"),
        (HostReason::InspectionFailed(String::new()), "Warning InspectionFailed"),
        (HostReason::Clean, "Normal Clean"),
        (HostReason::NotClean(Vec::new()), "Warning NotClean"),
        (HostReason::Claimed(machine()), "Normal Claimed"),
        (HostReason::Provisioning(machine()), "Normal Provisioning"),
        (HostReason::InUse(machine()), "Normal InUse"),
        (HostReason::Draining(machine()), "Normal Draining"),
        (HostReason::Resetting, "Normal Resetting"),
        (HostReason::ResetFailed { attempts: 1, message: String::new() }, "Warning ResetFailed"),
        (HostReason::JoinsFailed(3), "Warning JoinsFailed"),
        (HostReason::QuarantineOrdered, "Warning QuarantineOrdered"),
        (HostReason::PoweredOff, "Warning PoweredOff"),
        (HostReason::NoAnswer, "Warning NoAnswer"),
        (HostReason::ResetUnreachable, "Warning ResetUnreachable"),
        (HostReason::DeclaredLost, "Warning DeclaredLost"),
    ];
    for (reason, expected) in table {
        assert_eq!(shown("Available", reason.name()), expected, "{}", reason.name());
    }
}

fn machine(conditions: &Value) -> MachineObjects {
    let machine = json!({
        "metadata": { "namespace": "a", "name": "m1", "uid": "u-1", "resourceVersion": "7" },
        "spec": { "providerSpec": { "value": {} }, "versions": { "kubelet": "1.35.4" } },
        "status": { "conditions": conditions },
    });
    let machine = Arc::new(serde_json::from_value(machine).unwrap());
    MachineObjects { machine, host: None, node: None, choice: None, elsewhere: true, drain_timeout: None }
}

fn condition(kind: &str, status: &str, reason: &str, message: &str) -> Value {
    let since = "2026-01-02T00:00:00Z";
    json!({ "type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": since })
}

fn lines(events: &[ObjectEvent]) -> Vec<String> {
    let kind = |event: &ObjectEvent| if event.warning { "Warning" } else { "Normal" };
    let object = |event: &ObjectEvent| event.object.name.clone().unwrap();
    events
        .iter()
        .map(|event| format!("{} {} {}: {}", object(event), kind(event), event.reason, event.message))
        .collect()
}

fn status<K>(name: &str, status: &Value) -> ObjectWrite<K> {
    ObjectWrite::PatchStatus { name: name.to_owned(), patch: json!({ "status": status }) }
}

#[test]
fn a_condition_is_reported_when_its_status_or_reason_changes() {
    let before = json!([
        condition("Ready", "True", "NodeReady", "x"),
        condition("Drained", "False", "Draining", "2 pods"),
        condition("NodeLinked", "True", "NodeLinked", "x"),
    ]);
    let table = [
        (condition("Ready", "True", "NodeReady", "y"), None),
        (condition("Drained", "False", "Draining", "1 pod"), None),
        (condition("Ready", "False", "NodeNotReady", "y"), Some("m1 Warning NodeNotReady: y")),
        (condition("HostChecked", "False", "Failed", "y"), Some("m1 Warning HostCheckFailed: y")),
        (
            condition("Drained", "False", "DrainTimeoutAnnounced", "y"),
            Some("m1 Warning DrainTimeoutAnnounced: y"),
        ),
        (condition("DrainTimeout", "True", "DrainTimeoutAnnounced", "y"), None),
    ];
    for (after, expected) in table {
        let done = [MachineWrite::Machine(status("m1", &json!({ "conditions": [after] })))];
        let events = of_machine(&machine(&before), None, &done);
        assert_eq!(lines(&events), expected.into_iter().collect::<Vec<_>>(), "{after}");
        assert_eq!(events.iter().filter(|event| event.object.uid.as_deref() != Some("u-1")).count(), 0);
    }
    // A new Machine has a Node that is not Ready yet; what two conditions have is reported once.
    let new = json!([
        condition("Ready", "False", "NodeNotReady", "y"),
        condition("NodeLinked", "False", "HostLost", "y"),
        condition("Deployed", "False", "HostLost", "y"),
    ]);
    let done = [MachineWrite::Machine(status("m1", &json!({ "conditions": new })))];
    assert_eq!(lines(&of_machine(&machine(&json!([])), None, &done)), ["m1 Warning HostLost: y"]);
}

#[test]
fn steps_and_other_writes_of_a_machine_are_reported_so() {
    let objects = machine(&json!([]));
    let cordoned = || MachineWrite::Node(ObjectWrite::Patch { name: "h1".to_owned(), patch: json!({}) });
    let pods = BTreeSet::from([PodName { namespace: "a".to_owned(), name: "web".to_owned() }]);
    let invalid = json!({
        "conditions": [condition("Ready", "False", "InvalidConfiguration", "y")],
        "errorReason": "InvalidConfiguration", "errorMessage": "y",
    });
    let late =
        json!({ "errorReason": "JoinClusterTimeoutError", "errorMessage": "node h1 did not join in time" });
    let table = [
        (Some(MachineStep::Cordon), vec![cordoned()], Some("m1 Normal Cordoned: node h1 is cordoned")),
        (Some(MachineStep::LinkNode), vec![cordoned()], None),
        (
            None,
            vec![MachineWrite::Machine(ObjectWrite::delete(&*objects.machine))],
            Some("m1 Normal Replacing: the machine is deleted and its machine set creates another"),
        ),
        (
            Some(MachineStep::DeletePods(pods)),
            Vec::new(),
            Some(
                "m1 Warning DeletingPods: pods that are deleted without regard to their disruption budgets: a/web",
            ),
        ),
        (
            None,
            vec![MachineWrite::Machine(status("m1", &invalid))],
            Some("m1 Warning InvalidConfiguration: y"),
        ),
        (
            None,
            vec![MachineWrite::Machine(status("m1", &late))],
            Some("m1 Warning JoinClusterTimeoutError: node h1 did not join in time"),
        ),
    ];
    for (step, done, expected) in table {
        let events = of_machine(&objects, step.as_ref(), &done);
        assert_eq!(lines(&events), expected.into_iter().collect::<Vec<_>>());
    }
}

#[test]
fn a_host_that_is_quarantined_and_a_node_that_is_deleted_are_reported() {
    let failed = |message| json!([condition("Available", "False", "ResetFailed", message)]);
    let host = json!({
        "metadata": { "name": "h1", "uid": "h-1" }, "spec": { "address": "192.0.2.1" },
        "status": { "state": "Resetting", "conditions": failed("attempts: 2") },
    });
    let objects = HostObjects {
        host: Arc::new(serde_json::from_value(host).unwrap()),
        machine: Some(machine(&json!([])).machine),
        node: None,
        conflict: None,
    };
    let after = json!({ "state": "Quarantined", "conditions": failed("attempts: 3") });
    let done = [MachineWrite::Host(status("h1", &after))];
    assert_eq!(lines(&of_host(&objects, &done)), ["h1 Warning Quarantined: attempts: 3"]);
    let deleted = ObjectWrite::Delete { name: "h1".to_owned(), uid: None, version: None };
    let events = of_host(&objects, &[MachineWrite::Node(deleted)]);
    let expected = ["h1 Normal NodeDeleted: node h1 is deleted", "m1 Normal NodeDeleted: node h1 is deleted"];
    assert_eq!(lines(&events), expected);
}

fn sets() -> (RolloutObjects, MachineSet) {
    let spec = json!({
        "replicas": 2, "selector": {}, "template": { "metadata": {}, "spec": {
            "providerSpec": { "value": {} }, "versions": { "kubelet": "1.35.4" } } },
    });
    let object = |name: &str| json!({ "metadata": { "name": name, "uid": name }, "spec": spec });
    let set: MachineSet = serde_json::from_value(object("s")).unwrap();
    let deployment = Arc::new(serde_json::from_value(object("d")).unwrap());
    let (sets, nodes) = (vec![Arc::new(set.clone())], BTreeMap::new());
    let deployments = Vec::new();
    (RolloutObjects { deployment, deployments, sets, machines: Vec::new(), nodes }, set)
}

#[test]
fn the_writes_for_machine_sets_and_their_machines_are_reported_so() {
    let (objects, set) = sets();
    let resized = |replicas: Value| {
        let patch = json!({ "metadata": {}, "spec": { "replicas": replicas } });
        MachineWrite::Set(ObjectWrite::Patch { name: "s".to_owned(), patch })
    };
    let blocked = json!({ "conditions": [
        condition("Available", "False", "MinimumReplicasUnavailable", "y"),
        condition("Progressing", "False", "NoHostAvailable", "y"),
        condition("RolloutBlocked", "True", "NoHostAvailable", "add hosts"),
    ] });
    let done = [
        MachineWrite::Set(ObjectWrite::Create(Box::new(set.clone()))),
        resized(json!(3)),
        resized(json!(0)),
        resized(Value::Null),
        MachineWrite::Set(ObjectWrite::delete(&set)),
        MachineWrite::Deployment(status("d", &blocked)),
    ];
    let expected = [
        "d Normal ScalingMachineSet: scaled up machine set s from 0 to 2",
        "d Normal ScalingMachineSet: scaled up machine set s from 2 to 3",
        "d Normal ScalingMachineSet: scaled down machine set s from 2 to 0",
        "d Normal SuccessfulDelete: deleted machine set s",
        "d Warning NoHostAvailable: add hosts",
    ];
    assert_eq!(lines(&of_deployment(&objects, &done)), expected);
    let error = RolloutDecisionError::NameTaken { name: "s".to_owned() };
    let undecided = of_undecided(&objects.deployment, &error);
    let message = "d Warning RolloutFailed: MachineSet s exists and has another owner or another template";
    assert_eq!(lines(&[undecided]), [message]);

    let new = Machine::new("m1", set.spec.template.spec.clone());
    let invalid = json!({ "errorReason": "InvalidConfiguration", "errorMessage": "y" });
    let done = [
        MachineWrite::Machine(ObjectWrite::Create(Box::new(new.clone()))),
        MachineWrite::Machine(ObjectWrite::delete(&new)),
        MachineWrite::Set(status("s", &invalid)),
    ];
    let expected = [
        "s Normal SuccessfulCreate: created machine m1",
        "s Normal SuccessfulDelete: deleted machine m1",
        "s Warning InvalidConfiguration: y",
    ];
    assert_eq!(lines(&of_set(&set, &done)), expected);
}

#[test]
fn the_conditions_of_a_rollout_are_reported_so() {
    let table = [
        (("Available", "MinimumReplicasAvailable"), "-"),
        (("Available", "MinimumReplicasUnavailable"), "Warning MinimumReplicasUnavailable after True"),
        (("Progressing", "RolloutComplete"), "Normal RolloutComplete"),
        (("Progressing", "RolloutProgressing"), "-"),
        (("Progressing", "ProgressDeadlineExceeded"), "Warning ProgressDeadlineExceeded"),
        (("Progressing", "NoHostAvailable"), "-"),
        (("Progressing", "Paused"), "Normal RolloutPaused"),
        (("Progressing", "WaitingForMachineSet"), "Normal WaitingForMachineSet"),
        (("Progressing", "Deleting"), "Normal Deleting"),
        (("Progressing", "SelectorConflict"), "Warning SelectorConflict"),
        (("RemediationAllowed", "RemediationAllowed"), "-"),
        (("RemediationAllowed", "TooManyUnhealthy"), "Warning TooManyUnhealthy"),
        (("RolloutBlocked", "NotBlocked"), "-"),
        (("RolloutBlocked", "NoHostAvailable"), "Warning NoHostAvailable"),
        (("RolloutBlocked", "SelectorConflict"), "-"),
    ];
    for ((kind, reason), expected) in table {
        assert_eq!(shown(kind, reason), expected, "{kind} {reason}");
    }
}
