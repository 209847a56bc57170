//! A plan that is kept, and applied later only if it is still what would be done.
//!
//! It holds no content: what each resource should be, and what would be done for it, are digests under the
//! plan's own key. To apply it is to plan again and to compare; whatever differs is named, and then nothing
//! is done on any host.

pub mod key;
pub mod planned;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use self::key::{Digest, Key};
use super::plan::Plan;
use crate::resource::contract::change::Verdict;
use crate::state::Compiled;

/// What was planned for one host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SavedHost {
    /// Its machine id (machine-id(5) wants it kept confidential).
    pub machine: Digest,
    /// Every resource, in the order of execution.
    pub resources: Vec<SavedResource>,
}

/// What was planned for one resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SavedResource {
    /// `kind:name`.
    pub id: String,
    /// What it should be.
    pub desired: Digest,
    /// What differs and what would be done; `None` where it needs nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<Digest>,
}

/// Why a plan is not applied: one thing that is not as it was when the plan was made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Moved {
    /// Another machine answers under this name, or it was installed anew.
    #[error("it is another machine than the one that the plan was made for")]
    OtherMachine,
    /// States or values were changed.
    #[error("{0} is not in the plan: the states or their values have changed since")]
    New(String),
    /// States or values were changed.
    #[error("{0} is in the plan, and no longer in the states")]
    Gone(String),
    /// States or values were changed.
    #[error(
        "{0} should be something else than when the plan was made: the states or their values have changed"
    )]
    Redefined(String),
    /// The states were put into another order.
    #[error("the resources are in another order than in the plan: the states have changed")]
    Reordered,
    /// The host was changed: somebody made it right.
    #[error("{0} is what it should be already, and the plan changes it: the host has changed since")]
    Right(String),
    /// The host was changed: it was right before.
    #[error("{0} needs a change that the plan does not have: the host has changed since")]
    Wrong(String),
    /// The host was changed: something else differs.
    #[error("{0} needs another change than the plan has: the host has changed since")]
    Otherwise(String),
}

impl SavedHost {
    /// Takes down what a plan does. `desired` holds a digest of each resource of the plan, in its order.
    pub fn of(plan: &Plan, desired: &[Digest], machine_id: &str, key: &Key) -> Self {
        let resources = plan.verdicts.iter().zip(desired).map(|((id, verdict), desired)| SavedResource {
            id: id.clone(),
            desired: desired.clone(),
            change: change(verdict, key),
        });
        Self { machine: key.digest(machine_id), resources: resources.collect() }
    }

    /// What is not now as it was when the plan was made; nothing when `now` is the same plan. Of a resource
    /// that was declared otherwise, what would be done is not compared as well.
    pub fn moved(&self, now: &Self) -> Vec<Moved> {
        if self.machine != now.machine {
            return vec![Moved::OtherMachine];
        }
        let planned: BTreeMap<&str, &SavedResource> = by_id(&self.resources);
        let present = by_id(&now.resources);
        let gone = self.resources.iter().filter(|one| !present.contains_key(one.id.as_str()));
        let mut moved: Vec<Moved> = gone.map(|one| Moved::Gone(one.id.clone())).collect();
        moved.extend(now.resources.iter().filter_map(|one| match planned.get(one.id.as_str()) {
            None => Some(Moved::New(one.id.clone())),
            Some(planned) => planned.differs(one),
        }));
        let ids = |host: &Self| host.resources.iter().map(|one| one.id.clone()).collect::<Vec<_>>();
        if moved.is_empty() && ids(self) != ids(now) {
            moved.push(Moved::Reordered);
        }
        moved
    }
}

impl SavedResource {
    fn differs(&self, now: &Self) -> Option<Moved> {
        let id = || self.id.clone();
        if self.desired != now.desired {
            return Some(Moved::Redefined(id()));
        }
        match (&self.change, &now.change) {
            (Some(_), None) => Some(Moved::Right(id())),
            (None, Some(_)) => Some(Moved::Wrong(id())),
            (Some(planned), Some(now)) if planned != now => Some(Moved::Otherwise(id())),
            _ => None,
        }
    }
}

fn by_id(resources: &[SavedResource]) -> BTreeMap<&str, &SavedResource> {
    resources.iter().map(|one| (one.id.as_str(), one)).collect()
}

/// What a verdict does; nothing when that is nothing. A plan that refuses something is never saved.
fn change(verdict: &Verdict, key: &Key) -> Option<Digest> {
    match verdict {
        Verdict::Change(change) => Some(key.digest(&(&change.differences, &change.steps))),
        Verdict::NoChange { .. } | Verdict::Refuse { .. } => None,
    }
}

/// What a resource should be. Where it is written is no part of that.
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
    fn whatever_has_moved_is_named() {
        let planned = "file:/a=1>old>new file:/b=2 file:/c=3>x>y";
        for (machine, now, expected) in [
            ("m", planned, vec![]),
            ("other", planned, vec![Moved::OtherMachine]),
            ("m", "file:/a=1 file:/b=2 file:/c=3>x>y", vec![Moved::Right("file:/a".into())]),
            ("m", "file:/a=1>old>new file:/b=2>z>2 file:/c=3>x>y", vec![Moved::Wrong("file:/b".into())]),
            ("m", "file:/a=1>odd>new file:/b=2 file:/c=3>x>y", vec![Moved::Otherwise("file:/a".into())]),
            ("m", "file:/a=9>old>new2 file:/b=2 file:/c=3>x>y", vec![Moved::Redefined("file:/a".into())]),
            ("m", "file:/a=9 file:/b=2 file:/c=3>x>y", vec![Moved::Redefined("file:/a".into())]),
            ("m", "file:/a=1>old>new file:/c=3>x>y", vec![Moved::Gone("file:/b".into())]),
            (
                "m",
                "file:/a=1>old>new file:/b=2 file:/d=4 file:/c=3>x>z",
                vec![Moved::New("file:/d".into()), Moved::Otherwise("file:/c".into())],
            ),
            ("m", "file:/b=2 file:/a=1>old>new file:/c=3>x>y", vec![Moved::Reordered]),
            ("m", "", ["file:/a", "file:/b", "file:/c"].map(|id| Moved::Gone(id.to_owned())).to_vec()),
        ] {
            assert_eq!(host("m", planned).moved(&host(machine, now)), expected, "{machine}: {now}");
        }
    }

    #[test]
    fn a_saved_plan_has_no_content() {
        let text = serde_json::to_string(&host("machine-id", "file:/a=hunter1>hunter2>hunter3")).unwrap();
        assert!(text.contains("file:/a"), "{text}");
        assert!(!text.contains("hunter") && !text.contains("machine-id"), "{text}");
        assert_eq!(
            serde_json::from_str::<SavedHost>(&text).unwrap(),
            host("machine-id", "file:/a=hunter1>hunter2>hunter3")
        );
    }
}
