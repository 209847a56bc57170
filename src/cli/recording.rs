//! The record of the operation that this process is.

use std::process::ExitCode;
use std::sync::{Arc, OnceLock};

use super::clock;
use super::failure::Failure;
use crate::model::event::Event;
use crate::model::operation_record::{OperationBegun, OperationEnded};
use crate::operation::cluster_site::ApiPort;
use crate::report::operations::summary;
use crate::service::cluster_copy::ClusterCopy;
use crate::workspace::layout::Layout;
use crate::workspace::operation_log::OperationLog;

/// Empty until a command begins to change the cluster.
#[derive(Default)]
pub struct Recording(OnceLock<Option<Arc<RunningRecord>>>);

/// On this machine, and in the cluster.
pub struct RunningRecord {
    log: OperationLog,
    copy: ClusterCopy,
}

impl RunningRecord {
    /// Something happened.
    pub fn event(&self, event: &Event) {
        let time = clock::now();
        self.log.event(time, event);
        self.copy.event(time, event);
    }
}

impl Recording {
    /// Begins the record of this process, where it is root's: no other user can change anything. One that cannot be
    /// written keeps no operation from running.
    pub fn begin(&self) {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        self.0.get_or_init(|| {
            let (layout, begun) = (Layout::default(), begun());
            let log = OperationLog::begin(&layout, begun.clone());
            let log =
                log.inspect_err(|error| tracing::warn!("{error}: this operation is not recorded")).ok()?;
            let api = ApiPort::Kubeconfig(layout.admin_conf());
            let copy = ClusterCopy::begin(layout, api, begun, summary);
            Some(Arc::new(RunningRecord { log, copy }))
        });
    }

    /// The record, if it was begun.
    pub fn running(&self) -> Option<Arc<RunningRecord>> {
        self.0.get().cloned().flatten()
    }

    /// The command has ended.
    pub fn end(&self, outcome: &Result<ExitCode, Failure>) {
        let Some(record) = self.running() else { return };
        let failure = outcome.as_ref().err();
        record.log.end(OperationEnded {
            time: clock::now(),
            exit: failure.map_or(0, |failure| failure.exit as u8),
            errors: failure.map(|failure| failure.errors.clone()).unwrap_or_default(),
            hints: failure.map(|failure| failure.hints.clone()).unwrap_or_default(),
        });
    }

    /// The command has ended, and its user has seen its outcome.
    pub async fn publish(&self) {
        if let Some(record) = self.running() {
            record.copy.end().await;
        }
    }
}

fn begun() -> OperationBegun {
    let (time, process) = (clock::now(), std::process::id());
    let words = std::env::args().skip(1);
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    OperationBegun {
        id: format!("{}-{process}", time.strftime("%Y%m%dT%H%M%SZ")),
        time,
        command: std::iter::once("metalform".to_owned()).chain(words).collect(),
        user: variable("SUDO_USER").or_else(|| variable("USER")).unwrap_or_else(|| "root".to_owned()),
        process,
        version: env!("CARGO_PKG_VERSION").to_owned(),
    }
}
