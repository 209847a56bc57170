//! Which conditions are reported by Events.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

/// How a condition is reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ConditionReport {
    pub(super) warning: bool,
    /// Of the Event.
    pub(super) reason: &'static str,
    /// Only where the condition was True before: an object that is new is not reported for what it does not have yet.
    pub(super) was_true: bool,
}

/// How a condition with this type and reason is reported when its status or its reason has changed; `None`: not at all.
pub(super) fn report(kind: &str, reason: &str) -> Option<ConditionReport> {
    of_provisioning(kind, reason)
        .or_else(|| of_deletion(kind, reason))
        .or_else(|| of_host(kind, reason))
        .or_else(|| of_rollout(kind, reason))
}

/// Of a Machine that becomes a node and is one.
fn of_provisioning(kind: &str, reason: &str) -> Option<ConditionReport> {
    Some(match (kind, reason) {
        ("HostClaimed", "Claimed") => normal("HostClaimed"),
        ("HostClaimed", "NoHostAvailable") => warning("NoHostAvailable"),
        ("HostClaimed", "HostNotAvailable") => warning("HostNotAvailable"),
        (_, "VersionSkew") => warning("VersionSkew"),
        (_, "VersionNotInBundle") => warning("VersionNotInBundle"),
        ("HostChecked", "InProgress") => normal("CheckingHost"),
        ("HostChecked", "Succeeded") => normal("HostChecked"),
        ("HostChecked", "Failed") => warning("HostCheckFailed"),
        ("PackagesUpgraded", "InProgress") => normal("UpgradingPackages"),
        ("PackagesUpgraded", "Succeeded") => normal("PackagesUpgraded"),
        ("PackagesUpgraded", "Failed") => warning("PackageUpgradeFailed"),
        ("Deployed", "InProgress") => normal("Deploying"),
        ("Deployed", "Succeeded") => normal("Deployed"),
        ("Deployed", "Failed") => warning("DeploymentFailed"),
        ("NodeLinked", "NodeLinked") => normal("NodeLinked"),
        ("NodeLinked" | "Ready", "ForeignNode") => warning("ForeignNode"),
        ("NodeLinked" | "Ready", "NodeMissing") => warning("NodeMissing"),
        ("NodeLinked" | "Ready", "NodeLost") => warning("NodeLost"),
        ("Ready", "NodeReady") => normal("NodeReady"),
        ("Ready", "NodeNotReady") => was_true("NodeNotReady"),
        ("Ready", "NoPodNetwork") => was_true("NoPodNetwork"),
        ("Ready", "InvalidConfiguration") => warning("InvalidConfiguration"),
        _ => return None,
    })
}

/// Of a Machine that is being deleted.
fn of_deletion(kind: &str, reason: &str) -> Option<ConditionReport> {
    Some(match (kind, reason) {
        ("Ready", "Deleting") => normal("Deleting"),
        ("Drained", "Draining") => normal("Draining"),
        ("Drained", "DrainTimeoutAnnounced") => warning("DrainTimeoutAnnounced"),
        ("Drained", "Drained") => normal("Drained"),
        ("Drained", "DrainTimeout") => warning("DrainTimeout"),
        ("Drained", "NoNode") => normal("DrainSkipped"),
        ("Drained", "NodeNotReady" | "HostOff" | "NowhereToGo") => warning("DrainSkipped"),
        ("HostReleased", "Resetting") => normal("ResettingHost"),
        ("HostReleased", "ResetFailed") => warning("HostResetFailed"),
        ("HostReleased", "ResetUnreachable") => warning("HostUnreachable"),
        ("HostReleased", "PoweringOff") => normal("PoweringOffHost"),
        ("HostReleased", "PowerHookFailed") => warning("PowerHookFailed"),
        ("HostReleased", "HostQuarantined") => warning("HostQuarantined"),
        (_, "HostUnreachable") => warning("HostUnreachable"),
        (_, "HostLost") => warning("HostLost"),
        _ => return None,
    })
}

fn of_host(kind: &str, reason: &str) -> Option<ConditionReport> {
    if (kind, reason) == ("PoweredOff", "ConfirmedByPowerHook") {
        return Some(warning("ConfirmedByPowerHook"));
    }
    if kind != "Available" {
        return None;
    }
    Some(match reason {
        "Inspecting" => normal("Inspecting"),
        "InspectionFailed" => warning("InspectionFailed"),
        "Clean" => normal("Clean"),
        "NotClean" => warning("NotClean"),
        "HostConflict" => warning("HostConflict"),
        "Claimed" => normal("Claimed"),
        "Provisioning" => normal("Provisioning"),
        "InUse" => normal("InUse"),
        "Draining" => normal("Draining"),
        "Resetting" => normal("Resetting"),
        "ResetFailed" => warning("ResetFailed"),
        "JoinsFailed" => warning("JoinsFailed"),
        "QuarantineOrdered" => warning("QuarantineOrdered"),
        "PoweredOff" => warning("PoweredOff"),
        "NoAnswer" => warning("NoAnswer"),
        "ResetUnreachable" => warning("ResetUnreachable"),
        "PoweringOff" => normal("PoweringOff"),
        "PowerHookFailed" => warning("PowerHookFailed"),
        "DeclaredLost" => warning("DeclaredLost"),
        _ => return None,
    })
}

/// Of a MachineDeployment. How many Machines it has is reported by the sizes of its sets.
fn of_rollout(kind: &str, reason: &str) -> Option<ConditionReport> {
    Some(match (kind, reason) {
        ("Available", "MinimumReplicasUnavailable") => was_true("MinimumReplicasUnavailable"),
        ("Progressing", "RolloutComplete") => normal("RolloutComplete"),
        ("Progressing", "ProgressDeadlineExceeded") => warning("ProgressDeadlineExceeded"),
        ("Progressing", "Paused") => normal("RolloutPaused"),
        ("Progressing", "WaitingForMachineSet") => normal("WaitingForMachineSet"),
        ("Progressing", "Deleting") => normal("Deleting"),
        ("Progressing", "SelectorConflict") => warning("SelectorConflict"),
        ("RemediationAllowed", "TooManyUnhealthy") => warning("TooManyUnhealthy"),
        ("RolloutBlocked", "NoHostAvailable") => warning("NoHostAvailable"),
        _ => return None,
    })
}

const fn normal(reason: &'static str) -> ConditionReport {
    ConditionReport { warning: false, reason, was_true: false }
}

const fn warning(reason: &'static str) -> ConditionReport {
    ConditionReport { warning: true, reason, was_true: false }
}

const fn was_true(reason: &'static str) -> ConditionReport {
    ConditionReport { warning: true, reason, was_true: true }
}

/// The reports of all conditions whose status or reason differs from before, each reason once.
pub(super) fn reports(before: &[Condition], after: &[Condition]) -> Vec<(ConditionReport, String)> {
    let mut reports: Vec<(ConditionReport, String)> = Vec::new();
    for condition in after {
        let earlier = before.iter().find(|earlier| earlier.type_ == condition.type_);
        let is_same = |earlier: &Condition| {
            (&earlier.status, &earlier.reason) == (&condition.status, &condition.reason)
        };
        if earlier.is_some_and(is_same) {
            continue;
        }
        let Some(report) = report(&condition.type_, &condition.reason) else { continue };
        let was_true = earlier.is_some_and(|earlier| earlier.status == "True");
        let is_repeated = reports.iter().any(|(other, _)| other.reason == report.reason);
        if (was_true || !report.was_true) && !is_repeated {
            reports.push((report, condition.message.clone()));
        }
    }
    reports
}
