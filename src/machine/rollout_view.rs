//! How far the rollout of a MachineDeployment is, from its status alone.

use serde::Serialize;

use super::api::machine_deployment::MachineDeployment;
use super::rollout::RolloutConditionKind;

/// How far a rollout is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RolloutView {
    /// Whether it is complete, continues or has stopped.
    pub stage: RolloutStage,
    /// Machines that there shall be.
    pub replicas: i32,
    /// Machines with the present template.
    pub updated: i32,
    /// Machines whose Node has been Ready for minReadySeconds.
    pub available: i32,
    /// Machines with another template.
    pub old: i32,
    /// For people, in one line.
    pub message: String,
}

/// Whether a rollout is complete, continues or has stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum RolloutStage {
    /// Every Machine has the present template and is available.
    Complete,
    /// Machines are replaced.
    Progressing,
    /// Only a host, another budget, or the end of a conflict of selectors lets it continue; it resumes then.
    Blocked,
    /// `spec.paused` is set.
    Paused,
    /// There was no progress for progressDeadlineSeconds.
    DeadlineExceeded,
    /// The MachineDeployment is being deleted.
    Deleting,
}

impl RolloutStage {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Complete,
        Self::Progressing,
        Self::Blocked,
        Self::Paused,
        Self::DeadlineExceeded,
        Self::Deleting,
    ];
}

/// How far the rollout is. A status of an earlier generation shows nothing of the present template: such a rollout is in
/// progress (as in Kubernetes, `DeploymentStatusViewer`).
pub fn rollout_view(deployment: &MachineDeployment) -> RolloutView {
    let status = deployment.status.clone().unwrap_or_default();
    let replicas = deployment.spec.replicas;
    let (updated, available) = (status.updated_replicas, status.available_replicas);
    let old = status.replicas.saturating_sub(updated);
    let observed = status.observed_generation >= deployment.metadata.generation.unwrap_or_default();
    let condition = |kind: RolloutConditionKind| {
        let mut all = status.conditions.iter().filter(|_| observed);
        all.find(|condition| condition.type_ == kind.name())
    };
    let progressing = condition(RolloutConditionKind::Progressing);
    let reason = progressing.map(|condition| condition.reason.as_str()).unwrap_or_default();
    let blocked =
        condition(RolloutConditionKind::RolloutBlocked).filter(|condition| condition.status == "True");
    // Machines that drain are in no number: only the controllers know that the last one has gone.
    let counts_agree = updated == replicas && old == 0 && available >= updated;
    let is_complete = observed && counts_agree && (progressing.is_none() || reason == "RolloutComplete");
    let counts = format!("updated machines: {updated} of {replicas}, available: {available}, old: {old}");
    let (stage, message) = if deployment.metadata.deletion_timestamp.is_some() {
        (
            RolloutStage::Deleting,
            format!("the machine deployment is being deleted; machines left: {}", status.replicas),
        )
    } else if is_complete {
        (RolloutStage::Complete, counts)
    } else if deployment.spec.paused {
        (RolloutStage::Paused, format!("the rollout is paused; {counts}"))
    } else if !observed {
        (RolloutStage::Progressing, "the controllers have not observed the last change".to_owned())
    } else if reason == "ProgressDeadlineExceeded" {
        let deadline = deployment.spec.progress_deadline_seconds;
        (RolloutStage::DeadlineExceeded, format!("no progress for {deadline} s; {counts}"))
    } else if let Some(blocked) = blocked {
        (RolloutStage::Blocked, format!("{counts}; {}", blocked.message))
    } else {
        (RolloutStage::Progressing, counts)
    };
    RolloutView { stage, replicas, updated, available, old, message }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `status` are observedGeneration, replicas, updated and available; `conditions` as `TYPE=STATUS/REASON`.
    fn deployment(paused: bool, status: [i32; 4], conditions: &str) -> MachineDeployment {
        let conditions = conditions.split_whitespace().map(|one| {
            let (kind, rest) = one.split_once('=').unwrap();
            let (status, reason) = rest.split_once('/').unwrap();
            format!("{{type: {kind}, status: '{status}', reason: {reason}, message: why, lastTransitionTime: '2026-11-23T12:00:00Z'}}")
        });
        let conditions = conditions.collect::<Vec<_>>().join(", ");
        let [generation, replicas, updated, available] = status;
        serde_saphyr::from_str(&format!(
            "{{apiVersion: cluster.k8s.io/v1alpha1, kind: MachineDeployment, metadata: {{name: md, generation: 3}}, spec: {{
               replicas: 3, paused: {paused}, selector: {{matchLabels: {{a: b}}}}, template: {{metadata: {{labels: {{a: b}}}},
               spec: {{versions: {{kubelet: 1.35.4}}, providerSpec: {{value: {{}}}}}}}}}}, status: {{observedGeneration: {generation},
               replicas: {replicas}, updatedReplicas: {updated}, availableReplicas: {available}, conditions: [{conditions}]}}}}"
        ))
        .unwrap()
    }

    #[test]
    fn a_rollout_is_seen_in_the_status() {
        use RolloutStage::*;
        let done = "Progressing=True/RolloutComplete";
        let goes = "Progressing=True/RolloutProgressing";
        let late = "Progressing=False/ProgressDeadlineExceeded";
        for (paused, status, conditions, expected) in [
            (false, [3, 3, 3, 3], "", Complete),
            (false, [3, 3, 3, 3], done, Complete),
            // Its numbers are those of the template before.
            (false, [2, 3, 3, 3], done, Progressing),
            (false, [2, 3, 3, 3], late, Progressing),
            // The last old Machine drains.
            (false, [3, 3, 3, 3], goes, Progressing),
            (false, [3, 4, 3, 3], goes, Progressing),
            (false, [3, 3, 3, 2], done, Progressing),
            (false, [3, 3, 2, 3], goes, Progressing),
            (false, [3, 3, 1, 3], late, DeadlineExceeded),
            (
                false,
                [3, 3, 1, 3],
                "Progressing=False/NoHostAvailable RolloutBlocked=True/NoHostAvailable",
                Blocked,
            ),
            (
                false,
                [3, 0, 0, 0],
                "Progressing=False/SelectorConflict RolloutBlocked=True/SelectorConflict",
                Blocked,
            ),
            (
                false,
                [3, 3, 1, 3],
                "Progressing=True/RolloutProgressing RolloutBlocked=False/NotBlocked",
                Progressing,
            ),
            (true, [3, 3, 1, 3], "Progressing=Unknown/Paused", Paused),
            (true, [2, 3, 3, 3], "", Paused),
            (true, [3, 3, 3, 3], done, Complete),
            (false, [0, 0, 0, 0], "", Progressing),
        ] {
            let view = rollout_view(&deployment(paused, status, conditions));
            assert_eq!(view.stage, expected, "{paused} {status:?} {conditions}: {}", view.message);
        }
    }

    #[test]
    fn the_message_has_the_numbers() {
        let late = "Progressing=False/ProgressDeadlineExceeded";
        let blocked = "Progressing=False/NoHostAvailable RolloutBlocked=True/NoHostAvailable";
        for (conditions, expected) in [
            (late, "no progress for 600 s; updated machines: 1 of 3, available: 3, old: 2"),
            (blocked, "updated machines: 1 of 3, available: 3, old: 2; why"),
        ] {
            assert_eq!(rollout_view(&deployment(false, [3, 3, 1, 3], conditions)).message, expected);
        }
        let mut deleted = deployment(false, [3, 2, 1, 1], "");
        deleted.metadata.deletion_timestamp =
            Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(jiff::Timestamp::UNIX_EPOCH));
        assert_eq!(
            rollout_view(&deleted).message,
            "the machine deployment is being deleted; machines left: 2"
        );
    }
}
