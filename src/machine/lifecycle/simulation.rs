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

use std::panic::{AssertUnwindSafe, catch_unwind};

use self::play::Play;

/// Seeds without `METALFORM_SEEDS`.
const SEEDS: u64 = 60;
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

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().filter(|text| !text.is_empty()).map(|text| text.parse().unwrap())
}

/// The first seed that fails, and why.
fn first_failure(seeds: impl Iterator<Item = u64>, defect: Option<Defect>) -> Option<(u64, String)> {
    for seed in seeds {
        let mut play = Play::new(seed, defect);
        let complaint = match catch_unwind(AssertUnwindSafe(|| play.run())) {
            Ok(Ok(())) => continue,
            Ok(Err(complaint)) => complaint,
            Err(_) => "it panicked".to_owned(),
        };
        return Some((seed, format!("{}\n{complaint}", play.story())));
    }
    None
}

#[test]
fn lives_keep_to_their_limits_and_end() {
    let first = number("METALFORM_SEED").unwrap_or_else(|| u64::from(rand::random::<u32>()));
    let count = match number("METALFORM_SEED") {
        Some(_) => 1,
        None => SEEDS,
    };
    let count = number("METALFORM_SEEDS").unwrap_or(count);
    if let Some((seed, story)) = first_failure(first..first + count, None) {
        panic!(
            "{story}\nseed {seed}; repeat it: METALFORM_SEED={seed} cargo test --lib lives_keep_to_their_limits"
        );
    }
}

#[expect(clippy::print_stderr, reason = "the seed is a result of the test")]
fn is_found(defect: Defect) {
    let first = number("METALFORM_SEED").unwrap_or(0);
    let found = first_failure(first..first + FOUND, Some(defect));
    let (seed, story) = found.unwrap_or_else(|| panic!("{defect:?} is not found in {FOUND} seeds"));
    eprintln!("{defect:?} is found by seed {seed}: {}", story.lines().last().unwrap_or_default());
}

#[test]
fn steps_on_old_objects_are_found() {
    is_found(Defect::LiveNotRead);
}

#[test]
fn a_reset_with_the_token_of_the_claim_is_found() {
    is_found(Defect::TokenNotRaised);
}

#[test]
fn hosts_without_a_fence_are_found() {
    is_found(Defect::NotFenced);
}

#[test]
fn silence_that_counts_as_off_is_found() {
    is_found(Defect::SilentIsOff);
}

#[test]
fn a_reset_that_is_not_verified_is_found() {
    is_found(Defect::ResetNotVerified);
}
