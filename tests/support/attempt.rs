//! One run of an operation over the simulated cluster, and its outcome.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use metalform::engine::cancel::Cancel;
use metalform::model::api_contract::WORKLOAD_PLANE_IP;
use metalform::model::cluster::Cluster;
use metalform::model::event::Event;
use metalform::model::node::NodeSpec;
use metalform::operation::bootstrap::{BootstrapGoal, BootstrapOperation};
use metalform::operation::contract::{Blocker, Operation};
use metalform::operation::deploy::DeployOperation;
use metalform::operation::driver::RunFault;
use metalform::operation::dry_run::{Preview, dry_run};
use metalform::operation::effect::KeepData;
use metalform::operation::goal::NodeGoal;
use metalform::operation::observed::node::NodeView;
use metalform::operation::removal_goal::RemoveGoal;
use metalform::operation::remove::RemoveOperation;
use metalform::operation::reset::ResetOperation;
use metalform::operation::run::{Run, RunContext, RunError, RunSummary};
use metalform::operation::site::Site;
use tokio::sync::Notify;

use super::defect::Defect;
use super::fault::Faults;
use super::luck::Luck;
use super::site::{ModelSite, Shared};
use super::{given, values};

pub enum Ended {
    Held(RunSummary),
    Failed(RunError),
    Killed,
}

/// The operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recipe {
    Bootstrap,
    Deploy,
    /// Of a host that answers, or of one that is gone.
    Remove {
        offline: bool,
    },
    /// Of a host that is not in the cluster.
    Reset,
}

/// How a run is played.
pub struct Attempt<'a> {
    pub world: &'a Shared,
    pub recipe: Recipe,
    pub name: &'a str,
    /// The nodes that the same command deploys.
    pub beside: &'a [&'a str],
    /// Unlike that of any other run.
    pub number: usize,
    /// Whether and when it is cancelled.
    pub cancel: Cancel,
    /// What an operator would see.
    pub seen: &'a Mutex<Vec<String>>,
}

/// What a run meets.
pub struct Circumstances {
    pub faults: Faults,
    pub luck: Luck,
    pub defect: Option<Defect>,
}

impl Attempt<'_> {
    pub async fn run(self, faults: Faults) -> Ended {
        self.run_in(Circumstances { faults, luck: Luck::default(), defect: None }).await
    }

    /// The manifest of the node, and what a dry run of it foresees.
    pub async fn foresee(self) -> (NodeSpec, Result<Preview, RunError>) {
        let (goal, spec) = (self.goal(), self.world.lock().unwrap().spec(self.name));
        let faults: Faults = Box::new(|_| panic!("a dry run acts"));
        let site = self.site(&goal, Circumstances { faults, luck: Luck::default(), defect: None });
        (spec, dry_run::<DeployOperation>(&goal, &site).await)
    }

    fn goal(&self) -> NodeGoal {
        let cluster = self.world.lock().unwrap();
        let host = &cluster.hosts[self.name];
        let mut goal = given::goal(self.name, &host.roles);
        goal.replace_member = host.replace_member;
        goal.replace_machine = host.replace_machine;
        goal.foreseen = host.foreseen.clone();
        let node = cluster.nodes.get(self.name);
        goal.recorded_address = node.and_then(NodeView::recorded_address);
        goal.recorded_workload_address =
            node.and_then(|node| node.annotations.get(WORKLOAD_PLANE_IP)?.parse().ok());
        goal.authority = cluster.trust.then(|| given::AUTHORITY.to_owned());
        goal.beside = Arc::new(
            self.beside.iter().filter(|name| **name != self.name).map(|name| name.parse().unwrap()).collect(),
        );
        goal.leaves = matches!(self.recipe, Recipe::Remove { .. } | Recipe::Reset);
        goal.first |= self.recipe == Recipe::Bootstrap;
        goal
    }

    fn site(&self, goal: &NodeGoal, Circumstances { faults, luck, defect }: Circumstances) -> ModelSite {
        ModelSite {
            world: self.world.clone(),
            goal: goal.clone(),
            run: format!("run {} of {}", self.number, self.name),
            faults: Mutex::new(faults),
            killed: Arc::new(Notify::new()),
            fit: Arc::new(AtomicBool::new(false)),
            given: changed(self.world.lock().unwrap().configuration),
            count: AtomicUsize::new(0),
            luck,
            defect,
            stalled: Mutex::new(None),
            uncertain: AtomicBool::new(false),
            added: AtomicBool::new(false),
            leased: AtomicBool::new(false),
            readings: Mutex::default(),
        }
    }

    pub async fn run_in(self, circumstances: Circumstances) -> Ended {
        let (goal, luck) = (self.goal(), circumstances.luck.clone());
        let site = self.site(&goal, circumstances);
        let (killed, fit) = (site.killed.clone(), site.fit.clone());
        let waited = Mutex::new(BTreeSet::new());
        let report = |event: Event| {
            if let Event::PhaseEnded { phase, holds: true, .. } = &event
                && ["Preflight", "Removal allowed", "Reset allowed"].contains(&phase.as_str())
            {
                fit.store(true, Ordering::Relaxed);
            }
            if let Some(line) = line(&event, &mut waited.lock().unwrap()) {
                self.seen.lock().unwrap().push(line);
            }
        };
        let context = RunContext { host: goal.name.clone(), report: &report, cancel: self.cancel };
        let bootstrap =
            BootstrapGoal { node: goal.clone(), images: BTreeSet::new(), objects: BTreeSet::new() };
        let running = async {
            match self.recipe {
                Recipe::Bootstrap => {
                    remembered::<BootstrapOperation>(&bootstrap, &site, context, &luck).await
                }
                Recipe::Deploy => remembered::<DeployOperation>(&goal, &site, context, &luck).await,
                Recipe::Remove { offline } => {
                    let removal = removal(&goal, offline);
                    remembered::<RemoveOperation>(&removal, &site, context, &luck).await
                }
                Recipe::Reset => {
                    remembered::<ResetOperation>(&removal(&goal, false), &site, context, &luck).await
                }
            }
        };
        tokio::select! {
            biased;
            () = killed.notified() => Ended::Killed,
            outcome = running => match outcome {
                Ok(summary) => Ended::Held(summary),
                Err(error) => Ended::Failed(error),
            }
        }
    }
}

/// The cluster as templates see it after an operator has changed so often what components run with.
fn changed(times: u32) -> Cluster {
    let mut cluster = values::cluster();
    if times > 0 {
        cluster.versions.values_mut().for_each(|version| version.push_str(&format!("-{times}")));
    }
    cluster
}

/// Pods that no controller creates again stay.
pub fn removal(node: &NodeGoal, offline: bool) -> RemoveGoal {
    let (force, drain_limit, together) = (false, Duration::from_secs(60), BTreeSet::new());
    let node = NodeGoal { leaves: true, ..node.clone() };
    let (kubelet_stopped, dedicated, keep_data) = (false, false, KeepData(false));
    RemoveGoal { node, offline, force, kubelet_stopped, dedicated, keep_data, drain_limit, together }
}

/// Runs an operation whose memory is written down and read back after its steps: after every one without dice.
async fn remembered<O: Operation>(
    goal: &O::Goal,
    site: &dyn Site,
    context: RunContext<'_>,
    luck: &Luck,
) -> Result<RunSummary, RunError> {
    let mut run = Run::<O>::new(goal, site, context);
    while !run.turn().await {
        if !luck.writes_down() {
            continue;
        }
        let written = serde_json::to_string(&run.memory).unwrap();
        run.memory = serde_json::from_str(&written).unwrap();
    }
    run.end()
}

/// A wait is shown once, with what was seen first.
pub fn line(event: &Event, waited: &mut BTreeSet<String>) -> Option<String> {
    match event {
        Event::PhaseEnded { phase, holds: true, .. } => Some(format!("{phase} holds")),
        Event::Acted { action, .. } => Some(format!("  {action}")),
        Event::Waiting { condition, last_seen, .. } if waited.insert(condition.clone()) => {
            Some(format!("  wait for {condition}: {last_seen}"))
        }
        _ => None,
    }
}

/// The last lines of a run.
pub fn outcome(ended: &Ended) -> Vec<String> {
    match ended {
        Ended::Held(summary) => vec![format!("all hold, {} changed", summary.changed)],
        Ended::Killed => vec!["killed".to_owned()],
        Ended::Failed(error) => {
            let mut text = error.to_string();
            let sources = std::iter::successors(std::error::Error::source(error), |error| error.source());
            for source in sources {
                text = format!("{text}: {source}");
            }
            let mut lines = vec![format!("fails: {text}")];
            if let RunError::Fault(RunFault::Blocked { blocker, .. }) = error {
                lines.extend(blocked(blocker));
            }
            lines
        }
    }
}

fn blocked(blocker: &Blocker) -> Vec<String> {
    match blocker {
        Blocker::Preflight(failures) => {
            failures.iter().map(|failure| format!("  {}", failure.what)).collect()
        }
        Blocker::Refused(refusals) => refusals.iter().map(|(id, why)| format!("  {id}: {why}")).collect(),
        Blocker::LeftBehind(left) => left.iter().map(|left| format!("  left: {left}")).collect(),
        Blocker::StillDiffers(ids) => vec![format!("  still differs: {}", ids.join(", "))],
        Blocker::Etcd(obstacle) => vec![format!("  {obstacle}")],
        Blocker::Removal(refusals) => refusals.iter().map(|refusal| format!("  {refusal}")).collect(),
        Blocker::LearnerRemoved(why) => vec![format!("  the learner was removed: it {why}")],
    }
}
