//! A Machine that is not being deleted, until its host is deployed.

use jiff::Timestamp;

use super::claimed;
use super::conditions::MachineConditionKind as Kind;
use super::job::run;
use super::joining;
use super::observed::{MachineScene, VERSIONS_KNOWN};
use super::reason::MachineReason;
use super::step::{MachineLifePlan, MachineStep};
use crate::machine::api::machine_status::MachineError;
use crate::machine::host_choice::HostChoice;
use crate::machine::host_job::{HostJob, HostWork};
use crate::machine::host_state::HostView;
use crate::machine::join_deadline::{JoinAttempt, JoinVerdict, judge};
use crate::machine::kubelet_refusal::KubeletRefusal;

pub(super) fn plan(scene: &MachineScene, now: Timestamp) -> MachineLifePlan {
    let plan = MachineLifePlan::default().set(Kind::Ready, false, MachineReason::NoHost);
    if !scene.machine.finalizers {
        let plan = plan.set(Kind::HostClaimed, false, MachineReason::NoHost);
        return plan.step(MachineStep::AddFinalizers);
    }
    let bound_to = scene.machine.bound_to();
    let Some((host, claim)) = claimed(scene) else {
        let joined_on = || scene.machine.noted.clone().filter(|_| scene.machine.joined);
        return match bound_to.or_else(joined_on) {
            Some(host) => {
                let reason = MachineReason::HostLost(host);
                lost(plan.set(Kind::HostClaimed, false, reason.clone()), reason)
            }
            None => waiting(scene, plan, now),
        };
    };
    let plan = plan.set(Kind::Ready, false, MachineReason::NotDeployed);
    let plan = plan.set(Kind::HostClaimed, true, MachineReason::Claimed(host.name.clone()));
    if let Some(other) = bound_to.filter(|bound| *bound != host.name) {
        return lost(plan, MachineReason::HostLost(other));
    }
    if host.loses_its_machine() {
        return lost(plan, MachineReason::HostLost(host.name.clone()));
    }
    let machine = &scene.machine;
    let attempt = JoinAttempt {
        claimed: Some(claim.since),
        queue: claim.queue,
        joined: machine.joined,
        deleting: false,
        owned: machine.owned,
    };
    let plan = match judge(&attempt, scene.limits.join_timeout, now) {
        JoinVerdict::NoDeadline => plan,
        JoinVerdict::Until(deadline) => plan.wake_at(deadline),
        JoinVerdict::Expired => return plan.step(MachineStep::Delete(MachineError::JoinClusterTimeoutError)),
    };
    deploying(scene, host, plan, now)
}

fn lost(plan: MachineLifePlan, reason: MachineReason) -> MachineLifePlan {
    MachineLifePlan { lost: true, ..plan.set(Kind::Ready, false, reason) }
}

/// No host is its own, and none was.
fn waiting(scene: &MachineScene, plan: MachineLifePlan, now: Timestamp) -> MachineLifePlan {
    let kind = Kind::HostClaimed;
    if scene.machine.noted.is_none()
        && let Some(error) = &scene.skew
    {
        return skewed(plan, kind, error, now);
    }
    match (&scene.choice, &scene.machine.noted) {
        (None, _) => plan.set(kind, false, MachineReason::NoHost),
        (Some(HostChoice::None(shortage)), _) => {
            plan.set(kind, false, MachineReason::NoHostAvailable(*shortage))
        }
        (Some(HostChoice::Host(name)), None) => {
            let plan = plan.set(kind, false, MachineReason::Claiming(name.clone()));
            plan.step(MachineStep::NoteHost(name.clone()))
        }
        (Some(HostChoice::Host(name)), Some(noted)) if name == noted => claiming(scene, plan),
        (Some(HostChoice::Host(_) | HostChoice::NotedUnavailable(_)), Some(noted)) => {
            let plan = plan.set(kind, false, MachineReason::HostNotAvailable(noted.clone()));
            plan.step(MachineStep::ForgetHost(noted.clone()))
        }
        (Some(HostChoice::NotedUnavailable(name)), None) => {
            plan.set(kind, false, MachineReason::HostNotAvailable(name.clone()))
        }
    }
}

/// No object changes when an API server is upgraded, or a bundle is added.
fn skewed(plan: MachineLifePlan, kind: Kind, error: &KubeletRefusal, now: Timestamp) -> MachineLifePlan {
    let known_until = now.checked_add(VERSIONS_KNOWN).unwrap_or(Timestamp::MAX);
    plan.set(kind, false, MachineReason::VersionSkew(error.clone())).wake_at(known_until)
}

fn claiming(scene: &MachineScene, plan: MachineLifePlan) -> MachineLifePlan {
    let noted = |host: &&HostView| scene.machine.noted.as_ref() == Some(&host.name) && host.is_free();
    let Some(host) = scene.host.as_ref().filter(noted) else {
        return plan.set(Kind::HostClaimed, false, MachineReason::NoHost);
    };
    let token = host.last_token.saturating_add(1);
    let claim = MachineStep::ClaimHost { host: host.name.clone(), version: host.version.clone(), token };
    plan.set(Kind::HostClaimed, false, MachineReason::Claiming(host.name.clone())).step(claim)
}

/// The jobs before a Node exists, one after the other.
fn deploying(
    scene: &MachineScene,
    host: &HostView,
    plan: MachineLifePlan,
    now: Timestamp,
) -> MachineLifePlan {
    let mut jobs = vec![(HostJob::Check, Kind::HostChecked)];
    if scene.machine.upgrades_packages {
        jobs.push((HostJob::UpgradePackages, Kind::PackagesUpgraded));
    }
    jobs.push((HostJob::Deploy, Kind::Deployed));
    let mut plan = plan;
    let mut present = None;
    for (job, kind) in jobs {
        // A Node that has joined has been deployed, whatever else has become of the record.
        if host.done.contains(&job) || scene.machine.joined {
            plan = plan.set(kind, true, MachineReason::Succeeded(job));
        } else if present.is_none() {
            present = Some((job, kind));
        } else {
            plan = plan.set(kind, false, MachineReason::Pending(job));
        }
    }
    let Some((job, kind)) = present else { return joining::plan(scene, host, plan, now) };
    if let Some(error) = &scene.skew {
        return skewed(plan, kind, error, now);
    }
    let plan = run(scene, host, plan, (job, kind), now);
    let runs = plan.step.is_none() && matches!(scene.work, HostWork::Running { .. });
    let id = scene.provider_id(&host.name);
    // Meanwhile, so that the Node does not wait for it.
    if runs && scene.machine.provider_id.as_ref() != Some(&id) {
        return plan.step(MachineStep::SetProviderId(id));
    }
    plan
}
