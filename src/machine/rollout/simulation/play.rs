//! One seed: trouble first, then peace.

use jiff::{SignedDuration, Timestamp};

use super::Defect;
use super::api::Api;
use super::controllers::{Claims, Deployment, MachineSets, Shared};
use super::limits::Limits;
use super::people::{disturb, edit, replace_unhealthy, settle, shown, work};
use crate::machine::count_or_percent::CountOrPercent;
use crate::machine::dice::Dice;
use crate::machine::observed_machine::MachineStage;
use crate::machine::revision_hash::RevisionHash;
use crate::machine::rollout::RolloutGoal;
use crate::machine::seeded_play::SeededPlay;

/// Steps in which everything may happen.
const STEPS: usize = 400;
/// Rounds within which a rollout that is left alone ends. Each Machine takes a few.
const ROUNDS: usize = 300;

pub(super) struct Play {
    api: Api,
    dice: Dice,
    limits: Limits,
    goal: RolloutGoal,
    now: Timestamp,
    defect: Option<Defect>,
    hosts: usize,
    deployment: Deployment,
    sets: MachineSets,
    claims: Claims,
    story: Vec<String>,
}

impl SeededPlay for Play {
    fn run(&mut self) -> Result<(), String> {
        for _ in 0..STEPS {
            self.step()?;
        }
        let text = settle(&mut self.goal, self.hosts);
        self.limits.goal_changes(&self.goal);
        self.story.push(text);
        self.ends()?;
        // At the end of its life.
        if self.dice.one_in(2) {
            self.goal.deleting = true;
            self.limits.goal_changes(&self.goal);
            self.story.push("the deployment is deleted".to_owned());
            self.ends()?;
        }
        Ok(())
    }

    fn story(&self) -> String {
        self.story.join("\n")
    }
}

impl Play {
    pub(super) fn new(seed: u64, defect: Option<Defect>) -> Self {
        let mut dice = Dice::new(seed);
        let hosts = dice.roll(9) + 1;
        let goal = RolloutGoal {
            replicas: u32::try_from(dice.roll(hosts + 1)).unwrap(),
            max_surge: CountOrPercent::Count(u32::try_from(dice.roll(3)).unwrap()),
            max_unavailable: CountOrPercent::Count(u32::try_from(dice.roll(3)).unwrap()),
            paused: false,
            deleting: false,
            min_ready: SignedDuration::from_secs(i64::try_from(dice.roll(2)).unwrap() * 20),
            progress_deadline: Some(SignedDuration::from_secs(600)),
            revision_history_limit: u32::try_from(dice.roll(3)).unwrap(),
            hash: RevisionHash::from_label("v1"),
        };
        let story = vec![format!("{hosts} hosts, {}", shown(&goal))];
        Self {
            api: Api::new(hosts),
            dice,
            limits: Limits::default(),
            goal,
            now: Timestamp::from_second(1_000_000).unwrap(),
            defect,
            hosts,
            deployment: Deployment::default(),
            sets: MachineSets::default(),
            claims: Claims::default(),
            story,
        }
    }

    /// One thing happens.
    fn step(&mut self) -> Result<(), String> {
        self.now += SignedDuration::from_secs(i64::try_from(self.dice.roll(8)).unwrap());
        match self.dice.roll(24) {
            0..6 => {
                self.deployment.cache.advance(&self.api, &mut self.dice);
                self.plan(true);
            }
            6..14 => {
                self.sets.cache.advance(&self.api, &mut self.dice);
                let names: Vec<String> = self.api.sets.now().keys().cloned().collect();
                if let Some(name) = self.dice.pick(&names) {
                    self.reconcile_set(&name, true)?;
                }
            }
            14..17 => {
                self.claims.cache.advance(&self.api, &mut self.dice);
                self.claim(true);
            }
            17..21 => {
                work(&mut self.api, &mut self.dice, self.now, false);
            }
            21 if self.dice.one_in(2) => {
                let happened = disturb(&mut self.api, &mut self.dice, &mut self.limits);
                self.story.extend(happened);
            }
            22 if self.dice.one_in(2) => {
                let text = edit(&mut self.goal, &mut self.dice, self.hosts);
                self.limits.goal_changes(&self.goal);
                self.story.push(text);
            }
            _ => {
                replace_unhealthy(&mut self.api, &mut self.limits);
            }
        }
        self.check()
    }

    fn check(&mut self) -> Result<(), String> {
        self.story.push(self.shown());
        self.story.dedup();
        self.limits.check(&self.api, &self.goal)
    }

    fn shared(&mut self, kills: bool) -> (Shared<'_>, &mut Deployment, &mut MachineSets, &mut Claims) {
        let shared = Shared {
            api: &mut self.api,
            dice: &mut self.dice,
            limits: &mut self.limits,
            goal: &self.goal,
            now: self.now,
            defect: self.defect,
            kills,
        };
        (shared, &mut self.deployment, &mut self.sets, &mut self.claims)
    }

    fn plan(&mut self, kills: bool) -> bool {
        let (mut shared, deployment, ..) = self.shared(kills);
        deployment.reconcile(&mut shared)
    }

    fn reconcile_set(&mut self, name: &str, kills: bool) -> Result<bool, String> {
        let (mut shared, _, sets, _) = self.shared(kills);
        sets.reconcile(&mut shared, name)
    }

    fn claim(&mut self, kills: bool) -> bool {
        let (mut shared, .., claims) = self.shared(kills);
        claims.reconcile(&mut shared)
    }

    /// Left alone, it reaches its goal, and then nothing is written any more.
    fn ends(&mut self) -> Result<(), String> {
        let mut quiet = 0;
        for _ in 0..ROUNDS {
            let written = self.round()?;
            quiet = if written { 0 } else { quiet + 1 };
            if quiet == 5 {
                return self.reached();
            }
        }
        Err(format!("does not end in {ROUNDS} rounds"))
    }

    /// Every controller once, with its cache up to date.
    fn round(&mut self) -> Result<bool, String> {
        self.now += SignedDuration::from_secs(30);
        let mut written = replace_unhealthy(&mut self.api, &mut self.limits);
        written |= work(&mut self.api, &mut self.dice, self.now, true);
        for cache in [&mut self.deployment.cache, &mut self.sets.cache, &mut self.claims.cache] {
            cache.catch_up(&self.api);
        }
        written |= self.plan(false);
        self.check()?;
        self.sets.cache.catch_up(&self.api);
        for name in self.api.sets.now().keys().cloned().collect::<Vec<_>>() {
            written |= self.reconcile_set(&name, false)?;
            self.check()?;
            self.sets.cache.catch_up(&self.api);
        }
        written |= self.claim(false);
        self.check()?;
        Ok(written)
    }

    fn reached(&self) -> Result<(), String> {
        let plan = self.deployment.plan.as_ref().ok_or("nothing was planned")?;
        let reached = if self.goal.deleting {
            plan.finished && self.api.machines.now().is_empty()
        } else {
            let counts = plan.counts;
            let all = [counts.replicas, counts.updated, counts.available];
            all.iter().all(|count| *count == self.goal.replicas) && counts.deleting == 0
        };
        if reached { Ok(()) } else { Err(format!("ends before its goal: {}", self.shown())) }
    }

    fn shown(&self) -> String {
        let sets = self.api.sets.now().iter().map(|(name, object)| {
            let machines = self.api.machines.now().values().filter(|machine| machine.set == *name);
            let machines = machines.map(|object| {
                let letter = match object.machine.stage {
                    _ if object.machine.deleting => 'd',
                    MachineStage::WaitingForHost => 'w',
                    MachineStage::Joining => 'j',
                    MachineStage::Lost => 'l',
                    _ if object.machine.is_available(self.goal.min_ready, self.now) => 'a',
                    _ if object.machine.is_ready() => 'r',
                    _ => 'n',
                };
                if object.machine.marked { letter.to_ascii_uppercase() } else { letter }
            });
            let observed = if object.set.observed { "" } else { "?" };
            format!("{name}{observed}={}: {}", object.set.replicas, machines.collect::<String>())
        });
        sets.collect::<Vec<_>>().join(" | ")
    }
}
