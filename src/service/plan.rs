//! `plan`: what applying states would change on hosts.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::command_context::CommandContext;
use super::command_error::{CommandError, CommandFailure, ErrorClass};
use super::fleet_options::FleetRun;
use super::fleet_work::HostResults;
use super::host_failures;
use super::plan_file::PlanFile;
use super::saved_file::SavedFileError;
use super::states::{Making, ObservedHost, StateWork, StatesError, StatesRequest};
use crate::engine::host::HostError;
use crate::engine::plan::Plan;
use crate::engine::saved_plan::SavedHost;
use crate::engine::saved_plan::key::{Key, SALT};
use crate::engine::saved_plan::planned::Digested;
use crate::model::event::HostOutcome;
use crate::model::name::HostName;

/// States to compare hosts with.
#[derive(Debug, Clone)]
pub struct PlanRequest {
    /// The states and hosts.
    pub states: StatesRequest,
    /// For a plan that is to be saved: the directory that relative paths of the request refer to.
    pub save_from: Option<PathBuf>,
}

/// What would change.
pub struct PlanReport {
    /// The plan of each host.
    pub hosts: HostResults<Plan>,
    /// The plan to save; `None` where none was requested, or no host could be planned.
    pub file: Option<PlanFile>,
}

/// Why there is no plan.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// States or hosts cannot be read.
    #[error(transparent)]
    States(#[from] StatesError),
    /// The plan cannot be saved.
    #[error(transparent)]
    File(#[from] SavedFileError),
}

impl CommandError for PlanError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::States(error) => error.class(),
            Self::File(error) => error.class(),
        }
    }

    fn errors(&self) -> Vec<String> {
        match self {
            Self::States(error) => error.errors(),
            Self::File(error) => error.errors(),
        }
    }

    fn hints(&self) -> Vec<String> {
        match self {
            Self::States(error) => error.hints(),
            Self::File(error) => error.hints(),
        }
    }
}

impl PlanReport {
    /// Whether any host would be changed.
    pub fn has_changes(&self) -> bool {
        self.hosts.iter().any(|(_, plan)| plan.as_ref().is_ok_and(|plan| !plan.works().is_empty()))
    }

    /// The hosts without a plan; `None` when every host has one.
    pub fn failures(&self) -> Option<CommandFailure> {
        host_failures::among(&self.hosts)
    }
}

/// Compares hosts with their states. Changes nothing.
///
/// # Errors
/// When states or hosts cannot be read. Failures of hosts are in the report.
pub async fn plan(request: &PlanRequest, context: &CommandContext<'_>) -> Result<PlanReport, PlanError> {
    let work = request.states.read(context).await?;
    let salt: [u8; SALT] = rand::random();
    let key = Key::new(&salt);
    let run = FleetRun::read_only(work.limit(), context);
    let mut saved = BTreeMap::new();
    let mut hosts = Vec::new();
    for (host, result) in planned(&work, &run, &key, request.save_from.is_some()).await {
        let plan = result.map(|(plan, saved_host)| {
            saved.extend(saved_host.map(|saved_host| (host.clone(), saved_host)));
            plan
        });
        hosts.push((host, plan));
    }
    let file = match &request.save_from {
        Some(directory) if !saved.is_empty() => {
            let states = request.states.resolved(directory);
            Some(PlanFile::new(salt, &states, &work, saved)?)
        }
        _ => None,
    };
    Ok(PlanReport { hosts, file })
}

/// Compares every host with its states; with `save`, also digests what would be done. A plan that refuses something
/// is an error of its host.
pub(super) async fn planned(
    work: &StateWork,
    run: &FleetRun<'_>,
    key: &Key,
    save: bool,
) -> HostResults<(Plan, Option<SavedHost>)> {
    let make = |_: &HostName, compiled| Digested::new(compiled, key, |compiled| work.desired(compiled));
    let on_one = async |observed: ObservedHost<'_, Digested>| {
        let plan = observed.looked.plan();
        let refusals = plan.refusals();
        if !refusals.is_empty() {
            return Err(HostError::Refused { refusals });
        }
        let facts = observed.looked.facts.as_ref().filter(|_| save);
        let digests = &observed.looked.desired.digests;
        let saved = facts.map(|facts| SavedHost::of(&plan, digests, &facts.machine_id, key));
        Ok((plan, saved))
    };
    work.for_each(run, Making { with_facts: save, make }, on_one, |_| (HostOutcome::Unchanged, 0)).await
}
