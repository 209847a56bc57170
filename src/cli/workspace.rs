//! Opens the workspace of the bootstrap node for a command.

use std::sync::Arc;

use super::failure::Failure;
use super::{Global, clock};
use crate::operation::cluster_site::Setting;
use crate::report::plain::Detail;
use crate::service::workspace::{self, WorkspaceRequest};
use crate::workspace::layout::Layout;

/// Opens it, with progress written as the global options require.
///
/// # Errors
/// The first part that is missing or wrong.
pub async fn open(global: &Global) -> Result<Arc<Setting>, Failure> {
    let reporter = global.reporter(Detail::Phases);
    let request = WorkspaceRequest {
        layout: Layout::default(),
        tree: global.tree.clone(),
        clock: clock::now,
        events: Arc::new(move |event| reporter.event(&event)),
    };
    Ok(workspace::open(request).await?)
}
