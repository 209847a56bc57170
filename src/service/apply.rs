//! `apply`: converges hosts to their states.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;

use super::command_context::CommandContext;
use super::command_error::CommandFailure;
use super::fleet_options::{FleetOptions, FleetRun};
use super::fleet_work::HostResults;
use super::host_failure::HostFailure;
use super::host_failures;
use super::run_record::{HostRecord, RunRecorder};
use super::states::{Making, ObservedHost, StateWork, StatesError, StatesRequest};
use crate::engine::Desired;
use crate::engine::cancel::CancelLevel;
use crate::engine::host::{Convergence, HostError};
use crate::engine::roster::RosterFault;
use crate::model::event::{Event, HostOutcome};
use crate::model::name::HostName;
use crate::model::resumption::ResumedBy;
use crate::resource::contract::step::CertificateRequest;
use crate::state::Compiled;
use crate::transport::error::TransportError;

/// States to apply, and how the fleet is scheduled.
#[derive(Debug, Clone)]
pub struct ApplyRequest {
    /// The states and hosts.
    pub states: StatesRequest,
    /// The schedule.
    pub fleet: FleetOptions,
}

/// What became of each host.
#[derive(Debug)]
pub struct ApplyReport {
    /// Ordered by name.
    pub hosts: Vec<HostRun>,
    /// What resumes it, where a host failed.
    pub resumed: ResumedBy,
}

/// What became of one host.
#[derive(Debug)]
pub struct HostRun {
    /// The host.
    pub name: HostName,
    /// What was changed, or why the work was not completed.
    pub result: Result<Convergence, HostFailure>,
    /// What was recorded up to then.
    pub record: HostRecord,
}

impl ApplyReport {
    /// The failed hosts; `None` when every host converged.
    pub fn failures(&self) -> Option<CommandFailure> {
        let failed = self.hosts.iter().filter_map(|host| Some((&host.name, host.result.as_ref().err()?)));
        host_failures::of(failed, self.resumed)
    }
}

/// Applies states to hosts. After the first cancellation each host finishes its current resource; after the second
/// all connections are closed.
///
/// # Errors
/// When states or hosts cannot be read; nothing was done then. Failures of hosts are in the report.
pub async fn apply(request: &ApplyRequest, context: &CommandContext<'_>) -> Result<ApplyReport, StatesError> {
    let work = request.states.read(context).await?;
    let hosts = work.hosts().into_iter().collect();
    let converge = async |run: &FleetRun<'_>| {
        let make = |_: &HostName, compiled| work.desired(compiled);
        converge_all(&work, run, Making { with_facts: false, make }).await
    };
    Ok(report(hosts, |context| request.fleet.run(work.limit(), context), context, converge).await)
}

/// Runs `converge` on these hosts with events recorded, and reports on them.
pub(super) async fn report(
    hosts: BTreeSet<HostName>,
    fleet: impl for<'a> FnOnce(&CommandContext<'a>) -> FleetRun<'a>,
    context: &CommandContext<'_>,
    converge: impl AsyncFnOnce(&FleetRun<'_>) -> HostResults<Convergence>,
) -> ApplyReport {
    let recorder = RunRecorder::new(context.events);
    let events = |event: Event| recorder.event(event);
    events(Event::RunBegun { hosts: hosts.len() });
    let run = FleetRun { only: Some(hosts), ..fleet(&CommandContext { events: &events, ..*context }) };
    let results = tokio::select! {
        results = converge(&run) => results,
        never = announce_cancellation(&run) => match never {},
    };
    drop(run);
    let mut records: BTreeMap<HostName, HostRecord> = recorder.into_records();
    let hosts = results.into_iter().map(|(name, result)| {
        let record = records.remove(&name).unwrap_or_default();
        HostRun { name, result, record }
    });
    ApplyReport { hosts: hosts.collect(), resumed: ResumedBy::SameCommand }
}

async fn announce_cancellation(run: &FleetRun<'_>) -> Infallible {
    run.share.cancel.reached(CancelLevel::AfterResource).await;
    (run.events)(Event::StopAsked);
    std::future::pending().await
}

/// Converges every host of a run.
pub(super) async fn converge_all<D: Desired + Send>(
    work: &StateWork,
    run: &FleetRun<'_>,
    making: Making<impl Fn(&HostName, Vec<Compiled>) -> Result<D, Vec<RosterFault>> + Sync>,
) -> HostResults<Convergence> {
    // States with certificates were refused when they were compiled.
    let no_signer = |_: &CertificateRequest, _: &str| Err("there is no CA outside a cluster".to_owned());
    let on_one = async |observed: ObservedHost<'_, D>| {
        match observed.session.converge(observed.looked, &no_signer, run.events).await {
            // It was reached before: the connection was lost, and the host may be partially changed.
            Err(HostError::Transport(TransportError::Unreachable { host, reason })) => {
                Err(TransportError::Lost { host, reason }.into())
            }
            result => result,
        }
    };
    let judge = |done: &Convergence| match done.changed.len() {
        0 => (HostOutcome::Unchanged, 0),
        changed => (HostOutcome::Changed, changed),
    };
    work.for_each(run, making, on_one, judge).await
}
