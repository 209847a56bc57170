//! Opens the workspace of the bootstrap node for a command.

use std::path::Path;
use std::sync::Arc;

use super::clock;
use super::failure::Failure;
use super::invocation::Invocation;
use super::ssh_arguments::SshArguments;
use crate::operation::cluster_site::Workspace;
use crate::report::plain::Detail;
use crate::service::recorded_workspace;
use crate::service::workspace::{self, WorkspaceRequest};
use crate::service::workspace_origin::WorkspaceOrigin;
use crate::workspace::layout::Layout;

/// Opens it, with progress written as the global options require.
///
/// # Errors
/// The first part that is missing or wrong.
pub async fn open(invocation: &Invocation, ssh: &SshArguments) -> Result<Arc<Workspace>, Failure> {
    open_from(invocation, origin(invocation, ssh)).await
}

/// Opens it with what is recorded in this file; `None`: that of the bootstrap node.
///
/// # Errors
/// The first part that is missing or wrong.
pub async fn open_recorded(
    invocation: &Invocation,
    ssh: &SshArguments,
    record: Option<&Path>,
) -> Result<Arc<Workspace>, Failure> {
    let Some(record) = record else { return open(invocation, ssh).await };
    Ok(recorded_workspace::open(request(invocation, origin(invocation, ssh)), record).await?)
}

/// Opens it from another origin than the command's options.
///
/// # Errors
/// As [`open`].
pub async fn open_from(invocation: &Invocation, origin: WorkspaceOrigin) -> Result<Arc<Workspace>, Failure> {
    Ok(workspace::open(request(invocation, origin)).await?)
}

/// What the command's options say.
pub fn origin(invocation: &Invocation, ssh: &SshArguments) -> WorkspaceOrigin {
    WorkspaceOrigin { tree: invocation.global.tree.clone(), ssh: ssh.options() }
}

fn request(invocation: &Invocation, origin: WorkspaceOrigin) -> WorkspaceRequest {
    let global = &invocation.global;
    let (reporter, record) = (global.reporter(Detail::Phases), invocation.recording.running());
    WorkspaceRequest {
        layout: Layout::default(),
        origin,
        ssh_environment: invocation.ssh.clone(),
        clock: clock::now,
        events: Arc::new(move |event| {
            if let Some(record) = &record {
                record.event(&event);
            }
            reporter.event(&event);
        }),
    }
}
