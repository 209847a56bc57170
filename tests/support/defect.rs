//! A site that does one thing wrong, to see that the model finds it.

use metalform::etcd::member::{Health, Membership, Status};

/// What is done wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Defect {
    /// Every voter is reported as healthy.
    GateDropped,
    /// The same where a node leaves.
    RemovalGateDropped,
    /// A learner of another node is not in the list.
    LearnerOverlooked,
    /// Whatever uses the API server of a node that leaves, every proxy is reported as it should be.
    ProxiesLeft,
    /// The API server of every other node is reported as ready.
    ServersAssumed,
    /// The lease is granted whoever holds it.
    LeaseNotChecked,
    /// A learner that is removed stays.
    LearnerNotEvicted,
    /// The list of members is read without quorum.
    StaleList,
    /// It is not read again once the run has the lease.
    ListFromBefore,
    /// A recovery leaves one of the other members its data.
    MemberLeft,
    /// A recovery compares members the wrong way round.
    OneBehind,
    /// A recovery makes its member the only one before it stops the others.
    OthersLater,
    /// A recovery goes on although the quorum has come back.
    QuorumBack,
    /// A recovery goes no further where etcd has its quorum, and no API server uses it.
    NotReconnected,
}

impl Defect {
    /// Whether only recoveries have it.
    pub fn is_of_recovery(self) -> bool {
        use Defect::{MemberLeft, NotReconnected, OneBehind, OthersLater, QuorumBack};
        matches!(self, MemberLeft | OneBehind | OthersLater | QuorumBack | NotReconnected)
    }
}

/// Every voter as healthy as the healthiest.
pub fn without_complaints(mut observed: Membership) -> Membership {
    let follower = |status: &Status| Status { leader: false, ..status.clone() };
    let healthy = observed.leader().map(|(_, status)| Health::Healthy(follower(status)));
    for voter in observed.members.iter_mut().filter(|member| !member.is_learner) {
        if let (Some(healthy), Some(_)) = (&healthy, voter.health.complaint()) {
            voter.health = healthy.clone();
        }
    }
    observed
}

/// No learner but the one at this peer URL.
pub fn without_learners(mut observed: Membership, own: &str) -> Membership {
    let is_own = |urls: &[String]| urls.iter().any(|url| url == own);
    observed.members.retain(|member| !member.is_learner || is_own(&member.peer_urls));
    observed
}
