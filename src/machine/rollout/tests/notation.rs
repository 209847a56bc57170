//! The notation of the tables.
//!
//! A goal: `3 +1 -0` is three replicas, maxSurge 1, maxUnavailable 0; then any of `paused`, `deleting`, `min=30` (seconds),
//! `limit=2` (history), `deadline=600`, `free=1` (hosts), `to=v1` (the template; without it, that of the last set).
//!
//! Sets, oldest first: `v1: aaa | v2: ar`. Each letter is a Machine:
//!
//! ```text
//! a available     n joined, not Ready     w waits for a host     d deleting
//! r Ready, not yet available              j joining              l lost
//! ```
//! An upper-case letter is marked for deletion. `v1=4: aaa` has 4 replicas written, `v1 by 5/6: …` was last scaled when the
//! MachineDeployment had 5 replicas and a surge of 1, `v1 no 3: …` has revision 3 (the place in the list otherwise),
//! `v1~: …` is being deleted, `v1?: …` has yet to act on its size.
//!
//! A plan: `v1 3>2, +v2 1, -v0`: writes, a set that is created, one that is deleted. A write that changes no size is left
//! out.

use jiff::{SignedDuration, Timestamp};

use super::super::*;
use crate::machine::observed_machine::{MachineStage, ObservedMachine};
use crate::machine::revision_hash::RevisionHash;

pub(in crate::machine::rollout) const NOW: i64 = 100_000;

pub(in crate::machine::rollout) fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

/// A goal, the template of which is that of the last set.
pub(super) struct Case {
    pub(super) goal: RolloutGoal,
    pub(super) world: RolloutWorld,
}

impl Case {
    pub(super) fn plan(&self) -> RolloutPlan {
        plan(&self.goal, &self.world, at(NOW))
    }
}

pub(super) fn case(goal: &str, sets: &str) -> Case {
    let words: Vec<&str> = goal.split_whitespace().collect();
    let value = |key: &str| words.iter().find_map(|word| word.strip_prefix(key)?.strip_prefix('='));
    let seconds = |key: &str| value(key).map(|text| SignedDuration::from_secs(text.parse().unwrap()));
    let texts = sets.split('|').filter(|text| !text.trim().is_empty());
    let mut sets: Vec<ObservedSet> =
        texts.enumerate().map(|(index, text)| set(text, i64::try_from(index).unwrap() + 1)).collect();
    let last = sets.last().map_or("v1".to_owned(), |set| set.hash.to_string());
    let replicas = words[0].parse().unwrap();
    let goal = RolloutGoal {
        replicas,
        max_surge: words[1].strip_prefix('+').unwrap().parse().unwrap(),
        max_unavailable: words[2].strip_prefix('-').unwrap().parse().unwrap(),
        paused: words.contains(&"paused"),
        deleting: words.contains(&"deleting"),
        min_ready: seconds("min").unwrap_or(SignedDuration::from_secs(60)),
        progress_deadline: seconds("deadline"),
        revision_history_limit: value("limit").map_or(1, |text| text.parse().unwrap()),
        hash: RevisionHash::from_label(value("to").unwrap_or(&last)),
    };
    let most = Fenceposts::of(&goal).most(replicas);
    for set in &mut sets {
        set.desired.get_or_insert(replicas);
        set.most.get_or_insert(most);
    }
    let free_hosts = value("free").map_or(9, |text| text.parse().unwrap());
    Case { goal, world: RolloutWorld { sets, free_hosts, progress: None } }
}

fn set(text: &str, place: i64) -> ObservedSet {
    let (head, machines) = text.split_once(':').unwrap();
    let words: Vec<&str> = head.split_whitespace().collect();
    let after = |key: &str| words.iter().position(|word| *word == key).map(|index| words[index + 1]);
    let (name, replicas) =
        words[0].split_once('=').map_or((words[0], None), |(name, size)| (name, Some(size)));
    let (name, observed) = name.strip_suffix('?').map_or((name, true), |name| (name, false));
    let (name, deleting) = name.strip_suffix('~').map_or((name, false), |name| (name, true));
    let machines: Vec<ObservedMachine> = machines
        .trim()
        .chars()
        .enumerate()
        .map(|(index, letter)| machine(&format!("{name}-{index:03}"), letter))
        .collect();
    let live = machines.iter().filter(|machine| !machine.deleting).count();
    let by = after("by").map(|by| by.split_once('/').unwrap());
    ObservedSet {
        name: name.to_owned(),
        created: at(place),
        hash: RevisionHash::from_label(name.trim_end_matches('\'')),
        deleting,
        observed,
        replicas: replicas.map_or(u32::try_from(live).unwrap(), |size| size.parse().unwrap()),
        revision: after("no").map_or(u64::try_from(place).unwrap(), |text| text.parse().unwrap()),
        history: Vec::new(),
        desired: by.map(|(desired, _)| desired.parse().unwrap()),
        most: by.map(|(_, most)| most.parse().unwrap()),
        machines,
    }
}

pub(in crate::machine::rollout) fn machine(name: &str, letter: char) -> ObservedMachine {
    let ready = |second| MachineStage::Joined { ready_since: Some(at(second)) };
    let stage = match letter.to_ascii_lowercase() {
        'a' | 'd' => ready(NOW - 5_000),
        'r' => ready(NOW - 10),
        'n' => MachineStage::Joined { ready_since: None },
        'j' => MachineStage::Joining,
        'w' => MachineStage::WaitingForHost,
        'l' => MachineStage::Lost,
        other => panic!("{other}"),
    };
    ObservedMachine {
        name: name.to_owned(),
        created: at(100),
        deleting: letter.eq_ignore_ascii_case(&'d'),
        stage,
        marked: letter.is_ascii_uppercase(),
    }
}

pub(super) fn shown(plan: &RolloutPlan) -> String {
    let created = plan.create.iter().map(|new| format!("+{} {}", new.hash, new.replicas));
    let sizes = plan.change.iter().filter(|change| change.from != change.to);
    let changed = sizes.map(|change| format!("{} {}>{}", change.name, change.from, change.to));
    let deleted = plan.delete.iter().map(|name| format!("-{name}"));
    created.chain(changed).chain(deleted).collect::<Vec<_>>().join(", ")
}

/// Every row has the expected plan. All failures at once.
pub(super) fn check(rows: &[(&str, &str, &str)]) {
    let mut failures = Vec::new();
    for (goal, sets, expected) in rows {
        let case = case(goal, sets);
        let got = shown(&case.plan());
        if got != *expected {
            failures.push(format!("{goal}; {sets}: expected {expected:?}, got {got:?}"));
        }
        let mut shuffled = case.world.clone();
        shuffled.sets.reverse();
        shuffled.sets.iter_mut().for_each(|set| set.machines.reverse());
        let again = plan(&case.goal, &shuffled, at(NOW));
        if shown(&again) != got {
            failures.push(format!("{goal}; {sets}: {:?} in another order", shown(&again)));
        }
    }
    assert!(failures.is_empty(), "{} of {}:\n{}", failures.len(), rows.len(), failures.join("\n"));
}
