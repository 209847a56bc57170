//! The record of the operation that this process is.

use std::process::ExitCode;
use std::sync::{Arc, OnceLock};

use super::clock;
use super::failure::Failure;
use crate::model::operation_record::{OperationBegun, OperationEnded};
use crate::workspace::layout::Layout;
use crate::workspace::operation_log::OperationLog;

/// Empty until a command begins to change the cluster.
#[derive(Default)]
pub struct Recording(OnceLock<Option<Arc<OperationLog>>>);

impl Recording {
    /// Begins the record of this process. One that cannot be written keeps no operation from running.
    pub fn begin(&self) {
        self.0.get_or_init(|| {
            let log = OperationLog::begin(&Layout::default(), begun());
            log.inspect_err(|error| tracing::warn!("{error}: this operation is not recorded"))
                .ok()
                .map(Arc::new)
        });
    }

    /// The record, if it was begun.
    pub fn log(&self) -> Option<Arc<OperationLog>> {
        self.0.get().cloned().flatten()
    }

    /// The command has ended.
    pub fn end(&self, outcome: &Result<ExitCode, Failure>) {
        let Some(log) = self.log() else { return };
        let failure = outcome.as_ref().err();
        log.end(OperationEnded {
            time: clock::now(),
            exit: failure.map_or(0, |failure| failure.exit as u8),
            errors: failure.map(|failure| failure.errors.clone()).unwrap_or_default(),
            hints: failure.map(|failure| failure.hints.clone()).unwrap_or_default(),
        });
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
