//! One command for many resources of a kind. When it fails they are applied one by one, which finds the one that fails.

use std::collections::{BTreeMap, BTreeSet};

use super::Task;
use super::place::{owner, place};
use super::steps::systemctl;
use crate::model::shell_word::quote_all;
use crate::resource::contract::step::{Step, UnitVerb};

/// Commands that make all directories of `tasks`, to be joined by `&&`. Only root can access a directory until its owner
/// is set.
pub(super) fn directories(tasks: &[Task]) -> Vec<String> {
    let mut paths = Vec::new();
    let mut above = BTreeSet::new();
    let mut owners: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    let mut modes: BTreeMap<u32, Vec<&str>> = BTreeMap::new();
    for step in tasks.iter().flat_map(|task| &task.steps) {
        if let Step::MakeDirectory { path, access } = step {
            paths.push(path.as_str());
            above.insert(place(path).directory);
            owners.entry(owner(access)).or_default().push(path);
            modes.entry(access.mode).or_default().push(path);
        }
    }
    // Those of other users are made one by one, with the rights of the user.
    let safe = above.into_iter().map(|directory| format!("safe {directory}"));
    let paths = quote_all(paths);
    let make = [format!("no_dangling_link {paths}"), format!("mkdir -p -m 0700 -- {paths}")];
    let chown = owners.into_iter().map(|(owner, paths)| format!("chown -h -- {owner} {}", quote_all(paths)));
    // Five digits: see `steps::owner_and_mode`.
    let chmod = modes.into_iter().map(|(mode, paths)| format!("chmod -- {mode:05o} {}", quote_all(paths)));
    let label = [format!("label {paths}")];
    safe.chain(make).chain(chown).chain(chmod).chain(label).collect()
}

/// Commands that enable all services of `tasks` and apply `verb`, to be joined by `&&`.
pub(super) fn services(tasks: &[Task], verb: UnitVerb) -> Vec<String> {
    let units_of = |wanted: UnitVerb| -> Vec<&str> {
        let steps = tasks.iter().flat_map(|task| &task.steps);
        steps
            .filter_map(|step| match step {
                Step::Unit { name, verb } if *verb == wanted => Some(name.as_str()),
                _ => None,
            })
            .collect()
    };
    [UnitVerb::Enable, verb]
        .into_iter()
        .map(|verb| (verb, units_of(verb)))
        .filter(|(_, units)| !units.is_empty())
        .map(|(verb, units)| match verb {
            UnitVerb::Enable => format!("enable_units {}", quote_all(units)),
            verb => format!("systemctl {} -- {}", systemctl(verb), quote_all(units)),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn services_are_enabled_by_one_command_and_started_by_another() {
        let task = |name: &str, verbs: &[UnitVerb]| Task {
            ids: Vec::new(),
            begins: true,
            ends: true,
            steps: verbs.iter().map(|verb| Step::Unit { name: name.into(), verb: *verb }).collect(),
        };
        let both = [UnitVerb::Enable, UnitVerb::Restart];
        let tasks = [task("a.service", &both), task("b@x y.service", &both[1..])];
        assert_eq!(
            services(&tasks, UnitVerb::Restart),
            ["enable_units a.service", "systemctl restart -- a.service 'b@x y.service'"]
        );
    }
}
