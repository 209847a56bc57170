//! Why a job on a host failed.

use super::power_hook::PowerHookError;
use crate::engine::host::HostError;
use crate::kube_api::client::ApiError;
use crate::kube_api::secrets::SecretError;
use crate::machine::api::host::HostSpecError;
use crate::machine::host_identity::HostIdentityError;
use crate::machine::host_job::HostJob;
use crate::machine::job_outcome::{HostPresence, JobError};
use crate::machine::kubelet_refusal::AbsentVersion;
use crate::machine::power_call::PowerCallError;
use crate::model::error_chain::error_chain;
use crate::model::name::HostName;
use crate::model::node::NodeProblems;
use crate::operation::driver::RunFault;
use crate::operation::preflight::PreflightFailure;
use crate::operation::run::RunError;
use crate::operation::site::EffectError;
use crate::service::operation_failure::blocker_lines;
use crate::transport::error::{FenceRefusal, TransportError};
use crate::transport::held_key::HeldKeyError;
use crate::workspace::host_lock::HostLockError;

/// Why a job on a host failed.
#[derive(Debug, thiserror::Error)]
pub enum JobFault {
    /// The Host is invalid.
    #[error(transparent)]
    Spec(#[from] HostSpecError),
    /// Its Node would be invalid.
    #[error("{0}")]
    Node(#[from] NodeProblems),
    /// It has the name of the bootstrap node.
    #[error("{0} is the bootstrap node, which no Machine can have")]
    BootstrapNode(HostName),
    /// The machine is not that of the Host.
    #[error(transparent)]
    Identity(#[from] HostIdentityError),
    /// The token that the host was given is not known.
    #[error(transparent)]
    Fence(#[from] FenceRefusal),
    /// The job needs a Machine.
    #[error("the {0} is a job of a Machine")]
    NoNode(HostJob),
    /// A command runs on the host.
    #[error(transparent)]
    Locked(#[from] HostLockError),
    /// An operation ended before every phase held.
    #[error(transparent)]
    Run(#[from] RunError),
    /// Something could not be observed or done.
    #[error(transparent)]
    Effect(#[from] EffectError),
    /// The host.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The API.
    #[error(transparent)]
    Api(#[from] ApiError),
    /// A Secret.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// The key of the Secret cannot be used.
    #[error("Secret {name}")]
    LoginKey {
        /// `NAMESPACE/NAME`.
        name: String,
        source: HeldKeyError,
    },
    /// The power hook.
    #[error(transparent)]
    PowerHook(#[from] PowerHookError),
    /// What the power hook answered.
    #[error("power hook {hook}")]
    Power {
        /// Its name.
        hook: String,
        source: PowerCallError,
    },
    /// The Host has lost its power hook since the job was planned.
    #[error("the Host has no spec.power")]
    NoPowerHook,
    /// The job was cancelled.
    #[error("interrupted")]
    Interrupted,
    /// The host is not fit to be a node.
    #[error("{}", .0.iter().map(|one| format!("{} ({})", one.what, one.hint)).collect::<Vec<_>>().join("; "))]
    Preflight(Vec<PreflightFailure>),
    /// The host is not clean.
    #[error("the host is not clean: {}", .0.join("; "))]
    NotClean(Vec<String>),
    /// No bundle has the version of the kubelet.
    #[error(transparent)]
    Version(#[from] AbsentVersion),
    /// The name is taken.
    #[error("Node {node} exists with provider ID {found:?}, expected {expected:?}")]
    ForeignNode {
        /// Its name.
        node: HostName,
        /// Empty: it has none.
        found: String,
        /// Of the Machine.
        expected: String,
    },
    /// Resources that metalform writes cannot be declared.
    #[error("cannot declare {what}: {reason}")]
    Declare {
        /// `the public keys`.
        what: &'static str,
        /// Why.
        reason: String,
    },
}

impl JobFault {
    /// In one line, for the Host `host`.
    pub(super) fn into_error(self, host: &HostName) -> JobError {
        let text = match &self {
            Self::Run(RunError::Fault(RunFault::Blocked { blocker, .. })) => {
                blocker_lines(host, blocker).join("\n")
            }
            _ => error_chain(&self),
        };
        let message = text.lines().map(str::trim).collect::<Vec<_>>().join("; ");
        JobError { message, presence: self.presence(), begun: self.has_begun() }
    }

    fn host_error(&self) -> Option<&HostError> {
        let effect = match self {
            Self::Host(error) => return Some(error),
            Self::Effect(error) => error,
            Self::Run(RunError::Effect { source, .. }) => source.as_ref(),
            _ => return None,
        };
        match effect {
            EffectError::Host(error) => Some(error),
            _ => None,
        }
    }

    fn has_begun(&self) -> bool {
        !matches!(self, Self::Locked(HostLockError::Held { .. }))
    }

    fn presence(&self) -> HostPresence {
        match self {
            // What was found on it.
            Self::Run(RunError::Fault(RunFault::Blocked { .. }))
            | Self::Identity(_)
            | Self::Fence(_)
            | Self::Preflight(_)
            | Self::NotClean(_) => HostPresence::Answers,
            _ => self.host_error().map_or(HostPresence::Unknown, presence),
        }
    }
}

/// A host that refuses a login, or has another key, answers; one that this machine cannot log in to may not.
pub(super) fn presence(error: &HostError) -> HostPresence {
    match (error, error.connection()) {
        (_, Some(TransportError::Unreachable { .. } | TransportError::Lost { .. })) => HostPresence::Silent,
        (
            _,
            Some(
                TransportError::KnownHosts { .. }
                | TransportError::PassphraseMissing { .. }
                | TransportError::IdentityUnreadable { .. },
            ),
        )
        | (HostError::TimedOut { .. } | HostError::NotBack { .. } | HostError::Interrupted, _) => {
            HostPresence::Unknown
        }
        _ => HostPresence::Answers,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operation::contract::Blocker;

    #[test]
    fn a_job_has_not_begun_while_another_command_works_on_the_host() {
        let host = || -> HostName { "spare-1".parse().unwrap() };
        let held = HostLockError::Held { host: host(), holder: "process 7".to_owned(), record: None };
        let fenced = |reason| {
            let refused = TransportError::Fenced { host: "10.0.0.2:22".to_owned(), token: 2, reason };
            JobFault::Effect(EffectError::Host(refused.into()))
        };
        for (fault, begun) in [
            (JobFault::Locked(held), false),
            // It may hang there: then the host is quarantined.
            (fenced(FenceRefusal::Busy), true),
            (fenced(FenceRefusal::Superseded { largest: 3 }), true),
            (JobFault::Interrupted, true),
        ] {
            let error = fault.into_error(&host());
            assert_eq!(error.begun, begun, "{error}");
        }
    }

    #[test]
    fn a_host_is_silent_only_where_the_connection_is_not_made_or_breaks() {
        let host = || "10.0.0.2:22".to_owned();
        let unreachable = || TransportError::Unreachable { host: host(), reason: "no route".to_owned() };
        let run = |error: HostError| {
            let source = Box::new(EffectError::Host(error));
            JobFault::Run(RunError::Effect {
                phase: "Reachable".to_owned(),
                what: "connect".to_owned(),
                source,
            })
        };
        for (fault, message, presence) in [
            (
                run(unreachable().into()),
                "Reachable: could not connect: 10.0.0.2:22: no SSH connection: no route",
                HostPresence::Silent,
            ),
            (
                JobFault::Effect(EffectError::Host(
                    TransportError::Lost { host: host(), reason: "reset".to_owned() }.into(),
                )),
                "10.0.0.2:22: connection lost: reset",
                HostPresence::Silent,
            ),
            (
                JobFault::Host(
                    TransportError::HostKeyUnknown { host: host(), found: "SHA256:a".to_owned() }.into(),
                ),
                "10.0.0.2:22: unknown host key SHA256:a",
                HostPresence::Answers,
            ),
            (
                JobFault::NotClean(vec![
                    "package kubelet: is there".to_owned(),
                    "link cni0: is there".to_owned(),
                ]),
                "the host is not clean: package kubelet: is there; link cni0: is there",
                HostPresence::Answers,
            ),
            (JobFault::Run(RunError::Interrupted), "interrupted", HostPresence::Unknown),
            (JobFault::Host(HostError::Interrupted), "interrupted", HostPresence::Unknown),
            (
                JobFault::Host(
                    TransportError::IdentityUnreadable { path: "/k".to_owned(), reason: "denied".to_owned() }
                        .into(),
                ),
                "private key /k: denied",
                HostPresence::Unknown,
            ),
            (
                JobFault::Run(RunError::Fault(RunFault::Blocked {
                    phase: "Host reset".to_owned(),
                    blocker: Blocker::StillDiffers(vec![
                        "file:/a (content)".to_owned(),
                        "file:/b".to_owned(),
                    ]),
                })),
                "spare-1: still differs after apply: file:/a (content); file:/b",
                HostPresence::Answers,
            ),
        ] {
            let error = fault.into_error(&"spare-1".parse().unwrap());
            assert_eq!((error.message.as_str(), error.presence), (message, presence));
        }
    }
}
