//! A copy of etcd's database, streamed by one member.

use std::time::Duration;

use sha2::{Digest, Sha256};
use tokio::time::timeout;

use super::client::{CallError, EtcdAccess};
use super::database_file::{self, DamagedDatabase};
use super::member::{Member, Membership};

/// How long a member may send nothing.
const STALLED: Duration = Duration::from_secs(30);
/// What the member appends: the SHA-256 of everything before (etcd, `server/etcdserver/api/v3rpc/maintenance.go`).
const HASH: usize = 32;
/// The database before it is whole sectors (etcd, `etcdutl/snapshot`).
const SECTOR: u64 = 512;

/// The member to take a snapshot of: a healthy voter with the highest revision, and of several one that does not lead,
/// which has the least to do. Pure.
pub fn source(observed: &Membership) -> Option<&Member> {
    let healthy = observed.voters().filter_map(|voter| Some((voter, voter.status()?)));
    healthy.max_by_key(|(_, status)| (status.revision, !status.leader)).map(|(voter, _)| voter)
}

/// Why a snapshot is not whole.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DamagedSnapshot {
    /// Its size shows that the hash is missing, or part of the database.
    #[error("{0} bytes are no database with its hash")]
    Size(u64),
    /// The content is not what the member sent.
    #[error("its SHA-256 is {found}, and the member computed {expected}")]
    Hash {
        /// Of what was received.
        found: String,
        /// As the member sent it.
        expected: String,
    },
    /// What the member sent is not a database that can be opened.
    #[error("it cannot be opened: {0}")]
    Database(#[from] DamagedDatabase),
}

/// Why no snapshot was taken.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// The member did not answer, or the connection broke.
    #[error(transparent)]
    Call(#[from] CallError),
    /// What arrived is not whole.
    #[error("the snapshot is damaged: {0}")]
    Damaged(#[from] DamagedSnapshot),
    /// It could not be kept.
    #[error(transparent)]
    Kept(#[from] std::io::Error),
}

/// Checks a snapshot while it passes.
#[derive(Debug, Default)]
pub struct SnapshotCheck {
    hash: Sha256,
    size: u64,
    /// The last bytes that arrived, which may be the hash.
    tail: Vec<u8>,
    /// The first bytes, which [`database_file::check`] needs.
    head: Vec<u8>,
}

impl SnapshotCheck {
    /// The next part.
    pub fn put(&mut self, part: &[u8]) {
        self.size += part.len() as u64;
        let missing = database_file::HEAD - self.head.len();
        self.head.extend_from_slice(&part[..missing.min(part.len())]);
        self.tail.extend_from_slice(part);
        let content = self.tail.len().saturating_sub(HASH);
        self.hash.update(&self.tail[..content]);
        self.tail.drain(..content);
    }

    /// The number of bytes, hash included.
    ///
    /// # Errors
    /// When they are not a database that can be opened, with its hash.
    pub fn finish(self) -> Result<u64, DamagedSnapshot> {
        if self.size <= HASH as u64 || self.size % SECTOR != HASH as u64 {
            return Err(DamagedSnapshot::Size(self.size));
        }
        let found = self.hash.finalize();
        if found[..] != self.tail[..] {
            return Err(DamagedSnapshot::Hash {
                found: hex::encode(found),
                expected: hex::encode(self.tail),
            });
        }
        database_file::check(&self.head, self.size - HASH as u64)?;
        Ok(self.size)
    }
}

/// Streams a snapshot of the member at these client URLs to `keep`, and returns its size in bytes.
///
/// The member answers with or without quorum: its database is what it has applied.
///
/// # Errors
/// What `keep` has then is not a snapshot.
pub async fn stream(
    access: &EtcdAccess,
    urls: &[&String],
    mut keep: impl FnMut(&[u8]) -> std::io::Result<()>,
) -> Result<u64, SnapshotError> {
    let mut parts = access.call(urls, async |mut client| client.snapshot().await).await?;
    let mut check = SnapshotCheck::default();
    loop {
        let part = timeout(STALLED, parts.message()).await.map_err(|_| CallError::Silent(STALLED))?;
        let Some(part) = part.map_err(CallError::Failed)? else { break };
        check.put(part.blob());
        keep(part.blob())?;
    }
    Ok(check.finish()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::etcd::database_file::example::database;
    use crate::etcd::member::Health;
    use crate::etcd::simulation::{down, leading, learner, membership, voter};

    fn behind(mut member: Member) -> Member {
        if let Health::Healthy(status) = &mut member.health {
            status.revision -= 1;
        }
        member
    }

    #[test]
    fn the_newest_voter_is_the_source_and_rather_not_the_leader() {
        let of = |members: Vec<Member>| source(&membership(members)).map(|member| member.name.clone());
        assert_eq!(of(vec![leading(voter(1, "a")), voter(2, "b")]), Some("b".to_owned()));
        assert_eq!(of(vec![leading(voter(1, "a")), behind(voter(2, "b"))]), Some("a".to_owned()));
        assert_eq!(of(vec![leading(voter(1, "a")), down(voter(2, "b"))]), Some("a".to_owned()));
        assert_eq!(of(vec![learner(1, "a"), down(voter(2, "b"))]), None);
    }

    fn checked(content: &[u8], part: usize) -> Result<u64, DamagedSnapshot> {
        let mut check = SnapshotCheck::default();
        content.chunks(part).for_each(|part| check.put(part));
        check.finish()
    }

    #[test]
    fn only_what_the_member_sent_is_whole() {
        let signed = |mut database: Vec<u8>| {
            database.extend(Sha256::digest(&database));
            database
        };
        let whole = signed(database(40));
        let size = whole.len();
        for part in [1, 31, 32, 33, 512, 5000, size] {
            assert_eq!(checked(&whole, part), Ok(size as u64));
        }
        for cut in [0, 1, 32, size - 33, size - 32, size - 1] {
            assert_eq!(checked(&whole[..cut], 512), Err(DamagedSnapshot::Size(cut as u64)), "{cut}");
        }
        for flipped in [0, size - 33, size - 32, size - 1] {
            let mut damaged = whole.clone();
            damaged[flipped] ^= 1;
            assert!(matches!(checked(&damaged, 512), Err(DamagedSnapshot::Hash { .. })), "{flipped}");
        }
        // A member with a damaged disk computes the hash of what it reads.
        let no_database = signed(vec![7; 2048]);
        assert!(matches!(checked(&no_database, 512), Err(DamagedSnapshot::Database(_))));
    }
}
