//! `render`: the resources that states result in on hosts.

use super::command_context::CommandContext;
use super::command_error::CommandFailure;
use super::fleet_work::HostResults;
use super::host_failures;
use super::states::{StatesError, StatesRequest};
use crate::state::Compiled;

/// The resources of each host.
pub struct RenderReport {
    /// In the order to run.
    pub hosts: HostResults<Vec<Compiled>>,
}

impl RenderReport {
    /// The hosts whose states cannot be compiled; `None` when there are none.
    pub fn failures(&self) -> Option<CommandFailure> {
        host_failures::among(&self.hosts)
    }
}

/// Compiles the states of hosts. Changes nothing, and connects only to hosts whose states depend on facts.
///
/// # Errors
/// When states or hosts cannot be read. Failures of hosts are in the report.
pub async fn render(
    request: &StatesRequest,
    context: &CommandContext<'_>,
) -> Result<RenderReport, StatesError> {
    Ok(RenderReport { hosts: request.read(context).await?.compiled(context).await })
}
