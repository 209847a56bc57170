//! The one look at a host that everything else follows from: what it is, and what there is of its resources.

use std::collections::BTreeSet;

use super::patience::Patience;
use super::{Host, HostError};
use crate::engine::facts::FactsError;
use crate::engine::frame::{self, FrameError, Sections};
use crate::engine::plan::Plan;
use crate::engine::{Desired, facts, observe, second_part};
use crate::model::facts::Facts;
use crate::resource::contract::probe::{Observed, Probe};
use crate::transport::Program;

/// A host, seen.
#[derive(Debug, Clone)]
pub struct Looked<D> {
    /// What it should be.
    pub desired: D,
    /// What it is; `None` when nobody needs to know: its states do not depend on it, and no package is among
    /// them.
    pub facts: Option<Facts>,
    /// What there is of its resources.
    pub observed: Observed,
}

impl<D: Desired> Looked<D> {
    /// What would make the host what it should be. Refusals are in the plan.
    pub fn plan(&self) -> Plan {
        Plan { verdicts: self.desired.verdicts(&self.observed) }
    }
}

impl Host<'_> {
    /// Sees everything that must be known, through one program on one channel: one round trip, and half a
    /// one more where what the host should be depends on what it is. Changes nothing.
    ///
    /// `known` is what it should be where that is known without facts; else `by_facts` says it.
    ///
    /// # Errors
    /// When the host cannot be reached or its answer is not one. What `by_facts` has against the host is
    /// the inner error.
    pub async fn look<D: Desired + Send, E: Send>(
        &self,
        known: Option<D>,
        by_facts: impl FnOnce(&Facts) -> Result<D, E> + Send,
    ) -> Result<Result<Looked<D>, E>, HostError> {
        match known {
            Some(desired) => self.look_at(desired).await.map(Ok),
            None => self.look_by_facts(by_facts).await,
        }
    }

    async fn look_at<D: Desired>(&self, desired: D) -> Result<Looked<D>, HostError> {
        let probes = probes(&desired);
        let with_facts = needs_facts(&probes);
        let mut sections = if with_facts { facts::ask() } else { Vec::new() };
        sections.extend(observe::ask(&probes));
        let program = Program { script: frame::script(&self.nonce, &sections), payload: Vec::new() };
        let patience = Patience::new();
        patience.grow(&probes);
        let output = patience.wait_for(self.run(&program)).await??;
        let sections = Sections::parse(&self.nonce, output.status, &output.stdout)
            .map_err(observe::ObserveError::from)?;
        let facts = with_facts.then(|| facts::answer(&sections)).transpose()?;
        Ok(Looked { observed: observe::answer(&probes, &sections)?, desired, facts })
    }

    async fn look_by_facts<D: Desired + Send, E: Send>(
        &self,
        by_facts: impl FnOnce(&Facts) -> Result<D, E> + Send,
    ) -> Result<Result<Looked<D>, E>, HostError> {
        let mut by_facts = Some(by_facts);
        let mut seen: Option<(Facts, Result<D, E>)> = None;
        let patience = Patience::new();
        let first = frame::script(&self.nonce, &facts::ask());
        let second = |facts: &[u8]| {
            let facts = facts::answer(&Sections::parse(&self.nonce, 0, facts).ok()?).ok()?;
            let desired = by_facts.take()?(&facts);
            let script = desired
                .as_ref()
                .ok()
                .map(probes)
                .inspect(|probes| patience.grow(probes))
                .map(|probes| frame::script(&self.nonce, &observe::ask(&probes)));
            seen = Some((facts, desired));
            script
        };
        let running = second_part::run(self.transport, &self.nonce, first, second);
        let output = patience.wait_for(self.unless_stopped(running)).await??;
        let (facts, desired) = match (seen, facts::parse(&self.nonce, &output)) {
            (Some(seen), _) => seen,
            (None, Err(error)) => return Err(error.into()),
            (None, Ok(_)) => {
                let (bytes, status) = (output.stdout.len(), output.status);
                return Err(FactsError::from(FrameError::Truncated { bytes, status }).into());
            }
        };
        let desired = match desired {
            Ok(desired) => desired,
            Err(fault) => return Ok(Err(fault)),
        };
        let rest = frame::after(&self.nonce, &output.stdout);
        let sections =
            Sections::parse(&self.nonce, output.status, rest).map_err(observe::ObserveError::from)?;
        let observed = observe::answer(&probes(&desired), &sections)?;
        Ok(Ok(Looked { desired, facts: Some(facts), observed }))
    }
}

fn probes(desired: &impl Desired) -> BTreeSet<Probe> {
    desired.items().into_iter().flat_map(|item| item.probes).collect()
}

/// How packages are installed depends on the host's family; and a host of which nothing is asked must still
/// be reached.
fn needs_facts(probes: &BTreeSet<Probe>) -> bool {
    probes.is_empty() || probes.iter().any(|probe| matches!(probe, Probe::Package { .. }))
}
