//! One pass over a Host: what workers have found is recorded, then one step of its life.
//!
//! # Guarantees
//! Those of [`super::machine_life_pass`], for the Host, the Machine in its claim and its Node. An outcome is dropped by the
//! workers only after the API server has confirmed a status that contains it; a lost answer, or a controller that is killed
//! between the two, makes it recorded again, which changes nothing.
//!
//! # How it is used
//! A pass is due when an object of [`HostObjects`] changes, the work on the host or whether it answers does, or at
//! [`MachinePass::next`].

use jiff::Timestamp;

use super::life_context::LifeContext;
use super::life_requests::read_host_objects;
use super::machine_pass::{MachinePass, MachinePassError, earliest};
use super::machine_requests::carry_out;
use crate::machine::api::host_status::HostStatus;
use crate::machine::host_job::HostWork;
use crate::machine::host_life_writes::{self, HostLifeWrites};
use crate::machine::host_observation::{HostObjects, is_node_ready, scene};
use crate::machine::host_orders::withdrawn_power_order;
use crate::machine::host_record::recorded;
use crate::machine::host_state::{self, HostLifePlan, HostScene, HostStep};
use crate::machine::job_order::JobOrder;
use crate::machine::job_outcome::{HostPresence, JobOutcome};
use crate::machine::job_queue::{self, JobTurn};
use crate::machine::object_write::MachineWrite;
use crate::machine::pass_events;
use crate::machine::probe::next_probe;
use crate::model::name::HostName;

/// What workers know of a host, as of one time.
struct Found {
    host: HostName,
    outcome: Option<JobOutcome>,
    presence: Option<(HostPresence, Timestamp)>,
    work: HostWork,
    turn: Option<JobTurn>,
}

/// What is decided on one version of the objects.
struct Decided {
    scene: HostScene,
    plan: HostLifePlan,
    writes: HostLifeWrites,
}

/// One pass over a Host of which caches show `cached`.
///
/// # Errors
/// When the API server does not answer or refuses.
pub async fn pass_over_host(
    context: LifeContext<'_>,
    cached: &HostObjects,
    now: Timestamp,
) -> Result<MachinePass, MachinePassError> {
    let Some(found) = Found::of(context, cached) else { return Ok(MachinePass::resting(None)) };
    let Some(decided) = found.decide(context, cached, now) else { return Ok(MachinePass::resting(None)) };
    let probe = probe(context, cached, &decided.scene, &found, now);
    if decided.writes.write.is_none() && decided.plan.step.is_none() && found.outcome.is_none() {
        return Ok(MachinePass::resting(earliest(decided.plan.wake, probe)));
    }
    // Again, and before the Host is read: where a job has ended meanwhile, the Host contains its outcome.
    let Some(found) = Found::of(context, cached) else { return Ok(MachinePass::resting(None)) };
    let Some(objects) = read_host_objects(context.client, cached, &found.host).await? else {
        return Ok(MachinePass::resting(None));
    };
    let Some(decided) = found.decide(context, &objects, now) else { return Ok(MachinePass::resting(None)) };
    let Decided { plan, writes, .. } = decided;
    let mut again = writes.again;
    if writes.write.is_none() && found.outcome.is_none() {
        begin_or_cancel(context, &objects, plan.step.as_ref());
    } else {
        again |= found.outcome.is_some();
    }
    let carried = carry_out(context.client, "", writes.write.into_iter().collect()).await?;
    if let Some(outcome) = found.outcome.as_ref().filter(|_| carried.conflict.is_none()) {
        context.workers.recorded(outcome);
    }
    let events = pass_events::of_host(&objects, &carried.done);
    Ok(MachinePass { events, ..MachinePass::after(carried, earliest(plan.wake, probe), again) })
}

impl Found {
    fn of(context: LifeContext<'_>, objects: &HostObjects) -> Option<Self> {
        let host: HostName = kube::ResourceExt::name_any(&*objects.host).parse().ok()?;
        // The work first: what has ended after it is an outcome.
        let work = context.workers.work(&host);
        let outcome = context.workers.outcome(&host);
        let presence = context.workers.presence(&host);
        // What is recorded with this pass no longer runs.
        let work = if outcome.is_some() { HostWork::Idle } else { work };
        let turn = context.workers.turn(&host);
        Some(Self { host, outcome, presence, work, turn })
    }

    fn status(&self, objects: &HostObjects, now: Timestamp) -> HostStatus {
        let status = objects.host.status.clone().unwrap_or_default();
        let job_queue = job_queue::recorded(&status, self.turn, now);
        HostStatus { job_queue, ..recorded(&status, self.outcome.as_ref(), self.presence) }
    }

    fn decide(&self, context: LifeContext<'_>, objects: &HostObjects, now: Timestamp) -> Option<Decided> {
        let status = self.status(objects, now);
        let scene = scene(objects, &status, self.work.clone(), context.rules.failed_joins)?;
        let plan = host_state::next(&scene, now);
        let mut writes = host_life_writes::decide(objects, &status, &plan, now);
        // What is found is recorded first.
        if self.outcome.is_none()
            && let Some(write) = withdrawn_power_order(&objects.host, self.presence)
        {
            writes = HostLifeWrites { write: Some(MachineWrite::Host(write)), again: true };
        }
        Some(Decided { scene, plan, writes })
    }
}

/// Asks whether the host answers, if that is due; when it is due next.
fn probe(
    context: LifeContext<'_>,
    objects: &HostObjects,
    scene: &HostScene,
    found: &Found,
    now: Timestamp,
) -> Option<Timestamp> {
    let node_ready = is_node_ready(&scene.host, objects.node.as_deref());
    let due = next_probe(&scene.host, node_ready, found.presence.map(|(_, at)| at), now)?;
    if due > now {
        return Some(due);
    }
    context.workers.probe(&objects.host);
    // Its result makes a pass due.
    None
}

fn begin_or_cancel(context: LifeContext<'_>, objects: &HostObjects, step: Option<&HostStep>) {
    match step {
        Some(HostStep::Begin(job, fence)) => {
            tracing::info!(host = %fence.host, token = fence.token, "machines: {job}");
            let host = objects.host.clone();
            context.workers.begin(JobOrder { job: *job, fence: fence.clone(), host, node: None });
        }
        Some(HostStep::Cancel(_)) => {
            if let Ok(host) = kube::ResourceExt::name_any(&*objects.host).parse() {
                context.workers.cancel(&host);
            }
        }
        _ => {}
    }
}
