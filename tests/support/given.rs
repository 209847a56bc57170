//! What is fixed and not simulated: networks, facts, goals.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use metalform::bundle::program_needs::ProgramNeeds;
use metalform::model::cluster_networks::{Networks, WorkloadPlane};
use metalform::model::facts::Facts;
use metalform::model::role::Role;
use metalform::operation::goal::NodeGoal;
use metalform::operation::present_networks::PresentNetworks;

/// What the simulated bootstrap node signs with.
pub const AUTHORITY: &str = "AUTHORITY";

pub fn networks() -> Networks {
    Networks {
        control_plane: vec!["192.0.2.0/24".parse().unwrap()],
        workload_plane: WorkloadPlane { cidrs: vec!["198.51.100.0/24".parse().unwrap()], mtu: 1460 },
        node_ports: vec!["198.51.100.0/24".parse().unwrap()],
        pods: "10.233.0.0/16".parse().unwrap(),
        services: "10.96.0.0/12".parse().unwrap(),
        api_service_ip: "10.96.0.1".parse().unwrap(),
        dns_ip: "10.96.0.10".parse().unwrap(),
    }
}

/// `tests/states/facts/<flavour>.json`.
pub fn facts(flavour: &str) -> Facts {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/states/facts/{flavour}.json"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

pub fn goal(name: &str, roles: &BTreeSet<Role>) -> NodeGoal {
    NodeGoal {
        name: name.parse().unwrap(),
        roles: roles.clone(),
        first: roles.contains(&Role::Bootstrap),
        networks: networks(),
        present_networks: PresentNetworks::default(),
        recorded_address: None,
        recorded_workload_address: None,
        platforms: ["debian-12-amd64", "debian-13-amd64"].map(|text| text.parse().unwrap()).into(),
        versions: [("kubernetes", "1.35.4"), ("etcd", "3.6.16")]
            .map(|(component, version)| (component.to_owned(), version.to_owned()))
            .into(),
        authority: Some(AUTHORITY.to_owned()),
        max_pods: 110,
        program: ProgramNeeds { architecture: "amd64", c_library: None },
        replace_member: false,
        replace_machine: false,
        beside: Arc::default(),
        foreseen: None,
        leaves: false,
    }
}
