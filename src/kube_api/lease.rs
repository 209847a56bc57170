//! One change of etcd's membership at a time, whoever makes it and from wherever.
//!
//! # Guarantees
//! While [`MembershipLease::hold`] runs its work, the Lease is renewed; the work is dropped before anybody else can
//! have taken it.
//!
//! # Assumptions
//! The clocks of those who ask differ by much less than [`EXPIRY`].

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use kube::Client;
use kube::api::{Api, PostParams};
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::FIELD_MANAGER;
use super::client::ApiError;
use crate::engine::wait::{WaitError, WaitStatus, wait_for};

/// The Lease, in kube-system.
pub const NAME: &str = "metalform-etcd-membership";
const NAMESPACE: &str = "kube-system";
const OBJECT: &str = "lease/kube-system/metalform-etcd-membership";

/// After this long without a sign of life a holder has lost it. Whole seconds.
pub const EXPIRY: Duration = Duration::from_secs(30);

/// Between signs of life.
const HEARTBEAT: Duration = Duration::from_secs(8);

/// After this long without a confirmed sign of life a holder stops, before others may think it gone.
const GIVE_UP: Duration = Duration::from_secs(24);

/// Where the time comes from.
pub type Clock<'a> = &'a (dyn Fn() -> Timestamp + Send + Sync);

/// Why it is not ours.
#[derive(Debug, thiserror::Error)]
pub enum LeaseError {
    /// It did not become free in time.
    #[error(transparent)]
    Busy(#[from] WaitError),
    /// The API could not be told that we live, for too long.
    #[error("the lease of etcd's membership could not be renewed in time")]
    Expired {
        /// The last attempt.
        source: ApiError,
    },
    /// Somebody has it although we renewed it in time: clocks differ, or a person took it away.
    #[error("the lease of etcd's membership was taken by {who}")]
    Taken {
        /// Its holder now.
        who: String,
    },
}

/// Whose it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Take {
    /// Ours already: an earlier run's with the same identity, or our own.
    Ours,
    /// Nobody's, or of somebody who was not heard for its duration.
    Free,
    /// Somebody's.
    HeldBy {
        /// Its identity.
        who: String,
        /// Until it expires, if nothing is heard.
        left: Duration,
    },
}

/// Who may have the Lease. Pure.
pub fn take(lease: &LeaseSpec, me: &str, now: Timestamp) -> Take {
    let Some(holder) = lease.holder_identity.as_deref().filter(|holder| !holder.is_empty()) else {
        return Take::Free;
    };
    if holder == me {
        return Take::Ours;
    }
    let (Some(renewed), Some(seconds)) = (&lease.renew_time, lease.lease_duration_seconds) else {
        return Take::Free;
    };
    let expires = renewed.0.as_second().saturating_add(i64::from(seconds));
    match u64::try_from(expires.saturating_sub(now.as_second())) {
        Err(_) | Ok(0) => Take::Free,
        Ok(left) => Take::HeldBy { who: holder.to_owned(), left: Duration::from_secs(left) },
    }
}

/// What the Lease says when we have it.
fn claim(before: Option<&LeaseSpec>, me: &str, now: Timestamp) -> LeaseSpec {
    let ours = before.filter(|spec| spec.holder_identity.as_deref() == Some(me));
    let transitions = before.and_then(|spec| spec.lease_transitions).unwrap_or(0);
    LeaseSpec {
        holder_identity: Some(me.to_owned()),
        acquire_time: ours.and_then(|spec| spec.acquire_time.clone()).or(Some(MicroTime(now))),
        renew_time: Some(MicroTime(now)),
        lease_duration_seconds: i32::try_from(EXPIRY.as_secs()).ok(),
        lease_transitions: Some(transitions.saturating_add(i32::from(ours.is_none()))),
        ..LeaseSpec::default()
    }
}

/// The Lease while it is ours.
pub struct MembershipLease<'a> {
    api: Api<Lease>,
    me: String,
    clock: Clock<'a>,
}

impl<'a> MembershipLease<'a> {
    /// Takes it, when it is free or becomes free before the limit. `me` names one run on one host, so that a holder
    /// can be told from another: `bootstrap/4711`.
    ///
    /// # Errors
    /// [`LeaseError::Busy`] says who has it.
    pub async fn acquire(
        client: &Client,
        me: &str,
        clock: Clock<'a>,
        limit: Duration,
    ) -> Result<Self, LeaseError> {
        let lease = Self { api: Api::namespaced(client.clone(), NAMESPACE), me: me.to_owned(), clock };
        wait_for("the lease of etcd's membership", limit, || async {
            match lease.try_take().await {
                Ok(Take::HeldBy { who, left }) => WaitStatus::NotYet(format!(
                    "held by {who}, who was heard less than {} s ago",
                    (EXPIRY.saturating_sub(left)).as_secs() + 1
                )),
                Ok(Take::Ours | Take::Free) => WaitStatus::Holds(()),
                Err(error) => error.into(),
            }
        })
        .await?;
        Ok(lease)
    }

    /// Runs work to its end while the Lease is renewed. The work is dropped where it stands when the Lease is lost;
    /// what it did remains, and is observed by whoever comes next.
    ///
    /// # Errors
    /// When the Lease was lost before the work was done.
    pub async fn hold<T>(&self, work: impl Future<Output = T>) -> Result<T, LeaseError> {
        tokio::select! {
            done = work => Ok(done),
            lost = self.keep() => Err(lost),
        }
    }

    /// Gives it back. Should that fail, it expires by itself.
    ///
    /// # Errors
    /// When the API could not be told.
    pub async fn release(self) -> Result<(), ApiError> {
        let Some(mut lease) = self.read().await? else { return Ok(()) };
        let Some(spec) = lease.spec.as_mut().filter(|spec| spec.holder_identity.as_ref() == Some(&self.me))
        else {
            return Ok(());
        };
        spec.holder_identity = None;
        self.write(&lease).await
    }

    /// Renews until that is no longer possible.
    async fn keep(&self) -> LeaseError {
        let mut confirmed = Instant::now();
        // Signs of life must come at their times, whatever else is going on: not a wait for a condition.
        let mut beat = interval(HEARTBEAT);
        beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            beat.tick().await;
            let asked = Instant::now();
            let deadline = confirmed + GIVE_UP;
            let silent = || ApiError::silent("renew", OBJECT);
            match tokio::time::timeout_at(deadline, self.try_take()).await.unwrap_or_else(|_| Err(silent())) {
                Ok(Take::HeldBy { who, .. }) => return LeaseError::Taken { who },
                Ok(Take::Ours | Take::Free) => confirmed = asked,
                Err(source) if Instant::now() + HEARTBEAT >= deadline || !source.is_transient() => {
                    return LeaseError::Expired { source };
                }
                Err(_) => {}
            }
        }
    }

    /// Takes or renews it if that is possible; says whose it was. A race with somebody else is an error, to be tried
    /// again.
    async fn try_take(&self) -> Result<Take, ApiError> {
        let now = (self.clock)();
        let Some(mut lease) = self.read().await? else {
            let metadata = ObjectMeta { name: Some(NAME.to_owned()), ..ObjectMeta::default() };
            let lease = Lease { metadata, spec: Some(claim(None, &self.me, now)) };
            let created = self.api.create(&parameters(), &lease).await;
            return created.map(|_| Take::Free).map_err(|error| ApiError::new("create", OBJECT, error));
        };
        let spec = lease.spec.unwrap_or_default();
        let take = take(&spec, &self.me, now);
        if !matches!(take, Take::HeldBy { .. }) {
            lease.spec = Some(claim(Some(&spec), &self.me, now));
            self.write(&lease).await?;
        }
        Ok(take)
    }

    async fn read(&self) -> Result<Option<Lease>, ApiError> {
        self.api.get_opt(NAME).await.map_err(|error| ApiError::new("get", OBJECT, error))
    }

    /// Only if it is still what was read: its resourceVersion goes with it.
    async fn write(&self, lease: &Lease) -> Result<(), ApiError> {
        let written = self.api.replace(NAME, &parameters(), lease).await;
        written.map(drop).map_err(|error| ApiError::new("update", OBJECT, error))
    }
}

fn parameters() -> PostParams {
    PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(holder: Option<&str>, renewed: Option<i64>) -> LeaseSpec {
        LeaseSpec {
            holder_identity: holder.map(str::to_owned),
            renew_time: renewed.map(|second| MicroTime(Timestamp::from_second(second).unwrap())),
            lease_duration_seconds: Some(30),
            lease_transitions: Some(4),
            ..LeaseSpec::default()
        }
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn a_lease_is_its_holders_until_it_expires() {
        let held = |left| Take::HeldBy { who: "b/1".to_owned(), left: Duration::from_secs(left) };
        for (lease, now, expected) in [
            (LeaseSpec::default(), 0, Take::Free),
            (spec(None, Some(100)), 100, Take::Free),
            (spec(Some(""), Some(100)), 100, Take::Free),
            (spec(Some("a/1"), Some(100)), 101, Take::Ours),
            (spec(Some("a/1"), Some(100)), 900, Take::Ours),
            (spec(Some("b/1"), Some(100)), 100, held(30)),
            (spec(Some("b/1"), Some(100)), 129, held(1)),
            (spec(Some("b/1"), Some(100)), 130, Take::Free),
            (spec(Some("b/1"), Some(100)), 90, held(40)),
            (spec(Some("b/1"), None), 0, Take::Free),
        ] {
            assert_eq!(take(&lease, "a/1", at(now)), expected, "{lease:?} at {now}");
        }
    }

    #[test]
    fn a_claim_counts_changes_of_hands_and_a_renewal_does_not() {
        let taken = claim(Some(&spec(Some("b/1"), Some(100))), "a/1", at(200));
        assert_eq!((taken.lease_transitions, &taken.acquire_time), (Some(5), &Some(MicroTime(at(200)))));
        let renewed = claim(Some(&taken), "a/1", at(210));
        assert_eq!((renewed.lease_transitions, &renewed.acquire_time), (Some(5), &Some(MicroTime(at(200)))));
        assert_eq!(renewed.renew_time, Some(MicroTime(at(210))));
    }
}
