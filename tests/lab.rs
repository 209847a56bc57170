//! The lab's roster, as far as that can be told without the lab.

#![expect(clippy::unwrap_used, reason = "in a test an error is a failure")]

use std::collections::BTreeMap;

use jiff::Timestamp;
use metalform::engine::Desired;
use metalform::engine::roster::{RosterContext, compiled, desired};
use metalform::model::document::Document;
use metalform::model::facts::Facts;
use metalform::model::roster::Roster;
use metalform::state::{Library, Tree};

#[path = "support/given.rs"]
#[expect(dead_code, reason = "only its facts are needed here")]
mod given;

const ROSTER: &str = include_str!("vagrant/roster.yaml");
const TOPOLOGY: &str = include_str!("vagrant/topology.yaml");

fn roster() -> Roster {
    Roster::parse(&[Document { file: "roster.yaml", text: ROSTER }]).unwrap()
}

#[test]
fn the_roster_has_the_default_hosts_of_the_topology() {
    let topology: serde_json::Value = serde_saphyr::from_str(TOPOLOGY).unwrap();
    let text = |host: &serde_json::Value, key: &str| host[key].as_str().unwrap().to_owned();
    let described: BTreeMap<String, (String, String)> = topology["hosts"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|host| host["default"] == true)
        .map(|host| (text(host, "name"), (text(host, "control-plane"), text(host, "os"))))
        .collect();
    let listed: BTreeMap<String, (String, String)> = roster()
        .hosts
        .into_values()
        .map(|host| (host.name.to_string(), (host.ssh.host, host.labels["os"].clone())))
        .collect();
    assert_eq!(listed, described);
}

/// Hosts can be prepared before there is a cluster that could give any value.
#[test]
fn the_base_of_a_node_needs_nothing_of_a_cluster() {
    let library = Library::read(&Tree::embedded()).unwrap();
    let roster = roster();
    let hosts: Vec<_> = roster.hosts.values().cloned().collect();
    let states = ["node-base".parse().unwrap()];
    let setting = RosterContext { library: &library, states: &states, cluster: &roster.vars, hosts: &hosts };
    for flavour in ["debian-12-machine", "debian-13-container", "debian-13-machine"] {
        let facts: Facts = given::facts(flavour);
        for host in &hosts {
            let resources = compiled(setting, host, &facts).unwrap();
            let items = desired(resources, Timestamp::UNIX_EPOCH).unwrap().items();
            assert!(items.len() >= 5, "{flavour}: {items:?}");
        }
    }
}
