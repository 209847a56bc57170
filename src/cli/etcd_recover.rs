//! `metalform etcd recover` and `metalform etcd restore`.

use std::io::{BufRead as _, IsTerminal as _, Write as _};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;

use super::failure::{Exit, Failure};
use super::invocation::Invocation;
use super::output::{paint, print};
use super::ssh_arguments::SshArguments;
use super::workspace;
use crate::engine::cancel::{Cancel, CancelLevel};
use crate::engine::fleet;
use crate::model::event::Event;
use crate::model::name::HostName;
use crate::report::operation_report::text as report;
use crate::report::recovery_plan::text;
use crate::service::etcd_recover::{Prepared, RecoverRequest, prepare};
use crate::service::operation_failure;

/// Which member etcd continues with.
#[derive(Debug, Args)]
pub struct EtcdRecoverArgs {
    /// The node of the member to continue with [default: the one that has come furthest; a healthy voter while etcd has
    /// its quorum]
    #[arg(long, value_name = "NODE")]
    member: Option<HostName>,
    #[command(flatten)]
    run: RecoveryRun,
}

/// Which snapshot etcd continues with.
#[derive(Debug, Args)]
pub struct EtcdRestoreArgs {
    /// A file that `metalform etcd snapshot` has saved
    file: PathBuf,
    /// The etcd node that gets it first [default: this machine]
    #[arg(long, value_name = "NODE")]
    member: Option<HostName>,
    #[command(flatten)]
    run: RecoveryRun,
}

/// How it is run.
#[derive(Debug, Args)]
struct RecoveryRun {
    /// Only show the plan; changes nothing
    #[arg(long)]
    dry_run: bool,
    /// Do not ask for a confirmation on the terminal
    #[arg(long, conflicts_with = "dry_run")]
    yes_i_have_read_the_plan: bool,
    /// Hosts to work on at the same time
    #[arg(long, value_name = "N", default_value_t = fleet::LIMIT)]
    limit: NonZeroUsize,
    /// Where another operation runs on a node that joins again: how long to wait for its end, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    wait: u64,
    #[command(flatten)]
    ssh: SshArguments,
}

impl EtcdRecoverArgs {
    /// Runs the command.
    ///
    /// # Errors
    /// When etcd is not recovered, and when a node does not join again.
    pub async fn run(&self, invocation: &Invocation) -> Result<ExitCode, Failure> {
        self.run.run(invocation, None, self.member.clone()).await
    }
}

impl EtcdRestoreArgs {
    /// Runs the command.
    ///
    /// # Errors
    /// When the snapshot is not restored, and when a node does not join again.
    pub async fn run(&self, invocation: &Invocation) -> Result<ExitCode, Failure> {
        self.run.run(invocation, Some(self.file.clone()), self.member.clone()).await
    }
}

impl RecoveryRun {
    async fn run(
        &self,
        invocation: &Invocation,
        snapshot: Option<PathBuf>,
        member: Option<HostName>,
    ) -> Result<ExitCode, Failure> {
        if !self.dry_run {
            invocation.recording.begin();
        }
        let mut origin = workspace::origin(invocation, &self.ssh);
        origin.ssh.dry_run = self.dry_run;
        let workspace = workspace::open_from(invocation, origin).await?;
        let lock_wait = Duration::from_secs(self.wait);
        let request = RecoverRequest { snapshot, member, limit: self.limit, lock_wait };
        let prepared = prepare(&request, &workspace, &invocation.cancel).await?;
        let plan = text(&prepared);
        print(&plan)?;
        if self.dry_run {
            return Ok(ExitCode::SUCCESS);
        }
        (workspace.report)(Event::PlanMade { lines: plan.lines().map(str::to_owned).collect() });
        if !self.yes_i_have_read_the_plan {
            confirm(&prepared, &invocation.cancel).await?;
        }
        let deployed = prepared.carry_out(workspace, &invocation.cancel).await?;
        print(&report(&deployed.nodes, paint()))?;
        match operation_failure::of(deployed.nodes.iter().filter_map(|node| node.failure.as_ref())) {
            Some(failures) => Err(failures.into()),
            None => Ok(ExitCode::SUCCESS),
        }
    }
}

/// The name of the node is typed, as proof that the plan was read.
async fn confirm(prepared: &Prepared, cancel: &Cancel) -> Result<(), Failure> {
    let node = prepared.member();
    let refused = |why: &str| {
        Failure::new(Exit::Refused, why)
            .hint("nothing was changed; --yes-i-have-read-the-plan continues without a terminal")
    };
    if !std::io::stdin().is_terminal() {
        return Err(refused("this needs a confirmation, and standard input is no terminal"));
    }
    // Without standard error there is no question, and no answer to it.
    let _ = write!(std::io::stderr(), "Type the name of the node to continue with ({node}): ");
    let reading = tokio::task::spawn_blocking(read_line);
    let line = unless_interrupted(async { reading.await.unwrap_or_default() }, cancel).await?;
    if line.trim() == node.as_str() { Ok(()) } else { Err(refused("not confirmed")) }
}

/// A line that cannot be read confirms nothing.
fn read_line() -> String {
    let mut line = String::new();
    let read = std::io::stdin().lock().read_line(&mut line);
    read.map(|_| line).unwrap_or_default()
}

/// The line, unless the process is interrupted before it is typed. The read ends with the process then, which does not wait
/// for it.
async fn unless_interrupted(
    reading: impl Future<Output = String>,
    cancel: &Cancel,
) -> Result<String, Failure> {
    tokio::select! {
        line = reading => Ok(line),
        () = cancel.reached(CancelLevel::AfterResource) => {
            Err(Failure::new(Exit::Interrupted, "interrupted").hint("nothing was changed"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::cancel::channel;

    #[tokio::test]
    async fn an_interrupt_ends_the_wait_for_the_confirmation() {
        let (handle, cancel) = channel();
        let typed = unless_interrupted(async { "etcd-1\n".to_owned() }, &cancel).await;
        assert_eq!(typed.unwrap(), "etcd-1\n");
        handle.cancel(CancelLevel::AfterResource);
        let failure = unless_interrupted(std::future::pending(), &cancel).await.unwrap_err();
        assert_eq!(
            (failure.exit, failure.hints),
            (Exit::Interrupted, vec!["nothing was changed".to_owned()])
        );
    }
}
