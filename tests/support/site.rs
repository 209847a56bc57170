//! [`Site`] over the simulated cluster, with faults on request.

use std::collections::{BTreeMap, BTreeSet};
use std::future::pending;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard};

use async_trait::async_trait;
use metalform::kube_api::client::{ApiCall, ApiError};
use metalform::model::api_contract::SSH_HOST;
use metalform::model::cluster;
use metalform::model::node::{NodeManifest, NodeMetadata, NodeSpec};
use metalform::model::values::Values;
use metalform::operation::goal::Goal;
use metalform::operation::layer::Layer;
use metalform::operation::phase::{Action, Look};
use metalform::operation::site::{Done, Site, Trouble};
use metalform::operation::values::{ClusterInputs, values};
use metalform::operation::world::{Proxies, Seen, World};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::cluster::Cluster;
use super::fault::{Fault, Faults, failing, lost};
use super::given;
use super::host::{PROXY, api_servers};

/// A manifest without labels and taints.
fn spec() -> &'static NodeSpec {
    static SPEC: LazyLock<NodeSpec> = LazyLock::new(|| {
        let annotations = [(SSH_HOST.to_owned(), "192.0.2.11".to_owned())].into();
        let metadata = NodeMetadata { name: Some("node".to_owned()), annotations, ..NodeMetadata::default() };
        NodeSpec::parse(&NodeManifest { metadata, ..NodeManifest::default() }).unwrap()
    });
    &SPEC
}

pub type Shared = Arc<Mutex<Cluster>>;

/// More looks and actions than any run that ends.
const ENDLESS: usize = 20_000;
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
    pub fn name(&self) -> &str {
        self.goal.name.as_str()
    }

    pub fn token(&self) -> String {
        format!("token of {} in {}", self.name(), self.run)
    }

    pub fn lock(&self) -> MutexGuard<'_, Cluster> {
        let mut cluster = self.world.lock().unwrap();
        cluster.pass(Instant::now());
        cluster
    }

    pub fn api(&self, verb: &'static str) -> Result<(), Trouble> {
        let answer = self.lock().api(Instant::now());
        answer.map_err(|reason| {
            let call = ApiCall { verb, object: "it".to_owned() };
            Trouble::Api(ApiError::Unreachable { call, reason })
        })
    }

    pub fn ssh(&self) -> Result<(), Trouble> {
        let cluster = self.lock();
        let host = &cluster.hosts[self.name()];
        if host.on && host.reached { Ok(()) } else { Err(lost(self.name())) }
    }

    pub fn values<'a>(
        &'a self,
        layer: &Layer,
        world: &'a World,
        token: &'a str,
    ) -> Values<'a, cluster::Cluster> {
        let facts = world.facts.as_ref().expect("a plan comes after the facts");
        values(
            &self.goal,
            facts,
            world,
            layer,
            ClusterInputs { cluster: &self.given, spec: spec(), join_token: token },
        )
    }

    /// The proxy of another node, as it is and as it should be.
    pub fn proxies(&self, world: &World) -> Vec<(String, Result<String, String>)> {
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
            let inputs = ClusterInputs { cluster: &self.given, spec: spec(), join_token: "" };
            let wanted = api_servers(&values(&goal, &host.facts, &theirs, &Layer::Proxy, inputs));
            if !host.on || !host.reached {
                stale.push((name.clone(), Err("no SSH connection".to_owned())));
            } else if host.things.get(PROXY) != Some(&wanted) {
                stale.push((name.clone(), Ok(wanted)));
            }
        }
        stale
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

#[async_trait]
impl Site for FakeSite {
    async fn look(&mut self, look: &Look, world: &World) -> Result<Seen, Trouble> {
        self.count += 1;
        assert!(self.count < ENDLESS, "the run of {} does not end: looks at {look:?}", self.name());
        let now = Instant::now();
        match look {
            Look::Facts | Look::Survey | Look::Plan(_) => self.ssh()?,
            Look::Node
            | Look::Peers
            | Look::Pods
            | Look::ClusterObjects
            | Look::Proxies
            | Look::JoinTokens
            | Look::Reach => {
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
            Look::JoinTokens => Seen::JoinTokens(cluster.tokens_of(name).len()),
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
