//! What is shown of a recorded operation, and what the cluster has of it.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;

use super::operation_record::OperationStatus;
use super::recorded_phase::RecordedPhase;

/// One operation, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperationSummary {
    /// `20261123T021530Z-4711`.
    pub id: String,
    /// Its beginning.
    pub started: Timestamp,
    /// Its end; `None` while it runs, and where it was killed.
    pub ended: Option<Timestamp>,
    /// Who ran it.
    pub user: String,
    /// `metalform deploy-node node-1`.
    pub command: String,
    /// How far it is.
    pub status: OperationStatus,
    /// Its exit code, once it has ended.
    pub exit: Option<u8>,
    /// What it was going to do, in lines; none where it ended before that was decided.
    pub plan: Vec<String>,
    /// By host, in the order in which they began.
    pub phases: Vec<RecordedPhase>,
    /// One line for each thing that failed.
    pub errors: Vec<String>,
    /// Instructions, in this order.
    pub hints: Vec<String>,
    /// Lines.
    pub log: Vec<String>,
}

impl OperationSummary {
    /// How long it took; `None` before its end.
    pub fn took(&self) -> Option<Duration> {
        self.ended?.duration_since(self.started).try_into().ok()
    }
}

/// Those of this machine and those of the cluster, the oldest first; where both have one, this machine's.
pub fn merged(local: Vec<OperationSummary>, cluster: Vec<OperationSummary>) -> Vec<OperationSummary> {
    let all = cluster.into_iter().chain(local).map(|one| (one.id.clone(), one));
    all.collect::<BTreeMap<_, _>>().into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(id: &str, status: OperationStatus) -> OperationSummary {
        OperationSummary {
            id: id.to_owned(),
            started: Timestamp::UNIX_EPOCH,
            ended: None,
            user: "root".to_owned(),
            command: "metalform expand".to_owned(),
            status,
            exit: None,
            plan: Vec::new(),
            phases: Vec::new(),
            errors: Vec::new(),
            hints: Vec::new(),
            log: Vec::new(),
        }
    }

    #[test]
    fn the_record_of_this_machine_is_newer_than_the_clusters_copy() {
        use OperationStatus::{Killed, Running, Succeeded};
        let local = vec![summary("b", Killed), summary("d", Succeeded)];
        let cluster = vec![summary("a", Succeeded), summary("b", Running), summary("c", Running)];
        let all = merged(local, cluster);
        let all: Vec<_> = all.iter().map(|one| (one.id.as_str(), one.status)).collect();
        assert_eq!(all, [("a", Succeeded), ("b", Killed), ("c", Running), ("d", Succeeded)]);
    }
}
