//! What the controller remembers of a rollout, so that the time without progress survives its restart.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::schema;
use crate::machine::revision_hash::RevisionHash;
use crate::machine::rollout::RolloutProgress;

/// Progress of a rollout as it was last observed. Written by the controller alone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RolloutRecord {
    /// Of the template that is rolled out: the label machine-template-hash of its MachineSet.
    pub template_hash: String,
    /// The replicas that are rolled out.
    pub replicas: i32,
    /// Machines with the present template.
    pub updated: i32,
    /// Machines with another template, those that are being deleted included.
    pub old: i32,
    /// Machines whose Node is Ready.
    pub ready: i32,
    /// Machines whose Node has been Ready for minReadySeconds.
    pub available: i32,
    /// Machines without a Host.
    pub waiting: i32,
    /// Whether the rollout is complete, paused or being deleted: no time passes towards the deadline.
    pub resting: bool,
    /// When it last made progress, in whole seconds.
    #[schemars(schema_with = "schema::time")]
    pub since: Time,
}

impl RolloutRecord {
    /// For the status.
    pub fn of(progress: &RolloutProgress) -> Self {
        let count = |count: u32| i32::try_from(count).unwrap_or(i32::MAX);
        Self {
            template_hash: progress.hash.to_string(),
            replicas: count(progress.replicas),
            updated: count(progress.updated),
            old: count(progress.old),
            ready: count(progress.ready),
            available: count(progress.available),
            waiting: count(progress.waiting),
            resting: progress.resting,
            since: Time(progress.since),
        }
    }

    /// For the next plan. A negative number, which nothing writes, is 0.
    pub fn progress(&self) -> RolloutProgress {
        let count = |count: i32| u32::try_from(count).unwrap_or_default();
        RolloutProgress {
            hash: RevisionHash::from_label(&self.template_hash),
            replicas: count(self.replicas),
            updated: count(self.updated),
            old: count(self.old),
            ready: count(self.ready),
            available: count(self.available),
            waiting: count(self.waiting),
            resting: self.resting,
            since: self.since.0,
        }
    }
}
