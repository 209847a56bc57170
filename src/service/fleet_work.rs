//! Work on every selected host, and its outcome host by host.

use std::collections::BTreeMap;

use tokio::time::Instant;

use super::fleet_options::FleetRun;
use super::host_failure::{HostFailure, WorkError};
use super::hosts::SelectedHosts;
use crate::engine::fleet::{self, FleetOutcome};
use crate::engine::host::{HostError, HostSession};
use crate::engine::nonce::Nonce;
use crate::engine::roster::RosterFault;
use crate::model::event::{Event, HostOutcome};
use crate::model::name::HostName;
use crate::model::roster::Host;
use crate::transport::error::TransportError;

/// The outcome of each host, ordered by name.
pub type HostResults<T> = Vec<(HostName, Result<T, HostFailure>)>;

/// What the engine's fleet runs: it knows connections and hosts; faults of states are a result of their own.
type FleetResult<T> = Result<Result<T, Vec<RosterFault>>, HostError>;

impl SelectedHosts {
    /// Runs `work` on the hosts under the rules of `run`. A host that fails delays no other, unless the rules limit
    /// failures. `judge` is the state of a host whose work succeeded, and how many of its resources were changed.
    pub async fn for_each<T>(
        &self,
        run: &FleetRun<'_>,
        work: impl AsyncFn(&Host, HostSession<'_>) -> Result<T, WorkError>,
        judge: impl Fn(&T) -> (HostOutcome, usize),
    ) -> HostResults<T> {
        let included = |host: &&Host| run.only.as_ref().is_none_or(|only| only.contains(&host.name));
        let hosts: BTreeMap<&HostName, &Host> =
            self.hosts.iter().filter(included).map(|host| (&host.name, host)).collect();
        let (hosts, work, judge) = (&hosts, &work, &judge);
        let on_one = |name: HostName| async move {
            // The fleet returns only names that it was given.
            let Some(host) = hosts.get(&name) else { return Ok(Err(Vec::new())) };
            (run.events)(Event::HostBegun { host: name.clone() });
            let began = Instant::now();
            let transport = self.pool.transport(&host.name, &host.ssh);
            let session = HostSession::new(name.clone(), transport.as_ref(), Nonce::new(rand::random()));
            let result = work(host, session.sharing(&run.share)).await;
            let (outcome, changed) = match &result {
                Ok(done) => judge(done),
                Err(error) => (error.outcome(), 0),
            };
            (run.events)(Event::HostEnded { host: name, outcome, changed, elapsed: began.elapsed() });
            for_fleet(result)
        };
        let succeeded = |result: &Result<T, Vec<RosterFault>>| {
            let judged = result.as_ref().map(|done| judge(done).0);
            matches!(judged, Ok(HostOutcome::Changed | HostOutcome::Unchanged))
        };
        let names = hosts.keys().copied().cloned().collect();
        results(fleet::run(names, &run.rules, &run.share.cancel, on_one, succeeded).await)
    }
}

fn for_fleet<T>(result: Result<T, WorkError>) -> FleetResult<T> {
    match result {
        Ok(done) => Ok(Ok(done)),
        Err(WorkError::States(faults)) => Ok(Err(faults)),
        Err(WorkError::Host(error)) => Err(error),
    }
}

/// One list of what the fleet returns in three.
fn results<T>(fleet: FleetOutcome<Result<T, Vec<RosterFault>>>) -> HostResults<T> {
    let reached = fleet.reached.into_iter().map(|(name, result)| {
        let result = match result {
            Ok(done) => done.map_err(HostFailure::States),
            Err(error) => Err(HostFailure::Failed(error)),
        };
        (name, result)
    });
    let unreachable = fleet
        .unreachable
        .into_iter()
        .map(|(name, error): (HostName, TransportError)| (name, Err(HostFailure::Unreachable(error))));
    let halted = fleet.halted;
    let not_started =
        fleet.not_begun.into_iter().filter_map(|name| Some((name, Err(HostFailure::NotStarted(halted?)))));
    let mut all: HostResults<T> = reached.chain(unreachable).chain(not_started).collect();
    all.sort_by(|(one, _), (other, _)| one.cmp(other));
    all
}
