//! Markers of owed reactions: written when the work on a resource begins, removed when a reaction is done.

use std::collections::{BTreeMap, BTreeSet};

use crate::engine::owed::{DIRECTORIES, marker};
use crate::model::shell_word::quote_all;
use crate::resource::contract::owed::Owed;

/// What the changes of a plan require of other resources of the plan, by resource id.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reactions {
    causes: BTreeMap<String, Vec<Owed>>,
    reactions: BTreeMap<String, Vec<Owed>>,
}

impl Reactions {
    /// Of the pairs of a desired state, those that matter when the resources in `changed` are applied. The causes of
    /// those in `overdue` were changed before, without a marker.
    pub fn of(pairs: &[Owed], overdue: &BTreeSet<Owed>, changed: &BTreeSet<&str>) -> Self {
        let mut all = Self::default();
        for owed in pairs {
            let (reaction, cause) = (owed.reaction.to_string(), owed.cause.to_string());
            if !changed.contains(reaction.as_str()) {
                // Its comparison has shown that it requires nothing, even with the changes before it.
                continue;
            }
            if changed.contains(cause.as_str()) {
                all.causes.entry(cause).or_default().push(owed.clone());
            } else if overdue.contains(owed) {
                all.causes.entry(reaction.clone()).or_default().push(owed.clone());
            }
            all.reactions.entry(reaction).or_default().push(owed.clone());
        }
        all
    }

    /// The functions and variables of the other methods' text.
    pub(super) fn functions(&self) -> Option<String> {
        let any = !self.reactions.is_empty();
        any.then(|| format!("{DIRECTORIES}{}", include_str!("owe.sh")))
    }

    /// Shell text that runs before the resources `ids` of the task with this number change.
    pub(super) fn begun(&self, number: usize, ids: &[String]) -> String {
        Self::calls(number, ids, &self.causes, |owed| {
            let [reaction, cause] = [&owed.reaction, &owed.cause].map(ToString::to_string);
            format!("owe {} {}", marker(owed), quote_all([reaction.as_str(), cause.as_str()]))
        })
    }

    /// Shell text that runs after them.
    pub(super) fn done(&self, number: usize, ids: &[String]) -> String {
        Self::calls(number, ids, &self.reactions, |owed| format!("settle_owed {}", marker(owed)))
    }

    fn calls(
        number: usize,
        ids: &[String],
        all: &BTreeMap<String, Vec<Owed>>,
        call: impl Fn(&Owed) -> String,
    ) -> String {
        let calls: Vec<String> = ids.iter().filter_map(|id| all.get(id)).flatten().map(call).collect();
        if calls.is_empty() {
            return String::new();
        }
        format!("{{ {}; }} >\"$log\" 2>&1 || fail {number} $?\n", calls.join(" &&\n"))
    }
}
