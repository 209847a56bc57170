//! The first half of `apply --plan FILE`: whether the plan is still what would be done, everywhere.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::path::Path;

use super::conduct::Conduct;
use super::failure::{Exit, Failure};
use super::host_trouble::{self, HostTrouble, Outcomes};
use super::plan_file::PlanFile;
use super::states::StateWork;
use super::{Global, plan};
use crate::engine::cancel::Cancel;
use crate::engine::host::Convergence;
use crate::engine::saved_plan::key::Key;
use crate::engine::share::{Share, UPLOADS};
use crate::model::name::HostName;

/// A plan that may be applied.
pub struct CheckedPlan {
    /// Its states and hosts.
    pub work: StateWork,
    /// The plan.
    pub file: PlanFile,
    /// Of its digests.
    pub key: Key,
    /// The hosts that are as they were.
    pub same: BTreeSet<HostName>,
    /// Those that could not be reached now: set aside.
    pub unreachable: Outcomes<Convergence>,
}

/// Plans again, as the plan's own command line says, and compares.
///
/// # Errors
/// When anything has moved: a line for each host and resource that has. Nothing is done on any host then.
pub async fn checked(
    path: &Path,
    global: &Global,
    limit: NonZeroUsize,
    stop: &Cancel,
) -> Result<CheckedPlan, Failure> {
    let file = PlanFile::read(path)?;
    let key = file.key()?;
    let (command, planned_global) = file.command()?;
    let mut work = command.states.read(&Global { tree: planned_global.tree, ..global.clone() }).await?;
    work.limit = limit;
    let others = file.other_hosts(&work.hosts());
    if !others.is_empty() {
        return Err(refused(others));
    }
    let looking = Conduct::looking(limit);
    let only = Some(file.hosts.keys().cloned().collect());
    let conduct = Conduct { share: Share::new(stop.clone(), UPLOADS), only, ..looking };
    let mut moved = Vec::new();
    let (mut same, mut unreachable, mut broken) = (BTreeSet::new(), Vec::new(), Vec::new());
    for (host, outcome) in plan::planned(&work, &conduct, &key, true).await {
        match outcome {
            Ok((_, now)) => {
                let differences = file.hosts.get(&host).zip(now).map(|(planned, now)| planned.drift(&now));
                match differences.unwrap_or_default()[..] {
                    [] => drop(same.insert(host)),
                    ref all => moved.extend(all.iter().map(|one| format!("{host}: {one}"))),
                }
            }
            Err(trouble @ HostTrouble::Unreachable(_)) => unreachable.push((host, Err(trouble))),
            Err(trouble) => broken.push((host, trouble)),
        }
    }
    match (host_trouble::failure(broken.iter().map(|(host, trouble)| (host, trouble))), moved.is_empty()) {
        (None, true) => Ok(CheckedPlan { work, file, key, same, unreachable }),
        (None, false) => Err(refused(moved)),
        (Some(failure), true) => Err(failure.hint(UNTOUCHED)),
        (Some(failure), false) => Err(refused([moved, failure.errors].concat())),
    }
}

const UNTOUCHED: &str = "nothing was changed on any host";

fn refused(errors: Vec<String>) -> Failure {
    let hints = vec![format!("{UNTOUCHED}; look at a new plan")];
    Failure { exit: Exit::Refused, errors, hints }
}
