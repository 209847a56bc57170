//! A Host that does not answer and has a power hook.

use jiff::Timestamp;

use super::HostScene;
use super::observed::ClaimView;
use super::reason::HostReason;
use super::step::{HostLifePlan, HostStep};
use crate::machine::host_job::{HostJob, HostWork, JobFence};

/// The plan with a call of the hook, if `plan` has no step of its own: the state is written first. A call that fails is
/// repeated with pauses, for as long as the host does not answer.
pub(super) fn confirm_off(
    scene: &HostScene,
    claim: &ClaimView,
    plan: HostLifePlan,
    now: Timestamp,
) -> HostLifePlan {
    let host = &scene.host;
    if plan.step.is_some() || !host.has_power_hook {
        return plan;
    }
    let failure = host.failure.as_ref().filter(|failure| failure.job == HostJob::PowerOff);
    let reason = failure.map_or(HostReason::PoweringOff, |failure| HostReason::PowerHookFailed {
        attempts: failure.attempts,
        message: failure.message.clone(),
    });
    let plan = HostLifePlan { reason, ..plan };
    if let HostWork::Running { job, token, .. } = scene.work {
        let is_expected = job == HostJob::PowerOff && token == host.last_token;
        return if is_expected { plan } else { plan.step(HostStep::Cancel(job)) };
    }
    match failure.map(|failure| failure.retry_at()) {
        Some(retry_at) if now < retry_at => plan.until(retry_at),
        _ => {
            let machine = Some(claim.machine_uid.clone());
            let fence = JobFence { host: host.name.clone(), machine, token: host.last_token };
            plan.step(HostStep::Begin(HostJob::PowerOff, fence))
        }
    }
}
