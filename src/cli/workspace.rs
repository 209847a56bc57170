//! Opens the workspace of the bootstrap node for a command.

use std::sync::Arc;

use super::clock;
use super::failure::Failure;
use super::invocation::Invocation;
use super::ssh_arguments::SshArguments;
use crate::operation::cluster_site::Workspace;
use crate::report::plain::Detail;
use crate::service::workspace::{self, WorkspaceRequest};
use crate::workspace::layout::Layout;

/// Opens it, with progress written as the global options require.
///
/// # Errors
/// The first part that is missing or wrong.
pub async fn open(invocation: &Invocation, ssh: &SshArguments) -> Result<Arc<Workspace>, Failure> {
    let global = &invocation.global;
    let (reporter, record) = (global.reporter(Detail::Phases), invocation.recording.running());
    let request = WorkspaceRequest {
        layout: Layout::default(),
        tree: global.tree.clone(),
        ssh: ssh.options(),
        ssh_environment: invocation.ssh.clone(),
        clock: clock::now,
        events: Arc::new(move |event| {
            if let Some(record) = &record {
                record.event(&event);
            }
            reporter.event(&event);
        }),
    };
    Ok(workspace::open(request).await?)
}
