//! A Host as it was observed.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::SILENCE;
use crate::machine::api::host_state::HostState;
use crate::machine::host_job::{HostJob, JobFailure};
use crate::machine::job_queue::JobQueue;
use crate::model::name::HostName;

/// A Host, as far as its life depends on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostView {
    /// `metadata.name`; also that of its Node.
    pub name: HostName,
    /// `metadata.resourceVersion`.
    pub version: String,
    /// `status.state`.
    pub state: HostState,
    /// `status.claim`.
    pub claim: Option<ClaimView>,
    /// `status.lastToken`: that of the last claim or reset.
    pub last_token: i64,
    /// `status.failures`: failed joins since the last one that succeeded.
    pub failures: u32,
    /// It has the finalizer `metalform.dev/claim-released`.
    pub finalizer: bool,
    /// It has a deletion timestamp.
    pub deleting: bool,
    /// The jobs that have succeeded under the last token.
    pub done: BTreeSet<HostJob>,
    /// The job that last failed under it.
    pub failure: Option<JobFailure>,
    /// What the last inspection found that a clean host does not have.
    pub residue: Vec<String>,
    /// Since when it does not answer over SSH; `None` while it answers.
    pub silent_since: Option<Timestamp>,
    /// What an operator has ordered.
    pub orders: HostOrders,
    /// It has a power hook.
    pub has_power_hook: bool,
    /// The power hook has confirmed that it is off, and it has not answered since.
    pub hook_reports_off: bool,
}

/// The claim of a Host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimView {
    /// `metadata.uid` of the Machine.
    pub machine_uid: String,
    /// `NAMESPACE/NAME` of the Machine.
    pub machine: String,
    /// When it was set.
    pub since: Timestamp,
    /// How long its jobs have waited for their turn.
    pub queue: JobQueue,
}

/// What an operator has ordered by annotations of a Host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HostOrders {
    /// It will not return.
    pub lost: bool,
    /// It is off, and stays off until its Node is deleted.
    pub powered_off: bool,
    /// It does not return to the pool: quarantined at once if it is free, else once it is reset.
    pub quarantine: bool,
    /// It leaves the quarantine: it is reset, whatever is on it.
    pub release: bool,
    /// It is inspected again if it is free.
    pub inspect: bool,
}

/// What is known of the Machine in the claim of a Host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claimant {
    /// No Machine of that UID exists, or it has another host.
    Gone,
    /// It exists.
    Present {
        /// It has a deletion timestamp.
        deleting: bool,
        /// Its condition Drained is True: its host may be reset.
        drained: bool,
        /// Its Node has joined, once.
        joined: bool,
        /// It is deleted because its host could not be deployed or its Node did not join in time.
        join_failed: bool,
    },
}

impl HostView {
    /// Whether it has not answered for [`SILENCE`].
    pub fn is_unreachable(&self, now: Timestamp) -> bool {
        self.silent_since.is_some_and(|since| now.duration_since(since) > SILENCE)
    }

    /// Whether nothing runs on it. What an operator or a hook confirms does not count while it answers.
    pub fn is_off(&self) -> bool {
        let confirmed = self.orders.powered_off || self.orders.lost || self.hook_reports_off;
        self.silent_since.is_some() && confirmed
    }

    /// Whether its kubelet is known not to run, so that its Node may be deleted.
    pub fn is_kubelet_stopped(&self) -> bool {
        self.is_off() || self.done.contains(&HostJob::StopKubelet)
    }

    /// Whether its Machine waits for it no longer: only an operator returns it to the pool.
    pub fn is_given_up(&self) -> bool {
        matches!(self.state, HostState::Quarantined | HostState::Lost)
    }

    /// Whether its Machine must be replaced: it will not run this node again, as far as is known.
    pub fn loses_its_machine(&self) -> bool {
        let is_reset = matches!(self.state, HostState::Resetting | HostState::Quarantined | HostState::Lost);
        self.deleting || self.orders.lost || self.is_off() || is_reset
    }

    /// Whether a Machine may claim it.
    pub fn is_free(&self) -> bool {
        self.state.is_free()
            && self.claim.is_none()
            && self.finalizer
            && !self.deleting
            && !self.orders.quarantine
    }
}
