use std::sync::{Mutex, MutexGuard};

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::{Value, json};

use super::*;

const SUBJECT: LeaseSubject = LeaseSubject::EtcdMembership;

fn spec(holder: Option<&str>, renewed: Option<i64>) -> LeaseSpec {
    LeaseSpec {
        holder_identity: holder.map(str::to_owned),
        renew_time: renewed.map(|second| MicroTime(at(second))),
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
    let held = |expires| {
        LeaseState::HeldBy(LeaseHolder { name: "b/1".to_owned(), renewed: at(100), expires: at(expires) })
    };
    for (lease, now, expected) in [
        (LeaseSpec::default(), 0, LeaseState::Free),
        (spec(None, Some(100)), 100, LeaseState::Free),
        (spec(Some(""), Some(100)), 100, LeaseState::Free),
        (spec(Some("a/1"), Some(100)), 101, LeaseState::Ours),
        (spec(Some("a/1"), Some(100)), 900, LeaseState::Ours),
        (spec(Some("b/1"), Some(100)), 100, held(130)),
        (spec(Some("b/1"), Some(100)), 129, held(130)),
        (spec(Some("b/1"), Some(100)), 130, LeaseState::Free),
        (spec(Some("b/1"), Some(100)), 90, held(130)),
        (spec(Some("b/1"), None), 0, LeaseState::Free),
    ] {
        assert_eq!(state_of(&lease, "a/1", at(now)), expected, "{lease:?} at {now}");
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

#[test]
fn a_request_is_that_of_another_process_and_is_valid_for_a_short_time() {
    for (request, now, expected) in [
        (None, 100, false),
        (Some("b/1 1970-01-01T00:01:40Z"), 100, true),
        (Some("b/1 1970-01-01T00:01:40Z"), 120, true),
        (Some("b/1 1970-01-01T00:01:40Z"), 121, false),
        (Some("b/1 1970-01-01T00:01:40Z"), 79, false),
        (Some("a/1 1970-01-01T00:01:40Z"), 100, false),
        (Some("b/1"), 100, false),
        (Some("b/1 yesterday"), 100, false),
    ] {
        let annotations = request.map(|request| [(LEASE_REQUEST.to_owned(), request.to_owned())].into());
        let lease = ObjectMeta { annotations, ..ObjectMeta::default() };
        assert_eq!(is_requested(&lease, "a/1", at(now)), expected, "{request:?} at {now}");
    }
}

/// An API server that has this one Lease.
#[derive(Clone, Default)]
struct Server(Arc<Mutex<Stored>>);

#[derive(Default)]
struct Stored {
    lease: Option<Value>,
    version: u64,
    /// It answers 503.
    down: bool,
    /// It never answers so many of the next requests.
    silent: u32,
}

impl Server {
    /// A client of it; tests connect over the loopback interface.
    async fn client(&self) -> Client {
        let path = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases";
        let router = Router::new()
            .route(path, post(write))
            .route(&format!("{path}/{}", SUBJECT.lease_name()), get(read).put(write))
            .with_state(self.clone());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let uri = format!("http://{}", listener.local_addr().unwrap()).parse().unwrap();
        tokio::spawn(async move { axum::serve(listener, router).await });
        crate::pki::tls_provider::install_tls_provider();
        Client::try_from(kube::Config::new(uri)).unwrap()
    }

    fn stored(&self) -> MutexGuard<'_, Stored> {
        self.0.lock().unwrap()
    }

    /// Completes unless the request is never answered.
    async fn answers(&self) {
        let silent = {
            let mut stored = self.stored();
            let silent = stored.silent > 0;
            stored.silent = stored.silent.saturating_sub(1);
            silent
        };
        if silent {
            std::future::pending::<()>().await;
        }
    }

    fn holder(&self) -> Option<String> {
        self.stored().lease.as_ref()?.pointer("/spec/holderIdentity")?.as_str().map(str::to_owned)
    }
}

fn refused(code: StatusCode) -> Response {
    let reason = if code == StatusCode::NOT_FOUND { "NotFound" } else { "" };
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure",
        "code": code.as_u16(), "message": "", "reason": reason,
    });
    (code, Json(status)).into_response()
}

async fn read(State(server): State<Server>) -> Response {
    server.answers().await;
    let stored = server.stored();
    match &stored.lease {
        _ if stored.down => refused(StatusCode::SERVICE_UNAVAILABLE),
        Some(lease) => Json(lease.clone()).into_response(),
        None => refused(StatusCode::NOT_FOUND),
    }
}

async fn write(State(server): State<Server>, Json(mut lease): Json<Value>) -> Response {
    server.answers().await;
    let mut stored = server.stored();
    let present = stored.lease.as_ref().map(|lease| lease["metadata"]["resourceVersion"].clone());
    if stored.down {
        return refused(StatusCode::SERVICE_UNAVAILABLE);
    }
    if present.is_some_and(|version| version != lease["metadata"]["resourceVersion"]) {
        return refused(StatusCode::CONFLICT);
    }
    stored.version += 1;
    lease["metadata"]["resourceVersion"] = json!(stored.version.to_string());
    stored.lease = Some(lease.clone());
    Json(lease).into_response()
}

/// Slow enough for a machine under load.
const PACE: Pace = Pace { heartbeat: Duration::from_millis(200), give_up: Duration::from_secs(2) };

async fn attempt(client: &Client, me: &str, clock: Clock) -> LeaseAttempt {
    HeldLease::try_acquire_paced(LeaseApi::new(client, SUBJECT), me, clock, PACE).await.unwrap()
}

async fn held(client: &Client, me: &str) -> HeldLease {
    match attempt(client, me, || at(100)).await {
        LeaseAttempt::Held(lease) => lease,
        LeaseAttempt::HeldBy(holder) => panic!("{}", holder.describe(at(100))),
    }
}

#[tokio::test]
async fn one_process_at_a_time_has_it_and_the_other_learns_which() {
    let server = Server::default();
    let client = server.client().await;
    let mut lease = held(&client, "a/1").await;
    lease.check().unwrap();
    let LeaseAttempt::HeldBy(holder) = attempt(&client, "b/1", || at(103)).await else {
        panic!("held twice")
    };
    assert_eq!(holder.describe(at(103)).to_string(), "held by a/1, renewed 3 s ago");
    assert_eq!(state(&client, SUBJECT, "b/1", at(103)).await.unwrap(), LeaseState::HeldBy(holder));
    assert_eq!(state(&client, SUBJECT, "a/1", at(103)).await.unwrap(), LeaseState::Ours);
    lease.release().await.unwrap();
    assert_eq!(server.holder(), None);
    assert_eq!(state(&client, SUBJECT, "b/1", at(103)).await.unwrap(), LeaseState::Free);
    held(&client, "b/1").await.release().await.unwrap();
}

#[tokio::test]
async fn work_is_dropped_when_the_lease_cannot_be_renewed_in_time() {
    let server = Server::default();
    let client = server.client().await;
    let lease = held(&client, "a/1").await;
    assert_eq!(lease.run(async { 7 }).await.unwrap(), 7);
    server.stored().down = true;
    let began = Instant::now();
    let lost = lease.run(std::future::pending::<()>()).await.unwrap_err();
    assert!(matches!(lost, LeaseError::Expired { .. }), "{lost}");
    assert!(began.elapsed() < PACE.give_up * 5 / 4, "{:?}", began.elapsed());
    assert!(lease.check().is_err());
    assert!(matches!(lease.run(async {}).await, Err(LeaseError::Expired { .. })));
}

#[tokio::test]
async fn a_short_outage_loses_nothing() {
    let server = Server::default();
    let client = server.client().await;
    let lease = held(&client, "a/1").await;
    server.stored().down = true;
    let lost = lease.lost();
    assert!(tokio::time::timeout(PACE.heartbeat * 2, lost).await.is_err());
    server.stored().down = false;
    assert!(tokio::time::timeout(PACE.give_up + PACE.heartbeat, lease.lost()).await.is_err());
    lease.check().unwrap();
}

#[tokio::test]
async fn a_renewal_that_is_never_answered_is_followed_by_another_one() {
    let server = Server::default();
    let client = server.client().await;
    let lease = held(&client, "a/1").await;
    server.stored().silent = 1;
    assert!(tokio::time::timeout(PACE.give_up + PACE.heartbeat * 2, lease.lost()).await.is_err());
    lease.check().unwrap();
    assert_eq!(server.stored().silent, 0);
}

#[tokio::test]
async fn work_is_dropped_when_another_process_takes_the_lease() {
    let server = Server::default();
    let client = server.client().await;
    let mut lease = held(&client, "a/1").await;
    {
        let mut stored = server.stored();
        let version = stored.version + 1;
        stored.version = version;
        let lease = stored.lease.as_mut().unwrap();
        lease["spec"]["holderIdentity"] = json!("b/1");
        lease["metadata"]["resourceVersion"] = json!(version.to_string());
    }
    let lost = lease.run(std::future::pending::<()>()).await.unwrap_err();
    assert_eq!(lost.to_string(), "lost the lease on etcd membership: taken by b/1");
    lease.release().await.unwrap();
    assert_eq!(server.holder().as_deref(), Some("b/1"), "another's lease is not released");
}

#[tokio::test]
async fn the_holder_learns_that_another_process_wants_the_lease_and_keeps_it_until_it_releases_it() {
    let server = Server::default();
    let client = server.client().await;
    request(&client, SUBJECT, "b/1", at(100)).await.unwrap();
    let mut lease = held(&client, "a/1").await;
    assert!(tokio::time::timeout(PACE.heartbeat * 3, lease.requested()).await.is_err());
    let requested = async {
        // A renewal may come between its two requests.
        while request(&client, SUBJECT, "b/1", at(100)).await.is_err() {}
        lease.requested().await;
    };
    tokio::time::timeout(PACE.give_up, requested).await.unwrap();
    lease.check().unwrap();
    assert_eq!(server.holder().as_deref(), Some("a/1"));
    lease.release().await.unwrap();
    let taken = held(&client, "b/1").await;
    assert!(tokio::time::timeout(PACE.heartbeat * 3, taken.requested()).await.is_err(), "by itself");
}

#[tokio::test]
async fn a_release_that_failed_can_be_repeated() {
    let server = Server::default();
    let client = server.client().await;
    let mut lease = held(&client, "a/1").await;
    server.stored().down = true;
    // The client repeats a request that is answered with 503: a deadline ends it, as that of an action would.
    tokio::time::timeout(PACE.heartbeat, lease.release()).await.unwrap_err();
    assert!(lease.is_releasing());
    assert!(lease.run(async {}).await.is_err(), "nothing renews it any more");
    server.stored().down = false;
    assert_eq!(server.holder().as_deref(), Some("a/1"));
    lease.release().await.unwrap();
    assert_eq!(server.holder(), None);
}

#[tokio::test]
async fn a_dropped_lease_is_not_renewed() {
    let server = Server::default();
    let client = server.client().await;
    drop(held(&client, "a/1").await);
    tokio::time::timeout(PACE.heartbeat, std::future::pending::<()>()).await.unwrap_err();
    let version = server.stored().version;
    tokio::time::timeout(PACE.heartbeat * 3, std::future::pending::<()>()).await.unwrap_err();
    assert_eq!(server.stored().version, version);
}

#[tokio::test]
async fn a_renewal_that_ended_is_no_lease_and_drops_the_work() {
    let server = Server::default();
    let client = server.client().await;
    let lease = held(&client, "a/1").await;
    lease.check().unwrap();
    // As after a panic of the task.
    lease.renewal.abort();
    let lost = lease.run(std::future::pending::<()>()).await.unwrap_err();
    assert_eq!(lost.to_string(), "lost the lease on etcd membership: its renewal ended");
    let refused = lease.run(async {}).await.unwrap_err();
    assert_eq!(refused.to_string(), lost.to_string());
}
