//! `etcd recover` over the simulated cluster: the decisions and the order of the real one, a step after the other.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use metalform::etcd::reconnection::{Listed, MemberNode, Reconnection, reconnection};
use metalform::etcd::recovery::{
    DiskState, EtcdPod, LogPosition, MemberCopy, MemberOnDisk, RecoveryObstacle, RecoveryPlan, plan,
};
use metalform::etcd::recovery_change::unchanged;
use metalform::etcd::recovery_order::{RecoveryStep, Stopped, order};
use metalform::model::role::Role;
use metalform::operation::goal::client_url;
use tokio::time::{Instant, sleep};

use super::cluster::Cluster;
use super::defect::Defect;
use super::dice::Dice;
use super::etcd::SimulatedMember;
use super::fault::Fault;
use super::host::{APISERVER, ETCD, MEMBER, address};
use super::site::Shared;

/// How long etcd, and then the API, may take to answer.
const LIMIT: Duration = Duration::from_secs(300);

/// A quorum that comes back in this time before a member is stopped may come too late to be seen.
const TOO_LATE: Duration = Duration::from_secs(20);

/// How a recovery ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecoveryEnd {
    /// These are deployed next.
    Recovered(Vec<String>),
    /// etcd has its quorum, and an API server uses it.
    Works,
    /// etcd has its quorum; the API servers of these use another member than their own, and they are deployed next.
    Reconnected(Vec<String>),
    Refused(RecoveryObstacle),
    Failed(String),
    Killed,
}

/// What to decide on.
pub enum Prepared {
    Recovery(RecoveryPlan<String>),
    Reconnection(Reconnection<String>),
}

/// A run of it.
pub struct Recovery<'a> {
    pub world: &'a Shared,
    /// The nodes as they are recorded.
    pub names: &'a [&'static str],
    pub dice: &'a Dice,
    /// A mishap comes once in so many steps; none without it.
    pub rarity: Option<u64>,
    /// The node whose member shall survive.
    pub named: Option<&'a str>,
    pub defect: Option<Defect>,
    /// Whether the process has ended.
    killed: AtomicBool,
}

impl<'a> Recovery<'a> {
    pub fn new(world: &'a Shared, names: &'a [&'static str], dice: &'a Dice, defect: Option<Defect>) -> Self {
        Self { world, names, dice, rarity: None, named: None, defect, killed: AtomicBool::new(false) }
    }

    /// What is to be done. Changes nothing.
    ///
    /// # Errors
    /// How the command ends instead.
    pub fn prepare(&self) -> Result<Prepared, RecoveryEnd> {
        let cluster = self.cluster();
        if cluster.etcd.observe().is_ok() {
            return self.reconnection(&cluster).map(Prepared::Reconnection);
        }
        let etcd: Vec<&str> = self.having(&cluster, Role::Etcd).collect();
        let masters = self.having(&cluster, Role::Master).filter(|name| !etcd.contains(name));
        // Of those without etcd, only that they do not answer.
        let silent = masters.filter(|name| !cluster.reaches(name));
        let inspected =
            |name| MemberOnDisk { node: str::to_owned(name), state: self.inspect(&cluster, name) };
        let members: Vec<MemberOnDisk<String>> = etcd.iter().copied().chain(silent).map(inspected).collect();
        plan(&members, self.named).map(Prepared::Recovery).map_err(RecoveryEnd::Refused)
    }

    fn cluster(&self) -> std::sync::MutexGuard<'_, Cluster> {
        let mut cluster = self.world.lock().unwrap();
        cluster.pass(Instant::now());
        cluster
    }

    fn having<'b>(
        &self,
        cluster: &'b Cluster,
        role: Role,
    ) -> impl Iterator<Item = &'static str> + use<'b, 'a> {
        self.names.iter().copied().filter(move |name| cluster.hosts[*name].roles.contains(&role))
    }

    /// What is to be done while etcd has its quorum.
    fn reconnection(&self, cluster: &Cluster) -> Result<Reconnection<String>, RecoveryEnd> {
        if cluster.api(Instant::now()).is_ok() || self.defect == Some(Defect::NotReconnected) {
            return Err(RecoveryEnd::Works);
        }
        let nodes = self.having(cluster, Role::Etcd).filter_map(|name| {
            let host = &cluster.hosts[name];
            let url = client_url(address(host.number));
            let listed = match cluster.etcd.members.iter().find(|member| member.client_url() == url) {
                Some(member) if !member.learner && cluster.etcd.is_well(member) => Listed::Healthy,
                _ if !cluster.reaches(name) => return None,
                Some(member) if !member.learner && host.etcd_data.is_none() => Listed::Lost,
                Some(_) => Listed::Silent,
                None => Listed::No,
            };
            let has_api_server = host.roles.contains(&Role::Master);
            Some(MemberNode { node: name.to_owned(), has_api_server, listed })
        });
        let named = self.named.map(str::to_owned);
        let nodes: Vec<MemberNode<String>> = nodes.collect();
        reconnection(&nodes, named.as_ref())
            .map_err(|obstacle| RecoveryEnd::Failed(format!("the API does not answer; {obstacle}")))
    }

    /// Carries a reconnection out, but for the deployment of its nodes.
    pub async fn reconnect(&self, plan: &Reconnection<String>) -> RecoveryEnd {
        {
            let cluster = self.cluster();
            let url = client_url(address(cluster.hosts[&plan.member].number));
            let is_it = |member: &&SimulatedMember| member.client_url() == url && !member.learner;
            let is_well =
                cluster.etcd.members.iter().find(is_it).is_some_and(|one| cluster.etcd.is_well(one));
            if cluster.etcd.observe().is_err() || !is_well {
                return RecoveryEnd::Failed("the member does not work any more".to_owned());
            }
            if cluster.api(Instant::now()).is_ok() {
                return RecoveryEnd::Works;
            }
        }
        let etcd = client_url(address(self.cluster().hosts[&plan.member].number));
        let mut outcome = Err("no API server".to_owned());
        for MemberNode { node, .. } in &plan.api_servers {
            let connected = self.on_host(node, |cluster, _| connect(cluster, node, &etcd)).await;
            outcome = outcome.or(connected);
            if self.killed.load(Ordering::Relaxed) {
                return RecoveryEnd::Killed;
            }
        }
        let done = match outcome {
            Ok(()) => self.wait("the API", |cluster, now| cluster.api(now).is_ok()).await,
            failed => failed,
        };
        match done {
            _ if self.killed.load(Ordering::Relaxed) => RecoveryEnd::Killed,
            Err(reason) => RecoveryEnd::Failed(reason),
            Ok(()) => {
                let deployed = plan.api_servers.iter().chain(&plan.joining);
                RecoveryEnd::Reconnected(deployed.map(|node| node.node.clone()).collect())
            }
        }
    }

    fn inspect(&self, cluster: &Cluster, name: &str) -> DiskState {
        let host = &cluster.hosts[name];
        let answering = cluster.etcd.members.iter().find(|member| Some(member.id) == host.etcd_data);
        let answering = answering.filter(|member| member.running && member.link.answers);
        let position = answering.and_then(|member| Some((member, cluster.etcd.stored(member.id)?)));
        let position = position.map(|(member, index)| {
            let index = if self.defect == Some(Defect::OneBehind) { u64::MAX - index } else { index };
            LogPosition { votes: !member.learner, index, revision: 0, cluster: None }
        });
        let data = host.etcd_data.or(host.sole);
        let last_write = Timestamp::UNIX_EPOCH;
        let has_leader = answering.is_some_and(|member| !member.learner) && cluster.etcd.observe().is_ok();
        let inspected = DiskState::Reached {
            pod: host.things.contains_key(ETCD).then(|| EtcdPod { image: String::new(), loaded: true }),
            data: data.map(|_| MemberCopy { last_write, position: None, has_leader }),
        };
        let reached = cluster.reaches(name);
        let inspected = if reached { Ok(inspected) } else { Err("no route to host".to_owned()) };
        DiskState::found(inspected, position.filter(|_| cluster.is_near(name)))
    }

    /// Carries a plan out, but for the deployment of its nodes.
    pub async fn carry_out(&self, plan: &RecoveryPlan<String>) -> RecoveryEnd {
        let masters = self.having(&self.cluster(), Role::Master).map(str::to_owned).collect::<Vec<_>>();
        let mut order = order(plan, &masters);
        match self.defect {
            Some(Defect::OthersLater) => {
                let stop =
                    order.steps.iter().position(|step| matches!(step, RecoveryStep::Stop { .. })).unwrap();
                order.steps.swap(stop, stop + 1);
            }
            Some(Defect::QuorumBack) => order.steps.retain(|step| !matches!(step, RecoveryStep::VerifyPlan)),
            _ => {}
        }
        for step in &order.steps {
            let done = match step {
                RecoveryStep::VerifyPlan => match self.prepare() {
                    Ok(Prepared::Recovery(now)) => unchanged(plan, &now).map_err(|change| change.to_string()),
                    Ok(Prepared::Reconnection(_)) => return RecoveryEnd::Works,
                    // A new plan says whether it stays so.
                    Err(RecoveryEnd::Refused(obstacle)) => Err(obstacle.to_string()),
                    Err(end) => return end,
                },
                RecoveryStep::ReadSnapshot => Ok(()),
                RecoveryStep::Stop { others, api_servers } => self.stop(others, api_servers.as_deref()).await,
                RecoveryStep::Continue(node) => self.go_on(plan, node).await,
                RecoveryStep::AwaitEtcd(node) => {
                    let url = client_url(address(self.cluster().hosts[node].number));
                    self.wait("etcd", |cluster, _| {
                        cluster.etcd.observe_through(std::slice::from_ref(&url), true).is_ok()
                    })
                    .await
                }
                RecoveryStep::AwaitApi(_) => {
                    self.wait("the API", |cluster, now| cluster.api(now).is_ok()).await
                }
            };
            if self.killed.load(Ordering::Relaxed) {
                return RecoveryEnd::Killed;
            }
            if let Err(reason) = done {
                return RecoveryEnd::Failed(reason);
            }
        }
        RecoveryEnd::Recovered(order.deployed)
    }

    /// Side by side, as far as it matters: each of them may be done or not when the run ends.
    async fn stop(&self, others: &[(String, Stopped)], api_servers: Option<&str>) -> Result<(), String> {
        let mut left: Vec<&(String, Stopped)> = others.iter().collect();
        let spared = (self.defect == Some(Defect::MemberLeft))
            .then(|| others.iter().find(|(node, _)| self.cluster().hosts[node].etcd_data.is_some()))
            .flatten();
        let etcd = api_servers.map(|node| client_url(address(self.cluster().hosts[node].number)));
        let mut outcome = Ok(());
        while !left.is_empty() && !self.killed.load(Ordering::Relaxed) {
            let next = self.dice.roll(u64::try_from(left.len()).unwrap());
            let (node, what) = left.remove(usize::try_from(next).unwrap());
            let what =
                if spared.is_some_and(|(other, _)| other == node) { Stopped::ControlPlane } else { *what };
            outcome = outcome.and(
                self.on_host(node, |cluster, midway| stop(cluster, (node, what), etcd.as_deref(), midway))
                    .await,
            );
        }
        outcome
    }

    async fn go_on(&self, plan: &RecoveryPlan<String>, node: &str) -> Result<(), String> {
        self.on_host(node, |cluster, midway| {
            if self.named.is_none() {
                check_furthest(cluster, plan);
            }
            go_on(cluster, node, midway)
        })
        .await
    }

    /// A script on a host, and what goes wrong with it.
    async fn on_host(
        &self,
        node: &str,
        act: impl FnOnce(&mut Cluster, bool) -> Result<(), String>,
    ) -> Result<(), String> {
        let fault = self.fault();
        sleep(self.dice.within(Duration::from_secs(2))).await;
        let lost = Err(format!("{node}: no route to host"));
        if !self.cluster().reaches(node) || fault == Fault::FailsBefore {
            return lost;
        }
        if fault != Fault::KilledBefore {
            act(&mut self.cluster(), fault == Fault::KilledMidway)?;
        }
        let killed = matches!(fault, Fault::KilledBefore | Fault::KilledMidway | Fault::KilledAfter);
        self.killed.fetch_or(killed, Ordering::Relaxed);
        if fault == Fault::FailsAfter { lost } else { Ok(()) }
    }

    fn fault(&self) -> Fault {
        let Some(rarity) = self.rarity else { return Fault::None };
        match self.dice.roll(rarity) {
            0 => Fault::FailsBefore,
            1 => Fault::FailsAfter,
            2 => Fault::KilledBefore,
            3 => Fault::KilledMidway,
            4 => Fault::KilledAfter,
            _ => Fault::None,
        }
    }

    async fn wait(&self, what: &str, holds: impl Fn(&Cluster, Instant) -> bool) -> Result<(), String> {
        if matches!(self.fault(), Fault::KilledBefore | Fault::KilledMidway | Fault::KilledAfter) {
            self.killed.store(true, Ordering::Relaxed);
            return Ok(());
        }
        let since = Instant::now();
        while since.elapsed() < LIMIT {
            if holds(&self.cluster(), Instant::now()) {
                return Ok(());
            }
            sleep(Duration::from_millis(500)).await;
        }
        Err(format!("{what} does not answer"))
    }
}

/// `stop_pods.sh` and what follows it. `etcd`: what API servers start again with. `midway`: the host loses its power before
/// the data is moved.
fn stop(
    cluster: &mut Cluster,
    (node, what): (&str, Stopped),
    etcd: Option<&str>,
    midway: bool,
) -> Result<(), String> {
    let now = Instant::now();
    if cluster.etcd.is_led() && cluster.disturbed.is_none_or(|at| now > at + TOO_LATE) {
        cluster.violations.push(format!("{node} is stopped, and etcd has its quorum"));
    }
    let host = cluster.host(node);
    host.end_pods(&[ETCD, APISERVER], now);
    host.things.retain(|id, _| !id.starts_with("static_pod:kube-") || etcd.is_some() && id == APISERVER);
    if let (Some(etcd), Some(endpoints)) = (etcd, host.things.get_mut(APISERVER)) {
        etcd.clone_into(endpoints);
    }
    if what == Stopped::Member {
        host.things.remove(ETCD);
        if !midway {
            host.set_aside();
        }
    }
    cluster.pass(now);
    Ok(())
}

/// `point_api_server.sh`, after `stop_pods.sh`.
fn connect(cluster: &mut Cluster, node: &str, etcd: &str) -> Result<(), String> {
    let now = Instant::now();
    let host = cluster.host(node);
    host.end_pods(&[APISERVER], now);
    let endpoints = host.things.get_mut(APISERVER).ok_or("there is no static pod of kube-apiserver")?;
    etcd.clone_into(endpoints);
    cluster.pass(now);
    Ok(())
}

/// `recover.sh`. `midway`: the host loses its power when the old data was moved away, and the new is not in its place.
fn go_on(cluster: &mut Cluster, node: &str, midway: bool) -> Result<(), String> {
    let now = Instant::now();
    let host = cluster.host(node);
    if !host.etcd_works {
        return Err(format!("{node}: etcd does not start"));
    }
    host.end_pods(&[ETCD, APISERVER], now);
    if let Some(data) = host.set_aside() {
        host.sole = Some(data);
    }
    let sole = host.sole.ok_or("cp: cannot stat '/var/lib/etcd/member'")?;
    if midway {
        cluster.pass(now);
        return Ok(());
    }
    (host.sole, host.etcd_data) = (None, Some(sole));
    host.things.insert(MEMBER.to_owned(), String::new());
    cluster.disturbed = Some(now);
    if !cluster.etcd.continue_alone(sole) {
        cluster.violations.push(format!("{node} goes on with data that no cluster knows"));
    }
    cluster.pass(now);
    Ok(())
}

/// Of the members that were reached, none has come further than the one that goes on.
fn check_furthest(cluster: &mut Cluster, plan: &RecoveryPlan<String>) {
    let come = |node: &str| {
        let host = &cluster.hosts[node];
        let ids = host.aside.iter().chain(&host.etcd_data).chain(&host.sole);
        ids.filter_map(|id| cluster.etcd.stored(*id)).max()
    };
    let survivor = come(&plan.survivor.node);
    let further = plan.set_aside.iter().find(|member| come(&member.node) > survivor);
    if let Some(member) = further {
        let line = format!("etcd goes on with {}, which is behind {}", plan.survivor.node, member.node);
        cluster.violations.push(line);
    }
}
