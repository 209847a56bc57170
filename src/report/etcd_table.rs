//! Members as rows, for `etcd members` and `etcd health`.

use serde::Serialize;

use crate::etcd::member::{Health, Membership};
use crate::service::etcd_defragment::DefragmentEvent;
use crate::service::etcd_remove_learner::RemovedLearner;
use crate::service::etcd_snapshot::SavedSnapshot;

/// The columns, in order.
pub const HEADER: [&str; 10] =
    ["NAME", "ID", "STATUS", "LEADER", "REVISION", "RAFT-INDEX", "DB-SIZE", "LATENCY", "HEALTH", "ERRORS"];

/// One member. What it did not report is absent, not zero.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MemberRow {
    /// Empty until it has started.
    pub name: String,
    /// Hexadecimal, as etcdctl prints it.
    pub id: String,
    pub status: Standing,
    pub leader: Option<bool>,
    /// Of its key-value store.
    pub revision: Option<i64>,
    /// Last entry of its raft log.
    pub raft_index: Option<u64>,
    /// Bytes.
    pub db_size: Option<u64>,
    /// Microseconds.
    pub latency_micros: Option<u64>,
    /// A member that did not answer is unknown, not unhealthy.
    pub health: HealthWord,
    /// Why it is not healthy, and its alarms.
    pub errors: Vec<String>,
}

/// Whether a member votes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Standing {
    Voter,
    /// Without a vote yet.
    Learner,
    /// Added and never started; as a voter it counts for quorum all the same.
    Unstarted,
}

/// Health, as printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum HealthWord {
    Healthy,
    Unhealthy,
    /// It did not answer.
    Unknown,
}

/// One row for each member, in the order of the list.
pub fn rows(observed: &Membership) -> Vec<MemberRow> {
    observed
        .members
        .iter()
        .map(|member| {
            let status = member.status();
            let alarms = observed.alarms.iter().filter(|alarm| alarm.member == member.id);
            MemberRow {
                name: member.name.clone(),
                id: format!("{:x}", member.id),
                status: match (member.name.is_empty(), member.is_learner) {
                    (true, _) => Standing::Unstarted,
                    (false, true) => Standing::Learner,
                    (false, false) => Standing::Voter,
                },
                leader: status.map(|status| status.leader),
                revision: status.map(|status| status.revision),
                raft_index: status.map(|status| status.raft_index),
                db_size: status.map(|status| status.db_size),
                latency_micros: status.map(|s| u64::try_from(s.latency.as_micros()).unwrap_or(u64::MAX)),
                health: match member.health {
                    Health::Healthy(_) => HealthWord::Healthy,
                    Health::Unhealthy { .. } => HealthWord::Unhealthy,
                    Health::Unknown { .. } => HealthWord::Unknown,
                },
                errors: member
                    .health
                    .complaint()
                    .into_iter()
                    .chain(alarms.map(|alarm| alarm.kind.name()))
                    .map(str::to_owned)
                    .collect(),
            }
        })
        .collect()
}

impl MemberRow {
    /// The cells under [`HEADER`]; `-` for unknown values.
    pub fn cells(&self) -> [String; 10] {
        fn or_dash<T>(value: Option<T>, show: impl FnOnce(T) -> String) -> String {
            value.map_or_else(|| "-".to_owned(), show)
        }
        [
            or_dash(Some(&self.name).filter(|name| !name.is_empty()), String::clone),
            self.id.clone(),
            self.status.word().to_owned(),
            or_dash(self.leader, |leads| if leads { "yes" } else { "no" }.to_owned()),
            or_dash(self.revision, |revision| revision.to_string()),
            or_dash(self.raft_index, |index| index.to_string()),
            or_dash(self.db_size, mebibytes),
            or_dash(self.latency_micros, |micros| format!("{:.1} ms", micros as f64 / 1000.0)),
            self.health.word().to_owned(),
            self.errors.join("; "),
        ]
    }
}

pub(super) fn mebibytes(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}

/// What `etcd snapshot` saved.
pub fn saved(snapshot: &SavedSnapshot) -> String {
    let SavedSnapshot { file, size, member, revision } = snapshot;
    let revision = revision.map(|revision| format!(", revision {revision} or later")).unwrap_or_default();
    format!("{}: {} from {member}{revision}\n", file.display(), mebibytes(*size))
}

/// One line for the member that `etcd remove-learner` removed.
pub fn learner_removed(removed: &RemovedLearner) -> String {
    format!("removed learner {} ({:x})\n", removed.member, removed.id)
}

/// One line for what `etcd defragment` did.
pub fn defragmented(event: &DefragmentEvent) -> String {
    match event {
        DefragmentEvent::Compacted { revision } => format!("compacted to revision {revision}\n"),
        DefragmentEvent::LeaderMoved { to } => format!("{to} leads\n"),
        DefragmentEvent::Defragmented { member, before, after } => {
            format!("{member}: {} -> {}\n", mebibytes(*before), mebibytes(*after))
        }
        DefragmentEvent::AlarmCleared { member } => format!("{member}: cleared the alarm NOSPACE\n"),
    }
}

impl Standing {
    fn word(self) -> &'static str {
        match self {
            Self::Voter => "voter",
            Self::Learner => "learner",
            Self::Unstarted => "unstarted",
        }
    }
}

impl HealthWord {
    fn word(self) -> &'static str {
        match self {
            Self::Healthy => "healthy",
            Self::Unhealthy => "unhealthy",
            Self::Unknown => "unknown",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::etcd::member::{Alarm, AlarmKind};
    use crate::etcd::simulation::{down, leading, learner, membership, unstarted, voter};

    #[test]
    fn every_member_is_a_row_and_unknown_values_are_not_zero() {
        let mut observed = membership(vec![
            unstarted(learner(4, "d")),
            leading(voter(1, "a")),
            down(voter(2, "b")),
            learner(3, "c"),
        ]);
        observed.alarms.push(Alarm { member: 1, kind: AlarmKind::NoSpace });
        let lines: Vec<String> =
            rows(&observed).iter().map(|row| row.cells().join(" | ").trim_end().to_owned()).collect();
        insta::assert_snapshot!(lines.join("\n"), @"
        - | 4 | unstarted | - | - | - | - | - | unknown | has not started
        a | 1 | voter | yes | 8000 | 10000 | 20.0 MiB | 1.5 ms | healthy | NOSPACE
        b | 2 | voter | - | - | - | - | - | unknown | no answer
        c | 3 | learner | no | 8000 | 10000 | 20.0 MiB | 1.5 ms | healthy |
        ");
        insta::assert_json_snapshot!(rows(&observed)[2], @r#"
        {
          "name": "b",
          "id": "2",
          "status": "voter",
          "leader": null,
          "revision": null,
          "raftIndex": null,
          "dbSize": null,
          "latencyMicros": null,
          "health": "unknown",
          "errors": [
            "no answer"
          ]
        }
        "#);
    }
}
