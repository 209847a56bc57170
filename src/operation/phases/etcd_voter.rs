//! The node's etcd member votes, is healthy and has caught up.

use super::membership::{MemberStatus, member};
use crate::model::role::Role;
use crate::operation::contract::{NodeOperation, Phase, PhaseStatus, Scene};

/// A learner that does not become one in time is removed again.
#[derive(Debug)]
pub struct EtcdVoter;

impl<O: NodeOperation> Phase<O> for EtcdVoter {
    fn title(&self) -> &'static str {
        "etcd voter"
    }

    fn applies(&self, goal: &O::Goal) -> bool {
        goal.as_ref().has(Role::Etcd)
    }

    fn status(&self, scene: &Scene<'_, O>) -> PhaseStatus {
        match member(scene) {
            MemberStatus::NotStarted(first) | MemberStatus::Started(first) => first,
            MemberStatus::Votes => PhaseStatus::Holds,
        }
    }
}
