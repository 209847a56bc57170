//! Where phases look and act. The real one is [`crate::expand::cluster_site`]; tests have one of their own.

use async_trait::async_trait;

use super::phase::{Action, Look};
use super::world::{Seen, World};
use crate::apiserver::client::ApiError;
use crate::engine::host::HostError;
use crate::etcd::error::EtcdError;
use crate::transport::error::TransportError;

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
    /// The host could not be reached.
    #[error(transparent)]
    Transport(#[from] TransportError),
    /// The host could not be made what it should be.
    #[error(transparent)]
    Host(#[from] HostError),
    /// etcd refused or did not answer.
    #[error(transparent)]
    Etcd(#[from] EtcdError),
    /// The Kubernetes API refused or did not answer.
    #[error(transparent)]
    Api(#[from] ApiError),
}
