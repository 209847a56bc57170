//! Which data etcd continues with after its quorum was lost, and what is lost with the others. Pure.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::client::{CallError, EtcdAccess};

/// A host that has, or had, a member of etcd.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberOnDisk<N> {
    /// Its node.
    pub node: N,
    /// What is on its disk.
    pub state: DiskState,
}

/// What a host has of its member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DiskState {
    /// The host does not answer: the member may run, or come back.
    Unreachable {
        /// Why.
        reason: String,
    },
    /// SSH does not reach the host, and its member answers: it cannot be stopped.
    Running {
        /// Why SSH does not reach it.
        reason: String,
    },
    /// It was looked at.
    Reached {
        /// The static pod of etcd: without it data has no etcd.
        pod: Option<EtcdPod>,
        /// Of a member that has started once.
        data: Option<MemberCopy>,
    },
}

/// The static pod of a member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EtcdPod {
    /// Its image, by the name under which containerd has it.
    pub image: String,
    /// False where containerd does not have it.
    pub loaded: bool,
}

/// The data of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemberCopy {
    /// When the member last wrote to its log.
    pub last_write: Timestamp,
    /// What the member answers; `None` where it does not.
    pub position: Option<LogPosition>,
    /// Whether it votes and has a leader, as it says on its own host.
    pub has_leader: bool,
}

impl DiskState {
    /// What was found on a host, or why SSH does not reach it; with what its member answers, if it does.
    pub fn found(inspected: Result<Self, String>, position: Option<LogPosition>) -> Self {
        match (inspected, position) {
            (Ok(Self::Reached { pod, data }), position) => {
                Self::Reached { pod, data: data.map(|data| MemberCopy { position, ..data }) }
            }
            (Ok(state), _) => state,
            (Err(reason), Some(_)) => Self::Running { reason },
            (Err(reason), None) => Self::Unreachable { reason },
        }
    }
}

impl<N> MemberOnDisk<N> {
    /// Its data, as far as it is known.
    pub fn data(&self) -> Option<&MemberCopy> {
        match &self.state {
            DiskState::Reached { data, .. } => data.as_ref(),
            DiskState::Unreachable { .. } | DiskState::Running { .. } => None,
        }
    }

    /// The static pod of its etcd.
    pub fn pod(&self) -> Option<&EtcdPod> {
        match &self.state {
            DiskState::Reached { pod, .. } => pod.as_ref(),
            DiskState::Unreachable { .. } | DiskState::Running { .. } => None,
        }
    }

    fn position(&self) -> Option<LogPosition> {
        self.data().and_then(|data| data.position)
    }
}

/// How far a member has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct LogPosition {
    /// Whether it is a voter: it is ahead of every learner, of whose data alone etcd may not be able to make a cluster.
    pub votes: bool,
    /// The last entry of the log that it knows to be committed.
    pub index: u64,
    /// Of its key-value store.
    pub revision: i64,
    /// The id of its cluster, where it is known. A snapshot that is restored begins a new one.
    pub cluster: Option<u64>,
}

/// What etcd continues with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecoverySource {
    /// The data of the survivor.
    Member,
    /// A snapshot.
    Snapshot,
}

/// What is to be done, for a person to decide on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecoveryPlan<N> {
    /// What etcd continues with.
    pub source: RecoverySource,
    /// The member that etcd continues with, alone.
    pub survivor: MemberOnDisk<N>,
    /// Members whose data is set aside; they join again behind it.
    pub set_aside: Vec<MemberOnDisk<N>>,
    /// Hosts that must be off, and stay off until they are removed or replaced.
    pub unreachable: Vec<MemberOnDisk<N>>,
}

/// Why there is nothing to recover from.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RecoveryObstacle {
    /// Members that run and cannot be stopped: with the one that continues there would be two clusters.
    #[error("{}", running(.hosts))]
    Running {
        /// Their nodes, and why SSH does not reach each.
        hosts: Vec<(String, String)>,
    },
    /// etcd has its quorum, though it did not answer.
    #[error("etcd has its quorum: the voting members of {} have a leader", .members.join(", "))]
    HasLeader {
        /// Their nodes.
        members: Vec<String>,
    },
    /// No host that answers has data.
    #[error("no host that can be reached has the data of an etcd member")]
    NoData,
    /// More than one has, and not all of them answer.
    #[error("which member has the newest data is not known: {} do not answer", .silent.join(", "))]
    Undecided {
        /// Their nodes.
        silent: Vec<String>,
    },
    /// The logs of different clusters cannot be compared.
    #[error("the members that can be reached are of different clusters: {}", .members.join(", "))]
    Clusters {
        /// Each with its cluster.
        members: Vec<String>,
    },
    /// The only data is of a member that has never voted.
    #[error("the only data that can be reached is of {0}, which is a learner: etcd may not start with it")]
    Learner(String),
    /// The node that was named has no data.
    #[error("{0} has no data of an etcd member that can be reached")]
    NoSuchMember(String),
    /// The node that was named is not an etcd node, or its host does not answer.
    #[error("{0} is no etcd node that can be reached")]
    NotReached(String),
    /// Its data would have no etcd.
    #[error("{0} has no static pod of etcd")]
    NoPod(String),
    /// Its etcd cannot be started.
    #[error("{node} does not have the image of its static pod of etcd, {image}")]
    NoImage {
        /// The node.
        node: String,
        /// The image.
        image: String,
    },
}

fn running(hosts: &[(String, String)]) -> String {
    let line = |(node, reason): &(String, String)| {
        format!("{node} does not answer over SSH ({reason}), and its etcd member runs")
    };
    hosts.iter().map(line).collect::<Vec<_>>().join("; ")
}

/// With the data of the member that was named; else of the one that has come furthest.
///
/// # Errors
/// Where that is not known, or there is none; where a member runs that cannot be stopped; and where etcd has its quorum.
pub fn plan<N: Clone + ToString>(
    members: &[MemberOnDisk<N>],
    named: Option<&str>,
) -> Result<RecoveryPlan<N>, RecoveryObstacle> {
    all_can_be_stopped(members)?;
    quorum_is_lost(members)?;
    let mut present = members.iter().filter(|member| member.data().is_some());
    let survivor = match named {
        Some(name) => present
            .find(|member| member.node.to_string() == name)
            .ok_or_else(|| RecoveryObstacle::NoSuchMember(name.to_owned()))?,
        None => furthest(present.collect())?,
    };
    around(members, survivor, RecoverySource::Member)
}

/// With a snapshot on the host of this node, whatever data it has.
///
/// # Errors
/// When its host cannot be reached, and where a member runs that cannot be stopped.
pub fn plan_restore<N: Clone + ToString>(
    members: &[MemberOnDisk<N>],
    node: &str,
) -> Result<RecoveryPlan<N>, RecoveryObstacle> {
    all_can_be_stopped(members)?;
    let reached = |member: &&MemberOnDisk<N>| matches!(member.state, DiskState::Reached { .. });
    let target = members.iter().filter(reached).find(|member| member.node.to_string() == node);
    let target = target.ok_or_else(|| RecoveryObstacle::NotReached(node.to_owned()))?;
    around(members, target, RecoverySource::Snapshot)
}

/// A request that fails does not show it: it may be the certificate, the clock, a firewall or a slow disk. But a voter has no
/// leader then: one that does not reach a majority gives up within two election timeouts (`CheckQuorum` of etcd's raft), and a
/// follower that does not hear of it stands for election. A learner does not, and keeps the leader it had.
///
/// # Errors
/// Where a voter has a leader.
pub fn quorum_is_lost<N: ToString>(members: &[MemberOnDisk<N>]) -> Result<(), RecoveryObstacle> {
    let led = members.iter().filter(|member| member.data().is_some_and(|data| data.has_leader));
    let members: Vec<String> = led.map(|member| member.node.to_string()).collect();
    if members.is_empty() { Ok(()) } else { Err(RecoveryObstacle::HasLeader { members }) }
}

fn all_can_be_stopped<N: ToString>(members: &[MemberOnDisk<N>]) -> Result<(), RecoveryObstacle> {
    let running = members.iter().filter_map(|member| match &member.state {
        DiskState::Running { reason } => Some((member.node.to_string(), reason.clone())),
        DiskState::Unreachable { .. } | DiskState::Reached { .. } => None,
    });
    let hosts: Vec<(String, String)> = running.collect();
    if hosts.is_empty() { Ok(()) } else { Err(RecoveryObstacle::Running { hosts }) }
}

fn furthest<N: Clone + ToString>(
    present: Vec<&MemberOnDisk<N>>,
) -> Result<&MemberOnDisk<N>, RecoveryObstacle> {
    if let [only] = present[..] {
        return voter(only);
    }
    let silent = |member: &&&MemberOnDisk<N>| member.position().is_none();
    let silent: Vec<String> = present.iter().filter(silent).map(|member| member.node.to_string()).collect();
    if !silent.is_empty() {
        return Err(RecoveryObstacle::Undecided { silent });
    }
    of_one_cluster(&present)?;
    // Of several the first.
    let furthest = present.into_iter().rev().max_by_key(|member| member.position());
    voter(furthest.ok_or(RecoveryObstacle::NoData)?)
}

/// Members from before a restore may have come further in their log than those after it.
fn of_one_cluster<N: ToString>(present: &[&MemberOnDisk<N>]) -> Result<(), RecoveryObstacle> {
    let positions = present.iter().filter_map(|member| member.position());
    let clusters: BTreeSet<u64> = positions.filter_map(|position| position.cluster).collect();
    if clusters.len() <= 1 {
        return Ok(());
    }
    let members = present.iter().filter_map(|member| {
        let LogPosition { revision, cluster, .. } = member.position()?;
        let cluster = cluster.map_or_else(|| "unknown".to_owned(), |id| format!("{id:x}"));
        let node = member.node.to_string();
        Some(format!("{node} (cluster {cluster}, revision {revision})"))
    });
    Err(RecoveryObstacle::Clusters { members: members.collect() })
}

/// One that does not answer may be.
fn voter<N: ToString>(member: &MemberOnDisk<N>) -> Result<&MemberOnDisk<N>, RecoveryObstacle> {
    match member.position() {
        Some(LogPosition { votes: false, .. }) => Err(RecoveryObstacle::Learner(member.node.to_string())),
        _ => Ok(member),
    }
}

fn around<N: Clone + ToString>(
    members: &[MemberOnDisk<N>],
    survivor: &MemberOnDisk<N>,
    source: RecoverySource,
) -> Result<RecoveryPlan<N>, RecoveryObstacle> {
    let node = survivor.node.to_string();
    match survivor.pod() {
        None => return Err(RecoveryObstacle::NoPod(node)),
        Some(EtcdPod { image, loaded: false }) => {
            return Err(RecoveryObstacle::NoImage { node, image: image.clone() });
        }
        Some(EtcdPod { loaded: true, .. }) => {}
    }
    let others = members.iter().filter(|member| member.node.to_string() != node);
    let (unreachable, set_aside) =
        others.cloned().partition(|member| matches!(member.state, DiskState::Unreachable { .. }));
    Ok(RecoveryPlan { source, survivor: survivor.clone(), set_aside, unreachable })
}

/// How far the member at this client URL has come. It answers without quorum.
///
/// # Errors
/// When it does not answer.
pub async fn log_position(access: &EtcdAccess, url: &String) -> Result<LogPosition, CallError> {
    access
        .call(&[url], async |mut client| {
            let status = client.status().await?;
            let revision = status.header().map_or(0, |header| header.revision());
            let cluster = status.header().map(|header| header.cluster_id());
            Ok(LogPosition { votes: !status.is_learner(), index: status.raft_index(), revision, cluster })
        })
        .await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unreachable(node: &str) -> MemberOnDisk<String> {
        MemberOnDisk {
            node: node.to_owned(),
            state: DiskState::Unreachable { reason: "no route".to_owned() },
        }
    }

    fn pod(loaded: bool) -> Option<EtcdPod> {
        Some(EtcdPod { image: "registry.k8s.io/etcd:1".to_owned(), loaded })
    }

    fn lost(node: &str) -> MemberOnDisk<String> {
        MemberOnDisk { node: node.to_owned(), state: DiskState::Reached { pod: pod(true), data: None } }
    }

    fn present(node: &str, index: Option<u64>) -> MemberOnDisk<String> {
        at(node, index.map(|index| LogPosition { votes: true, index, revision: 7, cluster: None }))
    }

    fn learner(node: &str, index: u64) -> MemberOnDisk<String> {
        at(node, Some(LogPosition { votes: false, index, revision: 7, cluster: None }))
    }

    fn at(node: &str, position: Option<LogPosition>) -> MemberOnDisk<String> {
        let data = Some(MemberCopy { last_write: Timestamp::UNIX_EPOCH, position, has_leader: false });
        MemberOnDisk { node: node.to_owned(), state: DiskState::Reached { pod: pod(true), data } }
    }

    fn names(members: &[MemberOnDisk<String>]) -> Vec<&str> {
        members.iter().map(|member| member.node.as_str()).collect()
    }

    fn survivor(members: &[MemberOnDisk<String>], named: Option<&str>) -> Result<String, RecoveryObstacle> {
        plan(members, named).map(|plan| plan.survivor.node)
    }

    #[test]
    fn the_member_that_has_come_furthest_survives() {
        let two = [present("a", Some(4)), present("b", Some(9)), lost("c")];
        assert_eq!(survivor(&two, None), Ok("b".to_owned()));
        assert_eq!(survivor(&two, Some("a")), Ok("a".to_owned()));
        assert_eq!(survivor(&[present("a", Some(9)), present("b", Some(9))], None), Ok("a".to_owned()));
        // The only data there is need not answer.
        assert_eq!(survivor(&[lost("a"), present("b", None), unreachable("c")], None), Ok("b".to_owned()));
    }

    #[test]
    fn a_voter_with_a_leader_shows_that_quorum_is_not_lost() {
        let led = |node: &str| {
            let data = MemberCopy { last_write: Timestamp::UNIX_EPOCH, position: None, has_leader: true };
            MemberOnDisk {
                node: node.to_owned(),
                state: DiskState::Reached { pod: pod(true), data: Some(data) },
            }
        };
        let members = [led("a"), present("b", None), unreachable("c")];
        let expected = RecoveryObstacle::HasLeader { members: vec!["a".to_owned()] };
        assert_eq!(survivor(&members, None), Err(expected.clone()));
        assert_eq!(survivor(&members, Some("b")), Err(expected));
        // A snapshot is restored while etcd works, too.
        assert!(plan_restore(&members, "a").is_ok());
    }

    #[test]
    fn members_of_different_clusters_are_not_compared() {
        let of = |node, index, cluster| {
            at(node, Some(LogPosition { votes: true, index, revision: 7, cluster: Some(cluster) }))
        };
        let restored = [of("a", 4, 0x2b), of("b", 9, 0x1a), lost("c")];
        let clusters = RecoveryObstacle::Clusters {
            members: vec!["a (cluster 2b, revision 7)".to_owned(), "b (cluster 1a, revision 7)".to_owned()],
        };
        assert_eq!(survivor(&restored, None), Err(clusters));
        assert_eq!(survivor(&restored, Some("a")), Ok("a".to_owned()));
        assert_eq!(survivor(&[of("a", 4, 0x2b), of("b", 9, 0x2b)], None), Ok("b".to_owned()));
        assert_eq!(survivor(&[of("a", 4, 0x2b), present("b", Some(9))], None), Ok("b".to_owned()));
    }

    #[test]
    fn a_learner_is_no_survivor_by_itself() {
        let joining = [learner("a", 9), present("b", Some(9)), lost("c")];
        assert_eq!(survivor(&joining, None), Ok("b".to_owned()));
        for alone in [vec![learner("a", 9), lost("b")], vec![learner("a", 9), learner("b", 4), lost("c")]] {
            assert_eq!(survivor(&alone, None), Err(RecoveryObstacle::Learner("a".to_owned())));
            assert_eq!(survivor(&alone, Some("a")), Ok("a".to_owned()));
        }
    }

    #[test]
    fn what_is_not_known_is_not_guessed() {
        let silent = [present("a", Some(4)), present("b", None)];
        assert_eq!(
            survivor(&silent, None),
            Err(RecoveryObstacle::Undecided { silent: vec!["b".to_owned()] })
        );
        assert_eq!(survivor(&silent, Some("b")), Ok("b".to_owned()));
        assert_eq!(survivor(&[lost("a"), unreachable("b")], None), Err(RecoveryObstacle::NoData));
        assert_eq!(survivor(&silent, Some("c")), Err(RecoveryObstacle::NoSuchMember("c".to_owned())));
        assert_eq!(survivor(&[lost("a")], Some("a")), Err(RecoveryObstacle::NoSuchMember("a".to_owned())));
        let DiskState::Reached { data, .. } = present("a", None).state else { unreachable!() };
        let bare = [MemberOnDisk { node: "a".to_owned(), state: DiskState::Reached { pod: None, data } }];
        assert_eq!(survivor(&bare, None), Err(RecoveryObstacle::NoPod("a".to_owned())));
    }

    #[test]
    fn etcd_does_not_continue_where_its_image_is_missing() {
        let state = DiskState::Reached { pod: pod(false), data: None };
        let members = [present("a", None), MemberOnDisk { node: "b".to_owned(), state }];
        let image = "registry.k8s.io/etcd:1".to_owned();
        let missing = RecoveryObstacle::NoImage { node: "b".to_owned(), image };
        assert_eq!(plan_restore(&members, "b"), Err(missing));
        assert_eq!(names(&plan_restore(&members, "a").unwrap().set_aside), ["b"]);
    }

    #[test]
    fn a_member_that_answers_is_not_taken_to_be_off() {
        let position = Some(LogPosition { votes: true, index: 4, revision: 7, cluster: None });
        let found = DiskState::found;
        let no_ssh = || Err("no route".to_owned());
        assert_eq!(found(no_ssh(), None), unreachable("a").state);
        assert_eq!(found(Ok(present("a", None).state), position), present("a", Some(4)).state);
        assert_eq!(found(Ok(lost("a").state), position), lost("a").state);
        let state = found(no_ssh(), position);
        let members = [present("a", Some(4)), MemberOnDisk { node: "b".to_owned(), state }];
        let hosts = vec![("b".to_owned(), "no route".to_owned())];
        let obstacle = RecoveryObstacle::Running { hosts };
        assert_eq!(obstacle.to_string(), "b does not answer over SSH (no route), and its etcd member runs");
        assert_eq!(plan(&members, Some("a")), Err(obstacle.clone()));
        assert_eq!(plan_restore(&members, "a"), Err(obstacle));
    }

    #[test]
    fn all_others_are_set_aside_or_must_be_off() {
        let members = [unreachable("a"), present("b", Some(1)), lost("c"), present("d", Some(2))];
        let plan = plan(&members, None).unwrap();
        assert_eq!(plan.survivor.node, "d");
        assert_eq!(names(&plan.set_aside), ["b", "c"]);
        assert_eq!(names(&plan.unreachable), ["a"]);
        let restored = plan_restore(&members, "c").unwrap();
        assert_eq!(restored.survivor.node, "c");
        assert_eq!(names(&restored.set_aside), ["b", "d"]);
        assert_eq!(plan_restore(&members, "a"), Err(RecoveryObstacle::NotReached("a".to_owned())));
    }
}
