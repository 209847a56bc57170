//! The verdicts on the resources of one host.

use super::apply::Work;
use crate::resource::contract::change::Verdict;

/// The verdict on every resource, in the order of execution.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    /// By resource id.
    pub verdicts: Vec<(String, Verdict)>,
}

impl Plan {
    /// The resources to change, and their steps.
    pub fn works(&self) -> Vec<Work> {
        self.verdicts
            .iter()
            .filter_map(|(id, verdict)| match verdict {
                Verdict::Change(change) => Some(Work { id: id.clone(), steps: change.steps.clone() }),
                Verdict::NoChange { .. } | Verdict::Refuse { .. } => None,
            })
            .collect()
    }

    /// The resources whose change is refused, and why. A plan with refusals is not applied.
    pub fn refusals(&self) -> Vec<(String, String)> {
        self.verdicts
            .iter()
            .filter_map(|(id, verdict)| match verdict {
                Verdict::Refuse { reason } => Some((id.clone(), reason.clone())),
                Verdict::NoChange { .. } | Verdict::Change(_) => None,
            })
            .collect()
    }

    /// How many resources require no change.
    pub fn unchanged(&self) -> usize {
        self.verdicts.iter().filter(|(_, verdict)| matches!(verdict, Verdict::NoChange { .. })).count()
    }
}
