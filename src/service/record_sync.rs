//! Makes the cluster's records of operations those of this machine: of operations that have ended, and of those whose
//! process was killed.

use std::collections::{BTreeMap, BTreeSet};

use kube::Client;

use crate::kube_api::client::ApiError;
use crate::kube_api::operation_records;
use crate::model::operation_record::{OperationRecord, OperationStatus};
use crate::model::operation_summary::OperationSummary;
use crate::workspace::layout::Layout;
use crate::workspace::operation_log;

/// Operations that the cluster keeps.
pub const KEPT: usize = 50;

/// What is shown of a record.
pub type Summarise = fn(&OperationRecord) -> OperationSummary;

/// What is missing in the cluster, by names of ConfigMaps.
#[derive(Debug, Default, PartialEq, Eq)]
struct Differences {
    /// More than are kept, the oldest first.
    surplus: Vec<String>,
    /// Of operations that run, or ran, on this machine: the newest first.
    unfinished: Vec<String>,
    /// Of operations whose end is recorded nowhere: this machine has no record of them.
    lost: Vec<String>,
}

/// Operations run on this machine alone: what it has no record of does not run.
fn differences(local: &BTreeSet<String>, cluster: &BTreeMap<String, OperationStatus>) -> Differences {
    let all: BTreeSet<&String> = local.iter().chain(cluster.keys()).collect();
    let oldest = all.len().saturating_sub(KEPT);
    let mut found = Differences::default();
    for (place, name) in all.into_iter().enumerate() {
        let known = cluster.get(name);
        let open = known.is_none_or(|status| *status == OperationStatus::Running);
        if place < oldest {
            found.surplus.extend(known.map(|_| name.clone()));
        } else if open && local.contains(name) {
            found.unfinished.push(name.clone());
        } else if open {
            found.lost.push(name.clone());
        }
    }
    found.unfinished.reverse();
    found
}

/// Writes what is missing. Done twice, it is the same as once.
///
/// # Errors
/// At the first request that is not answered or refused.
pub(super) async fn sync(client: &Client, layout: &Layout, summarise: Summarise) -> Result<(), ApiError> {
    // What cannot be read on this machine is not known to it.
    let ids = operation_log::ids(layout).unwrap_or_default();
    let local: BTreeMap<String, String> =
        ids.into_iter().map(|id| (operation_records::name(&id), id)).collect();
    let cluster = operation_records::statuses(client).await?;
    let differences = differences(&local.keys().cloned().collect(), &cluster);
    for name in &differences.surplus {
        operation_records::delete(client, name).await?;
    }
    for name in &differences.unfinished {
        let record = local.get(name).map(|id| operation_log::read(layout, id));
        let Some(Ok(Some(record))) = record else { continue };
        let operation = summarise(&record);
        if cluster.get(name) != Some(&operation.status) {
            operation_records::put(client, &operation).await?;
        }
    }
    for name in &differences.lost {
        if let Some(operation) = operation_records::get(client, name).await? {
            let killed = OperationSummary { status: OperationStatus::Killed, ..operation };
            operation_records::put(client, &killed).await?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use OperationStatus::{Failed, Killed, Running, Succeeded};

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn what_has_not_ended_in_the_cluster_is_compared() {
        let local = names(&["b", "c", "d", "e"]).into_iter().collect();
        let cluster = [("a", Running), ("b", Running), ("c", Succeeded), ("d", Killed), ("f", Failed)];
        let cluster = cluster.map(|(name, status)| (name.to_owned(), status)).into();
        let expected =
            Differences { surplus: Vec::new(), unfinished: names(&["e", "b"]), lost: names(&["a"]) };
        assert_eq!(differences(&local, &cluster), expected);
    }

    #[test]
    fn the_newest_are_kept_and_what_is_older_is_not_written_again() {
        let name = |number: usize| format!("{number:03}");
        let local: BTreeSet<String> = (20..80).map(name).collect();
        let cluster = (10..60).map(|number| (name(number), Succeeded)).collect();
        let found = differences(&local, &cluster);
        assert_eq!(found.surplus, (10..30).map(name).collect::<Vec<_>>());
        assert_eq!(found.unfinished, (60..80).rev().map(name).collect::<Vec<_>>());
        assert_eq!(found.lost, Vec::<String>::new());
    }
}
