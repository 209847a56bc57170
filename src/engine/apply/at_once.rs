//! One command for many resources of a sort. When it fails they are done one by one, which names the culprit.

use std::collections::BTreeMap;

use super::Task;
use super::steps::owner;
use crate::engine::quote::quote_all;
use crate::resource::step::{Step, UnitVerb};

/// Commands that make all directories of `tasks`, to be joined by `&&`. Until its owner is set a directory is
/// root's alone.
pub(super) fn directories(tasks: &[Task]) -> Vec<String> {
    let mut paths = Vec::new();
    let mut owners: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    let mut modes: BTreeMap<u32, Vec<&str>> = BTreeMap::new();
    for step in tasks.iter().flat_map(|task| &task.steps) {
        if let Step::MakeDirectory { path, access } = step {
            paths.push(path.as_str());
            owners.entry(owner(access)).or_default().push(path);
            modes.entry(access.mode).or_default().push(path);
        }
    }
    let make = format!("mkdir -p -m 0700 -- {}", quote_all(paths));
    let chown = owners.into_iter().map(|(owner, paths)| format!("chown -- {owner} {}", quote_all(paths)));
    let chmod = modes.into_iter().map(|(mode, paths)| format!("chmod -- {mode:04o} {}", quote_all(paths)));
    [make].into_iter().chain(chown).chain(chmod).collect()
}

/// Commands that enable and start all services of `tasks`, to be joined by `&&`.
pub(super) fn services(tasks: &[Task]) -> Vec<String> {
    [(UnitVerb::Enable, "enable"), (UnitVerb::Start, "start")]
        .into_iter()
        .filter_map(|(wanted, verb)| {
            let units: Vec<&str> = tasks
                .iter()
                .flat_map(|task| &task.steps)
                .filter_map(|step| match step {
                    Step::Unit { name, verb } if *verb == wanted => Some(name.as_str()),
                    _ => None,
                })
                .collect();
            (!units.is_empty()).then(|| format!("systemctl {verb} -- {}", quote_all(units)))
        })
        .collect()
}
