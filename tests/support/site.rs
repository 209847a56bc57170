//! [`Site`] over the simulated cluster, with faults on request.

use std::collections::{BTreeMap, BTreeSet};
use std::future::pending;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use async_trait::async_trait;
use metalform::apiserver::client::{ApiError, Attempt};
use metalform::apiserver::lease::LeaseError;
use metalform::engine::host::HostError;
use metalform::etcd::act::ActError;
use metalform::expand::goal::Goal;
use metalform::expand::layer::Layer;
use metalform::expand::phase::{Action, Look};
use metalform::expand::site::{Done, Site, Trouble};
use metalform::expand::values::{Given, Values, values};
use metalform::expand::world::{NodeView, Proxies, Seen, World};
use metalform::model::cluster;
use metalform::transport::error::TransportError;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};

use super::cluster::{Cluster, Lease, ReachPod};
use super::given;
use super::host::{ETCD, PROXY};

pub type Shared = Arc<Mutex<Cluster>>;

/// What goes wrong with an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    None,
    /// It fails and nothing happened.
    FailsBefore,
    /// It fails although it was done: the answer is lost.
    FailsAfter,
    /// The run ends here.
    KilledBefore,
    /// The run ends in the middle of it, where it has one.
    KilledMidway,
    /// The run ends with it.
    KilledAfter,
}

pub type Faults = Box<dyn FnMut(&Action) -> Fault + Send + Sync>;

/// More looks and actions than any run that ends.
const ENDLESS: usize = 20_000;
/// As in the real site.
const LEASE_LIMIT: Duration = Duration::from_secs(900);

pub struct FakeSite {
    pub world: Shared,
    pub goal: Goal,
    /// Unlike that of any other run.
    pub run: String,
    pub faults: Faults,
    pub killed: Arc<Notify>,
    /// Whether preflight held: nothing may be done before.
    pub fit: Arc<AtomicBool>,
    pub given: cluster::Cluster,
    pub count: usize,
}

impl FakeSite {
    fn name(&self) -> &str {
        self.goal.name.as_str()
    }

    fn token(&self) -> String {
        format!("token of {}", self.run)
    }

    fn lock(&self) -> MutexGuard<'_, Cluster> {
        let mut cluster = self.world.lock().unwrap();
        cluster.pass(Instant::now());
        cluster
    }

    fn api(&self, verb: &'static str) -> Result<(), Trouble> {
        let answer = self.lock().api(Instant::now());
        answer.map_err(|reason| {
            let attempt = Attempt { verb, object: "it".to_owned() };
            Trouble::Api(ApiError::Unreachable { attempt, reason })
        })
    }

    fn ssh(&self) -> Result<(), Trouble> {
        let cluster = self.lock();
        let host = &cluster.hosts[self.name()];
        if host.on && host.reached { Ok(()) } else { Err(lost(self.name())) }
    }

    fn values<'a>(&'a self, layer: &Layer, world: &'a World, token: &'a str) -> Values<'a> {
        let facts = world.facts.as_ref().expect("a plan comes after the facts");
        values(
            &self.goal,
            facts,
            world,
            layer,
            Given { cluster: &self.given, taints: &[], join_token: token },
        )
    }

    async fn take_lease(&self) -> Result<(), Trouble> {
        let began = Instant::now();
        loop {
            {
                let mut cluster = self.lock();
                let free = cluster.lease.as_ref().is_none_or(|lease| lease.holder == self.run);
                if free && cluster.api(Instant::now()).is_ok() {
                    cluster.lease = Some(Lease { holder: self.run.clone(), expires: None });
                    return Ok(());
                }
            }
            if began.elapsed() > LEASE_LIMIT {
                return Err(Trouble::Lease(LeaseError::Taken { who: "somebody".to_owned() }));
            }
            sleep(Duration::from_millis(200)).await;
        }
    }

    /// The proxy of another node, as it is and as it should be.
    fn proxies(&self, world: &World) -> Vec<(String, Result<String, String>)> {
        let cluster = self.lock();
        let deployed = world
            .peers
            .iter()
            .flatten()
            .filter(|(_, peer)| peer.control_plane_ip.is_some() && !peer.machine_id.is_empty());
        let mut stale = Vec::new();
        for (name, _) in deployed {
            let host = &cluster.hosts[name];
            let goal = given::goal(name, &host.roles, host.number);
            let theirs = World {
                facts: Some(host.facts.clone()),
                node: Some(cluster.nodes.get(name).cloned()),
                peers: Some(cluster.peers(name)),
                ..World::default()
            };
            let given = Given { cluster: &self.given, taints: &[], join_token: "" };
            let wanted = values(&goal, &host.facts, &theirs, &Layer::Proxy, given).peers.masters;
            let wanted: Vec<&str> = wanted.iter().map(|master| master.name.as_str()).collect();
            let wanted = wanted.join(" ");
            if !host.on || !host.reached {
                stale.push((name.clone(), Err("no SSH connection".to_owned())));
            } else if host.things.get(PROXY) != Some(&wanted) {
                stale.push((name.clone(), Ok(wanted)));
            }
        }
        stale
    }

    async fn effect(&mut self, action: &Action, world: &World, midway: bool) -> Result<Done, Trouble> {
        let now = Instant::now();
        match action {
            Action::Apply(_) | Action::SetAsideMemberData | Action::RestartKubelet => self.ssh()?,
            Action::CreateTrust | Action::LoadImages | Action::ChangeMembership(_) | Action::TakeLease => {}
            _ => self.api("change")?,
        }
        let name = self.name().to_owned();
        let mut changed = 1;
        match action {
            Action::Apply(layer) => {
                let token = self.token();
                let values = self.values(layer, world, &token);
                let mut cluster = self.lock();
                let host = cluster.host(&name);
                let only = midway.then(|| host.plan(layer, &values).changes.len() / 2);
                changed = host.apply(layer, &values, only, now);
            }
            Action::CreateJoinToken => drop(self.lock().tokens.insert(self.token(), now)),
            Action::DeleteJoinToken => drop(self.lock().tokens.remove(&self.token())),
            Action::TakeLease => self.take_lease().await?,
            Action::ReleaseLease => {
                let mut cluster = self.lock();
                if cluster.lease.as_ref().is_some_and(|lease| lease.holder == self.run) {
                    cluster.lease = None;
                }
            }
            Action::ChangeMembership(change) => {
                let mut cluster = self.lock();
                if cluster.lease.as_ref().is_none_or(|lease| lease.holder != self.run) {
                    cluster.violations.push(format!("{} without the lease", action.sentence()));
                }
                let voters = cluster.etcd.voters().count();
                cluster.etcd.change(change, now).map_err(Trouble::EtcdAct)?;
                if !cluster.etcd.has_quorum() || cluster.etcd.voters().count() < voters {
                    cluster.violations.push(format!("{} cost a vote", action.sentence()));
                }
                if !cluster.away_after_change.is_zero() {
                    cluster.away_until = Some(now + cluster.away_after_change);
                }
            }
            Action::SetAsideMemberData => {
                let mut cluster = self.lock();
                let data = cluster.host(&name).etcd_data.take();
                cluster.host(&name).things.remove(ETCD);
                if cluster.etcd.members.iter().any(|member| Some(member.id) == data) {
                    cluster.violations.push("data of a member that is in the list was set aside".to_owned());
                }
            }
            Action::Annotate(annotations) => {
                let mut cluster = self.lock();
                if let Some(node) = cluster.nodes.get_mut(&name) {
                    node.annotations.extend(annotations.iter().cloned());
                }
            }
            Action::RegisterNode => drop(self.lock().nodes.entry(name).or_insert_with(NodeView::default)),
            Action::CreateTrust => self.lock().trust = true,
            Action::LoadImages => self.lock().images = true,
            Action::ApplyClusterObjects => self.lock().objects = true,
            Action::RestartKubelet => {}
            Action::UpdateProxies(names) => {
                let mut wanted = self.proxies(world);
                wanted.retain(|(name, _)| names.contains(name));
                let mut cluster = self.lock();
                for (name, wanted) in wanted {
                    if let Ok(wanted) = wanted {
                        cluster.host(&name).things.insert(PROXY.to_owned(), wanted);
                    }
                }
            }
            Action::StartReachabilityPod => {
                changed = 0;
                self.lock().reach_pods.entry(name).or_insert(ReachPod::Since(now));
            }
            Action::DeleteReachabilityPod => {
                changed = 0;
                drop(self.lock().reach_pods.remove(&name));
            }
        }
        Ok(Done { changed })
    }

    async fn die(&self) -> ! {
        self.killed.notify_one();
        pending().await
    }

    /// What must never happen, whatever goes wrong.
    fn check(&self) {
        let mut cluster = self.lock();
        if cluster.etcd.members.iter().filter(|member| member.learner).count() > 1 {
            cluster.violations.push("two learners at once".to_owned());
        }
    }
}

fn lost(host: &str) -> Trouble {
    let reason = "no route to host".to_owned();
    Trouble::Host(HostError::Transport(TransportError::Unreachable { host: host.to_owned(), reason }))
}

/// What an action fails with when nothing is wrong but the way to it.
fn failing(action: &Action, host: &str) -> Trouble {
    match action {
        Action::Apply(_) | Action::SetAsideMemberData | Action::RestartKubelet => lost(host),
        Action::ChangeMembership(_) => {
            Trouble::EtcdAct(ActError::NotYet { said: "leader changed".to_owned() })
        }
        _ => {
            let attempt = Attempt { verb: "change", object: "it".to_owned() };
            Trouble::Api(ApiError::Unreachable { attempt, reason: "the connection broke".to_owned() })
        }
    }
}

#[async_trait]
impl Site for FakeSite {
    async fn look(&mut self, look: &Look, world: &World) -> Result<Seen, Trouble> {
        self.count += 1;
        assert!(self.count < ENDLESS, "the run of {} does not end: looks at {look:?}", self.name());
        let now = Instant::now();
        match look {
            Look::Facts | Look::Survey | Look::Plan(_) => self.ssh()?,
            Look::Node | Look::Peers | Look::Pods | Look::ClusterObjects | Look::Proxies | Look::Reach => {
                self.api("get")?;
            }
            _ => {}
        }
        let missing = |there: bool, what: &str| {
            if there { BTreeSet::new() } else { BTreeSet::from([what.to_owned()]) }
        };
        let token = self.token();
        let cluster = self.lock();
        let name = self.name();
        Ok(match look {
            Look::Facts => Seen::Facts(cluster.hosts[name].facts.clone()),
            Look::Survey => Seen::Survey(cluster.hosts[name].survey()),
            Look::Plan(layer) => {
                let plan = cluster.hosts[name].plan(layer, &self.values(layer, world, &token));
                Seen::Plan(layer.clone(), plan)
            }
            Look::Node => Seen::Node(cluster.nodes.get(name).cloned()),
            Look::Peers => Seen::Peers(cluster.peers(name)),
            Look::Membership => Seen::Membership(cluster.etcd.observe().map_err(Trouble::EtcdClient)?),
            Look::Pods => Seen::MissingPods(cluster.missing_pods(name, now)),
            Look::Api => Seen::Api(cluster.api(now).err()),
            Look::PackageService => Seen::PackageService(None),
            Look::Trust => Seen::MissingTrust(missing(cluster.trust, "ca.crt")),
            Look::Images => Seen::MissingImages(missing(cluster.images, "etcd")),
            Look::ClusterObjects => Seen::MissingObjects(missing(cluster.objects, "DaemonSet coredns")),
            Look::Proxies => {
                drop(cluster);
                let all = self.proxies(world);
                let stale = all.iter().filter(|(_, wanted)| wanted.is_ok()).map(|(name, _)| name.clone());
                let away: BTreeMap<String, String> = all
                    .iter()
                    .filter_map(|(name, wanted)| Some((name.clone(), wanted.clone().err()?)))
                    .collect();
                Seen::Proxies(Proxies { stale: stale.collect(), unreachable: away })
            }
            Look::Reach => Seen::Reach(cluster.reach(name, now)),
        })
    }

    async fn act(&mut self, action: &Action, world: &World) -> Result<Done, Trouble> {
        self.count += 1;
        assert!(self.count < ENDLESS, "the run of {} does not end: {}", self.name(), action.sentence());
        if !self.fit.load(Ordering::Relaxed) {
            self.lock().violations.push(format!("{} before preflight held", action.sentence()));
        }
        let fault = (self.faults)(action);
        match fault {
            Fault::KilledBefore => self.die().await,
            Fault::FailsBefore => return Err(failing(action, self.name())),
            _ => {}
        }
        let done = self.effect(action, world, fault == Fault::KilledMidway).await;
        self.check();
        match fault {
            Fault::KilledMidway | Fault::KilledAfter => self.die().await,
            Fault::FailsAfter => Err(failing(action, self.name())),
            _ => done,
        }
    }
}

impl Drop for FakeSite {
    fn drop(&mut self) {
        if let Ok(mut cluster) = self.world.lock() {
            cluster.abandon_lease(&self.run, Instant::now());
        }
    }
}
