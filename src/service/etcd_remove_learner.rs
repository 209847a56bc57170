//! `etcd remove-learner`: removes a learner whose run is gone, without waiting until the next run does.

use std::time::Duration;

use jiff::Timestamp;

use super::command_error::{CommandError, ErrorClass};
use super::etcd_members::{self, EtcdMembersError};
use crate::engine::wait::{WaitError, WaitStatus, wait_for};
use crate::etcd::act;
use crate::etcd::client::EtcdAccess;
use crate::etcd::member::{Member, Membership};
use crate::etcd::membership::MembershipChange;
use crate::kube_api::client::{self, ApiError};
use crate::kube_api::lease::{HeldLease, LeaseAttempt, LeaseError, LeaseHolder, LeaseSubject};
use crate::model::error_chain::error_chain;
use crate::workspace::layout::Layout;

/// How long etcd may take.
const LIMIT: Duration = Duration::from_secs(30);

/// A member that was removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemovedLearner {
    /// Its name; its peer URL where it had not started.
    pub member: String,
    /// Its id.
    pub id: u64,
}

/// Why no learner was removed.
#[derive(Debug, thiserror::Error)]
pub enum EtcdRemoveLearnerError {
    /// The members cannot be observed.
    #[error(transparent)]
    Members(#[from] EtcdMembersError),
    /// There is none.
    #[error("etcd has no learner: every member votes")]
    NoLearner,
    /// A run changes the members now; the learner may be its own.
    #[error("the lease on etcd membership is {}", holder.describe(*now))]
    Held {
        /// The run.
        holder: LeaseHolder,
        /// When it was asked.
        now: Timestamp,
    },
    /// The lease cannot be taken or released.
    #[error("{}", error_chain(.0))]
    Api(ApiError),
    /// The lease was lost. The learner may have been removed.
    #[error(transparent)]
    Lease(#[from] LeaseError),
    /// etcd did not remove it in time.
    #[error(transparent)]
    Wait(#[from] WaitError),
}

impl CommandError for EtcdRemoveLearnerError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Members(error) => error.class(),
            Self::NoLearner | Self::Held { .. } => ErrorClass::Refused,
            Self::Api(_) | Self::Lease(_) => ErrorClass::Api,
            Self::Wait(_) => ErrorClass::Etcd,
        }
    }

    fn errors(&self) -> Vec<String> {
        vec![self.to_string()]
    }

    fn hints(&self) -> Vec<String> {
        match self {
            Self::Members(error) => error.hints(),
            Self::Held { .. } => vec![
                "`metalform operations list` shows what runs; the lease of a run that was killed is free 30 s after its last renewal"
                    .to_owned(),
            ],
            Self::NoLearner | Self::Api(_) | Self::Lease(_) | Self::Wait(_) => {
                vec!["`metalform etcd members` shows every member".to_owned()]
            }
        }
    }
}

/// Removes the learner under the lease on etcd's membership, so that no run is at work on it. Where it votes by the time
/// that the request arrives, it stays.
///
/// # Errors
/// When there is no learner, another run holds the lease, or etcd does not remove it.
pub async fn remove_learner(
    layout: &Layout,
    clock: fn() -> Timestamp,
) -> Result<RemovedLearner, EtcdRemoveLearnerError> {
    let access = etcd_members::all(layout).await?;
    learner(&access.observe().await.map_err(EtcdMembersError::Observe)?)?;
    let api =
        client::connect_without_retry(&layout.admin_conf()).await.map_err(EtcdRemoveLearnerError::Api)?;
    let me = format!("remove-learner/{}", std::process::id());
    let attempt = HeldLease::try_acquire(&api, LeaseSubject::EtcdMembership, &me, clock).await;
    let attempt = attempt.map_err(EtcdRemoveLearnerError::Api)?;
    let mut lease = match attempt {
        LeaseAttempt::Held(lease) => lease,
        LeaseAttempt::HeldBy(holder) => {
            return Err(EtcdRemoveLearnerError::Held { holder, now: clock() });
        }
    };
    let removed = lease.run(remove(&access)).await;
    if let Err(error) = lease.release().await {
        tracing::warn!("{}: the lease on etcd membership expires by itself", error_chain(&error));
    }
    removed?
}

/// As the list is under the lease: before it, the learner may have been promoted, and another one added. A request that
/// got no answer may have removed it, so the list decides.
async fn remove(access: &EtcdAccess) -> Result<RemovedLearner, EtcdRemoveLearnerError> {
    let observed = access.observe().await.map_err(EtcdMembersError::Observe)?;
    let learner = learner(&observed)?;
    let change = MembershipChange::Evict { id: learner.id, why: "an administrator removes it".to_owned() };
    wait_for("etcd to remove the learner", LIMIT, || async {
        let failed = match access.observe().await {
            Err(error) => error_chain(&error),
            Ok(seen) if seen.members.iter().all(|member| member.id != learner.id) => {
                return WaitStatus::Holds(());
            }
            Ok(seen) => match act::perform(access, &seen, &change).await {
                Ok(()) => return WaitStatus::Holds(()),
                Err(error) => error_chain(&error),
            },
        };
        WaitStatus::NotYet(failed)
    })
    .await?;
    Ok(RemovedLearner { member: learner.title().to_owned(), id: learner.id })
}

/// etcd allows one at most.
fn learner(observed: &Membership) -> Result<&Member, EtcdRemoveLearnerError> {
    observed.members.iter().find(|member| member.is_learner).ok_or(EtcdRemoveLearnerError::NoLearner)
}
