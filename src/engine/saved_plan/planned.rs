//! States with the digests of what they say; and states of which only what was planned is done.

use std::collections::BTreeMap;

use super::key::{Digest, Key};
use super::{SavedHost, change, declared};
use crate::engine::states::HostStates;
use crate::engine::{Desired, Item};
use crate::resource::contract::change::Verdict;
use crate::resource::contract::probe::Observed;
use crate::state::Compiled;

/// What a host should be, with a digest of each resource.
#[derive(Debug, Clone)]
pub struct Digested {
    /// The resources.
    pub states: HostStates,
    /// In their order.
    pub digests: Vec<Digest>,
}

impl Digested {
    /// Makes states of what was compiled, by `make`.
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
}

/// What a host should be, as far as a saved plan has it: a change that the plan has not, or has otherwise, is
/// refused, whenever it turns up. So a host that moves between the comparison and the work is not touched,
/// and nothing is done that was not shown.
#[derive(Clone)]
pub struct Planned<'a> {
    /// The resources.
    pub states: HostStates,
    /// The plan.
    pub saved: &'a SavedHost,
    /// The plan's own.
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
                let reason = "it needs a change that is not in the plan: plan again".to_owned();
                (id, Verdict::Refuse { reason })
            }
            _ => (id, verdict),
        };
        self.states.verdicts(observed).into_iter().map(only_planned).collect()
    }
}
