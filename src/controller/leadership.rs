//! One process at a time has the machine controllers.

use std::time::Duration;

use jiff::Timestamp;
use kube::Client;
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::candidate::{Candidate, Rank, Watch};
use crate::engine::cancel::{Cancel, CancelLevel};
use crate::kube_api::client::ApiError;
use crate::kube_api::lease::{self, HeldLease, LeaseAttempt, LeaseState, LeaseSubject};
use crate::model::error_chain::error_chain;

/// Between attempts to take the Lease.
const PACE: Duration = Duration::from_secs(5);
/// How long an attempt may take. After one that is not answered, the next goes over another connection.
const ATTEMPT: Duration = Duration::from_secs(10);
/// How long its release may take at the end.
const RELEASE: Duration = Duration::from_secs(3);
/// What the Lease is on.
const SUBJECT: LeaseSubject = LeaseSubject::MachineControllers;

/// Does the work that `work` begins while this process has the Lease, until it is cancelled. The work is dropped before
/// another process can take the Lease, and begun again when this one has it again.
pub async fn lead<W: Future<Output = ()>>(
    client: &Client,
    me: &Candidate,
    clock: fn() -> Timestamp,
    work: impl Fn() -> W,
    cancel: &Cancel,
) {
    let mut beat = interval(PACE);
    beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut holder = String::new();
    let mut watch = Watch::default();
    loop {
        tokio::select! {
            biased;
            () = cancel.reached(CancelLevel::AfterResource) => return,
            _ = beat.tick() => {}
        }
        let attempted = tokio::select! {
            biased;
            () = cancel.reached(CancelLevel::AfterResource) => return,
            attempted = timeout(ATTEMPT, attempt(client, me, &mut watch, clock)) => attempted,
        };
        let silent = || ApiError::silent("take", format!("the lease on {SUBJECT}"));
        match attempted.unwrap_or_else(|_| Err(silent())) {
            Ok(Some(LeaseAttempt::Held(lease))) => {
                holder.clear();
                tracing::info!("this process has the machine controllers");
                hold(lease, me.rank, work(), cancel).await;
                watch = Watch::default();
            }
            Ok(Some(LeaseAttempt::HeldBy(other))) => {
                if holder != other.name {
                    tracing::info!(
                        "another process has the machine controllers: {}",
                        other.describe(clock())
                    );
                    holder = other.name;
                }
            }
            Ok(None) => {}
            Err(error) => tracing::debug!("{}", error_chain(&error)),
        }
    }
}

/// Takes the Lease where this process may; `None` where it does not try.
async fn attempt(
    client: &Client,
    me: &Candidate,
    watch: &mut Watch,
    clock: fn() -> Timestamp,
) -> Result<Option<LeaseAttempt>, ApiError> {
    if me.rank == Rank::StandBy {
        let state = lease::state(client, SUBJECT, &me.identity, clock()).await?;
        if !watch.may_take(&state, clock()) {
            return Ok(match state {
                LeaseState::HeldBy(holder) => Some(LeaseAttempt::HeldBy(holder)),
                LeaseState::Free | LeaseState::Ours => None,
            });
        }
    }
    let attempt = HeldLease::try_acquire(client, SUBJECT, &me.identity, clock).await?;
    if me.rank == Rank::Preferred && matches!(attempt, LeaseAttempt::HeldBy(_)) {
        lease::request(client, SUBJECT, &me.identity, clock()).await?;
    }
    Ok(Some(attempt))
}

async fn hold(mut lease: HeldLease, rank: Rank, work: impl Future<Output = ()>, cancel: &Cancel) {
    let requested = lease.requested();
    let given_up = async {
        if rank == Rank::Preferred {
            std::future::pending::<()>().await;
        }
        requested.await;
        tracing::info!("the machine controllers return to the bootstrap node");
    };
    let lost = tokio::select! {
        biased;
        () = cancel.reached(CancelLevel::AfterResource) => None,
        () = given_up => None,
        ended = lease.run(work) => ended.err(),
    };
    if let Some(error) = lost {
        tracing::warn!("{}: all work is dropped", error_chain(&error));
        return;
    }
    // Else it expires by itself.
    let _ = timeout(RELEASE, lease.release()).await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::cancel;

    #[tokio::test]
    async fn a_process_can_be_cancelled_while_no_api_server_answers() {
        // The kernel accepts connections, and nothing is read from them.
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let uri = format!("http://{}", listener.local_addr().unwrap()).parse().unwrap();
        crate::pki::tls_provider::install_tls_provider();
        let client = Client::try_from(kube::Config::new(uri)).unwrap();
        let me = Candidate { identity: "bootstrap/1".to_owned(), rank: Rank::Preferred };
        let (handle, cancel) = cancel::channel();
        let cancelled = async {
            let (_connection, _) = listener.accept().await.unwrap();
            handle.cancel(CancelLevel::AfterResource);
            std::future::pending::<()>().await;
        };
        let clock = || Timestamp::UNIX_EPOCH;
        let led = async {
            tokio::select! {
                () = lead(&client, &me, clock, std::future::pending::<()>, &cancel) => {}
                () = cancelled => {}
            }
        };
        timeout(Duration::from_secs(5), led).await.unwrap();
    }
}
