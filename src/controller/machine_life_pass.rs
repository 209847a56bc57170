//! One pass over a Machine: one step of its life.
//!
//! # Guarantees
//! - A cache only shows whether there is something to do: where it shows nothing, no request is sent. The step that is
//!   carried out is one of a plan on the Machine, its Host and its Node as the API server has them after the pass began,
//!   also where [`MachineStep::needs_live_read`] does not require it.
//! - At most one write of one object, which applies to the version that was read. A conflict ends the pass.
//! - A pass that is interrupted anywhere loses nothing: what is yet to be done follows from the objects.
//!
//! # Assumptions
//! One pass at a time over one Machine. A former leader may still run one: Hosts are claimed in the version that was read,
//! and each host refuses programs of an earlier claim.
//!
//! # How it is used
//! A pass is due when an object of [`MachineObjects`] changes, the work on its host does, or at [`MachinePass::next`].

use jiff::Timestamp;
use kube::ResourceExt;

use super::life_context::LifeContext;
use super::life_requests::{delete_pods, evict, read_machine, read_machine_objects, revoke_tokens};
use super::machine_pass::{MachinePass, MachinePassError, earliest};
use super::machine_requests::carry_out;
use crate::kube_api::eviction::pods_to_drain;
use crate::machine::host_job::HostWork;
use crate::machine::job_order::JobOrder;
use crate::machine::life_observation::{MachineObjects, node_order, scene};
use crate::machine::life_writes::{self, LifeWrites};
use crate::machine::lifecycle::{self, MachineLifePlan, MachineScene, MachineStep};
use crate::machine::object_write::MachineWrite;
use crate::machine::pass_events;
use crate::machine::time_to_ready::time_to_ready;
use crate::model::name::HostName;

/// Plans after which the next one of the same pass is made: after pods are listed, and after a job begins.
const PLANS: usize = 3;

/// One pass over a Machine of which caches show `cached`.
///
/// # Errors
/// When the API server does not answer or refuses.
pub async fn pass_over_machine(
    context: LifeContext<'_>,
    cached: &MachineObjects,
    now: Timestamp,
) -> Result<MachinePass, MachinePassError> {
    let work = work(context, cached.host.as_deref().map(ResourceExt::name_any));
    if let Some(resting) = resting(context, cached, work, now) {
        return Ok(resting);
    }
    let Some(machine) = read_machine(context.client, &cached.machine).await? else {
        return Ok(MachinePass::resting(None));
    };
    // Before the Host is read: where a job has ended, the Host contains its outcome.
    let noted = machine.status.as_ref().and_then(|status| status.host.clone());
    let work = self::work(context, noted);
    let objects = read_machine_objects(context.client, machine, cached).await?;
    let scene = match scene(&objects, work, None, context.rules) {
        Ok(scene) => scene,
        Err(error) => {
            let write = life_writes::refused(&objects.machine, &error, now).map(MachineWrite::Machine);
            return finish(context, &objects, LifeWrites { write, ..LifeWrites::default() }, None, now).await;
        }
    };
    step(context, &objects, scene, now).await
}

/// What is next where there is nothing to do.
fn resting(
    context: LifeContext<'_>,
    cached: &MachineObjects,
    work: HostWork,
    now: Timestamp,
) -> Option<MachinePass> {
    let scene = match scene(cached, work, None, context.rules) {
        Ok(scene) => scene,
        Err(error) => {
            let write = life_writes::refused(&cached.machine, &error, now);
            return write.is_none().then(|| MachinePass::resting(None));
        }
    };
    let plan = lifecycle::next(&scene, now);
    let writes = life_writes::decide(cached, &scene, &plan, now);
    let rests = writes.write.is_none() && plan.step.is_none();
    rests.then(|| MachinePass::resting(earliest(plan.wake, writes.wake)))
}

fn work(context: LifeContext<'_>, host: Option<String>) -> HostWork {
    let host: Option<HostName> = host.and_then(|host| host.parse().ok());
    host.map_or(HostWork::Idle, |host| context.workers.work(&host))
}

/// Carries out the step that is planned on objects of the API server.
async fn step(
    context: LifeContext<'_>,
    objects: &MachineObjects,
    mut scene: MachineScene,
    now: Timestamp,
) -> Result<MachinePass, MachinePassError> {
    let mut plan = lifecycle::next(&scene, now);
    let mut moved = false;
    for _ in 1..PLANS {
        let Some(host) = scene.host.as_ref().map(|host| host.name.clone()) else { break };
        match &plan.step {
            Some(MachineStep::ListPods) => scene.pods = Some(pods_to_drain(context.client, &host).await?),
            Some(MachineStep::Begin(..)) if !moved => {
                begin(context, objects, &plan);
                moved = true;
                scene.work = context.workers.work(&host);
            }
            _ => break,
        }
        plan = lifecycle::next(&scene, now);
    }
    if let Some(MachineStep::Evict(pods)) = &plan.step {
        let refused = evict(context.client, pods).await?;
        if refused.len() == pods.len() {
            // Though the dry run allowed it. Else the same step would follow at once, and for ever.
            for pod in scene.pods.iter_mut().flatten() {
                pod.blocked = refused.get(&pod.name).cloned().or(pod.blocked.take());
            }
            plan = lifecycle::next(&scene, now);
        }
    }
    let again = beyond_writes(context, &scene, &plan).await?;
    let writes = life_writes::decide(objects, &scene, &plan, now);
    finish(context, objects, LifeWrites { again: writes.again || again, ..writes }, Some(&plan), now).await
}

fn begin(context: LifeContext<'_>, objects: &MachineObjects, plan: &MachineLifePlan) {
    let Some(MachineStep::Begin(job, fence)) = &plan.step else { return };
    let Some(host) = &objects.host else { return };
    // The scene exists: the specification is valid.
    let node = node_order(&objects.machine, host).ok().flatten();
    tracing::info!(host = %fence.host, token = fence.token, "machines: {job} of {}", objects.machine.name_any());
    context.workers.begin(JobOrder { job: *job, fence: fence.clone(), host: host.clone(), node });
}

/// What a step does that is no write of one object. Whether the next pass is due at once.
async fn beyond_writes(
    context: LifeContext<'_>,
    scene: &MachineScene,
    plan: &MachineLifePlan,
) -> Result<bool, MachinePassError> {
    let Some(host) = scene.host.as_ref().map(|host| &host.name) else { return Ok(false) };
    match &plan.step {
        Some(MachineStep::Cancel(_)) => context.workers.cancel(host),
        Some(MachineStep::LinkNode) => revoke_tokens(context.client, host).await?,
        // Some have left.
        Some(MachineStep::Evict(_)) => return Ok(true),
        Some(MachineStep::DeletePods(pods)) => {
            delete_pods(context.client, pods, host).await?;
            return Ok(true);
        }
        _ => {}
    }
    Ok(false)
}

async fn finish(
    context: LifeContext<'_>,
    objects: &MachineObjects,
    writes: LifeWrites,
    plan: Option<&MachineLifePlan>,
    now: Timestamp,
) -> Result<MachinePass, MachinePassError> {
    let namespace = objects.machine.namespace().unwrap_or_default();
    let carried = carry_out(context.client, &namespace, writes.write.into_iter().collect()).await?;
    let wake = earliest(plan.and_then(|plan| plan.wake), writes.wake);
    let step = plan.and_then(|plan| plan.step.as_ref());
    let events = pass_events::of_machine(objects, step, &carried.done);
    let ready_after = time_to_ready(&objects.machine, &carried.done, now);
    Ok(MachinePass { events, ready_after, ..MachinePass::after(carried, wake, writes.again) })
}
