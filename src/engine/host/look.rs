//! The first observation of a host: its facts, and the current state of its resources.

use std::collections::BTreeSet;

use super::{Activity, HostError, HostSession};
use crate::engine::facts::FactsError;
use crate::engine::frame::{self, FrameError, Sections};
use crate::engine::plan::Plan;
use crate::engine::{Desired, facts, observe, two_stage};
use crate::model::facts::Facts;
use crate::resource::contract::probe::{Observed, Probe};
use crate::transport::Program;

/// A desired state and what was observed of it: a plan, as a value that can be kept and converged from later.
#[derive(Debug, Clone)]
pub struct Looked<D> {
    /// The desired state.
    pub desired: D,
    /// `None` when nothing requires them: the states do not depend on facts, and contain no package.
    pub facts: Option<Facts>,
    /// The answers to all probes of `desired`.
    pub observed: Observed,
}

impl<D: Desired> Looked<D> {
    /// The changes that the host requires. Refusals are in the plan.
    pub fn plan(&self) -> Plan {
        Plan { verdicts: self.desired.verdicts(&self.observed) }
    }
}

impl HostSession<'_> {
    /// Observes everything that a plan requires, by one program on one channel: one round trip, and half of another where
    /// the desired state depends on facts. Changes nothing.
    ///
    /// `known` is the desired state where it does not depend on facts; otherwise `by_facts` computes it.
    ///
    /// # Errors
    /// When the host cannot be reached or its output is not an observation. The inner error is that of `by_facts`.
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

    /// Observes a host whose desired state is known, in one round trip. Changes nothing.
    ///
    /// # Errors
    /// When the host cannot be reached or its output is not an observation.
    pub async fn look_at<D: Desired>(&self, desired: D) -> Result<Looked<D>, HostError> {
        let probes = probes(&desired);
        let with_facts = needs_facts(&probes);
        let mut sections = if with_facts { facts::ask() } else { Vec::new() };
        sections.extend(observe::ask(&probes));
        let program = Program { script: frame::script(&self.nonce, &sections), payload: Vec::new() };
        let deadline = self.deadline(Activity::Observe);
        deadline.allow_for_probes(&probes);
        let output = self.run(&program, &deadline).await?;
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
        let deadline = self.deadline(Activity::Observe);
        let first = frame::script(&self.nonce, &facts::ask());
        let second = |facts: &[u8]| {
            let facts = facts::answer(&Sections::parse(&self.nonce, 0, facts).ok()?).ok()?;
            let desired = by_facts.take()?(&facts);
            let script = desired
                .as_ref()
                .ok()
                .map(probes)
                .inspect(|probes| deadline.allow_for_probes(probes))
                .map(|probes| frame::script(&self.nonce, &observe::ask(&probes)));
            seen = Some((facts, desired));
            script
        };
        let running = two_stage::run(self.transport, &self.nonce, first, second);
        let output = self.unless_cancelled(running, &deadline).await?;
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

/// The package manager depends on the facts; and a host without probes must be reached all the same.
fn needs_facts(probes: &BTreeSet<Probe>) -> bool {
    probes.is_empty() || probes.iter().any(|probe| matches!(probe, Probe::Package { .. }))
}
