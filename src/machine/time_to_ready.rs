//! How long a Machine took to become Ready.

use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt;

use super::api::machine::Machine;
use super::api::machine_status::MachinePhase;
use super::object_write::{MachineWrite, ObjectWrite};

/// The time from its creation, where these writes make it Ready for the first time; `machine` is it before them. A Machine
/// that was Ready before, that has failed or that is being deleted has none: each has one at most.
pub fn time_to_ready(machine: &Machine, done: &[MachineWrite], now: Timestamp) -> Option<SignedDuration> {
    let before = machine.status.as_ref().and_then(|status| status.phase);
    if matches!(before, Some(MachinePhase::Running | MachinePhase::Deleting | MachinePhase::Failed)) {
        return None;
    }
    let becomes_ready = done.iter().any(|write| match write {
        MachineWrite::Machine(ObjectWrite::PatchStatus { patch, .. }) => {
            patch["status"]["phase"] == "Running"
        }
        _ => false,
    });
    let created = machine.creation_timestamp().filter(|_| becomes_ready)?;
    Some(now.duration_since(created.0).max(SignedDuration::ZERO))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_first_write_of_the_phase_running_counts() {
        let write = |phase: &str| {
            let patch = json!({ "status": { "phase": phase } });
            MachineWrite::Machine(ObjectWrite::PatchStatus { name: "m".to_owned(), patch })
        };
        for (before, done, now, expected) in [
            (Some("Provisioned"), vec![write("Running")], 160, Some(60)),
            (Some("Pending"), vec![write("Running")], 160, Some(60)),
            (None, vec![write("Running")], 160, Some(60)),
            (Some("Provisioned"), vec![write("Provisioned")], 160, None),
            (Some("Provisioned"), vec![], 160, None),
            (Some("Running"), vec![write("Running")], 160, None),
            (Some("Failed"), vec![write("Running")], 160, None),
            (Some("Deleting"), vec![write("Running")], 160, None),
            // The clock of the API server is ahead.
            (Some("Provisioned"), vec![write("Running")], 90, Some(0)),
        ] {
            let machine: Machine = serde_json::from_value(json!({
                "metadata": { "name": "m", "creationTimestamp": "1970-01-01T00:01:40Z" },
                "spec": { "versions": { "kubelet": "1.35.4" }, "providerSpec": { "value": {} } },
                "status": { "phase": before },
            }))
            .unwrap();
            let found = time_to_ready(&machine, &done, Timestamp::from_second(now).unwrap());
            assert_eq!(found.map(|time| time.as_secs()), expected, "{before:?} {done:?} {now}");
        }
    }
}
