//! Plays that are determined by a seed: which seeds are played, and the first that fails.

use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// One play.
pub(super) trait SeededPlay {
    /// Plays it. `Err`: what must not be.
    fn run(&mut self) -> Result<(), String>;

    /// What has happened, a line each.
    fn story(&self) -> String;
}

/// Plays `METALFORM_SEEDS` seeds, or this many, from `METALFORM_SEED` on, or from anywhere.
pub(super) fn all_hold<P: SeededPlay>(seeds: u64, test: &str, play: impl Fn(u64) -> P) {
    let first = number("METALFORM_SEED").unwrap_or_else(|| u64::from(rand::random::<u32>()));
    let count = number("METALFORM_SEEDS").unwrap_or(seeds);
    if let Some((seed, story)) = first_failure(first..first + count, play) {
        panic!("{story}\nseed {seed}; repeat it: METALFORM_SEED={seed} cargo test --lib {test}");
    }
}

/// A planted defect is found within the first seeds, always the same ones, by a complaint that contains `by`.
#[expect(clippy::print_stderr, reason = "the seed is a result of the test")]
pub(super) fn is_found<P: SeededPlay>(defect: impl Debug, seeds: u64, by: &str, play: impl Fn(u64) -> P) {
    let found = first_failure(0..seeds, play);
    let (seed, story) = found.unwrap_or_else(|| panic!("{defect:?} is not found in {seeds} seeds"));
    let complaint = story.lines().last().unwrap_or_default();
    assert!(complaint.contains(by), "{defect:?}, seed {seed}: {complaint}");
    eprintln!("{defect:?} is found by seed {seed}: {complaint}");
}

/// The first seed that fails, and why.
fn first_failure<P: SeededPlay>(
    seeds: impl Iterator<Item = u64>,
    play: impl Fn(u64) -> P,
) -> Option<(u64, String)> {
    for seed in seeds {
        let mut play = play(seed);
        let complaint = match catch_unwind(AssertUnwindSafe(|| play.run())) {
            Ok(Ok(())) => continue,
            Ok(Err(complaint)) => complaint,
            Err(_) => "it panicked".to_owned(),
        };
        return Some((seed, format!("{}\n{complaint}", play.story())));
    }
    None
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().filter(|text| !text.is_empty()).map(|text| text.parse().unwrap())
}
