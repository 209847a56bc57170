//! Performing one change of membership, which was decided in [`super::membership`].

use super::client::{CallError, ClientError, EtcdAccess, NO_KEY, list};
use super::member::{Member, Membership};
use super::membership::MembershipChange;

/// Why a change was not made, or may not have been made.
#[derive(Debug, thiserror::Error)]
pub enum ActError {
    /// No voting member that can receive the request is known to be healthy.
    #[error("no healthy voting member of etcd is known")]
    NoHealthyVoter,
    /// The cluster is not ready for it; it may be later.
    #[error("etcd cannot do this yet: {message}")]
    NotYet {
        /// From etcd.
        message: String,
    },
    /// The change was made already, or the list of members is another one: observe again.
    #[error("the members of etcd changed meanwhile: {message}")]
    Overtaken {
        /// From etcd.
        message: String,
    },
    /// The members could not be listed.
    #[error(transparent)]
    Unlisted(#[from] ClientError),
    /// It is not known whether it was done: observe again.
    #[error("etcd did not confirm the change")]
    Unconfirmed { source: CallError },
}

/// etcd's messages (`api/v3rpc/rpctypes/error.go`) for refusals that are transient. It returns `unhealthy cluster`
/// for five seconds after any two members connected (`HealthInterval`), so after every promotion.
const NOT_YET: &[&str] = &[
    "etcdserver: too many learner members in cluster",
    "etcdserver: unhealthy cluster",
    "etcdserver: re-configuration failed due to not enough started members",
    "etcdserver: can only promote a learner member which is in sync with leader",
    "etcdserver: leader changed",
    "etcdserver: no leader",
    "etcdserver: not leader",
    "etcdserver: bad leader transferee",
    "etcdserver: request timed out, leader transfer took too long",
];

/// The same, for changes that another one overtook.
const OVERTAKEN: &[&str] = &[
    "etcdserver: member ID already exist",
    "etcdserver: Peer URLs already exists",
    "etcdserver: member not found",
    "etcdserver: can only promote a learner member",
];

impl ActError {
    /// There is no variant for a permanent refusal: what can never be done was refused before, by deciding. The
    /// caller observes and decides again, up to its own deadline.
    fn from_call(error: CallError) -> Self {
        let CallError::Failed(etcd_client::Error::GRpcStatus(status)) = &error else {
            return Self::Unconfirmed { source: error };
        };
        let message = status.message().to_owned();
        if NOT_YET.contains(&message.as_str()) {
            Self::NotYet { message }
        } else if OVERTAKEN.contains(&message.as_str()) {
            Self::Overtaken { message }
        } else {
            Self::Unconfirmed { source: error }
        }
    }
}

/// Makes one change through the leader, or through any healthy voter when the leader is not known.
///
/// A promotion may be committed after its caller gave up. So before a learner is removed, the same sequence of requests
/// commits an entry that changes nothing, behind every promotion that the leader has, and lists the members as they are
/// after it.
///
/// # Errors
/// After any but [`ActError::NotYet`] and [`ActError::NoHealthyVoter`] the change may have been made: observe again
/// before deciding again.
pub async fn perform(
    access: &EtcdAccess,
    observed: &Membership,
    change: &MembershipChange,
) -> Result<(), ActError> {
    let through = choose_endpoint(observed, change).ok_or(ActError::NoHealthyVoter)?;
    let urls: Vec<&String> = through.client_urls.iter().collect();
    let made = access.call(&urls, async |mut client| match change {
        MembershipChange::AddLearner { peer_url } => {
            let learner = etcd_client::MemberAddOptions::new().with_is_learner();
            client.member_add([peer_url], Some(learner)).await.map(|_| Ok(()))
        }
        MembershipChange::Promote { id } => client.member_promote(*id).await.map(|_| Ok(())),
        MembershipChange::Remove { .. }
        | MembershipChange::Evict { .. }
        | MembershipChange::Replace { .. }
        | MembershipChange::Retire { .. } => {
            let Some((id, learner_only)) = change.removes() else { return Ok(Ok(())) };
            client.delete(NO_KEY, None).await?;
            let votes = list(client.clone()).await?.voters().any(|voter| voter.id == id);
            if votes && learner_only {
                return Ok(Err(ActError::Overtaken { message: "it is a voter by now".to_owned() }));
            }
            client.member_remove(id).await.map(|_| Ok(()))
        }
    });
    made.await.map_err(ActError::from_call)?
}

/// Removes the learner at a peer URL, if there is one. A voter there stays.
///
/// # Errors
/// As [`perform`], and when the members cannot be observed.
pub async fn withdraw(access: &EtcdAccess, peer_url: &str) -> Result<bool, ActError> {
    let observed = access.observe().await?;
    let ours = |member: &&Member| member.is_learner && member.peer_urls.iter().any(|url| url == peer_url);
    let Some(learner) = observed.members.iter().find(ours) else { return Ok(false) };
    let change = MembershipChange::Remove { id: learner.id, why: String::new() };
    perform(access, &observed, &change).await.map(|()| true)
}

/// Lets another voter lead: the leader hands over once that voter has its whole log.
///
/// # Errors
/// As [`perform`].
pub async fn move_leader(access: &EtcdAccess, observed: &Membership, to: u64) -> Result<(), ActError> {
    let (leader, _) = observed.leader().ok_or(ActError::NoHealthyVoter)?;
    let urls: Vec<&String> = leader.client_urls.iter().collect();
    let moved = access.call(&urls, async |mut client| client.move_leader(to).await.map(drop));
    moved.await.map_err(ActError::from_call)
}

/// Not the member to be removed, which may stop before it has answered.
fn choose_endpoint<'a>(observed: &'a Membership, change: &MembershipChange) -> Option<&'a Member> {
    let removed = change.removes().map(|(id, _)| id);
    observed
        .voters()
        .filter(|voter| Some(voter.id) != removed && voter.status().is_some())
        .min_by_key(|voter| voter.status().is_some_and(|status| !status.leader))
}
