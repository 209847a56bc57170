//! Plays many seeds, side by side.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::time::Instant;

use crate::play::Play;
use crate::support::defect::Defect;
use crate::support::side_by_side::side_by_side;

/// What a seed came to that fails.
#[derive(Debug, Clone)]
pub struct Failure {
    pub seed: u64,
    pub complaint: String,
    /// What happened, and what was left.
    pub story: Vec<String>,
}

/// A number from the environment.
pub fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().filter(|text| !text.is_empty()).map(|text| text.parse().unwrap())
}

/// `METALFORM_SEED`, or another one for each run.
pub fn first() -> u64 {
    number("METALFORM_SEED").unwrap_or_else(|| u64::from(rand::random::<u32>()))
}

/// The whole of one seed.
pub fn play(seed: u64, defect: Option<Defect>) -> Result<Vec<String>, Failure> {
    let mut play = Play::new(seed, defect);
    let (world, story) = (play.world.clone(), play.story.clone());
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    let complaint = match catch_unwind(AssertUnwindSafe(|| runtime.block_on(play.play()))) {
        Ok(Ok(())) => return Ok(story.lock().unwrap().clone()),
        Ok(Err(complaint)) => complaint,
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("it panicked").to_owned()
        }
    };
    let mut story = story.lock().unwrap().clone();
    story.extend(world.lock().map(|world| world.show()).unwrap_or_default());
    Err(Failure { seed, complaint, story })
}

/// The failures among so many seeds that are `sought`, the lowest first; no further seed is begun after one.
pub fn play_all(
    first: u64,
    count: u64,
    defect: Option<Defect>,
    sought: impl Fn(&Failure) -> bool + Sync,
) -> Vec<Failure> {
    let failures = Mutex::new(Vec::new());
    let began = Instant::now();
    let seeds = (first..first + count).take_while(|_| failures.lock().unwrap().is_empty());
    side_by_side(seeds, |seed| {
        let began = Instant::now();
        if let Err(failure) = play(seed, defect)
            && sought(&failure)
        {
            failures.lock().unwrap().push(failure);
        }
        if began.elapsed().as_secs() > 2 {
            eprintln!("seed {seed} took {} ms", began.elapsed().as_millis());
        }
    });
    let mut failures: Vec<Failure> = failures.into_inner().unwrap();
    failures.sort_by_key(|failure| failure.seed);
    eprintln!("seeds {first} to {}: {} s", first + count - 1, began.elapsed().as_secs());
    failures
}
