//! `etcd defragment`: returns the free space of etcd's databases, one member at a time.

use std::time::Duration;

use super::command_error::{CommandError, ErrorClass};
use super::etcd_members::{self, EtcdMembersError};
use crate::engine::wait::{WaitError, WaitStatus, wait_for};
use crate::etcd::act::ActError;
use crate::etcd::client::EtcdAccess;
use crate::etcd::defragment::{self, DefragmentMemory, DefragmentObstacle, DefragmentStep};
use crate::etcd::member::{AlarmKind, Membership};
use crate::model::error_chain::error_chain;
use crate::workspace::layout::Layout;

/// How long one member may take. A database of 8 GiB, etcd's largest recommended, takes a minute or two on a slow disk.
const LIMIT: Duration = Duration::from_secs(600);
/// How long a member may take to be healthy again afterwards, or to be the leader.
const SETTLED: Duration = Duration::from_secs(60);

/// What was done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DefragmentEvent {
    /// Old revisions were forgotten.
    Compacted {
        /// The oldest that is left.
        revision: i64,
    },
    /// Another member leads.
    LeaderMoved {
        /// Its name.
        to: String,
    },
    /// A member was defragmented.
    Defragmented {
        /// Its name.
        member: String,
        /// The size of its database before, bytes.
        before: u64,
        /// And after.
        after: u64,
    },
    /// The alarm NOSPACE of a member is cleared.
    AlarmCleared {
        /// Its name.
        member: String,
    },
}

/// Why it did not complete. What was done is done; the same command again does all members.
#[derive(Debug, thiserror::Error)]
pub enum EtcdDefragmentError {
    /// The members cannot be observed.
    #[error(transparent)]
    Members(#[from] EtcdMembersError),
    /// A member must not be defragmented now.
    #[error(transparent)]
    Obstacle(#[from] DefragmentObstacle),
    /// A request failed.
    #[error("{}", error_chain(.0))]
    Act(ActError),
    /// A member does not come back.
    #[error(transparent)]
    Wait(#[from] WaitError),
}

impl CommandError for EtcdDefragmentError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Members(error) => error.class(),
            Self::Obstacle(_) => ErrorClass::Refused,
            Self::Act(_) | Self::Wait(_) => ErrorClass::Etcd,
        }
    }

    fn errors(&self) -> Vec<String> {
        vec![self.to_string()]
    }

    fn hints(&self) -> Vec<String> {
        match self {
            Self::Members(error) => error.hints(),
            Self::Obstacle(_) | Self::Act(_) | Self::Wait(_) => {
                vec!["`metalform etcd health` shows every member".to_owned()]
            }
        }
    }
}

/// Defragments every voting member while all others are healthy. Where a database is full it is compacted before, and
/// accepts writes afterwards. Dropped, it leaves the member that has begun to complete.
///
/// # Errors
/// At the first member that is not healthy.
pub async fn defragment(
    layout: &Layout,
    mut report: impl FnMut(DefragmentEvent),
) -> Result<(), EtcdDefragmentError> {
    let access = etcd_members::all(layout).await?;
    let patient = EtcdAccess { deadline: LIMIT, ..access.clone() };
    let mut memory = DefragmentMemory::default();
    let mut observed = access.observe().await.map_err(EtcdMembersError::Observe)?;
    loop {
        let step = defragment::next(&observed, &memory)?;
        if step == DefragmentStep::Done {
            return Ok(());
        }
        defragment::perform(&patient, &observed, &step).await.map_err(EtcdDefragmentError::Act)?;
        let before = observed;
        observed = settled(&access, &step).await?;
        match step {
            DefragmentStep::Compact { revision } => {
                memory.compacted = true;
                report(DefragmentEvent::Compacted { revision });
            }
            DefragmentStep::MoveLeader { to } => {
                report(DefragmentEvent::LeaderMoved { to: title(&observed, to) });
            }
            DefragmentStep::Defragment { id } => {
                memory.done.insert(id);
                let (member, before, after) = (title(&observed, id), size(&before, id), size(&observed, id));
                report(DefragmentEvent::Defragmented { member, before, after });
            }
            DefragmentStep::ClearAlarm { member } => {
                report(DefragmentEvent::AlarmCleared { member: title(&observed, member) });
            }
            DefragmentStep::Done => {}
        }
    }
}

/// The members once all of them are healthy again and the step shows.
async fn settled(access: &EtcdAccess, step: &DefragmentStep) -> Result<Membership, WaitError> {
    wait_for("every voting member of etcd to be healthy again", SETTLED, || async {
        let seen = match access.observe().await {
            Ok(seen) => seen,
            Err(error) => return WaitStatus::NotYet(error_chain(&error)),
        };
        if let Some(voter) = seen.voters().find(|voter| voter.status().is_none()) {
            let complaint = voter.health.complaint().unwrap_or_default();
            return WaitStatus::NotYet(format!("{}: {complaint}", voter.title()));
        }
        let leader = seen.leader().map(|(leader, _)| leader.id);
        match step {
            DefragmentStep::MoveLeader { to } if leader != Some(*to) => {
                WaitStatus::NotYet(format!("{} does not lead", title(&seen, *to)))
            }
            DefragmentStep::ClearAlarm { member } if raised(&seen, *member) => {
                WaitStatus::NotYet(format!("{} has the alarm NOSPACE", title(&seen, *member)))
            }
            _ if leader.is_none() => WaitStatus::NotYet("no member leads".to_owned()),
            _ => WaitStatus::Holds(seen),
        }
    })
    .await
}

fn raised(observed: &Membership, member: u64) -> bool {
    observed.alarms.iter().any(|alarm| alarm.member == member && alarm.kind == AlarmKind::NoSpace)
}

fn title(observed: &Membership, id: u64) -> String {
    let member = observed.members.iter().find(|member| member.id == id);
    member.map_or_else(|| format!("{id:x}"), |member| member.title().to_owned())
}

fn size(observed: &Membership, id: u64) -> u64 {
    let member = observed.members.iter().find(|member| member.id == id);
    member.and_then(|member| member.status()).map_or(0, |status| status.db_size)
}
