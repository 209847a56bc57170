//! Whether Hosts can be added to the pool: all of them or none.

use std::collections::BTreeSet;

use kube::ResourceExt;

use super::api::conflict::{self, HostConflict, OccupiedNode};
use super::api::host::HostObject;

/// Why a Host cannot be added.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HostAdditionError {
    /// There is one of this name.
    #[error("host {0} exists already")]
    Exists(String),
    /// It is a machine that exists already.
    #[error("host {name}: {conflict}")]
    Conflict {
        /// Of the Host.
        name: String,
        /// With what.
        conflict: HostConflict,
    },
}

/// Everything that keeps `hosts` from being added to those `present`; each of them also must not be another one's machine.
pub fn problems(
    hosts: &[HostObject],
    present: &[HostObject],
    nodes: &[OccupiedNode],
) -> Vec<HostAdditionError> {
    let names: BTreeSet<String> = present.iter().map(ResourceExt::name_any).collect();
    let all: Vec<HostObject> = present.iter().chain(hosts).cloned().collect();
    let mut problems = Vec::new();
    for host in hosts {
        let name = host.name_any();
        if names.contains(&name) {
            problems.push(HostAdditionError::Exists(name));
            continue;
        }
        let conflicts = conflict::of_host(host, &all, nodes).into_iter();
        problems
            .extend(conflicts.map(|conflict| HostAdditionError::Conflict { name: name.clone(), conflict }));
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `name=address`, separated by blanks; those `present` are older.
    fn hosts(text: &str, created: Option<&str>) -> Vec<HostObject> {
        let host = |one: &str| {
            let (name, address) = one.split_once('=').unwrap();
            let created = created.map(|time| format!("creationTimestamp: '{time}', ")).unwrap_or_default();
            let yaml = format!(
                "{{apiVersion: metalform.dev/v1alpha1, kind: Host, metadata: {{{created}name: {name}}}, spec: {{address: '{address}'}}}}"
            );
            serde_saphyr::from_str(&yaml).unwrap()
        };
        text.split_whitespace().map(host).collect()
    }

    fn node(name: &str, address: &str, host: Option<&str>, is_bootstrap: bool) -> OccupiedNode {
        let host = host.map(str::to_owned);
        OccupiedNode { name: name.to_owned(), addresses: vec![address.to_owned()], host, is_bootstrap }
    }

    #[test]
    fn hosts_are_added_when_none_is_a_machine_that_exists() {
        let nodes = [
            node("boot", "10.0.0.1", None, true),
            node("master-1", "10.0.0.2", None, false),
            node("old", "10.0.0.9", Some("old"), false),
        ];
        for (added, expected) in [
            ("a=10.0.0.3", ""),
            ("a=10.0.0.3 b=10.0.0.4", ""),
            ("a=10.0.0.3 b=10.0.0.3", "host b: address 10.0.0.3 is that of Host a"),
            ("a=rack-1 b=RACK-1", "host b: address RACK-1 is that of Host a"),
            ("old=10.0.0.8", "host old exists already"),
            ("a=10.0.0.9", "host a: address 10.0.0.9 is that of Host old"),
            ("a=10.0.0.1", "host a: address 10.0.0.1 is that of the bootstrap node boot"),
            (
                "a=10.0.0.2",
                "host a: address 10.0.0.2 is that of Node master-1, which no Machine has deployed",
            ),
            ("master-1=10.0.0.5", "host master-1: a Node of this name exists, which no Machine has deployed"),
            (
                "a=10.0.0.1 c=10.0.0.7 old=10.0.0.6",
                "host a: address 10.0.0.1 is that of the bootstrap node boot\nhost old exists already",
            ),
        ] {
            let present = hosts("old=10.0.0.9", Some("2025-01-01T00:00:00Z"));
            let found = problems(&hosts(added, None), &present, &nodes);
            let found: Vec<String> = found.iter().map(ToString::to_string).collect();
            assert_eq!(found.join("\n"), expected, "{added}");
        }
    }
}
