//! What can go wrong with an action, and what it fails with.

use metalform::engine::host::HostError;
use metalform::etcd::act::ActError;
use metalform::kube_api::client::{ApiCall, ApiError};
use metalform::operation::phase::Action;
use metalform::operation::site::Trouble;
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
pub fn lost(host: &str) -> Trouble {
    let reason = "no route to host".to_owned();
    Trouble::Host(HostError::Transport(TransportError::Unreachable { host: host.to_owned(), reason }))
}

/// What an action fails with when nothing is wrong but the way to it.
pub fn failing(action: &Action, host: &str) -> Trouble {
    match action {
        Action::Apply(_) | Action::SetAsideMemberData | Action::RestartKubelet => lost(host),
        Action::ChangeMembership(_) => {
            Trouble::EtcdAct(ActError::NotYet { message: "leader changed".to_owned() })
        }
        _ => {
            let call = ApiCall { verb: "change", object: "it".to_owned() };
            Trouble::Api(ApiError::Unreachable { call, reason: "the connection broke".to_owned() })
        }
    }
}
