use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep};

use super::*;
use crate::engine::host::{HostError, Looked};
use crate::engine::{Desired, Item, cancel};
use crate::kube_api::client::{ApiCall, ApiError};
use crate::model::event::{Milestone, OperationKind};
use crate::operation::cause::Cause;
use crate::operation::class::FailureClass;
use crate::operation::condition::Condition;
use crate::operation::contract::{Begun, Phase, PhaseEntry, PhaseStatus, Scene, World};
use crate::operation::deploy::NodeRunBegun;
use crate::operation::effect::{Action, Look, LookKey, Observation};
use crate::operation::host_access::{HostPlan, SharedDesired};
use crate::operation::layer::Layer;
use crate::operation::observed::report::UnitReport;
use crate::operation::parts::host::{HostBegun, HostPart};
use crate::resource::contract::change::Verdict;
use crate::resource::contract::probe::Observed;
use crate::transport::error::TransportError;

/// Two phases that decide by the time, and by what was seen and done.
struct Scripted {
    one: Decide,
    other: Option<Decide>,
}

type Decide = fn(&Situation) -> PhaseStatus;

struct Situation {
    second: u64,
    node_seen: bool,
    objects_seen: bool,
    done: BTreeSet<String>,
    host: HostPart,
}

#[derive(Default, Clone)]
struct Seen {
    node: bool,
    objects: bool,
    host: HostPart,
}

#[derive(Default, Clone, Serialize, Deserialize)]
struct Did(BTreeSet<String>);

impl World<Scripted, Did> for Seen {
    fn put(&mut self, _: &Scripted, _: &mut Did, observation: Observation, _: Duration) {
        self.node |= matches!(observation, Observation::Node(_));
        self.objects |= matches!(observation, Observation::Images(_));
        self.host.put(&mut HostBegun::default(), &observation, Duration::ZERO);
    }

    fn forget(&mut self, key: &LookKey) {
        match key {
            LookKey::Node => self.node = false,
            LookKey::Images => self.objects = false,
            _ => self.host.forget(key),
        }
    }

    fn predict(&mut self, _: &Scripted, _: &mut Did, _: &Action) {}
}

impl Begun for Did {
    fn remember(&mut self, action: &Action) {
        self.0.insert(action.sentence());
    }

    fn let_go(&self) -> Vec<Action> {
        let token = self.0.contains(&Action::CreateJoinToken.sentence());
        token.then_some(Action::DeleteJoinTokens).into_iter().collect()
    }
}

struct Script;

impl Operation for Script {
    type Goal = Scripted;
    type World = Seen;
    type Begun = Did;

    const KIND: OperationKind = OperationKind::Deployment;

    const PHASES: &'static [PhaseEntry<Self>] =
        &[PhaseEntry { phase: &One, needs: &[] }, PhaseEntry { phase: &Other, needs: &[] }];
}

struct One;
struct Other;

fn situation(scene: &Scene<'_, Script>) -> Situation {
    Situation {
        second: scene.now.as_secs(),
        node_seen: scene.world.node,
        objects_seen: scene.world.objects,
        done: scene.begun.0.clone(),
        host: scene.world.host.clone(),
    }
}

impl Phase<Script> for One {
    fn title(&self) -> &'static str {
        "One"
    }

    fn status(&self, scene: &Scene<'_, Script>) -> PhaseStatus {
        (scene.goal.one)(&situation(scene))
    }
}

impl Phase<Script> for Other {
    fn title(&self) -> &'static str {
        "Other"
    }

    fn applies(&self, goal: &Scripted) -> bool {
        goal.other.is_some()
    }

    fn status(&self, scene: &Scene<'_, Script>) -> PhaseStatus {
        scene.goal.other.map_or(PhaseStatus::Holds, |decide| decide(&situation(scene)))
    }
}

/// Why there is no report of a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NoReport {
    Hangs,
    Lost,
}

/// What is looked at and done, and when; the Node cannot be looked at in `away` seconds since the beginning.
struct Flaky {
    began: Instant,
    away: &'static [(u64, u64)],
    unit: Result<UnitReport, NoReport>,
    log: Mutex<Vec<String>>,
}

impl Flaky {
    fn note(&self, what: &str) {
        let at = self.began.elapsed().as_secs();
        self.log.lock().unwrap().push(format!("{at} {what}"));
    }
}

#[async_trait]
impl Site for Flaky {
    async fn look(&self, look: &Look) -> Result<Observation, EffectError> {
        match look {
            Look::Unit(_) if self.unit == Err(NoReport::Hangs) => sleep(Duration::from_secs(3600)).await,
            Look::Unit(_) if self.unit == Err(NoReport::Lost) => {
                let (host, reason) = ("192.0.2.1:22".to_owned(), "no answer".to_owned());
                return Err(HostError::Transport(TransportError::Lost { host, reason }).into());
            }
            Look::Unit(name) => {
                return Ok(Observation::Unit(name.clone(), self.unit.clone().unwrap_or_default()));
            }
            Look::Images => {
                sleep(Duration::from_secs(4)).await;
                self.note("listed images");
                return Ok(Observation::Images(BTreeSet::new()));
            }
            _ => {}
        }
        let second = self.began.elapsed().as_secs();
        if self.away.iter().any(|away| (away.0..away.1).contains(&second)) {
            let call = ApiCall { verb: "get", object: "node/n".to_owned() };
            return Err(ApiError::Unreachable { call, reason: "refused".to_owned() }.into());
        }
        Ok(Observation::Node(None))
    }

    async fn act(&self, action: &Action) -> Result<Returned, EffectError> {
        self.note(&action.sentence());
        match action {
            Action::RestartKubelet | Action::SetAsideMemberData => sleep(Duration::from_secs(5)).await,
            Action::LoadImages(_) => sleep(Duration::from_secs(2)).await,
            Action::CreateTrust(_) => sleep(Duration::from_secs(36_000)).await,
            // Of several resources, each of which the engine allows an hour.
            Action::Apply(..) => sleep(Duration::from_secs(7200)).await,
            Action::RegisterNode(_) => {
                let host = "n".to_owned();
                let lost = TransportError::Unreachable { host, reason: "gone".to_owned() };
                return Err(EffectError::Host(HostError::Transport(lost)));
            }
            Action::EvictPods(_) => return Ok(Returned::default()),
            _ => {}
        }
        Ok(Returned { changed: 1, observed: Vec::new() })
    }
}

struct Outcome {
    result: Result<RunSummary, RunError>,
    waits: Vec<String>,
    reached: Vec<Milestone>,
    log: Vec<String>,
    elapsed: u64,
}

impl Outcome {
    fn message(&self) -> String {
        self.result.as_ref().unwrap_err().to_string()
    }
}

async fn play(
    goal: Scripted,
    away: &'static [(u64, u64)],
    unit: Result<UnitReport, NoReport>,
    cancel: Cancel,
) -> Outcome {
    let (waits, reached) = (Mutex::new(Vec::new()), Mutex::new(Vec::new()));
    let report = |event| match event {
        Event::Waiting { condition, elapsed, .. } => {
            waits.lock().unwrap().push(format!("{condition} {} s", elapsed.as_secs()));
        }
        Event::Reached { milestone, .. } => reached.lock().unwrap().push(milestone),
        _ => {}
    };
    let began = Instant::now();
    let site = Flaky { began, away, unit, log: Mutex::default() };
    let context = RunContext { host: "n".parse().unwrap(), report: &report, cancel };
    let result = run::<Script>(&goal, &site, context).await;
    let log = site.log.into_inner().unwrap();
    let (waits, reached) = (waits.into_inner().unwrap(), reached.into_inner().unwrap());
    Outcome { result, waits, reached, log, elapsed: began.elapsed().as_secs() }
}

async fn alone(one: Decide, away: &'static [(u64, u64)]) -> Outcome {
    play(Scripted { one, other: None }, away, Ok(UnitReport::default()), Cancel::never()).await
}

async fn both(one: Decide, other: Decide) -> Outcome {
    let goal = Scripted { one, other: Some(other) };
    play(goal, &[], Ok(UnitReport::default()), Cancel::never()).await
}

fn until(sentence: &str) -> PhaseStatus {
    within(30, sentence)
}

fn within(seconds: u64, sentence: &str) -> PhaseStatus {
    PhaseStatus::wait(condition(seconds, sentence))
}

fn condition(seconds: u64, sentence: &str) -> Condition {
    Condition {
        sentence: sentence.to_owned(),
        class: FailureClass::Etcd,
        last_seen: "nothing".to_owned(),
        limit: Duration::from_secs(seconds),
        looks: vec![LookKey::Node],
        causes: Vec::new(),
        hopeless: None,
    }
}

fn once(at: &Situation, action: Action) -> PhaseStatus {
    if at.done.contains(&action.sentence()) { PhaseStatus::Holds } else { PhaseStatus::Act(action) }
}

#[tokio::test(start_paused = true)]
async fn a_wait_ends_at_its_limit_with_its_class_and_is_reported_now_and_then() {
    let outcome = alone(|_| until("a"), &[]).await;
    assert_eq!(outcome.message(), "One: waited 30 s for a; last seen: nothing");
    assert_eq!(outcome.result.unwrap_err().class(), Some(FailureClass::Etcd));
    assert_eq!(outcome.waits, ["a 0 s", "a 10 s", "a 20 s"]);
}

#[tokio::test(start_paused = true)]
async fn a_milestone_is_reported_when_its_action_has_changed_something() {
    let outcome = both(
        |at| match once(at, Action::EvictPods(BTreeSet::new())) {
            PhaseStatus::Holds => once(at, Action::Cordon),
            first => first,
        },
        |at| once(at, Action::RestartKubelet),
    );
    let outcome = outcome.await;
    assert_eq!((outcome.log.len(), outcome.reached), (3, vec![Milestone::DrainBegun]));
}

#[tokio::test(start_paused = true)]
async fn time_spent_on_other_things_takes_nothing_from_a_wait() {
    let decide: Decide = |at| match at.second {
        0..5 => until("a"),
        5..30 => until("b"),
        30..50 => until("a"),
        _ => PhaseStatus::Holds,
    };
    assert!(alone(decide, &[]).await.result.is_ok(), "a was waited for 25 s in all");
}

#[tokio::test(start_paused = true)]
async fn conditions_that_take_turns_do_not_go_on_for_ever() {
    let outcome = alone(|at| until(if at.second.is_multiple_of(2) { "a" } else { "b" }), &[]).await;
    assert!(outcome.message().contains("waited 30 s"));
}

#[tokio::test(start_paused = true)]
async fn each_outage_is_waited_out_for_itself() {
    let decide: Decide = |at| match (at.second, at.node_seen) {
        (200.., _) => PhaseStatus::Holds,
        (_, true) => within(1000, "a"),
        (_, false) => PhaseStatus::Look(Look::Node),
    };
    assert!(alone(decide, &[(0, 50), (52, 100), (102, 150), (152, 200)]).await.result.is_ok());
    let outcome = alone(decide, &[(0, 100)]).await;
    assert_eq!(outcome.message(), "One: could not get the Node");
}

#[tokio::test(start_paused = true)]
async fn what_does_not_help_is_not_done_for_ever() {
    let outcome = alone(|_| PhaseStatus::Act(Action::MarkApiServerReady), &[]).await;
    assert_eq!(
        outcome.message(),
        "One: still required after 10 attempts: record that the API server is ready"
    );
}

#[tokio::test(start_paused = true)]
async fn actions_that_change_different_things_run_side_by_side() {
    let outcome =
        both(|at| once(at, Action::RestartKubelet), |at| once(at, Action::LoadImages(BTreeSet::new()))).await;
    let summary = outcome.result.unwrap();
    assert_eq!(outcome.elapsed, 5);
    assert_eq!(summary.sum_of_phases().as_secs(), 7);
    assert_eq!(summary.phases[1].elapsed.as_secs(), 2, "a phase lasts until it holds itself");
}

#[tokio::test(start_paused = true)]
async fn actions_that_change_the_same_thing_do_not() {
    let outcome =
        both(|at| once(at, Action::RestartKubelet), |at| once(at, Action::SetAsideMemberData)).await;
    assert_eq!(outcome.log, ["0 restart the kubelet", "5 set aside the data of a removed etcd member"]);
}

#[tokio::test(start_paused = true)]
async fn what_was_looked_at_while_it_was_changed_is_looked_at_again() {
    let outcome = both(
        |at| match (at.second, at.done.is_empty()) {
            (0, _) => until("a second to pass"),
            (_, true) => PhaseStatus::Act(Action::LoadImages(BTreeSet::new())),
            (_, false) => PhaseStatus::Holds,
        },
        |at| if at.objects_seen { PhaseStatus::Holds } else { PhaseStatus::Look(Look::Images) },
    )
    .await;
    assert!(outcome.result.is_ok());
    let look = outcome.log.iter().filter(|line| line.ends_with("listed images")).count();
    assert_eq!(look, 2, "{:?}", outcome.log);
}

#[tokio::test(start_paused = true)]
async fn an_effect_that_does_not_finish_is_an_error_that_names_its_deadline() {
    let outcome = alone(|_| PhaseStatus::Act(Action::CreateTrust(BTreeSet::new())), &[]).await;
    let RunError::Effect { source, .. } = outcome.result.unwrap_err() else { panic!("another error") };
    assert_eq!(source.to_string(), "did not finish within 120 s");
}

/// No resource.
struct Empty;

impl Desired for Empty {
    fn items(&self) -> Vec<Item> {
        Vec::new()
    }

    fn verdicts(&self, _: &Observed) -> Vec<(String, Verdict)> {
        Vec::new()
    }
}

fn applied(layer: Layer) -> Action {
    let desired: SharedDesired = Arc::new(Empty);
    let plan = HostPlan(Looked { desired, facts: None, observed: Observed::default() });
    Action::Apply(layer, Arc::new(plan))
}

/// The host may finish it although its run has dropped it: with the lease, or with the connection.
#[test]
fn a_member_is_begun_when_its_start_is_sent() {
    let initial_cluster = "node=https://192.0.2.1:2380".to_owned();
    let start = |first_start| {
        let layer = Layer::EtcdMember { initial_cluster: initial_cluster.clone(), first_start };
        let mut begun = NodeRunBegun::default();
        begun.attempt(&applied(layer));
        (begun.host.began_member(), begun.host.restarted_member())
    };
    assert_eq!((start(true), start(false)), ((true, false), (false, true)));
}

#[tokio::test(start_paused = true)]
async fn a_layer_that_makes_progress_for_hours_is_left_to_the_limits_of_the_engine() {
    let outcome = alone(|at| once(at, applied(Layer::Base)), &[]).await;
    assert_eq!((outcome.result.map(|summary| summary.changed).ok(), outcome.elapsed), (Some(1), 7200));
}

fn waits_for_the_kubelet(at: &Situation) -> PhaseStatus {
    let causes = vec![Cause::kubelet()];
    PhaseStatus::wait(condition(300, "the node to be Ready").caused_by(&at.host, causes))
}

fn crashing(restarts: u32) -> UnitReport {
    UnitReport {
        active: "activating".to_owned(),
        sub: "auto-restart".to_owned(),
        result: "exit-code".to_owned(),
        status: 1,
        restarts,
        last_error: "no such file".to_owned(),
    }
}

#[tokio::test(start_paused = true)]
async fn a_unit_that_fails_for_good_ends_the_wait_with_its_last_error() {
    let goal = Scripted { one: waits_for_the_kubelet, other: None };
    let outcome = play(goal, &[], Ok(crashing(3)), Cancel::never()).await;
    assert_eq!(
        outcome.message(),
        "One: gave up waiting for the node to be Ready: kubelet.service is activating (auto-restart), exit status 1, 3 restarts: no such file"
    );
    assert!(outcome.elapsed < 20, "{} s", outcome.elapsed);
    let goal = Scripted { one: waits_for_the_kubelet, other: None };
    let outcome = play(goal, &[], Ok(crashing(1)), Cancel::never()).await;
    assert!(outcome.message().ends_with("exit status 1, 1 restarts: no such file"), "{}", outcome.message());
    assert_eq!(outcome.elapsed, 300, "it may start yet");
}

#[tokio::test(start_paused = true)]
async fn a_host_that_dies_while_something_else_is_waited_for_ends_the_run() {
    let goal = || Scripted { one: waits_for_the_kubelet, other: None };
    let outcome = play(goal(), &[], Err(NoReport::Lost), Cancel::never()).await;
    assert_eq!(outcome.message(), "One: could not inspect unit kubelet.service");
    assert_eq!(outcome.result.unwrap_err().class(), Some(FailureClass::Ssh));
    assert!(outcome.elapsed < 15, "{} s", outcome.elapsed);
    // systemd or containerd may hang on a host that works on.
    let outcome = play(goal(), &[], Err(NoReport::Hangs), Cancel::never()).await;
    assert_eq!(outcome.elapsed, 300, "{}", outcome.message());
}

#[tokio::test(start_paused = true)]
async fn an_interrupted_run_finishes_its_actions_and_lets_go() {
    let (handle, cancel) = cancel::channel();
    let goal = Scripted {
        one: |at| {
            let token = Action::CreateJoinToken;
            if at.done.contains(&token.sentence()) {
                once(at, Action::RestartKubelet)
            } else {
                PhaseStatus::Act(token)
            }
        },
        other: Some(|_| until("something")),
    };
    let later = async {
        sleep(Duration::from_secs(2)).await;
        handle.cancel(CancelLevel::AfterResource);
    };
    let (outcome, ()) = tokio::join!(play(goal, &[], Ok(UnitReport::default()), cancel), later);
    assert_eq!(outcome.message(), "interrupted");
    assert_eq!(outcome.log, ["0 create a join token", "0 restart the kubelet", "5 delete the join token"]);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_interrupted_twice_drops_its_actions() {
    let (handle, cancel) = cancel::channel();
    let goal = Scripted { one: |at| once(at, Action::RestartKubelet), other: None };
    let later = async {
        sleep(Duration::from_secs(1)).await;
        handle.cancel(CancelLevel::AfterResource);
        sleep(Duration::from_secs(1)).await;
        handle.cancel(CancelLevel::Now);
    };
    let (outcome, ()) = tokio::join!(play(goal, &[], Ok(UnitReport::default()), cancel), later);
    assert_eq!((outcome.message().as_str(), outcome.elapsed), ("interrupted", 2));
}

#[tokio::test(start_paused = true)]
async fn a_failure_waits_for_what_runs_beside_it() {
    let outcome = both(
        |at| once(at, Action::RestartKubelet),
        |_| PhaseStatus::Act(Action::RegisterNode([192, 0, 2, 1].into())),
    )
    .await;
    assert_eq!(outcome.message(), "Other: could not create the Node object");
    assert_eq!(outcome.elapsed, 5);
}

#[tokio::test(start_paused = true)]
async fn phases_that_can_never_begin_are_a_bug_that_is_reported() {
    let outcome = alone(|_| PhaseStatus::All(Vec::new()), &[]).await;
    assert_eq!(outcome.message(), "no phase can continue; these do not hold: One");
}
