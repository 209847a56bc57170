//! A member goes on as the only one, with `--force-new-cluster`: it keeps its id and what it has stored, and forgets the
//! others. These still know each other.

use std::collections::BTreeSet;

use metalform::etcd::quorum::quorum;

use super::Etcd;

/// What was left behind.
pub(super) struct Former {
    voters: usize,
    others: BTreeSet<u64>,
}

impl Etcd {
    /// The last entry of the log of a member.
    pub fn stored(&self, id: u64) -> Option<u64> {
        self.members.iter().find(|member| member.id == id).map(|member| member.stored)
    }

    /// How far the cluster has come.
    pub fn committed(&self) -> u64 {
        self.committed
    }

    /// The member of this id is the only one from now on, and has yet to start. Anything but true: there is none.
    pub fn continue_alone(&mut self, id: u64) -> bool {
        let voters = self.voters().count();
        let (ours, others): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.members).into_iter().partition(|member| member.id == id);
        self.members = ours;
        let Some(member) = self.members.first_mut() else { return false };
        (member.running, member.learner, member.connected) = (false, false, None);
        self.committed = member.stored;
        self.former.push(Former { voters, others: others.iter().map(|member| member.id).collect() });
        (self.late, self.leader, self.elected) = (Vec::new(), None, None);
        self.full = self.full.filter(|full| *full == id);
        self.lists.clear();
        self.record_list();
        true
    }

    /// Whether members that were left behind have a quorum among themselves. `running`: members whose etcd runs, by their
    /// side of the network.
    pub fn former_quorum(&self, running: &[(usize, u64)]) -> bool {
        self.former.iter().any(|Former { voters, others }| {
            let votes = |side: usize| {
                running.iter().filter(|(there, id)| *there == side && others.contains(id)).count()
            };
            running.iter().any(|(side, _)| votes(*side) >= quorum(*voters))
        })
    }
}
