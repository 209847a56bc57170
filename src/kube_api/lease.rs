//! Leases: etcd's membership is changed by one process at a time, and one process runs the machine controllers.
//!
//! # Guarantees
//! - Nothing here waits for a Lease: an attempt takes it, or returns its holder.
//! - A request ([`request`]) takes nothing: its holder is told, and decides ([`HeldLease::requested`]).
//! - While a [`HeldLease`] exists it is renewed. Work given to [`HeldLease::run`] is dropped [`GIVE_UP`] after the last
//!   confirmed renewal at the latest, before another process can take the Lease ([`EXPIRY`] after it); what the dropped
//!   work sent may still arrive until then.
//!
//! # Assumptions
//! Clocks of processes differ by less than [`EXPIRY`] - [`GIVE_UP`], and no process is suspended for that long
//! while it holds the Lease.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use kube::Client;
use kube::api::{Api, PostParams};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout_at};

use super::FIELD_MANAGER;
use super::client::ApiError;
use crate::model::api_contract::LEASE_REQUEST;

const NAMESPACE: &str = "kube-system";

/// What a Lease is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaseSubject {
    /// The members of etcd.
    EtcdMembership,
    /// The controllers of Machines, and their work on hosts.
    MachineControllers,
}

impl LeaseSubject {
    /// The name of the Lease, in kube-system.
    pub fn lease_name(self) -> &'static str {
        match self {
            Self::EtcdMembership => "metalform-etcd-membership",
            Self::MachineControllers => "metalform-machine-controller",
        }
    }

    fn object(self) -> String {
        format!("lease/{NAMESPACE}/{}", self.lease_name())
    }
}

impl fmt::Display for LeaseSubject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::EtcdMembership => "etcd membership",
            Self::MachineControllers => "the machine controllers",
        })
    }
}

/// A holder that did not renew for this long has lost it. Whole seconds.
pub const EXPIRY: Duration = Duration::from_secs(30);
/// Between renewals.
const HEARTBEAT: Duration = Duration::from_secs(8);
/// Without a confirmed renewal for this long a holder drops its work.
pub const GIVE_UP: Duration = Duration::from_secs(24);
/// How long a request is valid. Whoever still wants the Lease repeats it.
const REQUEST: SignedDuration = SignedDuration::from_secs(20);
/// Attempts to release, when a renewal in progress conflicts.
const RELEASES: usize = 3;

/// Source of the present time.
pub type Clock = fn() -> Timestamp;

/// Why a Lease that was held is lost.
#[derive(Debug, Clone, thiserror::Error)]
pub enum LeaseError {
    /// It was not renewed in time.
    #[error("lost the lease on {subject}: not renewed in time")]
    Expired {
        /// What it is on.
        subject: LeaseSubject,
        /// Of the last attempt.
        source: Arc<ApiError>,
    },
    /// Another process has it although it was renewed in time: clocks differ, or it was edited.
    #[error("lost the lease on {subject}: taken by {by}")]
    Taken {
        /// What it is on.
        subject: LeaseSubject,
        /// Identity of the holder.
        by: String,
    },
    /// The task that renews it ended.
    #[error("lost the lease on {subject}: its renewal ended")]
    RenewalEnded {
        /// What it is on.
        subject: LeaseSubject,
    },
}

/// A process that has the Lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseHolder {
    /// Its identity.
    pub name: String,
    /// Its last renewal.
    pub renewed: Timestamp,
    /// When the Lease becomes free unless it is renewed.
    pub expires: Timestamp,
}

impl LeaseHolder {
    /// `held by bootstrap/4711/node-2, renewed 3 s ago`.
    pub fn describe(&self, now: Timestamp) -> impl fmt::Display + use<> {
        let age = now.as_second().saturating_sub(self.renewed.as_second()).max(0);
        format!("held by {}, renewed {age} s ago", self.name)
    }
}

/// Whose the Lease is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeaseState {
    /// Not held, released or expired.
    Free,
    /// Held under the own identity, by this process or an earlier run with it.
    Ours,
    /// Held by another process.
    HeldBy(LeaseHolder),
}

/// The result of one attempt.
pub enum LeaseAttempt {
    /// It is taken, and renewed from now on.
    Held(HeldLease),
    /// Another process has it.
    HeldBy(LeaseHolder),
}

/// The state of a Lease, by its content. Pure.
pub fn state_of(lease: &LeaseSpec, me: &str, now: Timestamp) -> LeaseState {
    let Some(holder) = lease.holder_identity.as_deref().filter(|holder| !holder.is_empty()) else {
        return LeaseState::Free;
    };
    if holder == me {
        return LeaseState::Ours;
    }
    let (Some(renewed), Some(seconds)) = (&lease.renew_time, lease.lease_duration_seconds) else {
        return LeaseState::Free;
    };
    let renewed = renewed.0;
    let expires = renewed.as_second().saturating_add(i64::from(seconds));
    if expires <= now.as_second() {
        return LeaseState::Free;
    }
    let expires = Timestamp::from_second(expires).unwrap_or(Timestamp::MAX);
    LeaseState::HeldBy(LeaseHolder { name: holder.to_owned(), renewed, expires })
}

/// The content of the Lease while `me` holds it.
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

/// Whether another process than `me` wants the Lease, by its annotation `IDENTITY TIME`. Pure.
fn is_requested(lease: &ObjectMeta, me: &str, now: Timestamp) -> bool {
    let request = lease.annotations.as_ref().and_then(|annotations| annotations.get(LEASE_REQUEST));
    let Some((by, at)) = request.and_then(|request| request.rsplit_once(' ')) else { return false };
    let recent = |at: Timestamp| now.duration_since(at).abs() <= REQUEST;
    by != me && at.parse().is_ok_and(recent)
}

/// Tells the holder of the Lease that `me` wants it. Nothing where there is no Lease.
///
/// # Errors
/// [`ApiError::Conflict`] after a race with another process; any error of the API.
pub async fn request(
    client: &Client,
    subject: LeaseSubject,
    me: &str,
    now: Timestamp,
) -> Result<(), ApiError> {
    let api = LeaseApi::new(client, subject);
    let Some(mut lease) = api.read().await? else { return Ok(()) };
    let annotations = lease.metadata.annotations.get_or_insert_default();
    annotations.insert(LEASE_REQUEST.to_owned(), format!("{me} {now}"));
    api.write(&lease).await
}

/// Looks at the Lease. Changes nothing.
///
/// # Errors
/// When the API does not answer or refuses.
pub async fn state(
    client: &Client,
    subject: LeaseSubject,
    me: &str,
    now: Timestamp,
) -> Result<LeaseState, ApiError> {
    let lease = LeaseApi::new(client, subject).read().await?;
    Ok(lease.map_or(LeaseState::Free, |lease| state_of(&lease.spec.unwrap_or_default(), me, now)))
}

/// The Lease while it is held. Dropping it ends the renewal; the Lease then expires.
pub struct HeldLease {
    api: LeaseApi,
    me: String,
    lost: watch::Receiver<Option<LeaseError>>,
    requested: watch::Receiver<bool>,
    renewal: JoinHandle<()>,
    releasing: bool,
}

impl HeldLease {
    /// Tries once to take it. `me` identifies one run on one host: `bootstrap/4711/node-2`.
    ///
    /// # Errors
    /// [`ApiError::Conflict`] after a race with another process; any error of the API.
    pub async fn try_acquire(
        client: &Client,
        subject: LeaseSubject,
        me: &str,
        clock: Clock,
    ) -> Result<LeaseAttempt, ApiError> {
        let pace = Pace { heartbeat: HEARTBEAT, give_up: GIVE_UP };
        Self::try_acquire_paced(LeaseApi::new(client, subject), me, clock, pace).await
    }

    async fn try_acquire_paced(
        api: LeaseApi,
        me: &str,
        clock: Clock,
        pace: Pace,
    ) -> Result<LeaseAttempt, ApiError> {
        let sent = Instant::now();
        if let Attempt { before: LeaseState::HeldBy(holder), .. } = api.take(me, clock()).await? {
            return Ok(LeaseAttempt::HeldBy(holder));
        }
        let (losing, lost) = watch::channel(None);
        let (asking, requested) = watch::channel(false);
        let renewal = tokio::spawn({
            let (api, me) = (api.clone(), me.to_owned());
            async move {
                let error = api.renew(&me, (clock, pace), sent, &asking).await;
                // There is no receiver only when the Lease was dropped.
                let _ = losing.send(Some(error));
            }
        });
        Ok(LeaseAttempt::Held(Self { api, me: me.to_owned(), lost, requested, renewal, releasing: false }))
    }

    /// Completes when the Lease is lost, and not before.
    pub fn lost(&self) -> impl Future<Output = LeaseError> + Send + use<> {
        let (mut lost, subject) = (self.lost.clone(), self.api.subject);
        let ended = move || LeaseError::RenewalEnded { subject };
        async move {
            match lost.wait_for(Option::is_some).await {
                Ok(error) => error.clone().unwrap_or_else(ended),
                Err(_) => ended(),
            }
        }
    }

    /// Completes when another process wants the Lease, and not before.
    pub fn requested(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut requested = self.requested.clone();
        async move {
            if requested.wait_for(|requested| *requested).await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// Whether it is still held.
    ///
    /// # Errors
    /// Why it was lost.
    pub fn check(&self) -> Result<(), LeaseError> {
        match &*self.lost.borrow() {
            Some(error) => Err(error.clone()),
            None if self.renewal.is_finished() => Err(LeaseError::RenewalEnded { subject: self.api.subject }),
            None => Ok(()),
        }
    }

    /// Runs work to its end, or drops it as soon as the Lease is lost. What it did remains, and must be observed
    /// again.
    ///
    /// # Errors
    /// Why the Lease was lost.
    pub async fn run<T>(&self, work: impl Future<Output = T>) -> Result<T, LeaseError> {
        self.check()?;
        tokio::select! {
            biased;
            error = self.lost() => Err(error),
            done = work => Ok(done),
        }
    }

    /// Whether [`Self::release`] was called, which ends the renewal.
    pub fn is_releasing(&self) -> bool {
        self.releasing
    }

    /// Releases it, if it is still held. After an error it can be called again.
    ///
    /// # Errors
    /// When the API refuses or does not answer; the Lease then expires.
    pub async fn release(&mut self) -> Result<(), ApiError> {
        self.releasing = true;
        self.renewal.abort();
        // A renewal that was sent already may still arrive, and conflict with this.
        if !self.renewal.is_finished() {
            let _ = (&mut self.renewal).await;
        }
        let mut attempts = 0;
        loop {
            attempts += 1;
            match self.api.release(&self.me).await {
                Err(ApiError::Conflict { .. }) if attempts < RELEASES => {}
                released => return released,
            }
        }
    }
}

impl Drop for HeldLease {
    fn drop(&mut self) {
        self.renewal.abort();
    }
}

/// How often it is renewed, and for how long without success.
#[derive(Debug, Clone, Copy)]
struct Pace {
    heartbeat: Duration,
    give_up: Duration,
}

/// What an attempt has found.
struct Attempt {
    /// Whose the Lease was.
    before: LeaseState,
    /// Whether another process wants it.
    requested: bool,
}

/// Requests for one Lease.
#[derive(Clone)]
struct LeaseApi {
    api: Arc<Api<Lease>>,
    subject: LeaseSubject,
}

impl LeaseApi {
    fn new(client: &Client, subject: LeaseSubject) -> Self {
        Self { api: Arc::new(Api::namespaced(client.clone(), NAMESPACE)), subject }
    }

    /// Takes or renews it when that is possible. A race is [`ApiError::Conflict`].
    async fn take(&self, me: &str, now: Timestamp) -> Result<Attempt, ApiError> {
        let Some(mut lease) = self.read().await? else {
            let metadata =
                ObjectMeta { name: Some(self.subject.lease_name().to_owned()), ..ObjectMeta::default() };
            let lease = Lease { metadata, spec: Some(claim(None, me, now)) };
            let created = self.api.create(&parameters(), &lease).await;
            let free = |_| Attempt { before: LeaseState::Free, requested: false };
            return created.map(free).map_err(|error| self.failed("create", error));
        };
        let spec = lease.spec.unwrap_or_default();
        let before = state_of(&spec, me, now);
        if !matches!(before, LeaseState::HeldBy(_)) {
            lease.spec = Some(claim(Some(&spec), me, now));
            self.write(&lease).await?;
        }
        Ok(Attempt { before, requested: is_requested(&lease.metadata, me, now) })
    }

    /// Renews until that is no longer possible. `confirmed` is when the last successful request was sent.
    async fn renew(
        &self,
        me: &str,
        (clock, pace): (Clock, Pace),
        mut confirmed: Instant,
        asking: &watch::Sender<bool>,
    ) -> LeaseError {
        // Renewals are due at their times, whatever else happens: not a wait for a condition.
        let mut beat = interval(pace.heartbeat);
        beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        beat.tick().await;
        loop {
            beat.tick().await;
            let sent = Instant::now();
            let deadline = confirmed + pace.give_up;
            // One API server that does not answer leaves time for an attempt over another connection.
            let limit = sent + deadline.saturating_duration_since(sent) / 2;
            let silent = || ApiError::silent("renew", self.subject.object());
            match timeout_at(limit, self.take(me, clock())).await.unwrap_or_else(|_| Err(silent())) {
                Ok(Attempt { before: LeaseState::HeldBy(holder), .. }) => {
                    return LeaseError::Taken { subject: self.subject, by: holder.name };
                }
                Ok(Attempt { requested, .. }) => {
                    confirmed = sent;
                    asking.send_replace(requested);
                }
                // The next attempt is due a heartbeat after this one, or at once.
                Err(error)
                    if Instant::now().max(sent + pace.heartbeat) >= deadline || !error.is_transient() =>
                {
                    return LeaseError::Expired { subject: self.subject, source: Arc::new(error) };
                }
                Err(_) => {}
            }
        }
    }

    async fn release(&self, me: &str) -> Result<(), ApiError> {
        let Some(mut lease) = self.read().await? else { return Ok(()) };
        let Some(spec) = lease.spec.as_mut().filter(|spec| spec.holder_identity.as_deref() == Some(me))
        else {
            return Ok(());
        };
        spec.holder_identity = None;
        self.write(&lease).await
    }

    async fn read(&self) -> Result<Option<Lease>, ApiError> {
        let read = self.api.get_opt(self.subject.lease_name()).await;
        read.map_err(|error| self.failed("get", error))
    }

    /// Only over the version that was read: its resourceVersion is part of the request.
    async fn write(&self, lease: &Lease) -> Result<(), ApiError> {
        let written = self.api.replace(self.subject.lease_name(), &parameters(), lease).await;
        written.map(drop).map_err(|error| self.failed("update", error))
    }

    fn failed(&self, verb: &'static str, error: kube::Error) -> ApiError {
        ApiError::new(verb, self.subject.object(), error)
    }
}

fn parameters() -> PostParams {
    PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() }
}

#[cfg(test)]
#[path = "lease_tests.rs"]
mod tests;
