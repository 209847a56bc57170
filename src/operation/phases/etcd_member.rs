//! The node's etcd member is in the list of members, and started.

use super::membership::{MemberStatus, member};
use crate::model::role::Role;
use crate::operation::contract::{NodeOperation, Phase, PhaseStatus, Scene};

/// Ends when its static pod is written: it starts, copies and matures while other phases go on.
#[derive(Debug)]
pub struct EtcdMember;

impl<O: NodeOperation> Phase<O> for EtcdMember {
    fn title(&self) -> &'static str {
        "etcd member"
    }

    fn applies(&self, goal: &O::Goal) -> bool {
        goal.as_ref().has(Role::Etcd)
    }

    fn status(&self, scene: &Scene<'_, O>) -> PhaseStatus {
        match member(scene) {
            MemberStatus::NotStarted(first) => first,
            MemberStatus::Started(_) | MemberStatus::Votes => PhaseStatus::Holds,
        }
    }
}
