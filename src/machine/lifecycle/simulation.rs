//! Machines and hosts with controllers that run in any order on caches of any age, and are killed between two writes;
//! with workers that outlive their leader, hosts that lose power, and resets that fail. After every step nothing is done
//! that must not be; left alone, all ends, and then nothing is written.
//!
//! `METALFORM_SEEDS` is the number of seeds, `METALFORM_SEED` the first one, to repeat a failure.

mod api;
mod controllers;
mod hosts;
mod people;
mod play;

use self::play::Play;
use crate::machine::seeded_play::{self, all_hold};

/// Seeds without `METALFORM_SEEDS`.
const SEEDS: u64 = 1_000;
/// Seeds within which each defect must be found.
const FOUND: u64 = 1000;

/// A defect, planted to see that the simulation finds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Defect {
    /// Steps that cannot be undone are planned on a cache.
    LiveNotRead,
    /// A reset begins with the token of the claim.
    TokenNotRaised,
    /// Hosts take programs of any token.
    NotFenced,
    /// A host that does not answer counts as off.
    SilentIsOff,
    /// A reset that fails counts as one that succeeds.
    ResetNotVerified,
}

#[test]
fn lives_keep_to_their_limits_and_end() {
    all_hold(SEEDS, "lives_keep_to_their_limits", |seed| Play::new(seed, None));
}

fn is_found(defect: Defect, by: &str) {
    seeded_play::is_found(defect, FOUND, by, |seed| Play::new(seed, Some(defect)));
}

#[test]
fn steps_on_old_objects_are_found() {
    is_found(Defect::LiveNotRead, "does not end");
}

#[test]
fn a_reset_with_the_token_of_the_claim_is_found() {
    is_found(Defect::TokenNotRaised, "its kubelet runs");
}

#[test]
fn hosts_without_a_fence_are_found() {
    is_found(Defect::NotFenced, "its kubelet runs");
}

#[test]
fn silence_that_counts_as_off_is_found() {
    is_found(Defect::SilentIsOff, "its kubelet runs");
}

#[test]
fn a_reset_that_is_not_verified_is_found() {
    is_found(Defect::ResetNotVerified, "not clean");
}
