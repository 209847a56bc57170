//! Where effects are performed. The real site is [`crate::operation::cluster_site`]; tests have a model.

use std::time::Duration;

use async_trait::async_trait;
use tokio::time::timeout;

use super::class::FailureClass;
use super::driver::Setback;
use super::effect::{Action, Look, Observation, Returned};
use crate::engine::host::HostError;
use crate::etcd::act::ActError;
use crate::etcd::client::ClientError;
use crate::kube_api::client::ApiError;
use crate::kube_api::lease::LeaseError;
use crate::kube_api::manifests::ManifestApplyError;
use crate::kube_api::tokens::TokenError;
use crate::model::error_chain::error_chain;
use crate::registry::error::RegistryError;
use crate::workspace::atomic_file::FileError;
use crate::workspace::trust::TrustError;

/// Performs effects, several at a time. It decides nothing.
#[async_trait]
pub trait Site: Send + Sync {
    /// Observes one part of the world. Changes nothing.
    async fn look(&self, look: &Look) -> Result<Observation, EffectError>;

    /// Does one thing. Doing it twice is the same as doing it once.
    async fn act(&self, action: &Action) -> Result<Returned, EffectError>;

    /// [`Self::look`], given up after its limit: a host may answer, and never end what it was asked for.
    async fn look_in_time(&self, look: &Look) -> Result<Observation, EffectError> {
        in_time((look.deadline(), look.class()), self.look(look)).await
    }

    /// [`Self::act`], given up after its limit.
    async fn act_in_time(&self, action: &Action) -> Result<Returned, EffectError> {
        in_time((action.deadline(), action.class()), self.act(action)).await
    }
}

/// What ends by itself, or is given up after the limit.
pub(super) async fn in_time<T>(
    (limit, class): (Duration, FailureClass),
    work: impl Future<Output = Result<T, EffectError>>,
) -> Result<T, EffectError> {
    timeout(limit, work).await.unwrap_or(Err(EffectError::Late { seconds: limit.as_secs(), class }))
}

/// Why something could not be observed or done.
#[derive(Debug, thiserror::Error)]
pub enum EffectError {
    /// The host could not be reached, or could not be changed.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The host of another node.
    #[error("{node}")]
    Peer {
        /// The node.
        node: String,
        /// Why.
        source: Box<HostError>,
    },
    /// The states cannot be compiled for this host.
    #[error("the states do not fit this host: {}", faults.join("; "))]
    States {
        /// One line for each fault.
        faults: Vec<String>,
    },
    /// A template of an object for the API cannot be rendered, or is not one.
    #[error("template {template}: {reason}")]
    Template {
        /// Its path.
        template: &'static str,
        /// Why.
        reason: String,
    },
    /// etcd did not answer.
    #[error(transparent)]
    EtcdClient(#[from] ClientError),
    /// etcd did not make the change.
    #[error(transparent)]
    EtcdAct(#[from] ActError),
    /// The Kubernetes API refused or did not answer.
    #[error(transparent)]
    Api(#[from] ApiError),
    /// An object for the API is not one.
    #[error("{object} cannot be encoded")]
    Encode {
        /// The object.
        object: String,
        /// Why.
        source: serde_json::Error,
    },
    /// The objects of the cluster were not accepted.
    #[error(transparent)]
    Manifest(#[from] ManifestApplyError),
    /// The join token was not created.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// The lease on etcd membership was lost.
    #[error(transparent)]
    Lease(#[from] LeaseError),
    /// Another process took the lease first.
    #[error("the lease on etcd membership is held by {holder}")]
    LeaseHeld {
        /// The other process.
        holder: String,
    },
    /// The lease on etcd membership is not held by this run.
    #[error("this run does not hold the lease on etcd membership")]
    NoLease,
    /// A file of this machine.
    #[error(transparent)]
    File(#[from] FileError),
    /// Files of the CAs.
    #[error(transparent)]
    Trust(#[from] TrustError),
    /// The registry did not answer or did not accept an image.
    #[error(transparent)]
    Registry(#[from] RegistryError),
    /// The deadline passed.
    #[error("did not finish within {seconds} s")]
    Late {
        /// The deadline.
        seconds: u64,
        /// Of the effect.
        class: FailureClass,
    },
    /// An effect that this site cannot perform.
    #[error("{what} is not possible here")]
    Impossible {
        /// What.
        what: String,
    },
}

impl EffectError {
    /// Whether another attempt may succeed without a person. An API server and etcd are away for moments while
    /// members are added, and a lease that was not renewed meanwhile can be taken again; a host that does not answer is
    /// an answer.
    pub fn may_pass(&self) -> bool {
        match self {
            Self::EtcdClient(ClientError::NoAnswer { .. })
            | Self::EtcdAct(_)
            | Self::Lease(LeaseError::Expired { .. })
            | Self::LeaseHeld { .. } => true,
            Self::Api(error)
            | Self::Manifest(ManifestApplyError::Api(error))
            | Self::Token(TokenError::Api(error)) => error.is_transient(),
            Self::Late { class, .. } => matches!(class, FailureClass::Api | FailureClass::Etcd),
            _ => false,
        }
    }

    /// Decides the exit code.
    pub fn class(&self) -> FailureClass {
        match self {
            Self::Host(error) if error.connection().is_some() => FailureClass::Ssh,
            Self::Peer { source, .. } if source.connection().is_some() => FailureClass::Ssh,
            Self::Host(_) | Self::Peer { .. } | Self::Registry(_) => FailureClass::Host,
            Self::States { .. }
            | Self::Template { .. }
            | Self::Manifest(ManifestApplyError::Foreign(_))
            | Self::Trust(_)
            | Self::File(_) => FailureClass::Configuration,
            Self::EtcdClient(_) | Self::EtcdAct(_) => FailureClass::Etcd,
            Self::Api(_)
            | Self::Manifest(_)
            | Self::Token(_)
            | Self::Lease(_)
            | Self::LeaseHeld { .. }
            | Self::NoLease => FailureClass::Api,
            Self::Late { class, .. } => *class,
            Self::Encode { .. } | Self::Impossible { .. } => FailureClass::Own,
        }
    }

    /// What the driver must know of it.
    pub fn setback(&self) -> Setback {
        Setback { class: self.class(), passes: self.may_pass(), reason: error_chain(self) }
    }
}
