//! etcd loses its quorum, and goes on with the data of one member; or every API server loses the member beside it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use metalform::etcd::quorum::quorum;
use metalform::etcd::recovery::RecoveryObstacle;
use metalform::model::role::Role;
use tokio::time::{Instant, sleep};

use crate::play::{FIRST, Play};
use crate::support::host::ETCD;
use crate::support::recovery::{Prepared, Recovery, RecoveryEnd};

/// Runs of the recovery at most.
const RUNS: usize = 12;
/// How long an API server may take to answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// What becomes of a member that is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// Its data is destroyed.
    Destroyed,
    /// Its machine never comes back.
    Gone,
    /// Its machine is off, and comes back as it was.
    Away,
    /// etcd does not start, and then does again.
    Broken,
}

type Fates = BTreeMap<&'static str, Fate>;

impl Play {
    /// Most members are lost. A recovery follows, whatever goes wrong with it, and all machines come back that will.
    pub async fn lose_quorum(&mut self) -> Result<(), String> {
        let voters = self.having(Role::Etcd);
        if voters.len() < 2 {
            return Ok(());
        }
        self.lag(&voters).await;
        let fates = self.fates(&voters);
        self.tell(&format!("members are lost: {fates:?}"));
        fates.iter().for_each(|(name, fate)| self.meet(name, *fate));
        let had = self.data();
        self.pause(self.dice.within(Duration::from_secs(20))).await;
        self.recovering = true;
        self.recover(&fates).await?;
        let kept = self.world.lock().unwrap().etcd.committed();
        self.come_back(&fates);
        self.repair();
        self.bury(&fates).await?;
        self.converge().await?;
        self.recovering = false;
        let cluster = self.world.lock().unwrap();
        if cluster.etcd.committed() < kept {
            return Err("what the survivor had is lost".to_owned());
        }
        let is_there = |(name, id): &(&&str, &u64)| {
            let host = &cluster.hosts[**name];
            host.aside.contains(id) || host.etcd_data == Some(**id) || host.destroyed.contains(id)
        };
        match had.iter().find(|data| !is_there(data)) {
            None => Ok(()),
            Some((name, _)) => Err(format!("the data of etcd on {name} was deleted")),
        }
    }

    fn having(&self, role: Role) -> Vec<&'static str> {
        self.hosts.iter().filter(|(_, roles)| roles.contains(&role)).map(|(name, _)| *name).collect()
    }

    /// Which hosts have data of which members.
    fn data(&self) -> BTreeMap<&'static str, u64> {
        let cluster = self.world.lock().unwrap();
        self.names().into_iter().filter_map(|name| Some((name, cluster.hosts[name].etcd_data?))).collect()
    }

    /// Some members come less far than others.
    async fn lag(&self, voters: &[&'static str]) {
        let lagging = u64::try_from(voters.len() - quorum(voters.len()) + 1).unwrap();
        for _ in 0..self.dice.roll(lagging) {
            let name = *self.dice.pick(voters);
            self.world.lock().unwrap().host(name).lags = true;
        }
        self.pause(self.dice.within(Duration::from_secs(20))).await;
    }

    /// Members go on by themselves meanwhile.
    async fn pause(&self, time: Duration) {
        let until = Instant::now() + time;
        while Instant::now() < until {
            sleep(Duration::from_secs(1)).await;
            self.world.lock().unwrap().pass(Instant::now());
        }
    }

    /// Most of them; never so many that come back by themselves that they had a quorum. Or those beside an API server, where
    /// the others have quorum.
    fn fates(&self, voters: &[&'static str]) -> Fates {
        let masters = self.having(Role::Master);
        let (beside, apart): (Vec<_>, Vec<_>) = voters.iter().partition(|name| masters.contains(name));
        if apart.len() >= quorum(voters.len()) && self.dice.one_in(2) {
            return beside.into_iter().map(|name| (name, Fate::Destroyed)).collect();
        }
        let most = voters.len() - quorum(voters.len()) + 1;
        let more = self.dice.roll(u64::try_from(voters.len() - most).unwrap());
        let mut left = voters.to_vec();
        let mut fates = Fates::new();
        while fates.len() < most + usize::try_from(more).unwrap() {
            let next = self.dice.roll(u64::try_from(left.len()).unwrap());
            let name = left.remove(usize::try_from(next).unwrap());
            let away = fates.values().filter(|fate| **fate == Fate::Away).count();
            // metalform runs on the first host.
            let fate = match self.dice.roll(4) {
                0 if name != FIRST.0 => Fate::Gone,
                1 if name != FIRST.0 && away + 1 < quorum(voters.len()) => Fate::Away,
                2 => Fate::Broken,
                _ => Fate::Destroyed,
            };
            fates.insert(name, fate);
        }
        // An API server without etcd, too.
        let masters = masters.into_iter().filter(|name| !voters.contains(name));
        fates.extend(masters.filter(|_| self.dice.one_in(2)).map(|name| (name, Fate::Gone)));
        fates
    }

    fn meet(&self, name: &str, fate: Fate) {
        let mut cluster = self.world.lock().unwrap();
        cluster.pass(Instant::now());
        cluster.disturbed = Some(Instant::now());
        let host = cluster.host(name);
        match fate {
            Fate::Destroyed => drop(host.lose_data()),
            Fate::Gone => (host.on, host.gone) = (false, true),
            Fate::Away => host.on = false,
            Fate::Broken => host.etcd_works = false,
        }
        cluster.pass(Instant::now());
    }

    /// The same command until it is done, or etcd has its quorum. Meanwhile, machines come back.
    async fn recover(&mut self, fates: &Fates) -> Result<(), String> {
        let troubled = usize::try_from(self.dice.roll(5)).unwrap();
        let mut named = None;
        for run in 0..RUNS {
            let ended = self.recover_once(fates, named, run < troubled).await;
            self.tell(&format!("recovery of {named:?} | {ended:?}"));
            self.check()?;
            match ended {
                RecoveryEnd::Works if self.api_answers().await => return Ok(()),
                // It came back while the plan was carried out.
                RecoveryEnd::Works => {}
                RecoveryEnd::Reconnected(nodes) => {
                    let nodes = self.among(&nodes);
                    self.lost.extend(&nodes);
                    if run < troubled {
                        self.troubled(&nodes).await?;
                    } else {
                        self.calm(&nodes).await?;
                    }
                    return Ok(());
                }
                RecoveryEnd::Recovered(nodes) => {
                    if self.dice.one_in(2) {
                        self.come_back(fates);
                        self.pause(Duration::from_secs(5)).await;
                        self.check()?;
                    }
                    let nodes = self.among(&nodes);
                    if run < troubled {
                        self.troubled(&nodes).await?;
                    } else {
                        self.calm(&nodes).await?;
                    }
                    return Ok(());
                }
                RecoveryEnd::Refused(RecoveryObstacle::Undecided { .. } | RecoveryObstacle::Learner(_)) => {
                    named = self.best();
                }
                // It is off by the time of a later run, or SSH reaches it.
                RecoveryEnd::Refused(RecoveryObstacle::Running { .. }) => {}
                RecoveryEnd::Refused(obstacle) => return Err(format!("cannot be recovered: {obstacle}")),
                RecoveryEnd::Failed(_) | RecoveryEnd::Killed => {}
            }
            if self.dice.one_in(3) {
                self.one_comes_back(fates);
            }
        }
        Err(format!("is not recovered in {RUNS} runs"))
    }

    fn among(&self, nodes: &[String]) -> Vec<&'static str> {
        self.names().into_iter().filter(|name| nodes.iter().any(|node| node == name)).collect()
    }

    /// Whether an API server does, after a while.
    async fn api_answers(&self) -> bool {
        let until = Instant::now() + PATIENCE;
        loop {
            self.pause(Duration::from_secs(1)).await;
            let answers = self.world.lock().unwrap().api(Instant::now()).is_ok();
            if answers || Instant::now() >= until {
                return answers;
            }
        }
    }

    async fn recover_once(&self, fates: &Fates, named: Option<&str>, troubled: bool) -> RecoveryEnd {
        let names = self.names();
        let mut recovery = Recovery::new(&self.world, &names, &self.dice, self.defect);
        (recovery.rarity, recovery.named) = (troubled.then_some(15), named);
        let prepared = match recovery.prepare() {
            Ok(prepared) => prepared,
            Err(ended) => return ended,
        };
        // A person reads it.
        self.pause(self.dice.within(Duration::from_secs(60))).await;
        if troubled && self.dice.one_in(4) {
            self.one_comes_back(fates);
            self.pause(Duration::from_secs(30)).await;
        }
        match prepared {
            Prepared::Recovery(plan) => recovery.carry_out(&plan).await,
            Prepared::Reconnection(plan) => recovery.reconnect(&plan).await,
        }
    }

    /// The node that a person would name: of those with data and a pod, where etcd starts, of the voters the one that has come furthest.
    fn best(&self) -> Option<&'static str> {
        let cluster = self.world.lock().unwrap();
        let has = |name: &&'static str| {
            let host = &cluster.hosts[*name];
            let usable = cluster.reaches(name) && host.things.contains_key(ETCD);
            let data = host.etcd_data.or(host.sole).filter(|_| usable)?;
            let votes = cluster.etcd.members.iter().any(|member| member.id == data && !member.learner);
            Some((host.etcd_works, votes, cluster.etcd.stored(data), *name))
        };
        self.names().iter().filter_map(has).max().map(|(.., name)| name)
    }

    fn one_comes_back(&self, fates: &Fates) {
        let names: Vec<&&'static str> = fates.keys().collect();
        let name = *self.dice.pick(&names);
        self.come_back(&[(*name, fates[name])].into());
    }

    fn come_back(&self, fates: &Fates) {
        let mut cluster = self.world.lock().unwrap();
        cluster.disturbed = Some(Instant::now());
        for (name, fate) in fates {
            let host = cluster.host(name);
            match fate {
                Fate::Away => host.on = true,
                Fate::Broken => host.etcd_works = true,
                Fate::Destroyed | Fate::Gone => {}
            }
        }
        cluster.pass(Instant::now());
    }

    /// Machines that never come back are replaced, or their nodes removed.
    async fn bury(&mut self, fates: &Fates) -> Result<(), String> {
        let gone = fates.iter().filter(|(_, fate)| **fate == Fate::Gone).map(|(name, _)| *name);
        let (removed, replaced): (BTreeSet<&str>, BTreeSet<&str>) = gone.partition(|_| self.dice.one_in(2));
        self.tell(&format!("{removed:?} are removed, {replaced:?} are replaced"));
        for name in replaced {
            let mut cluster = self.world.lock().unwrap();
            cluster.reinstall(name);
            (cluster.host(name).on, cluster.host(name).gone) = (true, false);
        }
        self.leaving.clone_from(&removed);
        self.converge().await?;
        self.leaving.clear();
        self.hosts.retain(|(name, _)| !removed.contains(name));
        Ok(())
    }
}
