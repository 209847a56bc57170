//! Where phases look and act. The real one is [`crate::operation::cluster_site`]; tests have one of their own.

use async_trait::async_trait;

use super::phase::{Action, Look};
use super::world::{Seen, World};
use crate::bundle::registry::RegistryError;
use crate::engine::host::HostError;
use crate::etcd::act::ActError;
use crate::etcd::client::ClientError;
use crate::kube_api::client::ApiError;
use crate::kube_api::lease::LeaseError;
use crate::kube_api::manifests::ManifestApplyError;
use crate::kube_api::tokens::TokenError;
use crate::workspace::trust::TrustError;

/// Looks at and acts on one host and its cluster. It decides nothing.
#[async_trait]
pub trait Site: Send {
    /// Observes one part of the world. Changes nothing.
    async fn look(&mut self, look: &Look, world: &World) -> Result<Seen, Trouble>;

    /// Does one thing. Doing it twice is the same as doing it once.
    async fn act(&mut self, action: &Action, world: &World) -> Result<Done, Trouble>;
}

/// What an action changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Done {
    /// Resources of hosts that were changed.
    pub changed: usize,
}

/// Why something could not be seen or done.
#[derive(Debug, thiserror::Error)]
pub enum Trouble {
    /// The host could not be reached, or could not be made what it should be.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The states cannot be compiled for this host: one line for each fault.
    #[error("the states do not fit this host: {}", faults.join("; "))]
    States {
        /// The faults.
        faults: Vec<String>,
    },
    /// etcd did not answer.
    #[error(transparent)]
    EtcdClient(#[from] ClientError),
    /// etcd did not do it.
    #[error(transparent)]
    EtcdAct(#[from] ActError),
    /// The Kubernetes API refused or did not answer.
    #[error(transparent)]
    Api(#[from] ApiError),
    /// The objects of the cluster were not taken.
    #[error(transparent)]
    Manifest(#[from] ManifestApplyError),
    /// The join token was not made.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// The lease on etcd's membership was not had, or was lost.
    #[error(transparent)]
    Lease(#[from] LeaseError),
    /// The authorities' files.
    #[error(transparent)]
    Trust(#[from] TrustError),
    /// The registry did not take an image.
    #[error(transparent)]
    Registry(#[from] RegistryError),
}

impl Trouble {
    /// Whether it may pass by itself. An API server and etcd are away for moments while members are added; a
    /// host that does not answer is an answer.
    pub fn may_pass(&self) -> bool {
        match self {
            Self::EtcdClient(ClientError::NoAnswer { .. }) | Self::EtcdAct(_) => true,
            Self::Api(error)
            | Self::Manifest(ManifestApplyError::Api(error))
            | Self::Token(TokenError::Api(error)) => error.is_transient(),
            _ => false,
        }
    }

    /// The class of the error, for the exit code.
    pub fn class(&self) -> Class {
        match self {
            Self::Host(error) if error.connection().is_some() => Class::Ssh,
            Self::Host(_) | Self::Registry(_) => Class::Host,
            Self::States { .. } | Self::Trust(_) => Class::Configuration,
            Self::EtcdClient(_) | Self::EtcdAct(_) => Class::Etcd,
            Self::Api(_) | Self::Manifest(_) | Self::Token(_) | Self::Lease(_) => Class::Api,
        }
    }
}

/// Who must act.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// Files on this machine.
    Configuration,
    /// The way to a host.
    Ssh,
    /// A host.
    Host,
    /// etcd.
    Etcd,
    /// The Kubernetes API.
    Api,
}
