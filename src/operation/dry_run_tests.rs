use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;

use super::*;
use crate::engine::host::Looked;
use crate::engine::{Desired, Item};
use crate::etcd::member::{Health, Member, Membership, Status};
use crate::kube_api::client::{ApiCall, ApiError};
use crate::model::facts::Facts;
use crate::model::role::Role;
use crate::operation::bootstrap::{BootstrapGoal, BootstrapOperation};
use crate::operation::deploy::DeployOperation;
use crate::operation::driver::RunFault;
use crate::operation::foreseen_changes::ForeseenChanges;
use crate::operation::host_access::{HostPlan, SharedDesired};
use crate::operation::layer::Layer;
use crate::operation::observed::layer_plan::LayerPlan;
use crate::operation::observed::lease::LeaseView;
use crate::operation::observed::node::{NodeView, Peer};
use crate::operation::survey::Survey;
use crate::operation::tests::goal;
use crate::resource::contract::change::{Change, Verdict};
use crate::resource::contract::probe::Observed;

/// One resource, named like its layer, that is not there.
struct Missing(&'static str);

impl Desired for Missing {
    fn items(&self) -> Vec<Item> {
        vec![Item { id: format!("file:{}", self.0), probes: Vec::new() }]
    }

    fn verdicts(&self, _: &Observed) -> Vec<(String, Verdict)> {
        let difference = Difference::Field { name: "state".into(), before: None, after: Some("file".into()) };
        let change = Change { differences: vec![difference], steps: Vec::new() };
        vec![(format!("file:{}", self.0), Verdict::Change(change))]
    }
}

/// A bare host, and a cluster of one node if there is one. Acting on it fails the test.
struct Bare {
    facts: Facts,
    cluster: bool,
    hangs: bool,
}

impl Bare {
    fn new(cluster: bool) -> Self {
        let mut facts = crate::engine::roster::tests::facts();
        facts.hostname = "node-1".to_owned();
        facts.os.codename = "trixie".to_owned();
        facts.arch = "amd64".to_owned();
        (facts.memory, facts.disk_free, facts.clock) = (8 << 30, 64 << 30, 0);
        facts.addresses = BTreeMap::from([(
            "eth0".to_owned(),
            vec![crate::model::facts::Cidr { address: [192, 0, 2, 2].into(), prefix: 24 }],
        )]);
        Self { facts, cluster, hangs: false }
    }

    fn api<T>(&self, answer: T) -> Result<T, EffectError> {
        let call = ApiCall { verb: "get", object: "it".to_owned() };
        let reason = "connection refused".to_owned();
        if self.cluster { Ok(answer) } else { Err(ApiError::Unreachable { call, reason }.into()) }
    }
}

fn leader() -> Membership {
    let status = Status {
        leader: true,
        raft_index: 9,
        raft_applied: 9,
        db_size: 1,
        revision: 1,
        version: "3.6.16".to_owned(),
        latency: Duration::ZERO,
    };
    let member = Member {
        id: 1,
        name: "bootstrap".to_owned(),
        peer_urls: vec!["https://192.0.2.1:2380".to_owned()],
        client_urls: vec!["https://192.0.2.1:2379".to_owned()],
        is_learner: false,
        health: Health::Healthy(status),
    };
    Membership { cluster_id: 1, members: vec![member], alarms: Vec::new() }
}

#[async_trait]
impl Site for Bare {
    async fn look(&self, look: &Look) -> Result<Observation, EffectError> {
        if self.hangs && !matches!(look, Look::Facts | Look::Survey | Look::Node | Look::Peers) {
            std::future::pending::<()>().await;
        }
        let peer = Peer {
            labels: BTreeMap::from([("node-role.kubernetes.io/master".to_owned(), String::new())]),
            machine_id: "other".to_owned(),
            control_plane_ip: Some([192, 0, 2, 1].into()),
            api_server: true,
            ..Peer::default()
        };
        Ok(match look {
            Look::Facts => Observation::Facts(self.facts.clone(), self.facts.clock),
            Look::Survey => Observation::Survey(Survey { openssl: true, ..Survey::default() }),
            Look::Plan(layer, inputs) => {
                assert!(inputs.pod_cidr().is_none_or(|cidr| !cidr.is_empty()));
                let desired: SharedDesired = Arc::new(Missing(layer.title()));
                let (facts, observed) = (Some(inputs.facts.clone()), Observed::default());
                Observation::Plan(layer.clone(), LayerPlan::of(HostPlan(Looked { desired, facts, observed })))
            }
            Look::Node => {
                let node = NodeView { pod_cidr: Some("10.233.1.0/24".to_owned()), ..NodeView::default() };
                self.api(Observation::Node(Some(node)))?
            }
            Look::Peers => self.api(Observation::Peers(BTreeMap::from([("bootstrap".to_owned(), peer)])))?,
            Look::Proxy(node, _) => {
                let desired: SharedDesired = Arc::new(Missing("haproxy.cfg of bootstrap"));
                let looked = Looked { desired, facts: None, observed: Observed::default() };
                let LayerPlan::Differs(plan) = LayerPlan::of(HostPlan(looked)) else { panic!("it differs") };
                Observation::Proxy(node.clone(), crate::operation::observed::proxy::ProxyView::Stale(plan))
            }
            Look::Membership(_) => self.api(Observation::Membership(leader()))?,
            Look::Lease => self.api(Observation::Lease(LeaseView::Free))?,
            Look::JoinTokens => self.api(Observation::JoinTokens(0))?,
            Look::Trust => Observation::Trust(["/etc/kubernetes/pki/ca.crt".to_owned()].into()),
            Look::NewClusterMark => Observation::NewClusterMark(false),
            Look::Api => Observation::Api((!self.cluster).then(|| "connection refused".to_owned())),
            other => return Err(EffectError::Impossible { what: other.sentence() }),
        })
    }

    async fn act(&self, action: &Action) -> Result<Returned, EffectError> {
        panic!("a dry run did: {}", action.sentence());
    }
}

/// Phases, what they would do, the resources of it, and where foresight ends.
fn lines(preview: &Preview) -> Vec<String> {
    let mut lines = Vec::new();
    for phase in &preview.phases {
        lines.push(phase.title.to_owned());
        for planned in &phase.actions {
            lines.push(format!("  {}", planned.action.sentence()));
            lines.extend(planned.changes.iter().map(|change| format!("    {}", change.id)));
        }
        lines.extend(phase.end.as_ref().map(|end| format!("  {end:?}")));
    }
    lines
}

#[tokio::test]
async fn a_dry_run_of_bootstrap_on_a_bare_host_shows_every_phase() {
    let roles = [Role::Bootstrap, Role::Master, Role::Etcd, Role::Infra];
    let mut node = goal(roles);
    node.first = true;
    let names = |name: &str| BTreeSet::from([name.to_owned()]);
    let goal = BootstrapGoal { node, images: names("pause"), objects: names("access") };
    let preview = dry_run::<BootstrapOperation>(&goal, &Bare::new(false)).await.unwrap();
    insta::assert_snapshot!(lines(&preview).join("\n"));
    assert!(preview.changes());
}

#[tokio::test]
async fn a_dry_run_of_deploying_a_master_foresees_what_etcd_assigns() {
    let preview =
        dry_run::<DeployOperation>(&goal([Role::Master, Role::Etcd]), &Bare::new(true)).await.unwrap();
    insta::assert_snapshot!(lines(&preview).join("\n"));
}

#[tokio::test]
async fn what_stops_a_run_before_it_did_anything_stops_a_dry_run() {
    let mut unfit = Bare::new(true);
    unfit.facts.memory = 0;
    let outcome = dry_run::<DeployOperation>(&goal([Role::Node]), &unfit).await;
    assert!(matches!(outcome, Err(RunError::Fault(RunFault::Blocked { .. }))), "{outcome:?}");
    let outcome = dry_run::<DeployOperation>(&goal([Role::Node]), &Bare::new(false)).await;
    assert!(matches!(outcome, Err(RunError::Effect { .. })), "{outcome:?}");
}

#[tokio::test(start_paused = true)]
async fn a_look_that_may_be_in_vain_does_not_hold_up_the_rest() {
    let mut hangs = Bare::new(true);
    hangs.hangs = true;
    let preview = dry_run::<DeployOperation>(&goal([Role::Etcd]), &hangs).await.unwrap();
    let ends = preview.phases.iter().filter(|phase| matches!(phase.end, Some(Unforeseen::Unseen { .. })));
    assert!(ends.count() >= 2, "{:?}", lines(&preview));
}

/// The first layer that a run applies is as foreseen, or not applied at all; what follows from it is not limited.
#[tokio::test]
async fn a_change_that_was_not_foreseen_is_refused_before_the_host_is_touched() {
    let ends = async |foreseen: &[(Layer, LayerPlan)]| {
        let mut changes = ForeseenChanges::default();
        foreseen.iter().for_each(|(layer, plan)| changes.put(layer, plan));
        let mut goal = goal([Role::Etcd]);
        goal.foreseen = Some(Arc::new(changes));
        let preview = dry_run::<DeployOperation>(&goal, &Bare::new(true)).await.unwrap();
        let end = |phase: PhasePreview| Some((phase.title, phase.end?));
        preview.phases.into_iter().filter_map(end).collect::<Vec<_>>()
    };
    let unchanged = |layer: &Layer| (layer.clone(), LayerPlan::Unchanged(1));
    let refused = ends(&[unchanged(&Layer::Base)]).await;
    let [("Base system", Unforeseen::Blocked(Blocker::Refused(refusals))), ..] = &refused[..] else {
        panic!("{refused:?}");
    };
    assert_eq!(refusals[0].0, "file:base system");
    let desired: SharedDesired = Arc::new(Missing(Layer::Base.title()));
    let plan = LayerPlan::of(HostPlan(Looked { desired, facts: None, observed: Observed::default() }));
    assert_eq!(ends(&[(Layer::Base, plan), unchanged(&Layer::Etcd)]).await, []);
    assert_eq!(ends(&[unchanged(&Layer::Etcd)]).await, [], "of the base system nothing was foreseen");
}
