//! A job on the host of a Machine.

use jiff::Timestamp;

use super::conditions::MachineConditionKind as Kind;
use super::observed::MachineScene;
use super::reason::MachineReason;
use super::step::{MachineLifePlan, MachineStep};
use crate::machine::api::host_state::HostState;
use crate::machine::host_job::{HostJob, HostWork, JobFence};
use crate::machine::host_state::HostView;

/// One job, until it has succeeded.
pub(super) fn run(
    scene: &MachineScene,
    host: &HostView,
    plan: MachineLifePlan,
    (job, kind): (HostJob, Kind),
    now: Timestamp,
) -> MachineLifePlan {
    if let HostWork::Running { job: running, token, phase } = &scene.work {
        if *running == job && *token == host.last_token {
            return plan.set(kind, false, MachineReason::InProgress(job, phase.clone()));
        }
        return plan.set(kind, false, MachineReason::Pending(job)).step(MachineStep::Cancel(*running));
    }
    // A host that is being reset has a token that no job of a Machine may use.
    let is_open = matches!(host.state, HostState::Claimed | HostState::Provisioning | HostState::InUse);
    if !is_open || host.silent_since.is_some() {
        return plan.set(kind, false, MachineReason::HostUnreachable(host.name.clone()));
    }
    let machine = Some(scene.machine.uid.clone());
    let begin =
        MachineStep::Begin(job, JobFence { host: host.name.clone(), machine, token: host.last_token });
    match host.failure.as_ref().filter(|failure| failure.job == job) {
        None => plan.set(kind, false, MachineReason::Pending(job)).step(begin),
        Some(failure) => {
            let plan = plan.set(kind, false, MachineReason::Failed(failure.clone()));
            if now < failure.retry_at() { plan.wake_at(failure.retry_at()) } else { plan.step(begin) }
        }
    }
}
