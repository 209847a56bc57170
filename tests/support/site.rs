//! [`Site`] over the simulated cluster, with faults on request. Effects take their time, by a virtual clock.

use std::collections::{BTreeMap, BTreeSet};
use std::future::pending;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard};
use std::time::Duration;

use async_trait::async_trait;
use metalform::etcd::client::{ClientError, DEADLINE};
use metalform::etcd::member::Membership;
use metalform::kube_api::client::{ApiCall, ApiError};
use metalform::model::api_contract::SSH_HOST;
use metalform::model::cluster;
use metalform::model::node::{NodeManifest, NodeMetadata, NodeSpec};
use metalform::model::values::Values;
use metalform::operation::effect::{Action, Look, Observation, Returned, Target};
use metalform::operation::goal::{NodeGoal, client_url, peer_url};
use metalform::operation::inputs::NodeInputs;
use metalform::operation::layer::Layer;
use metalform::operation::observed::etcd_servers::EtcdServers;
use metalform::operation::observed::layer_plan::LayerPlan;
use metalform::operation::observed::lease::LeaseView;
use metalform::operation::observed::node::Peer;
use metalform::operation::observed::proxy::ProxyView;
use metalform::operation::site::{EffectError, Site};
use metalform::operation::values::{ClusterInputs, values};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, sleep_until};

use super::cluster::Cluster;
use super::defect::{Defect, without_complaints, without_learners};
use super::fault::{Fault, Faults, failing, lost, lost_peer};
use super::given;
use super::host::{APISERVER, MIRRORS, PROXY, address, api_servers, mirrors};
use super::lease::Lease;
use super::luck::Luck;
use super::readings::{Basis, Readings, uses};

pub type Shared = Arc<Mutex<Cluster>>;

/// More looks and actions than any run that ends.
const ENDLESS: usize = 20_000;
/// How long a look takes.
const LOOK: Duration = Duration::from_millis(10);

pub struct ModelSite {
    pub world: Shared,
    pub goal: NodeGoal,
    /// Unlike that of any other run.
    pub run: String,
    pub faults: Mutex<Faults>,
    pub killed: Arc<Notify>,
    /// Whether preflight held: nothing may be done before.
    pub fit: Arc<AtomicBool>,
    pub given: cluster::Cluster,
    pub count: AtomicUsize,
    pub luck: Luck,
    pub defect: Option<Defect>,
    /// Its process stands still until then.
    pub stalled: Mutex<Option<Instant>>,
    /// Whether it does not know what became of a request of its own to etcd or for the lease.
    pub uncertain: AtomicBool,
    /// Whether it has added a learner.
    pub added: AtomicBool,
    /// Whether it has taken the lease, and not released it.
    pub leased: AtomicBool,
    /// What this run has observed.
    pub readings: Mutex<Readings>,
}

/// Whether an API server answers now.
pub fn reached(cluster: &Cluster, verb: &'static str) -> Result<(), EffectError> {
    cluster.api(Instant::now()).map_err(|reason| {
        let call = ApiCall { verb, object: "it".to_owned() };
        EffectError::Api(ApiError::Unreachable { call, reason })
    })
}

/// How long an action takes.
pub fn duration(action: &Action) -> Duration {
    Duration::from_millis(match action {
        Action::Apply(Layer::Base | Layer::First | Layer::Registry, _) => 3000,
        Action::BeginCluster(_) => 1000,
        Action::Apply(Layer::ControlPlaneFiles, _) | Action::LoadImages(_) => 2000,
        Action::Apply(..)
        | Action::UpdateProxy(..)
        | Action::SetAsideMemberData
        | Action::RemoveMemberManifest
        | Action::StopControlPlane
        | Action::StopNode
        | Action::ClearHost(..) => 500,
        _ => 20,
    })
}

/// A manifest without labels and taints.
fn spec() -> &'static NodeSpec {
    static SPEC: LazyLock<NodeSpec> = LazyLock::new(|| {
        let annotations = [(SSH_HOST.to_owned(), "192.0.2.11".to_owned())].into();
        let metadata = NodeMetadata { name: Some("node".to_owned()), annotations, ..NodeMetadata::default() };
        NodeSpec::parse(&NodeManifest { metadata, ..NodeManifest::default() }).unwrap()
    });
    &SPEC
}

impl ModelSite {
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

    pub fn api(&self, verb: &'static str) -> Result<(), EffectError> {
        reached(&self.lock(), verb)
    }

    /// A change of objects of the API, which are written to etcd.
    pub fn write(&self) -> Result<(), EffectError> {
        self.api("change")?;
        if self.lock().etcd.full.is_none() {
            return Ok(());
        }
        let call = ApiCall { verb: "change", object: "it".to_owned() };
        let message = "etcdserver: mvcc: database space exceeded".to_owned();
        Err(EffectError::Api(ApiError::NotReady { call, message }))
    }

    pub fn ssh(&self) -> Result<(), EffectError> {
        if self.lock().reaches(self.name()) { Ok(()) } else { Err(lost(self.name())) }
    }

    fn values<'a>(
        &'a self,
        layer: &Layer,
        inputs: &'a NodeInputs,
        token: &'a str,
    ) -> Values<'a, cluster::Cluster> {
        values(inputs, layer, ClusterInputs { cluster: &self.given, spec: spec(), join_token: token })
    }

    /// The proxy of another node, as it is and as it should be.
    fn proxy(&self, node: &str, nodes: &BTreeMap<String, Peer>) -> Result<ProxyView, EffectError> {
        let cluster = self.lock();
        let host = &cluster.hosts[node];
        if !cluster.reaches(node) {
            return Err(lost_peer(node));
        }
        if self.defect == Some(Defect::ProxiesLeft) && self.goal.leaves {
            return Ok(ProxyView::Current);
        }
        let goal = given::goal(node, &host.roles);
        let inputs = NodeInputs::of_peer(goal, host.facts.clone(), nodes).unwrap();
        let values = self.values(&Layer::Proxy, &inputs, "");
        let wanted = vec![(MIRRORS, mirrors(&values)), (PROXY, api_servers(&values))];
        Ok(match LayerPlan::of(host.plan_things(wanted)) {
            LayerPlan::Differs(plan) => ProxyView::Stale(plan),
            LayerPlan::Unchanged(_) | LayerPlan::Refused(_) => ProxyView::Current,
        })
    }

    /// Why each of these API servers is not ready.
    fn api_servers<'a>(
        &self,
        cluster: &Cluster,
        names: impl Iterator<Item = &'a String>,
        now: Instant,
    ) -> BTreeMap<String, Option<String>> {
        let assumed = self.defect == Some(Defect::ServersAssumed);
        let complaint = |name: &String| cluster.api_server(name, now).filter(|_| !assumed);
        names.map(|name| (name.clone(), complaint(name))).collect()
    }

    /// The members of etcd that the API server of another node uses.
    fn etcd_servers(&self, node: &str) -> Result<EtcdServers, EffectError> {
        let cluster = self.lock();
        if !cluster.reaches(node) {
            return Err(lost_peer(node));
        }
        let urls = cluster.hosts[node].things.get(APISERVER).map(String::as_str).unwrap_or_default();
        Ok(EtcdServers::Listed(urls.split_whitespace().map(str::to_owned).collect()))
    }

    /// What a look at the lease shows: one of its own that was lost can be taken again.
    fn lease(&self, cluster: &Cluster, now: Instant) -> LeaseView {
        match &cluster.lease {
            Some(lease) if lease.is_kept(&self.run, now) => LeaseView::Ours,
            Some(lease) if lease.holder != self.run && !lease.is_expired(now) => {
                LeaseView::Held { holder: lease.holder.clone(), renewed: lease.age(now) }
            }
            _ => LeaseView::Free,
        }
    }

    /// Whether this run may act under it, as it knows itself.
    pub fn keeps_lease(&self, cluster: &Cluster, now: Instant) -> bool {
        cluster.lease.as_ref().is_some_and(|lease| lease.is_kept(&self.run, now))
    }

    /// One attempt to take it.
    pub fn take_lease(&self, cluster: &mut Cluster, now: Instant) -> LeaseView {
        if self.defect == Some(Defect::LeaseNotChecked) {
            return LeaseView::Ours;
        }
        let view = self.lease(cluster, now);
        if matches!(view, LeaseView::Held { .. }) {
            return view;
        }
        cluster.lease = Some(Lease::taken(&self.run, now));
        LeaseView::Ours
    }

    /// Through the endpoints that the run knows, and through the member of the first host.
    pub fn membership(
        &self,
        cluster: &Cluster,
        endpoints: &[String],
        now: Instant,
    ) -> Result<Membership, ClientError> {
        if self.defect == Some(Defect::ListFromBefore)
            && let Some(lease) = cluster.lease.as_ref().filter(|lease| lease.holder == self.run)
            && let Some(old) = self.readings.lock().unwrap().basis_before(lease.since)
        {
            return Ok(old.seen.clone());
        }
        let mut known: Vec<String> = endpoints.iter().cloned().chain([client_url(address(1))]).collect();
        // Any of them may be the first to answer.
        let first = self.luck.first_of(known.len());
        known.rotate_left(first);
        let seen = cluster.etcd.observe_through(&known, self.defect != Some(Defect::StaleList))?;
        let seen = self.misread(cluster, seen);
        self.readings.lock().unwrap().take_members(Basis::new(seen.clone(), cluster, now));
        Ok(seen)
    }

    /// The list of members as a defect has it.
    fn misread(&self, cluster: &Cluster, list: Membership) -> Membership {
        match self.defect {
            Some(Defect::GateDropped) => without_complaints(list),
            Some(Defect::RemovalGateDropped) if self.goal.leaves => without_complaints(list),
            Some(Defect::LearnerOverlooked) => without_learners(list, &peer_url(self.address(cluster))),
            _ => list,
        }
    }

    /// That of its node on the control plane.
    pub fn address(&self, cluster: &Cluster) -> IpAddr {
        address(cluster.hosts[self.name()].number)
    }

    /// Everything takes its time, and a process may stand still or end meanwhile.
    async fn pass(&self, time: Duration) {
        if let Some(stall) = self.luck.stall() {
            let until = Instant::now() + stall;
            let mut stalled = self.stalled.lock().unwrap();
            *stalled = Some(stalled.map_or(until, |before| before.max(until)));
            if let Some(lease) = self.lock().lease.as_mut().filter(|lease| lease.holder == self.run) {
                lease.stall(until);
            }
        }
        sleep(time).await;
        while let Some(until) = self.stalled_until() {
            sleep_until(until).await;
        }
        if self.luck.is_killed() {
            self.die().await
        }
    }

    fn stalled_until(&self) -> Option<Instant> {
        self.stalled.lock().unwrap().filter(|until| Instant::now() < *until)
    }

    /// The answer is on its way.
    async fn answer(&self) {
        if let Some(time) = self.luck.after() {
            self.pass(time).await;
        }
    }

    /// What a look that finds nothing out fails with.
    fn blind(&self, look: &Look) -> EffectError {
        match look {
            Look::Facts
            | Look::Survey
            | Look::Plan(..)
            | Look::HostDifferences(..)
            | Look::Unit(_)
            | Look::Container(_) => lost(self.name()),
            Look::Proxy(node, _) | Look::EtcdServers(node) => lost_peer(node),
            Look::Membership(_) | Look::OwnMember => EffectError::EtcdClient(ClientError::NoAnswer {
                tried: vec!["no answer in 2000 ms".to_owned()],
            }),
            _ => {
                let call = ApiCall { verb: "get", object: "it".to_owned() };
                EffectError::Api(ApiError::Unreachable { call, reason: "the connection broke".to_owned() })
            }
        }
    }

    async fn die(&self) -> ! {
        self.killed.notify_one();
        pending().await
    }

    fn observe(&self, look: &Look) -> Result<Observation, EffectError> {
        let now = Instant::now();
        match look {
            Look::Facts
            | Look::Survey
            | Look::Plan(..)
            | Look::HostDifferences(..)
            | Look::Unit(_)
            | Look::Container(_) => self.ssh()?,
            Look::Node
            | Look::Peers
            | Look::Pods(_)
            | Look::PodsToDrain
            | Look::ApiServers(_)
            | Look::Objects(_)
            | Look::Proxy(..)
            | Look::EtcdServers(_)
            | Look::JoinTokens
            | Look::Reachability
            | Look::PodGateway => {
                self.api("get")?;
            }
            // As long as it is kept, its holder knows that without the API.
            Look::Lease if !self.keeps_lease(&self.lock(), now) => {
                self.api("get")?;
            }
            _ => {}
        }
        let missing = |exists: bool, what: &str| {
            if exists { BTreeSet::new() } else { BTreeSet::from([what.to_owned()]) }
        };
        let token = self.token();
        if let Look::Proxy(node, nodes) = look {
            return Ok(Observation::Proxy(node.clone(), self.proxy(node, nodes)?));
        }
        if let Look::EtcdServers(node) = look {
            return Ok(Observation::EtcdServers(node.clone(), self.etcd_servers(node)?));
        }
        let cluster = self.lock();
        let name = self.name();
        Ok(match look {
            Look::Facts => {
                let facts = cluster.hosts[name].facts.clone();
                let clock = facts.clock;
                Observation::Facts(facts, clock)
            }
            Look::Survey => Observation::Survey(cluster.hosts[name].survey()),
            Look::Plan(layer, inputs) => {
                let plan = cluster.hosts[name].plan(layer, &self.values(layer, inputs, &token));
                Observation::Plan(layer.clone(), LayerPlan::of(plan))
            }
            Look::Unit(unit) => Observation::Unit(unit.clone(), cluster.hosts[name].unit(unit)),
            Look::Container(pod) => Observation::Container(pod.clone(), cluster.container(name, pod, now)),
            Look::HostDifferences(..) => Observation::HostDifferences(cluster.hosts[name].left()),
            Look::Node => Observation::Node(cluster.nodes.get(name).cloned()),
            Look::Peers => {
                self.readings.lock().unwrap().take_nodes(name, &cluster);
                Observation::Peers(cluster.peers(name))
            }
            Look::Membership(endpoints) => {
                let recorded = cluster.recorded_members();
                let endpoints = if endpoints.is_empty() { &recorded } else { endpoints };
                Observation::Membership(self.membership(&cluster, endpoints, now)?)
            }
            Look::OwnMember => Observation::OwnMember(self.membership(&cluster, &[], now).ok()),
            Look::Lease => Observation::Lease(self.lease(&cluster, now)),
            Look::Pods(expected) => {
                Observation::Pods(expected.clone(), cluster.missing_pods(name, expected, now))
            }
            Look::PodsToDrain => Observation::PodsToDrain(cluster.pods_to_drain(name)),
            Look::ApiServers(servers) => {
                self.readings.lock().unwrap().take_servers(servers.keys(), &cluster, now);
                Observation::ApiServers(self.api_servers(&cluster, servers.keys(), now))
            }
            Look::Api => Observation::Api(cluster.api(now).err()),
            Look::NewClusterMark => Observation::NewClusterMark(cluster.new_cluster),
            Look::PackageService => Observation::PackageService(None),
            Look::Registry => Observation::Registry(None),
            Look::Trust => Observation::Trust(missing(cluster.trust, "ca.crt")),
            Look::Images => Observation::Images(missing(cluster.images, "etcd")),
            Look::Objects(_) => Observation::Objects(missing(cluster.objects, "DaemonSet coredns")),
            Look::JoinTokens => Observation::JoinTokens(cluster.tokens_of(name).len()),
            Look::Reachability => Observation::Reachability(cluster.reach(name, now)),
            Look::PodGateway => Observation::PodGateway(cluster.pod_gateway(name)),
            Look::Proxy(..) | Look::EtcdServers(_) => unreachable!("it was answered above"),
        })
    }

    fn count(&self, what: &str) {
        let count = self.count.fetch_add(1, Ordering::Relaxed);
        assert!(count < ENDLESS, "the run of {} does not end: {what}", self.name());
    }
}

#[async_trait]
impl Site for ModelSite {
    async fn look(&self, look: &Look) -> Result<Observation, EffectError> {
        self.count(&look.sentence());
        if let Look::Proxy(node, _) = look {
            self.readings.lock().unwrap().ask_proxy(node);
        }
        self.pass(self.luck.before(LOOK)).await;
        let seen = if self.luck.is_blind() { Err(self.blind(look)) } else { self.observe(look) };
        let proxy = match (look, &seen) {
            (Look::Proxy(node, _), Ok(_)) => Some((node, uses(&self.lock().hosts[node], self.name()))),
            _ => None,
        };
        self.answer().await;
        // A run that does not wait for the answer knows nothing of it.
        if let Some((node, uses)) = proxy {
            self.readings.lock().unwrap().take_proxy(node, uses);
        }
        seen
    }

    async fn act(&self, action: &Action) -> Result<Returned, EffectError> {
        self.count(&action.sentence());
        // What an earlier run of a removal has cordoned is uncordoned by one that is refused.
        let gives_up = matches!(action, Action::Uncordon) && self.goal.leaves;
        if !self.fit.load(Ordering::Relaxed) && !gives_up {
            self.lock().violations.push(format!("{} before preflight held", action.sentence()));
        }
        self.check_decision(action);
        let fault = (self.faults.lock().unwrap())(action);
        match fault {
            Fault::KilledBefore => self.die().await,
            Fault::FailsBefore => {
                self.uncertain.fetch_or(action.target() == Target::Etcd, Ordering::Relaxed);
                self.answer().await;
                return Err(failing(action, self.name()));
            }
            _ => {}
        }
        let slowness = match action {
            Action::Apply(..) => self.lock().hosts[self.name()].slowness,
            _ => 1,
        };
        self.pass(self.luck.before(duration(action)) * slowness).await;
        let late = self
            .luck
            .late()
            .filter(|_| matches!(action, Action::ChangeMembership(..) | Action::WithdrawLearner(_)));
        let done = self.effect(action, fault == Fault::KilledMidway, late);
        let of_etcd = action.target() == Target::Etcd;
        if of_etcd && (late.is_some() || fault != Fault::None || done.is_err()) {
            self.uncertain.store(true, Ordering::Relaxed);
        }
        match fault {
            Fault::KilledMidway | Fault::KilledAfter => self.die().await,
            _ if late.is_some() => sleep(DEADLINE).await,
            _ => self.answer().await,
        }
        if fault == Fault::FailsAfter {
            // A lease of which its holder does not know is not renewed.
            if matches!(action, Action::TakeLease) {
                self.lock().abandon_lease(&self.run);
            }
            return Err(failing(action, self.name()));
        }
        done
    }
}

impl Drop for ModelSite {
    fn drop(&mut self) {
        if let Ok(mut cluster) = self.world.lock() {
            cluster.abandon_lease(&self.run);
        }
    }
}
