//! Rollouts over a pool of hosts, with controllers that run in any order on caches of any age, and are killed between two
//! writes. Machines fail, people edit. After every step the limits of the rollout hold; left alone, it ends, and then
//! nothing is written.
//!
//! `METALFORM_SEEDS` is the number of seeds, `METALFORM_SEED` the first one, to repeat a failure.

mod api;
mod controllers;
mod limits;
mod people;
mod play;

use self::play::Play;
use crate::machine::seeded_play::{self, SeededPlay as _, all_hold};

/// Seeds without `METALFORM_SEEDS`.
const SEEDS: u64 = 1_000;
/// Seeds within which each defect must be found.
const FOUND: u64 = 2000;

/// A defect, planted to see that the simulation finds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Defect {
    /// The planner does not see Machines that are being deleted.
    DeletingNotCounted,
    /// A set deletes by its cache instead of a list.
    StaleList,
    /// The planner writes what it has planned on its cache of Machines.
    MachinesNotListed,
    /// A size counts as observed as soon as it is written.
    SizesNotAwaited,
    /// The planner runs before its cache shows its own writes, and writes over what it has not seen.
    OwnWritesNotAwaited,
    /// The planner takes every Machine for available.
    AvailabilityIgnored,
    /// A host is claimed without the version that was observed.
    ClaimNotCompared,
}

#[test]
fn rollouts_keep_to_their_limits_and_end() {
    all_hold(SEEDS, "rollouts_keep_to_their_limits", |seed| Play::new(seed, None));
}

#[test]
fn a_seed_is_played_the_same_way_each_time() {
    for seed in 0..5 {
        let story = |()| {
            let mut play = Play::new(seed, None);
            let ended = play.run();
            format!("{}\n{ended:?}", play.story())
        };
        let stories = [(); 2].map(story);
        assert_eq!(stories[0], stories[1], "seed {seed}");
    }
}

fn is_found(defect: Defect, by: &str) {
    seeded_play::is_found(defect, FOUND, by, |seed| Play::new(seed, Some(defect)));
}

#[test]
fn deleting_machines_that_are_not_counted_are_found() {
    is_found(Defect::DeletingNotCounted, "machines");
}

#[test]
fn a_deletion_by_an_old_list_is_found() {
    is_found(Defect::StaleList, "");
}

#[test]
fn a_plan_on_old_machines_is_found() {
    is_found(Defect::MachinesNotListed, "");
}

#[test]
fn a_plan_before_sizes_are_observed_is_found() {
    is_found(Defect::SizesNotAwaited, "");
}

#[test]
fn a_plan_without_its_own_writes_is_found() {
    is_found(Defect::OwnWritesNotAwaited, "");
}

#[test]
fn a_plan_that_ignores_availability_is_found() {
    is_found(Defect::AvailabilityIgnored, "available");
}

#[test]
fn two_machines_on_one_host_are_found() {
    is_found(Defect::ClaimNotCompared, "host");
}
