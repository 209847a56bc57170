//! What can go wrong with an action, and what it fails with.

use metalform::engine::host::HostError;
use metalform::etcd::act::ActError;
use metalform::kube_api::client::{ApiCall, ApiError};
use metalform::operation::effect::Action;
use metalform::operation::site::EffectError;
use metalform::transport::error::TransportError;

/// What goes wrong with one.
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

/// A host that does not answer.
pub fn unreachable(host: &str) -> HostError {
    let reason = "no route to host".to_owned();
    HostError::Transport(TransportError::Unreachable { host: host.to_owned(), reason })
}

/// The same, of the host of the operation.
pub fn lost(host: &str) -> EffectError {
    EffectError::Host(unreachable(host))
}

/// The same, of another node.
pub fn lost_peer(node: &str) -> EffectError {
    EffectError::Peer { node: node.to_owned(), source: Box::new(unreachable(node)) }
}

/// Another node that answers, and on which nothing can be written.
pub fn full_peer(node: &str) -> EffectError {
    let resources = vec!["template:/etc/haproxy/haproxy.cfg".to_owned()];
    let source = HostError::Failed { resources, status: 1, output: "No space left on device".to_owned() };
    EffectError::Peer { node: node.to_owned(), source: Box::new(source) }
}

/// What an action fails with when nothing is wrong but the connection.
pub fn failing(action: &Action, host: &str) -> EffectError {
    match action {
        Action::Apply(..)
        | Action::SetAsideMemberData
        | Action::RemoveMemberManifest
        | Action::StopControlPlane
        | Action::StopNode
        | Action::RestartKubelet => lost(host),
        Action::UpdateProxy(node, _) => lost_peer(node),
        Action::ChangeMembership(..) | Action::WithdrawLearner(_) | Action::MoveLeader(..) => {
            EffectError::EtcdAct(ActError::NotYet { message: "leader changed".to_owned() })
        }
        _ => {
            let call = ApiCall { verb: "change", object: "it".to_owned() };
            EffectError::Api(ApiError::Unreachable { call, reason: "the connection broke".to_owned() })
        }
    }
}
