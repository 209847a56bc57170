//! A plan in a file, which is applied later only if the same changes are still required.
//!
//! It contains no content: the desired state and the changes of each resource are digests under the plan's own key.
//! Applying it means to plan again and to compare; every difference is named, and then nothing is changed on any host.

pub mod key;
pub mod planned;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use self::key::{Digest, Key};
use super::plan::Plan;
use crate::resource::contract::change::Verdict;
use crate::state::Compiled;

/// The plan of one host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SavedHost {
    /// Of its machine id, which is confidential (machine-id(5)).
    pub machine: Digest,
    /// Every resource, in the order of execution.
    pub resources: Vec<SavedResource>,
}

/// The plan of one resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SavedResource {
    /// `kind:name`.
    pub id: String,
    /// Of its desired state.
    pub desired: Digest,
    /// Of its differences and steps; `None` where it requires no change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<Digest>,
}

/// Why a saved plan is not applied: one difference since it was made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Drift {
    /// Another machine has this name, or the host was reinstalled.
    #[error("this is not the machine that the plan was made for")]
    OtherMachine,
    /// States or values changed.
    #[error("{0} is not in the plan: states or values changed since it was made")]
    Added(String),
    /// States or values changed.
    #[error("{0} is in the plan, but not in the states any more")]
    Removed(String),
    /// States or values changed.
    #[error("{0} has another desired state than in the plan: states or values changed since it was made")]
    Redefined(String),
    /// The order of the states changed.
    #[error("the order of resources differs from the plan: states changed since it was made")]
    Reordered,
    /// The host changed: the resource has its desired state.
    #[error("{0} already matches, but the plan changes it: host drifted since the plan was made")]
    AlreadyApplied(String),
    /// The host changed: the resource had its desired state before.
    #[error("{0} requires a change that is not in the plan: host drifted since the plan was made")]
    Unplanned(String),
    /// The host changed: other differences are found.
    #[error("{0} requires another change than the plan has: host drifted since the plan was made")]
    ChangeDiffers(String),
}

impl SavedHost {
    /// Saves a plan. `desired` contains a digest of each resource of the plan, in its order.
    pub fn of(plan: &Plan, desired: &[Digest], machine_id: &str, key: &Key) -> Self {
        let resources = plan.verdicts.iter().zip(desired).map(|((id, verdict), desired)| SavedResource {
            id: id.clone(),
            desired: desired.clone(),
            change: change(verdict, key),
        });
        Self { machine: key.digest(machine_id), resources: resources.collect() }
    }

    /// The differences between this plan and `now`; none when they are the same. The changes of a resource are not
    /// compared when its desired state differs.
    pub fn drift(&self, now: &Self) -> Vec<Drift> {
        if self.machine != now.machine {
            return vec![Drift::OtherMachine];
        }
        let planned: BTreeMap<&str, &SavedResource> = by_id(&self.resources);
        let present = by_id(&now.resources);
        let removed = self.resources.iter().filter(|one| !present.contains_key(one.id.as_str()));
        let mut drift: Vec<Drift> = removed.map(|one| Drift::Removed(one.id.clone())).collect();
        drift.extend(now.resources.iter().filter_map(|one| match planned.get(one.id.as_str()) {
            None => Some(Drift::Added(one.id.clone())),
            Some(planned) => planned.differs(one),
        }));
        let ids = |host: &Self| host.resources.iter().map(|one| one.id.clone()).collect::<Vec<_>>();
        if drift.is_empty() && ids(self) != ids(now) {
            drift.push(Drift::Reordered);
        }
        drift
    }
}

impl SavedResource {
    fn differs(&self, now: &Self) -> Option<Drift> {
        let id = || self.id.clone();
        if self.desired != now.desired {
            return Some(Drift::Redefined(id()));
        }
        match (&self.change, &now.change) {
            (Some(_), None) => Some(Drift::AlreadyApplied(id())),
            (None, Some(_)) => Some(Drift::Unplanned(id())),
            (Some(planned), Some(now)) if planned != now => Some(Drift::ChangeDiffers(id())),
            _ => None,
        }
    }
}

fn by_id(resources: &[SavedResource]) -> BTreeMap<&str, &SavedResource> {
    resources.iter().map(|one| (one.id.as_str(), one)).collect()
}

/// Of a change; `None` where there is none. A plan with refusals is never saved.
pub fn change(verdict: &Verdict, key: &Key) -> Option<Digest> {
    match verdict {
        Verdict::Change(change) => Some(key.digest(&(&change.differences, &change.steps))),
        Verdict::NoChange { .. } | Verdict::Refuse { .. } => None,
    }
}

/// Of the desired state of a resource, without its place in a file.
pub fn declared(compiled: &Compiled, key: &Key) -> Digest {
    let ids = |ids: &[crate::state::ResourceId]| ids.iter().map(ToString::to_string).collect::<Vec<_>>();
    key.digest(&(
        compiled.id.to_string(),
        &compiled.fields,
        compiled.ensure == crate::state::Ensure::Present,
        compiled.sensitive,
        ids(&compiled.only_if_changed),
    ))
}

#[cfg(test)]
mod tests {
    use super::key::SALT;
    use super::*;
    use crate::resource::contract::change::{Change, Difference};
    use crate::resource::contract::step::Step;

    /// `id=desired` or `id=desired>before>after`, separated by blanks.
    fn host(machine: &str, text: &str) -> SavedHost {
        let key = Key::new(&[7; SALT]);
        let mut plan = Plan::default();
        let mut desired = Vec::new();
        for word in text.split_whitespace() {
            let (id, rest) = word.split_once('=').unwrap();
            let mut parts = rest.split('>');
            desired.push(key.digest(parts.next().unwrap()));
            let verdict = match (parts.next(), parts.next()) {
                (Some(before), Some(after)) => Verdict::Change(Change {
                    differences: vec![Difference::Text {
                        path: id.to_owned(),
                        before: before.to_owned(),
                        after: after.to_owned(),
                    }],
                    steps: vec![Step::Run { script: after.to_owned() }],
                }),
                _ => Verdict::NoChange { reason: "it is right".to_owned() },
            };
            plan.verdicts.push((id.to_owned(), verdict));
        }
        SavedHost::of(&plan, &desired, machine, &key)
    }

    #[test]
    fn every_difference_is_named() {
        let planned = "file:/a=1>old>new file:/b=2 file:/c=3>x>y";
        for (machine, now, expected) in [
            ("m", planned, vec![]),
            ("other", planned, vec![Drift::OtherMachine]),
            ("m", "file:/a=1 file:/b=2 file:/c=3>x>y", vec![Drift::AlreadyApplied("file:/a".into())]),
            ("m", "file:/a=1>old>new file:/b=2>z>2 file:/c=3>x>y", vec![Drift::Unplanned("file:/b".into())]),
            ("m", "file:/a=1>odd>new file:/b=2 file:/c=3>x>y", vec![Drift::ChangeDiffers("file:/a".into())]),
            ("m", "file:/a=9>old>new2 file:/b=2 file:/c=3>x>y", vec![Drift::Redefined("file:/a".into())]),
            ("m", "file:/a=9 file:/b=2 file:/c=3>x>y", vec![Drift::Redefined("file:/a".into())]),
            ("m", "file:/a=1>old>new file:/c=3>x>y", vec![Drift::Removed("file:/b".into())]),
            (
                "m",
                "file:/a=1>old>new file:/b=2 file:/d=4 file:/c=3>x>z",
                vec![Drift::Added("file:/d".into()), Drift::ChangeDiffers("file:/c".into())],
            ),
            ("m", "file:/b=2 file:/a=1>old>new file:/c=3>x>y", vec![Drift::Reordered]),
            ("m", "", ["file:/a", "file:/b", "file:/c"].map(|id| Drift::Removed(id.to_owned())).to_vec()),
        ] {
            assert_eq!(host("m", planned).drift(&host(machine, now)), expected, "{machine}: {now}");
        }
    }

    #[test]
    fn a_saved_plan_contains_no_content() {
        let text = serde_json::to_string(&host("machine-id", "file:/a=hunter1>hunter2>hunter3")).unwrap();
        assert!(text.contains("file:/a"), "{text}");
        assert!(!text.contains("hunter") && !text.contains("machine-id"), "{text}");
        assert_eq!(
            serde_json::from_str::<SavedHost>(&text).unwrap(),
            host("machine-id", "file:/a=hunter1>hunter2>hunter3")
        );
    }
}
