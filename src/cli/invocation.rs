//! This process as the caller of commands: its global options, cancellation and environment.

use std::path::PathBuf;
use std::sync::Arc;

use super::recording::Recording;
use super::terminal::Terminal;
use super::{Global, LogFormat, clock};
use crate::engine::cancel::Cancel;
use crate::engine::host::EventSink;
use crate::report::Reporter;
use crate::report::plain::Detail;
use crate::service::command_context::CommandContext;
use crate::service::ssh_options::SshEnvironment;

/// What all commands of this process have in common.
pub struct Invocation {
    /// The global options.
    pub global: Global,
    /// Reached when the process is interrupted.
    pub cancel: Cancel,
    /// What `ssh` takes from the user of this process.
    pub ssh: SshEnvironment,
    /// The record of this process, where it is an operation.
    pub recording: Recording,
}

impl Invocation {
    /// Reads the environment of this process.
    pub fn new(global: Global, cancel: Cancel) -> Self {
        let agent = std::env::var_os("SSH_AUTH_SOCK").filter(|socket| !socket.is_empty());
        let ssh = SshEnvironment {
            home: std::env::var_os("HOME").map(PathBuf::from),
            agent: agent.map(PathBuf::from),
            is_root: rustix::process::geteuid().is_root(),
            prompter: Arc::new(Terminal::default()),
        };
        Self { global, cancel, ssh, recording: Recording::default() }
    }

    /// The context of a command that sends its events to `events`.
    pub fn context<'a>(&'a self, events: EventSink<'a>) -> CommandContext<'a> {
        CommandContext { clock: clock::now, events, cancel: &self.cancel, ssh: &self.ssh }
    }

    /// The context of a command whose events are not shown.
    pub fn silent_context(&self) -> CommandContext<'_> {
        self.context(&|_| {})
    }
}

impl Global {
    /// The reporter of progress, with this detail where it writes lines.
    pub fn reporter(&self, detail: Detail) -> Reporter {
        match (self.quiet, self.log_format) {
            (true, _) => Reporter::Silent,
            (false, LogFormat::Json) => Reporter::Json(clock::now),
            (false, LogFormat::Text) => Reporter::for_people(detail),
        }
    }
}
