//! [`Site`] over the simulated cluster, with faults on request. Effects take their time, by a virtual clock.

use std::collections::{BTreeMap, BTreeSet};
use std::future::pending;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard};
use std::time::Duration;

use async_trait::async_trait;
use metalform::kube_api::client::{ApiCall, ApiError};
use metalform::model::api_contract::SSH_HOST;
use metalform::model::cluster;
use metalform::model::node::{NodeManifest, NodeMetadata, NodeSpec};
use metalform::model::values::Values;
use metalform::operation::effect::{Action, Look, Observation, Returned};
use metalform::operation::goal::NodeGoal;
use metalform::operation::inputs::NodeInputs;
use metalform::operation::layer::Layer;
use metalform::operation::observed::layer_plan::LayerPlan;
use metalform::operation::observed::lease::LeaseView;
use metalform::operation::observed::node::Peer;
use metalform::operation::observed::proxy::ProxyView;
use metalform::operation::site::{EffectError, Site};
use metalform::operation::values::{ClusterInputs, values};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};

use super::cluster::Cluster;
use super::fault::{Fault, Faults, failing, lost, lost_peer};
use super::given;
use super::host::{PROXY, api_servers};

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
}

/// How long an action takes.
pub fn duration(action: &Action) -> Duration {
    Duration::from_millis(match action {
        Action::Apply(Layer::Base | Layer::First { .. } | Layer::Registry, _) => 3000,
        Action::Apply(Layer::ControlPlaneFiles, _) | Action::LoadImages(_) => 2000,
        Action::Apply(..)
        | Action::UpdateProxy(..)
        | Action::SetAsideMemberData
        | Action::RemoveMemberManifest => 500,
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
        let answer = self.lock().api(Instant::now());
        answer.map_err(|reason| {
            let call = ApiCall { verb, object: "it".to_owned() };
            EffectError::Api(ApiError::Unreachable { call, reason })
        })
    }

    pub fn ssh(&self) -> Result<(), EffectError> {
        let cluster = self.lock();
        let host = &cluster.hosts[self.name()];
        if host.on && host.reached { Ok(()) } else { Err(lost(self.name())) }
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
        if !host.on || !host.reached {
            return Err(lost_peer(node));
        }
        let goal = given::goal(node, &host.roles);
        let inputs = NodeInputs::of_peer(goal, host.facts.clone(), nodes).unwrap();
        let names = api_servers(&self.values(&Layer::Proxy, &inputs, ""));
        Ok(match LayerPlan::of(host.plan_thing(PROXY, names)) {
            LayerPlan::Differs(plan) => ProxyView::Stale(plan),
            LayerPlan::Unchanged(_) | LayerPlan::Refused(_) => ProxyView::Current,
        })
    }

    pub fn lease(&self, cluster: &Cluster) -> LeaseView {
        match &cluster.lease {
            None => LeaseView::Free,
            Some(lease) if lease.holder == self.run => LeaseView::Ours,
            Some(lease) => LeaseView::Held { holder: lease.holder.clone(), renewed: Duration::ZERO },
        }
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

    fn count(&self, what: &str) {
        let count = self.count.fetch_add(1, Ordering::Relaxed);
        assert!(count < ENDLESS, "the run of {} does not end: {what}", self.name());
    }
}

#[async_trait]
impl Site for ModelSite {
    async fn look(&self, look: &Look) -> Result<Observation, EffectError> {
        self.count(&look.sentence());
        sleep(LOOK).await;
        let now = Instant::now();
        match look {
            Look::Facts | Look::Survey | Look::Plan(..) | Look::Unit(_) | Look::Container(_) => self.ssh()?,
            Look::Node
            | Look::Peers
            | Look::Pods(_)
            | Look::Objects(_)
            | Look::Proxy(..)
            | Look::JoinTokens
            | Look::Lease
            | Look::Reachability => {
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
        let cluster = self.lock();
        let name = self.name();
        Ok(match look {
            Look::Facts => Observation::Facts(cluster.hosts[name].facts.clone()),
            Look::Survey => Observation::Survey(cluster.hosts[name].survey()),
            Look::Plan(layer, inputs) => {
                let plan = cluster.hosts[name].plan(layer, &self.values(layer, inputs, &token));
                Observation::Plan(layer.clone(), LayerPlan::of(plan))
            }
            Look::Unit(unit) => Observation::Unit(unit.clone(), cluster.hosts[name].unit(unit)),
            Look::Container(pod) => Observation::Container(pod.clone(), cluster.container(name, pod, now)),
            Look::Node => Observation::Node(cluster.nodes.get(name).cloned()),
            Look::Peers => Observation::Peers(cluster.peers(name)),
            Look::Membership(_) => {
                Observation::Membership(cluster.etcd.observe().map_err(EffectError::EtcdClient)?)
            }
            Look::Lease => Observation::Lease(self.lease(&cluster)),
            Look::Pods(_) => Observation::Pods(cluster.missing_pods(name, now)),
            Look::Api => Observation::Api(cluster.api(now).err()),
            Look::NewClusterMark => Observation::NewClusterMark(cluster.new_cluster),
            Look::PackageService => Observation::PackageService(None),
            Look::Registry => Observation::Registry(None),
            Look::Trust => Observation::Trust(missing(cluster.trust, "ca.crt")),
            Look::Images => Observation::Images(missing(cluster.images, "etcd")),
            Look::Objects(_) => Observation::Objects(missing(cluster.objects, "DaemonSet coredns")),
            Look::JoinTokens => Observation::JoinTokens(cluster.tokens_of(name).len()),
            Look::Reachability => Observation::Reachability(cluster.reach(name, now)),
            Look::Proxy(..) => unreachable!("it was answered above"),
        })
    }

    async fn act(&self, action: &Action) -> Result<Returned, EffectError> {
        self.count(&action.sentence());
        if !self.fit.load(Ordering::Relaxed) {
            self.lock().violations.push(format!("{} before preflight held", action.sentence()));
        }
        let fault = (self.faults.lock().unwrap())(action);
        match fault {
            Fault::KilledBefore => self.die().await,
            Fault::FailsBefore => return Err(failing(action, self.name())),
            _ => {}
        }
        sleep(duration(action)).await;
        let done = self.effect(action, fault == Fault::KilledMidway);
        self.check();
        match fault {
            Fault::KilledMidway | Fault::KilledAfter => self.die().await,
            Fault::FailsAfter => Err(failing(action, self.name())),
            _ => done,
        }
    }
}

impl Drop for ModelSite {
    fn drop(&mut self) {
        if let Ok(mut cluster) = self.world.lock() {
            cluster.abandon_lease(&self.run, Instant::now());
        }
    }
}
