//! Defects of what a run sends, stops and restarts are found.

use crate::is_found;
use crate::new_configuration;
use crate::support::defect::Defect;

#[test]
fn a_removal_while_another_voter_is_down_is_found() {
    is_found(Defect::RemovalGateDropped, &["although the voters"]);
}

#[test]
fn a_learner_beside_another_is_found() {
    is_found(Defect::LearnerOverlooked, &["beside the learners"]);
}

#[test]
fn a_change_by_a_list_from_before_the_lease_is_found() {
    is_found(Defect::ListFromBefore, &["before it had the lease"]);
}

#[test]
fn an_api_server_that_stops_while_proxies_use_it_is_found() {
    is_found(Defect::ProxiesLeft, &["while it is used by"]);
}

#[test]
fn a_restart_while_a_voter_is_down_is_found() {
    assert_eq!(new_configuration::deploy("etcd-3", "etcd-2", None), Vec::<String>::new());
    let found = new_configuration::deploy("etcd-3", "etcd-2", Some(Defect::GateDropped));
    assert_eq!(found, ["etcd-3 restarts its member while 1 other voters were unwell"]);
}

#[test]
fn a_restart_of_the_only_api_server_that_serves_is_found() {
    assert_eq!(new_configuration::deploy("bootstrap", "master-4", None), Vec::<String>::new());
    let found = new_configuration::deploy("bootstrap", "master-4", Some(Defect::ServersAssumed));
    assert_eq!(found, ["bootstrap restarts its API server while no other one served"]);
}
