//! A cluster grows whatever goes wrong on the way: effects fail, lose their answers, arrive late or are a run's last;
//! processes stand still; machines, networks and databases come and go. Runs interleave as the seed has it.
//!
//! `METALFORM_SEED` is the first seed, another one in each run without it; `METALFORM_SEEDS` is how many are played.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "all of it is test code; clippy knows only test functions"
)]

#[path = "simulation/defects.rs"]
mod defects;
#[path = "simulation/disturbance.rs"]
mod disturbance;
#[path = "simulation/new_configuration.rs"]
mod new_configuration;
#[path = "simulation/old_list.rs"]
mod old_list;
#[path = "simulation/play.rs"]
mod play;
#[path = "simulation/quorum_lost.rs"]
mod quorum_lost;
#[path = "simulation/role_changes.rs"]
mod role_changes;
#[path = "simulation/seeds.rs"]
mod seeds;
#[expect(dead_code, reason = "tests/expansion.rs and tests/real_site.rs use the rest")]
mod support;

use seeds::{Failure, first, number, play, play_all};
use support::defect::Defect;

/// Seeds without `METALFORM_SEEDS`.
const SEEDS: u64 = 500;
/// Seeds within which a defect must be found; the rarest is in about one of 100.
const FOUND: u64 = 2000;

fn fail(failure: &Failure) -> ! {
    eprintln!("{}", failure.story.join("\n"));
    let Failure { seed, complaint, .. } = failure;
    panic!(
        "seed {seed}: {complaint}\n\
         repeat it: METALFORM_SEED={seed} METALFORM_SEEDS=1 cargo test --test simulation a_cluster_grows"
    );
}

#[test]
fn a_cluster_grows_whatever_goes_wrong_on_the_way() {
    let (first, count) = (first(), number("METALFORM_SEEDS").unwrap_or(SEEDS));
    eprintln!("METALFORM_SEED={first}");
    let failures = play_all(first, count, None, |_| true);
    if let Some(failure) = failures.first() {
        fail(failure);
    }
}

#[test]
fn a_seed_is_played_the_same_way_each_time() {
    let seed = first();
    for seed in seed..seed + 5 {
        let told = [(); 2].map(|()| play(seed, None).unwrap_or_else(|failure| failure.story));
        assert_eq!(told[0], told[1], "seed {seed}");
    }
}

/// The model finds what it is there for. What else goes wrong with the defect does not count: a cluster that lost its
/// quorum does not converge either.
fn is_found(defect: Defect, by: &[&str]) {
    let sought = |failure: &Failure| by.iter().any(|by| failure.complaint.contains(by));
    let failures = play_all(first(), FOUND, Some(defect), sought);
    let failure =
        failures.first().unwrap_or_else(|| panic!("{defect:?} is not found in {FOUND} seeds by {by:?}"));
    eprintln!("{defect:?} is found by seed {}: {}", failure.seed, failure.complaint);
}

#[test]
fn a_change_while_a_voter_is_down_is_found() {
    is_found(Defect::GateDropped, &["not well"]);
}

#[test]
fn a_change_without_the_lease_is_found() {
    is_found(Defect::LeaseNotChecked, &["without the lease"]);
}

#[test]
fn a_learner_that_stays_is_found() {
    is_found(Defect::LearnerNotEvicted, &["leaves its learner", "was set aside"]);
}

#[test]
fn a_recovery_that_leaves_a_member_its_data_is_found() {
    is_found(Defect::MemberLeft, &["two etcd clusters"]);
}

#[test]
fn a_recovery_from_the_member_that_is_behind_is_found() {
    is_found(Defect::OneBehind, &["which is behind"]);
}

#[test]
fn a_recovery_that_stops_the_others_too_late_is_found() {
    is_found(Defect::OthersLater, &["two etcd clusters"]);
}

#[test]
fn a_recovery_although_the_quorum_is_back_is_found() {
    is_found(Defect::QuorumBack, &["etcd has its quorum"]);
}

#[test]
fn api_servers_that_are_left_without_etcd_are_found() {
    is_found(Defect::NotReconnected, &["is not recovered"]);
}

#[test]
fn a_list_that_is_old_is_found() {
    assert_eq!(old_list::rerun(None), Vec::<String>::new());
    let found = old_list::rerun(Some(Defect::StaleList));
    assert_eq!(found, ["data of a member that is in the list was set aside"]);
}
