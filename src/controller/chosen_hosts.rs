//! Hosts that Machines are about to note, or have noted in the API, before a cache shows it. Pure.
//!
//! Without them, a Machine that the caches show a moment later could choose first, and note the host that a pass of another
//! Machine is noting: one of the two claims is refused, and that Machine forgets the host and chooses again.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt;
use serde_json::Value;

use crate::machine::api::machine::Machine;
use crate::machine::object_write::{MachineWrite, ObjectWrite};
use crate::model::name::HostName;

/// How long caches may lag. What they show after that counts.
const LAG: SignedDuration = SignedDuration::from_secs(5);

/// By the UID of the Machine.
#[derive(Debug, Default)]
pub struct ChosenHosts(BTreeMap<String, (HostName, Timestamp)>);

impl ChosenHosts {
    /// A pass over the Machine with this UID begins, and is going to note this host. Whether that is new: an earlier pass
    /// may have noted it.
    pub fn choose(&mut self, machine: &str, host: &HostName, now: Timestamp) -> bool {
        let is_new = self.0.get(machine).is_none_or(|(chosen, _)| chosen != host);
        if is_new {
            self.0.insert(machine.to_owned(), (host.clone(), now));
        }
        is_new
    }

    /// A pass over it has ended, with these writes. `chose`: it began with a new choice.
    pub fn end(&mut self, machine: &str, chose: bool, done: &[MachineWrite]) {
        let written = done.iter().filter_map(host_of_status).next_back();
        let forgotten = written.is_some_and(Value::is_null);
        if forgotten || (chose && written.is_none()) {
            self.0.remove(machine);
        }
    }

    /// The Machine as the API has it, or soon will.
    pub fn shown(&mut self, machine: Arc<Machine>, now: Timestamp) -> Arc<Machine> {
        let Some(uid) = machine.uid() else { return machine };
        let Some((host, since)) = self.0.get(&uid) else { return machine };
        let noted = machine.status.as_ref().is_some_and(|status| status.host.is_some());
        if noted || now.duration_since(*since) > LAG {
            self.0.remove(&uid);
            return machine;
        }
        let mut shown = Machine::clone(&machine);
        shown.status.get_or_insert_default().host = Some(host.to_string());
        Arc::new(shown)
    }
}

/// `status.host` of a write of a Machine that changes it; null removes it.
fn host_of_status(write: &MachineWrite) -> Option<&Value> {
    let MachineWrite::Machine(ObjectWrite::PatchStatus { patch, .. }) = write else { return None };
    patch.pointer("/status/host")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::machine::api::host::HostObject;
    use crate::machine::life_rules::LifeRules;
    use crate::machine::pool::Pool;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).unwrap()
    }

    fn machine(name: &str, status: &Value) -> Arc<Machine> {
        let value = json!({ "cloudProvider": "metalform", "operatingSystem": "debian" });
        let machine = json!({
            "metadata": {
                "namespace": "a", "name": name, "uid": name, "creationTimestamp": "2026-01-01T00:00:00Z",
            },
            "spec": { "providerSpec": { "value": value }, "versions": { "kubelet": "1.35.4" } },
            "status": status,
        });
        Arc::new(serde_json::from_value(machine).unwrap())
    }

    fn host(name: &str) -> Arc<HostObject> {
        let facts = json!({
            "machineId": "", "bootId": "", "operatingSystem": "debian", "operatingSystemVersion": "13",
            "architecture": "amd64", "kernel": "", "cpus": 4, "memory": 1, "addresses": [],
        });
        let host = json!({
            "metadata": { "name": name, "finalizers": ["metalform.dev/claim-released"] },
            "spec": { "address": "192.0.2.1" },
            "status": { "state": "Available", "facts": facts },
        });
        Arc::new(serde_json::from_value(host).unwrap())
    }

    fn noting(host: &Value) -> MachineWrite {
        let patch = json!({ "metadata": {}, "status": { "host": host } });
        MachineWrite::Machine(ObjectWrite::PatchStatus { name: "m2".to_owned(), patch })
    }

    fn noted(chosen: &mut ChosenHosts, second: i64) -> Option<String> {
        chosen.shown(machine("m2", &Value::Null), at(second)).status.as_ref()?.host.clone()
    }

    #[test]
    fn two_machines_of_one_second_do_not_note_one_host() {
        let mut chosen = ChosenHosts::default();
        let mut choice = |machines: &[&str], of: &str| {
            let shown = machines.iter().map(|name| chosen.shown(machine(name, &Value::Null), at(0)));
            let hosts = [host("h1"), host("h2")].into_iter().collect();
            let pool = Pool::new(shown.collect::<Vec<_>>(), &hosts, [], &LifeRules::DEFAULT);
            let Some(crate::machine::host_choice::HostChoice::Host(host)) = pool.machine(of).unwrap().choice
            else {
                panic!("{of} has no host")
            };
            assert!(chosen.choose(of, &host, at(0)));
            host.to_string()
        };
        assert_eq!(choice(&["m2"], "m2"), "h1");
        // A name that comes first, and no cache that shows what the other has noted.
        assert_eq!(choice(&["m1", "m2"], "m1"), "h2");
    }

    #[test]
    fn a_choice_holds_until_it_is_seen_or_given_up() {
        let h1: HostName = "h1".parse().unwrap();
        for (chose, done, expected) in [
            (true, vec![noting(&json!("h1"))], Some("h1")),
            (true, vec![], None),
            (false, vec![], Some("h1")),
            (false, vec![noting(&Value::Null)], None),
        ] {
            let mut chosen = ChosenHosts::default();
            assert!(chosen.choose("m2", &h1, at(0)));
            chosen.end("m2", chose, &done);
            assert_eq!(noted(&mut chosen, 1).as_deref(), expected, "{chose} {done:?}");
        }
        let mut chosen = ChosenHosts::default();
        assert!(chosen.choose("m2", &h1, at(0)));
        assert!(!chosen.choose("m2", &h1, at(1)), "the next pass claims it");
        let seen = chosen.shown(machine("m2", &json!({ "host": "h7" })), at(1));
        assert_eq!(seen.status.as_ref().unwrap().host.as_deref(), Some("h7"));
        assert_eq!(noted(&mut chosen, 1), None, "a cache has shown it");
        chosen.choose("m2", &h1, at(0));
        assert_eq!(noted(&mut chosen, 6), None, "caches do not lag for so long");
    }
}
