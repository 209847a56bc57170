//! `apply --plan`: applies a saved plan if it is still what would be done on every host.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use super::apply::{self, ApplyReport};
use super::command_context::CommandContext;
use super::command_error::{CommandError, CommandFailure, ErrorClass};
use super::fleet_options::{FleetOptions, FleetRun};
use super::fleet_work::HostResults;
use super::host_failure::HostFailure;
use super::host_failures;
use super::plan;
use super::plan_file::PlanFile;
use super::saved_file::{SavedFile, SavedFileError};
use super::ssh_options::SshOptions;
use super::states::{Making, StateWork, StatesError, StatesRequest};
use crate::engine::host::Convergence;
use crate::engine::saved_plan::SavedHost;
use crate::engine::saved_plan::key::Key;
use crate::engine::saved_plan::planned::Planned;
use crate::model::name::HostName;
use crate::model::resumption::{PlanMaker, ResumedBy};

/// A saved plan to apply.
#[derive(Debug, Clone)]
pub struct ApplySavedPlanRequest {
    /// The plan's file.
    pub path: PathBuf,
    /// SSH options that replace those of the plan.
    pub ssh: SshOptions,
    /// Hosts to work on at the same time.
    pub limit: NonZeroUsize,
    /// The schedule.
    pub fleet: FleetOptions,
}

/// Why a saved plan was not applied to any host.
#[derive(Debug, thiserror::Error)]
pub enum ApplySavedPlanError {
    /// The file cannot be used.
    #[error(transparent)]
    File(#[from] SavedFileError),
    /// The plan's states or hosts cannot be read any more.
    #[error(transparent)]
    States(#[from] StatesError),
    /// Something differs from the plan; one line each.
    #[error("{}", .0.join("; "))]
    Drifted(Vec<String>),
    /// Hosts could not be compared with the plan.
    #[error("{}", .0.errors().join("; "))]
    Hosts(CommandFailure),
}

const UNTOUCHED: &str = "nothing was changed on any host";

impl CommandError for ApplySavedPlanError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::File(error) => error.class(),
            Self::States(error) => error.class(),
            Self::Drifted(_) => ErrorClass::Refused,
            Self::Hosts(failures) => failures.class(),
        }
    }

    fn errors(&self) -> Vec<String> {
        match self {
            Self::File(error) => error.errors(),
            Self::States(error) => error.errors(),
            Self::Drifted(lines) => lines.clone(),
            Self::Hosts(failures) => failures.errors(),
        }
    }

    fn hints(&self) -> Vec<String> {
        match self {
            Self::File(error) => error.hints(),
            Self::States(error) => error.hints(),
            Self::Drifted(_) => vec![format!("{UNTOUCHED}; make a new plan and review it")],
            Self::Hosts(failures) => {
                let mut hints = failures.hints();
                hints.push(UNTOUCHED.to_owned());
                hints
            }
        }
    }
}

/// A plan that nothing differs from.
struct CheckedPlan {
    work: StateWork,
    file: PlanFile,
    key: Key,
    /// The hosts that are as they were.
    same: BTreeSet<HostName>,
    unreachable: HostResults<Convergence>,
}

/// Plans again and compares; only when nothing differs on any host, applies the plan.
///
/// # Errors
/// When the plan cannot be used, or anything differs from it. Nothing is done on any host then. Failures of hosts
/// while the plan is applied are in the report.
pub async fn apply_saved_plan(
    request: &ApplySavedPlanRequest,
    context: &CommandContext<'_>,
) -> Result<ApplyReport, ApplySavedPlanError> {
    let CheckedPlan { work, file, key, same, unreachable } = checked(request, context).await?;
    let nothing = SavedHost { machine: key.digest(""), resources: Vec::new() };
    let converge = async |run: &FleetRun<'_>| {
        let make = |host: &HostName, compiled| {
            let saved = file.hosts.get(host).unwrap_or(&nothing);
            Ok(Planned { states: work.desired(compiled)?, saved, key: &key })
        };
        let mut results = apply::converge_all(&work, run, Making { with_facts: true, make }).await;
        results.extend(unreachable);
        results.sort_by(|(one, _), (other, _)| one.cmp(other));
        results
    };
    let report =
        apply::report(same, |context| request.fleet.run(work.limit(), context), context, converge).await;
    // What was applied of it is drift to the same plan.
    Ok(ApplyReport { resumed: ResumedBy::NewPlan(PlanMaker::Plan), ..report })
}

async fn checked(
    request: &ApplySavedPlanRequest,
    context: &CommandContext<'_>,
) -> Result<CheckedPlan, ApplySavedPlanError> {
    let file = PlanFile::read(&request.path)?;
    let key = file.key()?;
    let mut states: StatesRequest = file.states(request.limit)?;
    states.hosts.ssh = request.ssh.clone().or(&states.hosts.ssh);
    let work = states.read(context).await?;
    let others = file.other_hosts(&work.hosts());
    if !others.is_empty() {
        return Err(ApplySavedPlanError::Drifted(others));
    }
    let only = Some(file.hosts.keys().cloned().collect());
    let silent = CommandContext { events: &|_| {}, ..*context };
    let run = FleetRun { only, ..FleetRun::read_only(request.limit, &silent) };
    let mut drift = Vec::new();
    let (mut same, mut unreachable, mut failed) = (BTreeSet::new(), Vec::new(), Vec::new());
    for (host, result) in plan::planned(&work, &run, &key, true).await {
        match result {
            Ok((_, now)) => {
                let differences = file.hosts.get(&host).zip(now).map(|(planned, now)| planned.drift(&now));
                match differences.unwrap_or_default()[..] {
                    [] => drop(same.insert(host)),
                    ref all => drift.extend(all.iter().map(|one| format!("{host}: {one}"))),
                }
            }
            Err(failure @ HostFailure::Unreachable(_)) => unreachable.push((host, Err(failure))),
            Err(failure) => failed.push((host, failure)),
        }
    }
    let failed = failed.iter().map(|(host, failure)| (host, failure));
    let failures = host_failures::of(failed, ResumedBy::SameCommand);
    match (failures, drift.is_empty()) {
        (None, true) => Ok(CheckedPlan { work, file, key, same, unreachable }),
        (None, false) => Err(ApplySavedPlanError::Drifted(drift)),
        (Some(failures), true) => Err(ApplySavedPlanError::Hosts(failures)),
        (Some(failures), false) => Err(ApplySavedPlanError::Drifted([drift, failures.errors()].concat())),
    }
}
