//! Doing one change of membership. What to do was decided in [`super::membership`].

use super::client::{Access, CallError};
use super::member::{Member, Membership};
use super::membership::Change;

/// Why a change was not made, or is not known to have been.
#[derive(Debug, thiserror::Error)]
pub enum ActError {
    /// No voter that could be asked is known to be healthy.
    #[error("no healthy voting member of etcd is known")]
    NobodyToAsk,
    /// The cluster is not ready for it; it may be later.
    #[error("etcd cannot do this yet: {said}")]
    NotYet {
        /// What etcd said.
        said: String,
    },
    /// Somebody else, or we before, did it already, or the list has changed: observe again.
    #[error("the members of etcd have changed meanwhile: {said}")]
    Overtaken {
        /// What etcd said.
        said: String,
    },
    /// It is not known whether it was done: observe again.
    #[error("etcd did not confirm the change")]
    Unconfirmed {
        /// What came back.
        source: CallError,
    },
}

/// What etcd says (`api/v3rpc/rpctypes/error.go`), for refusals that pass by themselves. `unhealthy cluster` is
/// said for five seconds after any two members began to talk (`HealthInterval`), so after every promotion.
const NOT_YET: &[&str] = &[
    "etcdserver: too many learner members in cluster",
    "etcdserver: unhealthy cluster",
    "etcdserver: re-configuration failed due to not enough started members",
    "etcdserver: can only promote a learner member which is in sync with leader",
    "etcdserver: leader changed",
    "etcdserver: no leader",
    "etcdserver: not leader",
];

/// The same, for a list of members that is not what it was.
const OVERTAKEN: &[&str] = &[
    "etcdserver: member ID already exist",
    "etcdserver: Peer URLs already exists",
    "etcdserver: member not found",
    "etcdserver: can only promote a learner member",
];

impl ActError {
    /// There is no variant for a refusal that lasts: what can never be done was refused before, by deciding. A
    /// caller observes and decides again, at a pace and up to a deadline of its own (`engine::wait`).
    fn from_call(error: CallError) -> Self {
        let CallError::Failed(etcd_client::Error::GRpcStatus(status)) = &error else {
            return Self::Unconfirmed { source: error };
        };
        let said = status.message().to_owned();
        if NOT_YET.contains(&said.as_str()) {
            Self::NotYet { said }
        } else if OVERTAKEN.contains(&said.as_str()) {
            Self::Overtaken { said }
        } else {
            Self::Unconfirmed { source: error }
        }
    }
}

/// Makes one change through the leader, or any healthy voter when the leader is not known.
///
/// # Errors
/// None of them says that nothing happened, except [`ActError::NotYet`] and [`ActError::NobodyToAsk`]: observe
/// again before deciding again.
pub async fn perform(access: &Access, observed: &Membership, change: &Change) -> Result<(), ActError> {
    let through = spokesman(observed, change).ok_or(ActError::NobodyToAsk)?;
    let urls: Vec<&String> = through.client_urls.iter().collect();
    let asked = access.ask(&urls, async |mut client| match change {
        Change::AddLearner { peer_url } => {
            let learner = etcd_client::MemberAddOptions::new().with_is_learner();
            client.member_add([peer_url], Some(learner)).await.map(drop)
        }
        Change::Promote { id } => client.member_promote(*id).await.map(drop),
        Change::Remove { id, .. } => client.member_remove(*id).await.map(drop),
    });
    asked.await.map_err(ActError::from_call)
}

/// Who is asked: not the member that is to go, as it may stop before it has answered.
fn spokesman<'a>(observed: &'a Membership, change: &Change) -> Option<&'a Member> {
    let going = match change {
        Change::Remove { id, .. } => Some(*id),
        Change::AddLearner { .. } | Change::Promote { .. } => None,
    };
    observed
        .voters()
        .filter(|voter| Some(voter.id) != going && voter.status().is_some())
        .min_by_key(|voter| voter.status().is_some_and(|status| !status.leader))
}
