//! One seed: a cluster grows in rounds in which everything may go wrong, and then in calm ones.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use metalform::engine::cancel::{self, CancelLevel};
use metalform::etcd::membership::Obstacle;
use metalform::model::role::Role;
use metalform::operation::contract::Blocker;
use metalform::operation::driver::RunFault;
use metalform::operation::effect::Action;
use metalform::operation::run::RunError;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use crate::disturbance::{disturb, heal};
use crate::support::attempt::{Attempt, Circumstances, Ended, Recipe, outcome};
use crate::support::cluster::Cluster;
use crate::support::defect::Defect;
use crate::support::dice::Dice;
use crate::support::etcd::Load;
use crate::support::fault::{Fault, Faults};
use crate::support::luck::Luck;
use crate::support::site::Shared;

pub type Subject = (&'static str, &'static [Role]);

pub const FIRST: Subject = ("bootstrap", &[Role::Bootstrap, Role::Master, Role::Etcd, Role::Infra]);
const VOTERS: [Subject; 4] = [
    ("master-2", &[Role::Master, Role::Etcd]),
    ("etcd-3", &[Role::Etcd]),
    ("master-4", &[Role::Master, Role::Etcd]),
    ("etcd-5", &[Role::Etcd]),
];
const OTHERS: [Subject; 2] = [("master-6", &[Role::Master]), ("node-7", &[Role::Node])];
/// Rounds in which nothing goes wrong any more, and all must hold.
const CALM: usize = 5;

pub struct Play {
    pub world: Shared,
    pub story: Arc<Mutex<Vec<String>>>,
    pub dice: Dice,
    pub defect: Option<Defect>,
    /// A mishap comes once in so many effects.
    rarity: u64,
    pub hosts: Vec<Subject>,
    /// Nodes whose etcd member has lost its data, as a run has found out: people then ask for another one.
    pub lost: BTreeSet<&'static str>,
    /// Nodes that are being removed.
    pub leaving: BTreeSet<&'static str>,
    /// Whether etcd is recovered: the first node is deployed as the others then.
    pub recovering: bool,
    began: Option<Instant>,
    runs: usize,
}

/// A run of a node that has ended.
struct RunEnd {
    name: &'static str,
    /// How much it changed, if all held.
    changed: Option<usize>,
    /// Whether it found that the member's data is lost.
    data_lost: bool,
}

/// The node, and how much its run changed if all held.
pub type Changed = (&'static str, Option<usize>);

impl Play {
    pub fn new(seed: u64, defect: Option<Defect>) -> Self {
        let dice = Dice::new(seed);
        let mut hosts = vec![FIRST];
        if dice.one_in(8) {
            hosts.extend(VOTERS.iter().filter(|(_, roles)| !roles.contains(&Role::Master)));
        } else {
            hosts.extend(&VOTERS[..usize::try_from(1 + dice.roll(4)).unwrap()]);
        }
        if dice.one_in(3) {
            hosts.push(*dice.pick(&OTHERS));
        }
        let mut cluster = Cluster::default();
        for (name, roles) in &hosts {
            cluster.add_host(name, roles.iter().copied().collect());
        }
        cluster.etcd.load = Load {
            writes: dice.roll(400),
            database: *dice.pick(&[0, 20 << 20, 500 << 20, 2 << 30]),
            election: Duration::from_millis(1000 + dice.roll(2000)),
            maturing: Duration::from_secs(5),
        };
        let rarity = *dice.pick(&[15, 40, 100, 400]);
        let world = Arc::new(Mutex::new(cluster));
        let story = Arc::new(Mutex::new(Vec::new()));
        Self {
            world,
            story,
            dice,
            defect,
            rarity,
            hosts,
            lost: BTreeSet::new(),
            leaving: BTreeSet::new(),
            recovering: false,
            began: None,
            runs: 0,
        }
    }

    /// From nothing to a cluster that holds.
    ///
    /// # Errors
    /// What happened that must not.
    pub async fn play(&mut self) -> Result<(), String> {
        self.began = Some(Instant::now());
        let mut missing = self.begin().await?;
        for round in 0..=self.dice.roll(2) {
            let (one, other): (Vec<&str>, Vec<&str>) = missing.iter().partition(|_| self.dice.one_in(2));
            for mut group in [one, other] {
                // What holds already is deployed again, now and then.
                let again = *self.dice.pick(&self.names());
                if self.dice.one_in(4) && !missing.contains(&FIRST.0) && !group.contains(&again) {
                    group.push(again);
                }
                for (name, changed) in self.troubled(&group).await? {
                    if changed.is_some() {
                        if missing.contains(&FIRST.0) {
                            missing.extend(self.names().into_iter().filter(|name| *name != FIRST.0));
                        }
                        missing.retain(|other| *other != name);
                    }
                }
            }
            let pause = self.dice.within(Duration::from_secs(60));
            sleep(pause).await;
            self.tell(&format!("round {round} ends, without {missing:?}"));
        }
        self.repair();
        self.converge().await?;
        if self.dice.one_in(3) {
            self.change_roles().await?;
        }
        if self.dice.one_in(2) {
            self.shrink().await?;
        }
        // A recovery takes as long as all else: not in every play.
        if self.dice.one_in(6) || self.defect.is_some_and(Defect::is_of_recovery) {
            self.lose_quorum().await?;
        }
        self.hold_still().await
    }

    /// Some nodes leave, whatever goes wrong meanwhile; some of them come back.
    async fn shrink(&mut self) -> Result<(), String> {
        let others = self.names().split_off(1);
        self.leaving = others.iter().copied().filter(|_| self.dice.one_in(2)).collect();
        if self.leaving.is_empty() {
            self.leaving.insert(*self.dice.pick(&others));
        }
        let leaving: Vec<&str> = self.leaving.iter().copied().collect();
        self.tell(&format!("{leaving:?} leave"));
        for name in &leaving {
            self.world.lock().unwrap().run_pod(&format!("of-{name}"), name, true);
        }
        for _ in 0..self.dice.roll(3) {
            self.troubled(&leaving).await?;
        }
        self.repair();
        self.converge().await?;
        let gone = std::mem::take(&mut self.leaving);
        {
            let cluster = self.world.lock().unwrap();
            let there = |name: &&&str| {
                cluster.nodes.contains_key(**name)
                    || cluster.etcd.members.iter().any(|one| one.name == **name)
            };
            if let Some(name) = gone.iter().find(there) {
                return Err(format!("{name} was removed, and is there"));
            }
        }
        if self.dice.one_in(2) {
            self.hosts.retain(|(name, _)| !gone.contains(name));
            return Ok(());
        }
        for name in gone {
            self.world.lock().unwrap().nodes.entry(name.to_owned()).or_default();
        }
        self.converge().await
    }

    /// Some clusters have some of their nodes already. The answer is what is to be deployed.
    async fn begin(&mut self) -> Result<Vec<&'static str>, String> {
        let names = self.names();
        if self.dice.one_in(3) {
            return Ok(vec![FIRST.0]);
        }
        let there = usize::try_from(self.dice.roll(u64::try_from(names.len()).unwrap())).unwrap();
        for name in &names[..there] {
            let ended = self.calm(&[name]).await?;
            if ended.iter().any(|(_, changed)| changed.is_none()) {
                return Err(format!("{name} is not deployed, with nothing going wrong"));
            }
        }
        Ok(if there == 0 { vec![FIRST.0] } else { names[there..].to_vec() })
    }

    pub fn names(&self) -> Vec<&'static str> {
        self.hosts.iter().map(|(name, _)| *name).collect()
    }

    pub fn tell(&self, what: &str) {
        tell(&self.story, self.began, what);
    }

    pub fn repair(&self) {
        let mut cluster = self.world.lock().unwrap();
        cluster.disturbed = Some(Instant::now());
        self.names().into_iter().for_each(|name| heal(&mut cluster, name));
    }

    /// Runs side by side, whatever happens meanwhile; at some time what is left of them is killed.
    pub async fn troubled(&mut self, names: &[&'static str]) -> Result<Vec<Changed>, String> {
        if names.is_empty() {
            return Ok(Vec::new());
        }
        // metalform runs on the first host.
        self.world.lock().unwrap().host(FIRST.0).on = true;
        let (killing, killed) = watch::channel(false);
        let weather = weather(Weather {
            world: self.world.clone(),
            dice: self.dice.split(),
            names: self.names(),
            until: Instant::now() + Duration::from_secs(20) + self.dice.within(Duration::from_secs(280)),
            killing,
            story: self.story.clone(),
            began: self.began,
        });
        let runs = self.runs(names, true, &killed);
        let ended = tokio::select! {
            biased;
            ended = runs => ended,
            () = weather => Vec::new(),
        };
        self.settle(ended)
    }

    /// Runs side by side, without any fault.
    pub async fn calm(&mut self, names: &[&'static str]) -> Result<Vec<Changed>, String> {
        let (_killing, killed) = watch::channel(false);
        let ended = self.runs(names, false, &killed).await;
        self.settle(ended)
    }

    fn settle(&mut self, ended: Vec<RunEnd>) -> Result<Vec<Changed>, String> {
        for RunEnd { name, changed, data_lost } in &ended {
            if *data_lost {
                self.lost.insert(*name);
            } else if changed.is_some() {
                self.lost.remove(name);
            }
        }
        self.check()?;
        Ok(ended.into_iter().map(|RunEnd { name, changed, .. }| (name, changed)).collect())
    }

    fn runs(
        &mut self,
        names: &[&'static str],
        troubled: bool,
        killed: &watch::Receiver<bool>,
    ) -> impl Future<Output = Vec<RunEnd>> + use<> {
        let runs: Vec<_> = names
            .iter()
            .map(|name| {
                self.runs += 1;
                let dice = self.dice.split();
                let mut killed = killed.clone();
                let (world, story) = (self.world.clone(), self.story.clone());
                let (began, defect, rarity, number) = (self.began, self.defect, self.rarity, self.runs);
                let (name, beside) = (*name, names.to_vec());
                let replace = self.lost.contains(name);
                let offline = {
                    let mut cluster = self.world.lock().unwrap();
                    cluster.host(name).replace_member = replace;
                    cluster.hosts[name].gone
                };
                let recipe = match name {
                    name if self.leaving.contains(name) => Recipe::Remove { offline },
                    name if name == FIRST.0 && !replace && !self.recovering => Recipe::Bootstrap,
                    _ => Recipe::Deploy,
                };
                async move {
                    let (handle, cancel) = cancel::channel();
                    let luck =
                        if troubled { Luck::of(dice.split(), rarity) } else { Luck::uneven(dice.split()) };
                    let faults =
                        if troubled { faults(dice, rarity, handle) } else { Box::new(|_: &_| Fault::None) };
                    let seen = Mutex::new(Vec::new());
                    let beside: &[&str] = if recipe == Recipe::Deploy { &beside } else { &[] };
                    let attempt =
                        Attempt { world: &world, recipe, name, beside, number, cancel, seen: &seen };
                    let ended = tokio::select! {
                        biased;
                        _ = killed.wait_for(|killed| *killed) => Ended::Killed,
                        ended = attempt.run_in(Circumstances { faults, luck, defect }) => ended,
                    };
                    let lines = seen.into_inner().unwrap();
                    for line in lines.into_iter().chain(outcome(&ended)) {
                        tell(&story, began, &format!("{name} | {line}"));
                    }
                    RunEnd { name, changed: changed(&ended), data_lost: has_lost_data(&ended) }
                }
            })
            .collect();
        futures::future::join_all(runs)
    }

    pub fn check(&self) -> Result<(), String> {
        let mut cluster = self.world.lock().unwrap();
        cluster.pass(Instant::now());
        // What lasts is found at every look.
        cluster.violations.dedup();
        if !cluster.violations.is_empty() {
            return Err(cluster.violations.join("; "));
        }
        match &cluster.lease {
            Some(lease) if lease.has_keeper() => {
                Err(format!("the lease is renewed by {}, which has ended", lease.holder))
            }
            _ => Ok(()),
        }
    }

    /// One calm round after the other, until everything holds in one.
    pub async fn converge(&mut self) -> Result<(), String> {
        let names = self.names();
        let mut left = Vec::new();
        for _ in 0..CALM {
            let mut ended = self.calm(&names[..1]).await?;
            ended.extend(self.calm(&names[1..]).await?);
            left = ended.into_iter().filter(|(_, changed)| changed.is_none()).map(|(name, _)| name).collect();
            if left.is_empty() {
                return Ok(());
            }
        }
        Err(format!("does not converge in {CALM} calm rounds: {left:?}"))
    }

    /// What holds is not changed by another run, and is what it should be.
    async fn hold_still(&mut self) -> Result<(), String> {
        let names = self.names();
        // A proxy that could not be reached learns of the last API server when its node is converged.
        self.calm(&names).await?;
        for name in names {
            let ended = self.calm(&[name]).await?;
            if ended != [(name, Some(0))] {
                return Err(format!("it holds already, and is changed again: {ended:?}"));
            }
        }
        // Of a run that was killed, the lease expires.
        sleep(Duration::from_secs(31)).await;
        self.check()?;
        let cluster = self.world.lock().unwrap();
        let voters: BTreeSet<&str> = cluster.etcd.voters().map(|voter| voter.name.as_str()).collect();
        let etcd = self.hosts.iter().filter(|(_, roles)| roles.contains(&Role::Etcd));
        let wanted: BTreeSet<&str> = etcd.map(|(name, _)| *name).collect();
        let holds = [
            (voters == wanted, "the voters are others"),
            (
                cluster.etcd.members.iter().all(|member| member.running && !member.learner),
                "a member does not vote",
            ),
            (cluster.lease.is_none(), "the lease is not free"),
            (cluster.reach_pods.is_empty(), "a pod was left"),
            (cluster.etcd.begun == 1, "etcd began more than once"),
        ];
        match holds.iter().find(|(holds, _)| !holds) {
            None => Ok(()),
            Some((_, complaint)) => Err((*complaint).to_owned()),
        }
    }
}

fn changed(ended: &Ended) -> Option<usize> {
    match ended {
        Ended::Held(summary) => Some(summary.changed),
        Ended::Failed(_) | Ended::Killed => None,
    }
}

fn has_lost_data(ended: &Ended) -> bool {
    use Obstacle::{DataLost, FirstDataLost, Irreplaceable};
    let Ended::Failed(RunError::Fault(RunFault::Blocked { blocker, .. })) = ended else { return false };
    matches!(blocker, Blocker::Etcd(DataLost { .. } | FirstDataLost { .. } | Irreplaceable { .. }))
}

fn tell(story: &Mutex<Vec<String>>, began: Option<Instant>, what: &str) {
    let at = began.map_or(0, |began| began.elapsed().as_millis());
    story.lock().unwrap().push(format!("{:>8}.{:03} {what}", at / 1000, at % 1000));
}

/// What goes wrong with the actions of one run; it may be cancelled, too.
fn faults(dice: Dice, rarity: u64, handle: cancel::CancelHandle) -> Faults {
    Box::new(move |_: &Action| {
        if dice.one_in(rarity * 2) {
            handle.cancel(if dice.one_in(4) { CancelLevel::Now } else { CancelLevel::AfterResource });
        }
        match dice.roll(rarity) {
            0 => Fault::FailsBefore,
            1 => Fault::FailsAfter,
            2 => *dice.pick(&[Fault::KilledBefore, Fault::KilledMidway, Fault::KilledAfter]),
            _ => Fault::None,
        }
    })
}

struct Weather {
    world: Shared,
    dice: Dice,
    names: Vec<&'static str>,
    until: Instant,
    killing: watch::Sender<bool>,
    story: Arc<Mutex<Vec<String>>>,
    began: Option<Instant>,
}

/// Things happen until the time is up, or the host of metalform itself goes off; both kill every run.
async fn weather(Weather { world, dice, names, until, killing, story, began }: Weather) {
    while Instant::now() < until {
        sleep(Duration::from_millis(200) + dice.within(Duration::from_secs(4))).await;
        let mut cluster = world.lock().unwrap();
        cluster.pass(Instant::now());
        if dice.one_in(4) {
            let what = disturb(&mut cluster, &names, &dice, Instant::now());
            tell(&story, began, &what);
        }
        if !cluster.hosts[FIRST.0].on {
            break;
        }
    }
    tell(&story, began, "every run is killed");
    killing.send_replace(true);
    std::future::pending().await
}
