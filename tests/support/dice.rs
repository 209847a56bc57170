//! Chance that can be repeated.

use std::sync::{Arc, Mutex};
use std::time::Duration;

/// `SplitMix64`: the same numbers from the same seed, for ever. Clones share them.
#[derive(Clone)]
pub struct Dice(Arc<Mutex<u64>>);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(seed)))
    }

    /// From 0 to `sides` - 1.
    pub fn roll(&self, sides: u64) -> u64 {
        let mut state = self.0.lock().unwrap();
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = *state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % sides
    }

    /// True once in so many times.
    pub fn one_in(&self, times: u64) -> bool {
        self.roll(times) == 0
    }

    pub fn pick<'a, T>(&self, of: &'a [T]) -> &'a T {
        &of[usize::try_from(self.roll(u64::try_from(of.len()).unwrap())).unwrap()]
    }

    /// Less than this, in whole milliseconds.
    pub fn within(&self, limit: Duration) -> Duration {
        Duration::from_millis(self.roll(u64::try_from(limit.as_millis()).unwrap().max(1)))
    }

    /// Other dice, whose numbers depend on these once.
    pub fn split(&self) -> Self {
        Self::new(self.roll(u64::MAX))
    }
}
