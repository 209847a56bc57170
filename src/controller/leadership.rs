//! One process at a time has the machine controllers.

use std::time::Duration;

use jiff::Timestamp;
use kube::Client;
use tokio::time::{MissedTickBehavior, interval, timeout};

use crate::engine::cancel::{Cancel, CancelLevel};
use crate::kube_api::lease::{HeldLease, LeaseAttempt, LeaseSubject};
use crate::model::error_chain::error_chain;

/// Between attempts to take the Lease.
const PACE: Duration = Duration::from_secs(5);
/// How long its release may take at the end.
const RELEASE: Duration = Duration::from_secs(3);

/// Does the work that `work` begins while this process has the Lease, until it is cancelled. The work is dropped before
/// another process can take the Lease, and begun again when this one has it again. `me` identifies this process.
pub async fn lead<W: Future<Output = ()>>(
    client: &Client,
    me: &str,
    clock: fn() -> Timestamp,
    work: impl Fn() -> W,
    cancel: &Cancel,
) {
    let mut beat = interval(PACE);
    beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut holder = String::new();
    loop {
        tokio::select! {
            biased;
            () = cancel.reached(CancelLevel::AfterResource) => return,
            _ = beat.tick() => {}
        }
        match HeldLease::try_acquire(client, LeaseSubject::MachineControllers, me, clock).await {
            Ok(LeaseAttempt::Held(lease)) => {
                holder.clear();
                tracing::info!("this process has the machine controllers");
                hold(lease, work(), cancel).await;
            }
            Ok(LeaseAttempt::HeldBy(other)) => {
                if holder != other.name {
                    tracing::info!(
                        "another process has the machine controllers: {}",
                        other.describe(clock())
                    );
                    holder = other.name;
                }
            }
            Err(error) => tracing::debug!("{}", error_chain(&error)),
        }
    }
}

async fn hold(mut lease: HeldLease, work: impl Future<Output = ()>, cancel: &Cancel) {
    let lost = tokio::select! {
        biased;
        () = cancel.reached(CancelLevel::AfterResource) => None,
        ended = lease.run(work) => ended.err(),
    };
    if let Some(error) = lost {
        tracing::warn!("{}: all work is dropped", error_chain(&error));
        return;
    }
    // Else it expires by itself.
    let _ = timeout(RELEASE, lease.release()).await;
}
