//! `facts`: collects the facts of hosts.

use std::num::NonZeroUsize;

use super::command_context::CommandContext;
use super::command_error::CommandFailure;
use super::fleet_options::FleetRun;
use super::fleet_work::HostResults;
use super::host_failures;
use super::hosts::{HostSelection, SelectError};
use crate::engine::host::HostSession;
use crate::model::event::HostOutcome;
use crate::model::facts::Facts;
use crate::model::roster::Host;

/// The hosts.
#[derive(Debug, Clone)]
pub struct FactsRequest {
    /// Which hosts; this machine where no source is set.
    pub hosts: HostSelection,
    /// Hosts to work on at the same time.
    pub limit: NonZeroUsize,
}

/// The facts of each host.
pub struct FactsReport {
    /// Ordered by name.
    pub hosts: HostResults<Facts>,
}

impl FactsReport {
    /// The hosts without facts; `None` when every host has them.
    pub fn failures(&self) -> Option<CommandFailure> {
        host_failures::among(&self.hosts)
    }
}

/// Collects facts. Changes nothing.
///
/// # Errors
/// When the hosts cannot be selected. Failures of hosts are in the report.
pub async fn facts(request: &FactsRequest, context: &CommandContext<'_>) -> Result<FactsReport, SelectError> {
    let selected = request.hosts.select_or_local(context).await?;
    let run = FleetRun::read_only(request.limit, context);
    let collect = async |_: &Host, session: HostSession<'_>| Ok(session.facts().await?);
    Ok(FactsReport { hosts: selected.for_each(&run, collect, |_| (HostOutcome::Unchanged, 0)).await })
}
