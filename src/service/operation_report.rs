//! The outcome of an operation on a node: of a run, or of a dry run.

use std::time::Duration;

use super::command_error::{CommandError, ErrorClass};
use super::host_turn::HostTurn;
use super::node_change::ReadNode;
use super::operation_failure::OperationFailure;
use crate::engine::cancel::{Cancel, CancelLevel};
use crate::model::event::{Event, HostOutcome, NodeFailure, OperationKind};
use crate::model::name::HostName;
use crate::model::resumption::ResumedBy;
use crate::operation::cluster_site::{ClusterSite, Workspace};
use crate::operation::contract::Operation;
use crate::operation::dry_run::{Preview, dry_run};
use crate::operation::run::{Run, RunContext, RunError, RunSummary};
use crate::workspace::host_lock::HostLock;

/// The outcome of an operation on one node.
#[derive(Debug)]
pub struct NodeReport {
    /// The node.
    pub name: HostName,
    /// What was done or is planned, as far as it is known.
    pub work: NodeWork,
    /// Why it is not complete; `None` where it is.
    pub failure: Option<OperationFailure>,
}

/// What an operation did, or would do.
#[derive(Debug)]
pub enum NodeWork {
    /// Of a run.
    Done(RunSummary),
    /// Of a dry run.
    Planned(Preview),
}

impl NodeWork {
    /// None, of a run or a dry run.
    pub fn none(dry_run: bool) -> Self {
        if dry_run { Self::Planned(Preview::default()) } else { Self::Done(RunSummary::default()) }
    }
}

impl NodeReport {
    /// Whether anything was changed, or would be.
    pub fn has_changes(&self) -> bool {
        match &self.work {
            NodeWork::Done(summary) => summary.changed > 0,
            NodeWork::Planned(preview) => preview.changes(),
        }
    }

    /// This run and a later one, which decides whether it is complete.
    pub(super) fn followed_by(self, later: Self) -> Self {
        let work = match (self.work, later.work) {
            (NodeWork::Done(earlier), NodeWork::Done(later)) => NodeWork::Done(earlier.followed_by(later)),
            (_, later) => later,
        };
        Self { name: self.name, work, failure: later.failure }
    }

    /// Its end, as an event.
    fn ended(&self, operation: OperationKind) -> Event {
        let (changed, elapsed) = match &self.work {
            NodeWork::Done(summary) => (summary.changed, summary.elapsed),
            NodeWork::Planned(_) => (0, Duration::ZERO),
        };
        let failure = self.failure.as_ref().map(|failure| NodeFailure {
            interrupted: failure.class() == ErrorClass::Interrupted,
            errors: failure.errors(),
            hints: failure.hints(),
        });
        Event::NodeEnded { host: self.name.clone(), operation, changed, elapsed, failure }
    }

    /// As for hosts of a fleet. `Unchanged` and `Changed` of a dry run are what a run would end with.
    pub fn outcome(&self) -> HostOutcome {
        match &self.failure {
            Some(failure) if failure.class() == ErrorClass::Interrupted => HostOutcome::Stopped,
            Some(_) => HostOutcome::Failed,
            None if self.has_changes() => HostOutcome::Changed,
            None => HostOutcome::Unchanged,
        }
    }
}

/// What the goal of an operation is made from.
pub(super) enum GoalSource {
    /// A Node of the cluster.
    Node(Box<ReadNode>),
    /// A manifest; the cluster need not have its Node.
    Manifest,
    /// This machine.
    Machine,
}

/// How an operation is run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RunOptions {
    /// Whether only to plan; nothing is changed then.
    pub dry_run: bool,
    /// How long to wait for another operation on the host to end.
    pub lock_wait: Duration,
    /// What resumes it, where it does not complete.
    pub resumed: ResumedBy,
}

/// Refuses to deploy a node, whose manifest is wrong or unknown. Nothing is done.
pub(super) fn set_aside(
    workspace: &Workspace,
    name: HostName,
    failure: OperationFailure,
    dry_run: bool,
) -> NodeReport {
    let node = NodeReport { name, work: NodeWork::none(dry_run), failure: Some(failure) };
    if !dry_run {
        (workspace.report)(node.ended(OperationKind::Deployment));
    }
    node
}

/// Runs an operation on a node, alone, or its dry run. Events are sent to the workspace. Once the turn of the
/// operation has come, a Node that has changed since it was read is refused.
pub(super) async fn operate<O: Operation>(
    goal: &O::Goal,
    (name, source): (HostName, GoalSource),
    (workspace, site): (&Workspace, ClusterSite),
    RunOptions { dry_run: dry, lock_wait, resumed }: RunOptions,
    cancel: &Cancel,
) -> NodeReport {
    let failed = |error: RunError| OperationFailure::Run {
        node: name.clone(),
        error,
        without_host: O::WITHOUT_HOST,
        by_manifest: matches!(source, GoalSource::Manifest),
        resumed,
    };
    let (work, failure) = if dry {
        let site = site.dry();
        let planned = tokio::select! {
            biased;
            () = cancel.reached(CancelLevel::AfterResource) => Err(RunError::Interrupted),
            planned = dry_run::<O>(goal, &site) => planned,
        };
        match planned {
            Ok(preview) => (NodeWork::Planned(preview), None),
            Err(error) => (NodeWork::none(dry), Some(failed(error))),
        }
    } else {
        match turn(&name, &source, workspace, (lock_wait, resumed), cancel).await {
            Ok(_lock) => {
                let report = &workspace.report;
                report(Event::NodeBegun { host: name.clone(), operation: O::KIND });
                let context =
                    RunContext { host: name.clone(), report: &|event| report(event), cancel: cancel.clone() };
                let mut run = Run::<O>::new(goal, &site, context);
                while !run.turn().await {}
                (NodeWork::Done(run.summary()), run.end().err().map(failed))
            }
            Err(Refusal::Interrupted) => (NodeWork::none(dry), Some(failed(RunError::Interrupted))),
            Err(Refusal::Failed(failure)) => (NodeWork::none(dry), Some(failure)),
        }
    };
    let node = NodeReport { name: name.clone(), work, failure };
    if !dry {
        (workspace.report)(node.ended(O::KIND));
    }
    node
}

/// Why an operation does not begin.
enum Refusal {
    Interrupted,
    Failed(OperationFailure),
}

/// The turn of an operation on a node that is still as it was read.
async fn turn(
    name: &HostName,
    source: &GoalSource,
    workspace: &Workspace,
    (lock_wait, resumed): (Duration, ResumedBy),
    cancel: &Cancel,
) -> Result<HostLock, Refusal> {
    let taken = HostTurn::new(workspace, name, lock_wait).take(cancel).await;
    if cancel.level() != CancelLevel::Continue {
        return Err(Refusal::Interrupted);
    }
    let lock = taken.map_err(|error| Refusal::Failed(OperationFailure::Locked { error, resumed }))?;
    let change = match source {
        GoalSource::Node(read) => read.change(&workspace.layout).await,
        GoalSource::Manifest | GoalSource::Machine => None,
    };
    match change {
        None => Ok(lock),
        Some(what) => Err(Refusal::Failed(OperationFailure::Changed { node: name.clone(), what, resumed })),
    }
}
