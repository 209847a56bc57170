//! A cluster grows whatever goes wrong on the way: every action of every run may fail, lose its answer or be the
//! run's last, and machines come and go. `SIMULATION_SEED` plays one seed, `SIMULATION_SEEDS` that many.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "all of it is test code; clippy knows only test functions"
)]

mod support;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use metalform::engine::cancel::Cancel;
use metalform::model::role::Role;
use metalform::operation::effect::Action;
use tokio::time::{Instant, sleep};

use support::attempt::{Attempt, Ended, Recipe, outcome};
use support::cluster::{Cluster, ReachPod};
use support::fault::{Fault, Faults};
use support::site::Shared;

const HOSTS: [(&str, &[Role]); 5] = [
    ("bootstrap", &[Role::Bootstrap, Role::Master, Role::Etcd, Role::Infra]),
    ("master-2", &[Role::Master, Role::Etcd]),
    ("master-3", &[Role::Master, Role::Etcd]),
    ("master-4", &[Role::Master]),
    ("node-5", &[Role::Node]),
];
/// Rounds in which things go wrong; each runs what does not hold yet.
const TROUBLED: usize = 4;
/// Rounds in which nothing goes wrong any more, and all must hold.
const CALM: usize = 4;

/// SplitMix64: the same numbers from the same seed, for ever.
#[derive(Clone)]
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % sides
    }

    fn faults(&mut self) -> Faults {
        let mut dice = Self(self.roll(u64::MAX));
        Box::new(move |_: &Action| match dice.roll(40) {
            0 => Fault::FailsBefore,
            1 => Fault::FailsAfter,
            2 => Fault::KilledBefore,
            3 => Fault::KilledMidway,
            4 => Fault::KilledAfter,
            _ => Fault::None,
        })
    }
}

struct Play {
    world: Shared,
    dice: Dice,
    runs: usize,
    story: Vec<String>,
}

impl Play {
    fn new(seed: u64) -> Self {
        let mut cluster = Cluster::default();
        for (name, roles) in HOSTS {
            cluster.add_host(name, roles.iter().copied().collect());
        }
        Self { world: Arc::new(Mutex::new(cluster)), dice: Dice(seed), runs: 0, story: Vec::new() }
    }

    /// Runs side by side; the answer is who holds, and how much each changed.
    async fn run(&mut self, names: &[&'static str], calm: bool) -> Vec<(&'static str, Option<usize>)> {
        let mut runs = Vec::new();
        for name in names {
            self.runs += 1;
            let faults: Faults = if calm { Box::new(|_| Fault::None) } else { self.dice.faults() };
            let recipe = if *name == "bootstrap" { Recipe::Bootstrap } else { Recipe::Deploy };
            let (world, number) = (self.world.clone(), self.runs);
            runs.push(async move {
                let shown = Mutex::new(Vec::new());
                let attempt =
                    Attempt { world: &world, recipe, name, number, cancel: Cancel::never(), seen: &shown };
                let ended = attempt.run(faults).await;
                let mut shown = shown.into_inner().unwrap();
                shown.extend(outcome(&ended));
                let changed = match ended {
                    Ended::Held(summary) => Some(summary.changed),
                    Ended::Failed(_) | Ended::Killed => None,
                };
                (*name, changed, shown)
            });
        }
        let mut held = Vec::new();
        for (name, changed, shown) in futures::future::join_all(runs).await {
            self.story.extend(shown.into_iter().map(|line| format!("{name} | {line}")));
            held.push((name, changed));
        }
        let cluster = self.world.lock().unwrap();
        assert!(cluster.violations.is_empty(), "{:?}", cluster.violations);
        // A run that has ended has let go of the lease, or it expires.
        if let Some(lease) = &cluster.lease {
            assert!(lease.expires.is_some(), "the lease is held by {}, which has ended", lease.holder);
        }
        held
    }

    /// Something happens to the machines, but never so that etcd loses its quorum.
    fn disturb(&mut self) {
        let name = HOSTS[usize::try_from(self.dice.roll(5)).unwrap()].0;
        let event = self.dice.roll(6);
        let mut cluster = self.world.lock().unwrap();
        let voters = cluster.etcd.voters().count();
        let spare =
            cluster.etcd.voters().filter(|voter| voter.running).count().saturating_sub(voters / 2 + 1);
        let votes = cluster.etcd.voters().any(|voter| voter.name == name);
        let shown = match event {
            0 if name != "bootstrap" && (!votes || spare > 0) => {
                cluster.host(name).on = false;
                "goes off"
            }
            1 if name != "bootstrap" => {
                cluster.host(name).reached = false;
                "is cut off"
            }
            2 if !votes => {
                cluster.host(name).etcd_works = false;
                "cannot start etcd"
            }
            3 => {
                cluster.away_after_change = Duration::from_secs(20);
                "has an API that stutters"
            }
            4 => {
                cluster.reach_pods.insert(name.to_owned(), ReachPod::Ended);
                "has the pod of a run that failed long ago"
            }
            _ => return,
        };
        self.story.push(format!("{name} {shown}"));
    }

    fn repair(&mut self) {
        let mut cluster = self.world.lock().unwrap();
        for (name, _) in HOSTS {
            let host = cluster.host(name);
            (host.on, host.reached, host.etcd_works) = (true, true, true);
        }
        cluster.away_after_change = Duration::ZERO;
    }

    async fn play(&mut self) {
        let mut missing: Vec<&'static str> = vec!["bootstrap"];
        for round in 0..TROUBLED {
            self.disturb();
            // Which nodes are deployed together is left to the dice.
            let (mut one, mut other): (Vec<&str>, Vec<&str>) = (Vec::new(), Vec::new());
            for name in &missing {
                if self.dice.roll(2) == 0 { one.push(name) } else { other.push(name) }
            }
            for group in [one, other] {
                for (name, changed) in self.run(&group, false).await {
                    if changed.is_some() {
                        missing.retain(|other| *other != name);
                        if name == "bootstrap" {
                            missing.extend(HOSTS.iter().skip(1).map(|(name, _)| *name));
                        }
                    }
                }
            }
            if self.dice.roll(2) == 0 {
                self.repair();
            }
            let pause = self.dice.roll(60);
            sleep(Duration::from_secs(pause)).await;
            self.story.push(format!("round {round} ends, without {missing:?}"));
        }
        self.repair();
        self.converge().await;
        self.again_changes_nothing().await;
    }

    /// One calm round after the other, until everything holds in one.
    async fn converge(&mut self) {
        for _ in 0..CALM {
            let first = self.run(&["bootstrap"], true).await;
            let rest = self.run(&["master-2", "master-3", "master-4", "node-5"], true).await;
            if first.iter().chain(&rest).all(|(_, changed)| changed.is_some()) {
                return;
            }
        }
        panic!("it does not converge in {CALM} calm rounds");
    }

    async fn again_changes_nothing(&mut self) {
        // An API server without an etcd member of its own lists the voters of its time; it gets those that joined beside
        // it when its node is converged again.
        self.run(&["master-4"], true).await;
        for (name, _) in HOSTS {
            assert_eq!(self.run(&[name], true).await, [(name, Some(0))], "it holds already");
        }
        // Of a run that was killed, the lease expires.
        sleep(Duration::from_secs(31)).await;
        let mut cluster = self.world.lock().unwrap();
        cluster.pass(Instant::now());
        let voters: BTreeSet<&str> = cluster.etcd.voters().map(|voter| voter.name.as_str()).collect();
        assert_eq!(voters, BTreeSet::from(["bootstrap", "master-2", "master-3"]));
        assert!(cluster.etcd.members.iter().all(|member| member.running && !member.learner));
        assert!(cluster.lease.is_none() && cluster.reach_pods.is_empty());
        assert_eq!(cluster.etcd.begun, 1);
    }
}

fn number(variable: &str) -> Option<u64> {
    Some(std::env::var(variable).ok()?.parse().unwrap())
}

#[test]
fn a_cluster_grows_whatever_goes_wrong_on_the_way() {
    let seeds = match number("SIMULATION_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("SIMULATION_SEEDS").unwrap_or(200),
    };
    for seed in seeds {
        let mut play = Play::new(seed);
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let outcome =
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| runtime.block_on(play.play())));
        if outcome.is_err() {
            eprintln!("{}\n{}", play.story.join("\n"), play.world.lock().unwrap().show().join("\n"));
            panic!("SIMULATION_SEED={seed} fails");
        }
    }
}
