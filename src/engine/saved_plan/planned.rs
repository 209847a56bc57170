//! States with the digests of their resources; and states restricted to a saved plan.

use std::collections::BTreeMap;

use super::key::{Digest, Key};
use super::{SavedHost, change, declared};
use crate::engine::states::HostStates;
use crate::engine::{Desired, Item};
use crate::resource::contract::change::Verdict;
use crate::resource::contract::owed::Owed;
use crate::resource::contract::probe::Observed;
use crate::state::Compiled;

/// Desired states, with a digest of each resource.
#[derive(Debug, Clone)]
pub struct Digested {
    /// The desired states.
    pub states: HostStates,
    /// Of each resource, in their order.
    pub digests: Vec<Digest>,
}

impl Digested {
    /// Computes the digests, and makes the states with `make`.
    ///
    /// # Errors
    /// Those of `make`.
    pub fn new<E>(
        compiled: Vec<Compiled>,
        key: &Key,
        make: impl FnOnce(Vec<Compiled>) -> Result<HostStates, E>,
    ) -> Result<Self, E> {
        let digests = compiled.iter().map(|one| declared(one, key)).collect();
        Ok(Self { states: make(compiled)?, digests })
    }
}

impl Desired for Digested {
    fn items(&self) -> Vec<Item> {
        self.states.items()
    }

    fn verdicts(&self, observed: &Observed) -> Vec<(String, Verdict)> {
        self.states.verdicts(observed)
    }

    fn reactions(&self) -> Vec<Owed> {
        self.states.reactions()
    }
}

/// Desired states, restricted to a saved plan: any change that is not in the plan is refused, at any time. So a host that
/// drifts between the comparison and the apply is not changed, and nothing is applied that was not shown.
#[derive(Clone)]
pub struct Planned<'a> {
    /// The desired states.
    pub states: HostStates,
    /// The saved plan.
    pub saved: &'a SavedHost,
    /// The plan's key.
    pub key: &'a Key,
}

impl Desired for Planned<'_> {
    fn items(&self) -> Vec<Item> {
        self.states.items()
    }

    fn verdicts(&self, observed: &Observed) -> Vec<(String, Verdict)> {
        let planned: BTreeMap<&str, &Digest> = self
            .saved
            .resources
            .iter()
            .filter_map(|one| Some((one.id.as_str(), one.change.as_ref()?)))
            .collect();
        let only_planned = |(id, verdict): (String, Verdict)| match change(&verdict, self.key) {
            Some(now) if planned.get(id.as_str()) != Some(&&now) => {
                let reason = "requires a change that is not in the plan: plan again".to_owned();
                (id, Verdict::Refuse { reason })
            }
            _ => (id, verdict),
        };
        self.states.verdicts(observed).into_iter().map(only_planned).collect()
    }

    fn reactions(&self) -> Vec<Owed> {
        self.states.reactions()
    }
}
