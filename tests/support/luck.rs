//! What a run meets between its effects: how long each takes, whether its process stands still, and which requests
//! arrive after it has given them up.

use std::time::Duration;

use metalform::etcd::client::DEADLINE;
use metalform::kube_api::lease::{EXPIRY, GIVE_UP};

use super::dice::Dice;

/// Everything goes at its usual pace without dice.
#[derive(Clone, Default)]
pub struct Luck {
    /// And how rare a mishap is: one in so many effects.
    dice: Option<(Dice, u64)>,
}

impl Luck {
    pub fn of(dice: Dice, rarity: u64) -> Self {
        Self { dice: Some((dice, rarity)) }
    }

    /// No mishap, but each effect takes its own time.
    pub fn uneven(dice: Dice) -> Self {
        Self { dice: Some((dice, u64::MAX)) }
    }

    /// How long an effect takes until it happens, of which another run may see nothing.
    pub fn before(&self, usual: Duration) -> Duration {
        let Some((dice, _)) = &self.dice else { return usual };
        usual / 2 + dice.within(usual + Duration::from_millis(100))
    }

    /// How long its answer takes, if it takes any time.
    pub fn after(&self) -> Option<Duration> {
        let (dice, rarity) = self.dice.as_ref()?;
        let limit = if dice.one_in(*rarity) { 4000 } else { 40 };
        Some(dice.within(Duration::from_millis(limit)))
    }

    /// For how long the process stands still now: a host that swaps, a virtual machine that is moved.
    pub fn stall(&self) -> Option<Duration> {
        let (dice, rarity) = self.dice.as_ref()?;
        dice.one_in(rarity.saturating_mul(4)).then(|| dice.within(Duration::from_secs(70)))
    }

    /// Whether a look finds nothing out.
    pub fn is_blind(&self) -> bool {
        self.dice.as_ref().is_some_and(|(dice, rarity)| dice.one_in(rarity.saturating_mul(8)))
    }

    /// Whether the process ends here.
    pub fn is_killed(&self) -> bool {
        self.dice.as_ref().is_some_and(|(dice, rarity)| dice.one_in(rarity.saturating_mul(12)))
    }

    /// Which of so many comes first.
    pub fn first_of(&self, count: usize) -> usize {
        let count = u64::try_from(count).unwrap();
        self.dice.as_ref().map_or(0, |(dice, _)| usize::try_from(dice.roll(count)).unwrap())
    }

    /// Whether the memory of a run is written down and read back now. It costs more than all else of a step.
    pub fn writes_down(&self) -> bool {
        self.dice.as_ref().is_none_or(|(dice, _)| dice.one_in(32))
    }

    /// When a request of a change arrives that its sender gives up after [`DEADLINE`], counted from its sending. The
    /// Lease allows for as much: see [`metalform::kube_api::lease`].
    pub fn late(&self) -> Option<Duration> {
        let (dice, rarity) = self.dice.as_ref()?;
        dice.one_in(*rarity / 3 + 1).then(|| dice.within(EXPIRY - GIVE_UP).max(DEADLINE / 2))
    }
}
