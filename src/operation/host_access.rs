//! How a host is reached: the engine's host behind a trait, so that tests can put another in its place.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;

use crate::engine::Desired;
use crate::engine::cancel::CancelLevel;
use crate::engine::host::{CertificateSigner, Convergence, EventSink, HostError, HostSession, Looked};
use crate::engine::nonce::Nonce;
use crate::engine::share::Share;
use crate::model::facts::Facts;
use crate::model::name::HostName;
use crate::operation::resource_change::ResourceChange;
use crate::resource::contract::change::Verdict;
use crate::resource::contract::probe::{Observed, Probe};
use crate::transport::{Output, Program, Transport};

/// What a host shall be.
pub type SharedDesired = Arc<dyn Desired + Send>;

/// What a host shall be, and what was observed of it: all that is needed to make it so.
#[derive(Clone)]
pub struct HostPlan(pub Looked<SharedDesired>);

impl HostPlan {
    /// The resources that differ, in order.
    pub fn changes(&self) -> Vec<ResourceChange> {
        let verdicts = self.0.plan().verdicts.into_iter();
        verdicts
            .filter_map(|(id, verdict)| match verdict {
                Verdict::Change(change) => Some(ResourceChange::new(id, change)),
                Verdict::NoChange { .. } | Verdict::Refuse { .. } => None,
            })
            .collect()
    }
}

impl fmt::Debug for HostPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Contents may be secret.
        f.debug_list().entries(self.changes().iter().map(|change| &change.id)).finish()
    }
}

/// One host. Every method is one round trip at most, but for [`HostAccess::apply`].
#[async_trait]
pub trait HostAccess: Send + Sync {
    /// What the host is. Changes nothing.
    async fn facts(&self) -> Result<Facts, HostError>;

    /// The answers to these probes. Changes nothing.
    async fn observe(&self, probes: &BTreeSet<Probe>) -> Result<Observed, HostError>;

    /// Observes what `desired` needs. Changes nothing.
    async fn plan(&self, desired: SharedDesired, facts: &Facts) -> Result<HostPlan, HostError>;

    /// Carries out a plan, observes the result in the same programs, and goes on until nothing differs.
    async fn apply(
        &self,
        plan: &HostPlan,
        signer: CertificateSigner<'_>,
        events: EventSink<'_>,
    ) -> Result<Convergence, HostError>;

    /// Runs a program.
    async fn run(&self, program: &Program) -> Result<Output, HostError>;
}

/// A host over a transport.
pub struct EngineHost {
    name: HostName,
    transport: Arc<dyn Transport>,
    share: Share,
}

impl EngineHost {
    /// `share` is what all hosts of a run share: whether it is cancelled, and turns to upload.
    pub fn new(name: HostName, transport: Arc<dyn Transport>, share: Share) -> Self {
        Self { name, transport, share }
    }

    fn host(&self) -> HostSession<'_> {
        HostSession::new(self.name.clone(), self.transport.as_ref(), Nonce::new(rand::random()))
            .sharing(&self.share)
    }
}

#[async_trait]
impl HostAccess for EngineHost {
    async fn facts(&self) -> Result<Facts, HostError> {
        self.host().facts().await
    }

    async fn observe(&self, probes: &BTreeSet<Probe>) -> Result<Observed, HostError> {
        self.host().observe(probes).await
    }

    async fn plan(&self, desired: SharedDesired, facts: &Facts) -> Result<HostPlan, HostError> {
        let probes = desired.items().into_iter().flat_map(|item| item.probes).collect();
        let observed = self.host().observe(&probes).await?;
        Ok(HostPlan(Looked { desired, facts: Some(facts.clone()), observed }))
    }

    async fn apply(
        &self,
        plan: &HostPlan,
        signer: CertificateSigner<'_>,
        events: EventSink<'_>,
    ) -> Result<Convergence, HostError> {
        self.host().converge(plan.0.clone(), signer, events).await
    }

    async fn run(&self, program: &Program) -> Result<Output, HostError> {
        let mut ignore = |_: &str| {};
        tokio::select! {
            output = self.transport.run(program, &mut ignore) => Ok(output?),
            () = self.share.cancel.reached(CancelLevel::Now) => Err(HostError::Interrupted),
        }
    }
}
