//! What the tests of this module share, and what holds for every operation.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::bootstrap::{BootstrapGoal, BootstrapOperation};
use super::contract::{Operation, PhaseEntry};
use super::deploy::DeployOperation;
use super::effect::KeepData;
use super::goal::NodeGoal;
use super::present_networks::PresentNetworks;
use super::removal_goal::RemoveGoal;
use super::remove::RemoveOperation;
use crate::bundle::program_needs::ProgramNeeds;
use crate::model::cluster_networks::{Networks, WorkloadPlane};
use crate::model::role::Role;

pub(super) fn networks() -> Networks {
    Networks {
        control_plane: vec!["192.0.2.0/24".parse().unwrap()],
        workload_plane: WorkloadPlane { cidrs: vec!["192.0.2.0/24".parse().unwrap()], mtu: 1460 },
        pods: "10.233.0.0/16".parse().unwrap(),
        services: "10.96.0.0/12".parse().unwrap(),
        node_ports: vec!["192.0.2.0/24".parse().unwrap()],
        api_service_ip: [10, 96, 0, 1].into(),
        dns_ip: [10, 96, 0, 10].into(),
    }
}

pub(super) fn goal(roles: impl IntoIterator<Item = Role>) -> NodeGoal {
    NodeGoal {
        name: "node-1".parse().unwrap(),
        roles: roles.into_iter().collect(),
        first: false,
        networks: networks(),
        present_networks: PresentNetworks::default(),
        recorded_address: None,
        recorded_workload_address: None,
        platforms: ["debian-13-amd64".parse().unwrap()].into(),
        versions: BTreeMap::new(),
        authority: None,
        max_pods: 110,
        program: ProgramNeeds { architecture: "amd64", c_library: None },
        replace_member: false,
        replace_machine: false,
        beside: Arc::default(),
        foreseen: None,
        leaves: false,
    }
}

/// Titles of the phases that apply, each with all that comes before it.
fn before<O: Operation>(goal: &O::Goal) -> BTreeMap<&'static str, BTreeSet<&'static str>> {
    let entries: Vec<&PhaseEntry<O>> = O::PHASES.iter().collect();
    let titles: Vec<&str> = entries.iter().map(|entry| entry.phase.title()).collect();
    assert_eq!(titles.iter().collect::<BTreeSet<_>>().len(), titles.len(), "a title is used twice");
    let mut before: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for entry in entries {
        for need in entry.needs {
            assert!(titles.contains(need), "{} needs {need}, which is no phase", entry.phase.title());
        }
        if !entry.phase.applies(goal) {
            continue;
        }
        let applying = entry.needs.iter().filter_map(|need| Some((*need, before.get(need)?)));
        let all = applying.flat_map(|(need, earlier)| earlier.iter().copied().chain([need])).collect();
        // What a phase needs is above it in the list: there is no cycle.
        before.insert(entry.phase.title(), all);
    }
    before
}

fn role_sets() -> Vec<Vec<Role>> {
    let roles = [Role::Bootstrap, Role::Master, Role::Etcd, Role::Infra, Role::Node];
    (0..1 << roles.len())
        .map(|set: usize| {
            roles.into_iter().enumerate().filter(|(n, _)| set >> n & 1 == 1).map(|(_, r)| r).collect()
        })
        .collect()
}

#[test]
fn whatever_the_roles_nothing_comes_before_preflight_and_everything_before_the_end() {
    for roles in role_sets() {
        let node = goal(roles);
        let bootstrap =
            BootstrapGoal { node: node.clone(), images: BTreeSet::new(), objects: BTreeSet::new() };
        for phases in [before::<DeployOperation>(&node), before::<BootstrapOperation>(&bootstrap)] {
            for (title, earlier) in &phases {
                let first = matches!(*title, "Reachable" | "Preflight");
                assert!(first || earlier.contains("Preflight"), "{title} may begin before preflight");
            }
            let end = &phases["End state verified"];
            let beside = ["End state verified", "API server proxies"];
            let missing = phases.keys().filter(|title| !end.contains(*title) && !beside.contains(*title));
            assert_eq!(missing.count(), 0, "{:?} {end:?}", node.roles);
        }
    }
}

#[test]
fn nothing_is_removed_before_it_is_allowed_and_the_node_goes_last() {
    for roles in role_sets() {
        for offline in [false, true] {
            let goal = RemoveGoal {
                node: goal(roles.iter().copied()),
                offline,
                force: false,
                kubelet_stopped: false,
                dedicated: false,
                keep_data: KeepData(false),
                drain_limit: Duration::ZERO,
                together: BTreeSet::new(),
            };
            let phases = before::<RemoveOperation>(&goal);
            for (title, earlier) in &phases {
                let first = matches!(*title, "Reachable" | "Removal allowed");
                assert!(
                    first || earlier.contains("Removal allowed"),
                    "{title} may begin before it is allowed"
                );
            }
            let end = &phases["Node deleted"];
            let missing = phases.keys().filter(|title| **title != "Node deleted" && !end.contains(*title));
            assert_eq!(missing.count(), 0, "{roles:?} {offline} {end:?}");
        }
    }
}

#[test]
fn etcd_votes_before_the_control_plane_starts_and_its_files_come_meanwhile() {
    let before = before::<DeployOperation>(&goal([Role::Master, Role::Etcd]));
    assert!(before["Control plane"].contains("etcd voter"));
    assert!(before["Control plane files"].contains("etcd member"));
    assert!(!before["Control plane files"].contains("etcd voter"));
    assert!(!before["Node joined"].contains("etcd member"));
}
