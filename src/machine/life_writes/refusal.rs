//! A Machine that can never become a node.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::machine::api::machine::Machine;
use crate::machine::api::machine_status::{MachineError, MachinePhase};
use crate::machine::condition::{self, NewCondition, whole_seconds};
use crate::machine::life_observation::MachineSpecError;
use crate::machine::object_write::ObjectWrite;

/// The status of a Machine whose specification is invalid, if it differs.
pub fn refused(machine: &Machine, error: &MachineSpecError, now: Timestamp) -> Option<ObjectWrite<Machine>> {
    let mut status = machine.status.clone().unwrap_or_default();
    let generation = machine.metadata.generation.unwrap_or_default();
    let message = error.to_string();
    let ready = NewCondition {
        kind: "Ready",
        status: Some(false),
        reason: "InvalidConfiguration",
        message: message.clone(),
    };
    status.conditions = condition::set(&status.conditions, [ready], generation, now);
    status.observed_generation = Some(generation);
    status.error_reason = Some(MachineError::InvalidConfiguration);
    status.error_message = Some(message);
    status.phase = Some(MachinePhase::Failed);
    if machine.status.as_ref() != Some(&status) {
        status.last_updated = Some(Time(whole_seconds(now)));
    }
    ObjectWrite::status(machine, machine.status.as_ref(), &status)
}
