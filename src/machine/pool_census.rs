//! How many Hosts, Machines and MachineDeployments are how far. Pure.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt;

use super::api::host::HostObject;
use super::api::host_state::HostState;
use super::api::machine::Machine;
use super::api::machine_deployment::MachineDeployment;
use super::api::machine_status::MachinePhase;
use super::machine_observation::ready;
use super::rollout_view::{RolloutStage, rollout_view};

/// Numbers of objects; of each state, phase and stage there is one, which may be 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolCensus {
    /// Hosts by `status.state`.
    pub hosts: BTreeMap<HostState, u32>,
    /// Machines by `status.phase`; one without a status is Pending.
    pub machines: BTreeMap<MachinePhase, u32>,
    /// Machines that are not being deleted and whose condition Ready is True.
    pub ready: u32,
    /// For how long the Machine that has not been Ready for longest is not Ready: since its creation, or since its condition
    /// Ready changed. Zero where every Machine is Ready or being deleted.
    pub longest_not_ready: SignedDuration,
    /// MachineDeployments by what their rollouts are.
    pub deployments: BTreeMap<RolloutStage, u32>,
}

impl PoolCensus {
    /// Of these objects.
    pub fn of(
        hosts: &[Arc<HostObject>],
        machines: &[Arc<Machine>],
        deployments: &[Arc<MachineDeployment>],
        now: Timestamp,
    ) -> Self {
        let state = |host: &Arc<HostObject>| host.status.as_ref().map(|one| one.state).unwrap_or_default();
        let phase = |machine: &Arc<Machine>| {
            machine.status.as_ref().and_then(|one| one.phase).unwrap_or(MachinePhase::Pending)
        };
        let waiting = machines.iter().filter_map(|machine| not_ready_since(machine));
        let longest = waiting.min().map_or(SignedDuration::ZERO, |since| now.duration_since(since));
        Self {
            hosts: counted(&HostState::ALL, hosts.iter().map(state)),
            machines: counted(&MachinePhase::ALL, machines.iter().map(phase)),
            ready: count(machines.iter().filter(|machine| !is_deleted(machine) && is_ready(machine))),
            longest_not_ready: longest.max(SignedDuration::ZERO),
            deployments: counted(&RolloutStage::ALL, deployments.iter().map(|one| rollout_view(one).stage)),
        }
    }
}

fn counted<K: Ord + Copy>(all: &[K], found: impl Iterator<Item = K>) -> BTreeMap<K, u32> {
    let mut numbers: BTreeMap<K, u32> = all.iter().map(|one| (*one, 0)).collect();
    found.for_each(|one| *numbers.entry(one).or_default() += 1);
    numbers
}

fn count(found: impl Iterator) -> u32 {
    u32::try_from(found.count()).unwrap_or(u32::MAX)
}

fn is_deleted(machine: &Machine) -> bool {
    machine.metadata.deletion_timestamp.is_some()
}

fn is_ready(machine: &Machine) -> bool {
    ready(machine).is_some_and(|ready| ready.status == "True")
}

/// `None` for one that is Ready or is being deleted.
fn not_ready_since(machine: &Machine) -> Option<Timestamp> {
    if is_deleted(machine) {
        return None;
    }
    match ready(machine) {
        Some(ready) if ready.status == "True" => None,
        Some(ready) => Some(ready.last_transition_time.0),
        None => machine.creation_timestamp().map(|created| created.0),
    }
}

#[cfg(test)]
mod tests {
    use schemars::JsonSchema;
    use serde::Serialize;
    use serde::de::DeserializeOwned;
    use serde_json::{Value, json};

    use super::*;

    fn of<K: DeserializeOwned>(value: Value) -> Arc<K> {
        Arc::new(serde_json::from_value(value).unwrap())
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).unwrap()
    }

    fn template() -> Value {
        json!({ "metadata": {}, "spec": { "versions": { "kubelet": "1.35.4" }, "providerSpec": { "value": {} } } })
    }

    fn hosts(states: &str) -> Vec<Arc<HostObject>> {
        let host = |state: &str| {
            let status = if state == "-" { Value::Null } else { json!({ "state": state }) };
            of(json!({ "metadata": { "name": "h" }, "spec": { "address": "10.0.0.2" }, "status": status }))
        };
        states.split_whitespace().map(host).collect()
    }

    /// `PHASE`, or `PHASE/STATUS@TRANSITION` with the condition Ready; with `!` it is being deleted. Created at second 100.
    fn machines(text: &str) -> Vec<Arc<Machine>> {
        let machine = |one: &str| {
            let (one, deleted) =
                one.strip_suffix('!').map_or((one, Value::Null), |one| (one, json!(at(200))));
            let (phase, ready) =
                one.split_once('/').map_or((one, None), |(phase, ready)| (phase, Some(ready)));
            let conditions = ready.map(|ready| {
                let (status, since) = ready.split_once('@').unwrap();
                json!([{ "type": "Ready", "status": status, "reason": "R", "message": "",
                         "lastTransitionTime": at(since.parse().unwrap()) }])
            });
            let status = json!({ "phase": phase, "conditions": conditions.unwrap_or(json!([])) });
            let metadata = json!({ "name": "m", "namespace": "a", "creationTimestamp": at(100), "deletionTimestamp": deleted });
            let status = if phase == "-" { Value::Null } else { status };
            of(json!({ "metadata": metadata, "spec": template()["spec"], "status": status }))
        };
        text.split_whitespace().map(machine).collect()
    }

    /// Those that are not 0.
    fn text<K: std::fmt::Debug>(numbers: &BTreeMap<K, u32>) -> String {
        let found = numbers.iter().filter(|(_, number)| **number > 0);
        found.map(|(key, number)| format!("{key:?}={number}")).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn hosts_are_counted_by_their_state() {
        for (states, expected) in [
            ("", ""),
            ("-", "Unknown=1"),
            ("Available Available InUse", "Available=2 InUse=1"),
            ("Quarantined Lost Unreachable Resetting Lost", "Resetting=1 Quarantined=1 Unreachable=1 Lost=2"),
        ] {
            let census = PoolCensus::of(&hosts(states), &[], &[], at(0));
            assert_eq!(text(&census.hosts), expected, "{states}");
            assert_eq!(census.hosts.len(), HostState::ALL.len(), "a state without hosts is 0");
        }
    }

    /// Each row: Machines, by phase, how many are ready, seconds of the one that is not Ready for longest; at second 1000.
    #[test]
    fn machines_are_counted_by_their_phase_and_the_oldest_wait_is_found() {
        for (given, phases, ready, longest) in [
            ("", "", 0, 0),
            ("-", "Pending=1", 0, 900),
            ("Pending", "Pending=1", 0, 900),
            ("Provisioning/False@400", "Provisioning=1", 0, 600),
            ("Provisioned/Unknown@400", "Provisioned=1", 0, 600),
            ("Running/True@400", "Running=1", 1, 0),
            ("Running/True@400 Running/False@940", "Running=2", 1, 60),
            ("Running/False@940 Failed/False@300 Running/False@950", "Running=2 Failed=1", 0, 700),
            ("Deleting/False@300! Deleting/True@300! Deleting!", "Deleting=3", 0, 0),
            // The clock of the API server is ahead.
            ("Provisioning/False@1010", "Provisioning=1", 0, 0),
        ] {
            let census = PoolCensus::of(&[], &machines(given), &[], at(1000));
            let found = (text(&census.machines), census.ready, census.longest_not_ready.as_secs());
            assert_eq!(found, (phases.to_owned(), ready, longest), "{given}");
            assert_eq!(census.machines.len(), MachinePhase::ALL.len(), "a phase without Machines is 0");
        }
    }

    #[test]
    fn machine_deployments_are_counted_by_their_stage() {
        let deployment = |generation: i64, paused: bool, reason: &str| -> Arc<MachineDeployment> {
            let condition = json!({ "type": "Progressing", "status": "False", "reason": reason, "message": "",
                                    "lastTransitionTime": at(0) });
            of(json!({
                "metadata": { "name": "d", "namespace": "a", "generation": generation },
                "spec": { "replicas": 1, "paused": paused, "selector": {}, "template": template() },
                "status": { "observedGeneration": 1, "conditions": [condition] },
            }))
        };
        let all = [
            deployment(1, false, "ProgressDeadlineExceeded"),
            deployment(1, false, "ProgressDeadlineExceeded"),
            deployment(2, false, "ProgressDeadlineExceeded"),
            deployment(1, true, "Paused"),
        ];
        let census = PoolCensus::of(&[], &[], &all, at(0));
        assert_eq!(text(&census.deployments), "Progressing=1 Paused=1 DeadlineExceeded=2");
    }

    /// The names in the schema, which is derived from every variant.
    fn variants<T: JsonSchema>() -> Vec<String> {
        let schema = schemars::schema_for!(T);
        let all = schema.get("oneOf").and_then(Value::as_array).unwrap();
        let one = |one: &Value| one["const"].as_str().unwrap().to_owned();
        all.iter().map(one).collect()
    }

    fn names<T: Serialize>(all: &[T]) -> Vec<String> {
        all.iter().map(|one| serde_json::to_value(one).unwrap().as_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn the_lists_have_every_variant() {
        use crate::machine::host_job::HostJob;
        assert_eq!(names(&HostState::ALL), variants::<HostState>());
        assert_eq!(names(&MachinePhase::ALL), variants::<MachinePhase>());
        assert_eq!(names(&HostJob::ALL), variants::<HostJob>());
        assert_eq!(HostJob::ALL.map(HostJob::name).to_vec(), variants::<HostJob>());
    }
}
