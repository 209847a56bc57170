//! An operation: a goal, a world, what a run of it has begun, and its phases.

use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::condition::Condition;
use super::effect::{Action, Look, LookKey, Observation};
use super::goal::NodeGoal;
use super::parts::bootstrap::BootstrapPart;
use super::parts::cluster::ClusterPart;
use super::parts::etcd::{EtcdBegun, EtcdPart};
use super::parts::host::{HostBegun, HostPart};
use super::parts::node::{NodeBegun, NodePart};
use super::preflight::PreflightFailure;
use super::removal_refusal::RemovalRefusal;
use crate::etcd::membership::Obstacle;
use crate::model::event::OperationKind;

/// What is done to a cluster or a node, as phases that must hold.
pub trait Operation: Sized + 'static {
    /// What shall be.
    type Goal: Sync;
    /// What was observed, composed of the parts that the phases read.
    type World: World<Self::Goal, Self::Begun>;
    /// What a run has begun and must not forget, composed of the same parts.
    type Begun: Begun;

    /// What it does to the node.
    const KIND: OperationKind;

    /// The option with which the operation does without a host that is gone for good, if there is one.
    const WITHOUT_HOST: Option<&'static str> = None;

    /// The phases. Where two could act at the same time, the earlier one goes first.
    const PHASES: &'static [PhaseEntry<Self>];
}

/// A phase in an operation.
pub struct PhaseEntry<O: Operation> {
    /// The phase.
    pub phase: &'static dyn Phase<O>,
    /// Titles of the phases that must hold before it begins; those that do not apply to the goal count as holding.
    pub needs: &'static [&'static str],
}

/// One thing that must hold.
pub trait Phase<O: Operation>: Sync {
    /// Its name in the table of phases; unique within the operation.
    fn title(&self) -> &'static str;

    /// Whether it is part of this goal at all.
    fn applies(&self, goal: &O::Goal) -> bool {
        let _ = goal;
        true
    }

    /// What is missing so that it holds.
    ///
    /// # Guarantees
    /// Pure and total: depends on the scene alone.
    fn status(&self, scene: &Scene<'_, O>) -> PhaseStatus;

    /// What it looks at itself: what was observed before it begins may be minutes old.
    fn looks_again(&self) -> Vec<LookKey> {
        Vec::new()
    }
}

/// Everything that a phase decides by.
pub struct Scene<'a, O: Operation> {
    /// What shall be.
    pub goal: &'a O::Goal,
    /// What was observed.
    pub world: &'a O::World,
    /// What this run has begun.
    pub begun: &'a O::Begun,
    /// Since the run began.
    pub now: Duration,
}

/// The answer of a phase.
#[derive(Debug, Clone)]
pub enum PhaseStatus {
    /// It holds.
    Holds,
    /// Something must be observed before it can be decided.
    Look(Look),
    /// Something must be done.
    Act(Action),
    /// All of these, side by side; looks and actions only.
    All(Vec<PhaseStatus>),
    /// It comes about by itself.
    Wait(Box<Condition>),
    /// It will not hold without a person.
    Blocked(Blocker),
}

impl PhaseStatus {
    /// Waiting for this.
    pub fn wait(condition: Condition) -> Self {
        Self::Wait(Box::new(condition))
    }
}

/// Why a phase cannot hold without a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Blocker {
    /// The host is not fit to be the node, for all these reasons.
    Preflight(Vec<PreflightFailure>),
    /// Resources that must not be changed: id and reason.
    Refused(Vec<(String, String)>),
    /// Resources that this run has changed, and that differ again, each with what differs.
    StillDiffers(Vec<String>),
    /// etcd membership does not allow it.
    Etcd(Obstacle),
    /// The learner of this node was removed again, and why.
    LearnerRemoved(String),
    /// The node must not be removed, for all these reasons.
    Removal(Vec<RemovalRefusal>),
    /// What metalform has left on a host that was reset, one line each.
    LeftBehind(Vec<String>),
}

/// What was observed. A part that is not there was not looked at, or may have changed since.
pub trait World<G, B>: Default + Clone + Send + Sync {
    /// Takes in what was observed at `now`.
    fn put(&mut self, goal: &G, begun: &mut B, observation: Observation, now: Duration);

    /// Forgets one part, so that it is looked at again.
    fn forget(&mut self, key: &LookKey);

    /// Takes an action as done that was not, for a dry run.
    fn predict(&mut self, goal: &G, begun: &mut B, action: &Action);
}

/// What a run has begun.
pub trait Begun: Default + Clone + Send + Sync + Serialize + DeserializeOwned {
    /// Takes in that an action is started: whether it is done or not, its answer may be lost.
    fn attempt(&mut self, action: &Action) {
        let _ = action;
    }

    /// Takes in that an action was done.
    fn remember(&mut self, action: &Action);

    /// What must be undone before the run ends, whatever its outcome. What comes later on the same target waits for
    /// what comes earlier.
    fn let_go(&self) -> Vec<Action>;
}

/// Operations on one node: their phases share these parts.
pub trait NodeOperation:
    Operation<
        Goal: AsRef<NodeGoal>,
        World: AsRef<HostPart> + AsRef<NodePart> + AsRef<EtcdPart> + AsRef<ClusterPart>,
        Begun: AsRef<HostBegun> + AsRef<NodeBegun> + AsRef<EtcdBegun>,
    >
{
}

impl<O> NodeOperation for O where
    O: Operation<
            Goal: AsRef<NodeGoal>,
            World: AsRef<HostPart> + AsRef<NodePart> + AsRef<EtcdPart> + AsRef<ClusterPart>,
            Begun: AsRef<HostBegun> + AsRef<NodeBegun> + AsRef<EtcdBegun>,
        >
{
}

impl<'a, O: NodeOperation> Scene<'a, O> {
    /// The node that shall be.
    pub fn node_goal(&self) -> &'a NodeGoal {
        self.goal.as_ref()
    }

    /// What was observed of its host.
    pub fn host(&self) -> &'a HostPart {
        self.world.as_ref()
    }

    /// What was observed of its Node object and pods.
    pub fn node(&self) -> &'a NodePart {
        self.world.as_ref()
    }

    /// What was observed of etcd.
    pub fn etcd(&self) -> &'a EtcdPart {
        self.world.as_ref()
    }

    /// What was observed of the cluster besides.
    pub fn cluster(&self) -> &'a ClusterPart {
        self.world.as_ref()
    }

    /// What this run has begun on the host.
    pub fn host_begun(&self) -> &'a HostBegun {
        self.begun.as_ref()
    }

    /// What this run has begun with the Node object and pods.
    pub fn node_begun(&self) -> &'a NodeBegun {
        self.begun.as_ref()
    }

    /// What this run has begun with etcd.
    pub fn etcd_begun(&self) -> &'a EtcdBegun {
        self.begun.as_ref()
    }
}

/// Operations on the bootstrap node: their phases read its own part too.
pub trait BootstrapNodeOperation: NodeOperation<World: AsRef<BootstrapPart>> {}

impl<O: NodeOperation<World: AsRef<BootstrapPart>>> BootstrapNodeOperation for O {}

impl<'a, O: BootstrapNodeOperation> Scene<'a, O> {
    /// What was observed of the bootstrap node.
    pub fn bootstrap(&self) -> &'a BootstrapPart {
        self.world.as_ref()
    }
}

/// The phases that are part of this goal, in order.
pub fn phases<O: Operation>(goal: &O::Goal) -> impl Iterator<Item = &'static PhaseEntry<O>> {
    O::PHASES.iter().filter(move |entry| entry.phase.applies(goal))
}

/// The part of the world, or the look that fills it in.
macro_rules! seen {
    ($part:expr, $look:expr) => {
        match &$part {
            Some(part) => part,
            None => return $crate::operation::contract::PhaseStatus::Look($look),
        }
    };
}
pub(crate) use seen;
