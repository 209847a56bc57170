//! Adjacent tasks that can be carried out together: many files with one `sync`, many directories with one `mkdir`, many
//! services with one `systemctl`.
//!
//! # Guarantees
//! The invariant of [`super`]. Each resource is still reported as begun, done or failed by itself.

use super::Task;
use crate::resource::contract::step::{Access, Step, UnitVerb};

/// The most files that are staged at a time: their names are arguments of one process.
const MAX_STAGED: usize = 200;

/// How a run of tasks is carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Batching {
    /// One after another.
    Apart,
    /// Their files are made side by side first; then each task in turn moves its own into place.
    Staged,
    /// Directories, made by one command.
    Directories,
    /// Services, enabled and then started (or restarted) by one command each: systemd keeps the order that their units
    /// define, as at boot.
    Services(UnitVerb),
}

/// Cuts tasks into runs. Pure.
pub(super) fn runs(tasks: &[Task]) -> Vec<(Batching, &[Task])> {
    let mut runs = Vec::new();
    let mut rest = tasks;
    while let Some(first) = rest.first() {
        let batching = batching(first);
        let mut length = 1;
        while let Some(task) = rest.get(length)
            && self::batching(task) == batching
            && batching != Batching::Apart
            && (batching != Batching::Staged || can_be_staged_with(task, &rest[..length]))
            && (batching != Batching::Directories || can_be_made_with(task, &rest[..length]))
        {
            length += 1;
        }
        let (run, others) = rest.split_at(length);
        // A single task with at most one file gains nothing.
        runs.push((if writes(run).nth(1).is_some() || length > 1 { batching } else { Batching::Apart }, run));
        rest = others;
    }
    runs
}

fn batching(task: &Task) -> Batching {
    let all = |is: fn(&Step) -> bool| task.begins && task.ends && task.steps.iter().all(is);
    if task.steps.is_empty() {
        Batching::Apart
    } else if all(|step| matches!(step, Step::MakeDirectory { .. })) {
        Batching::Directories
    } else if all(|step| is_unit_step(step, UnitVerb::Start)) {
        Batching::Services(UnitVerb::Start)
    } else if all(|step| is_unit_step(step, UnitVerb::Restart)) {
        Batching::Services(UnitVerb::Restart)
    } else if all(leaves_staged_files_alone) {
        Batching::Staged
    } else {
        Batching::Apart
    }
}

fn is_unit_step(step: &Step, wanted: UnitVerb) -> bool {
    matches!(step, Step::Unit { verb, .. } if *verb == UnitVerb::Enable || *verb == wanted)
}

/// Whether files that are staged before the step are as good after it: the step makes no user, removes no directory and
/// runs no command that might. It reads nothing from the payload either, whose position is unknown when a file could
/// not be made.
fn leaves_staged_files_alone(step: &Step) -> bool {
    matches!(step, Step::VerifyUnit { files, .. } if files.is_empty())
        || matches!(
            step,
            Step::WriteFile { .. }
                | Step::SetAccess { .. }
                | Step::Symlink { .. }
                | Step::SetSysctl { .. }
                | Step::LoadModule(_)
                | Step::ReloadUnitFiles
                | Step::ReloadUnit(_)
        )
}

/// Whether its files can be made before the run has changed anything: no file is written twice, no other file of the run
/// is in the way of their directories, and no link is made and no access is set before them, which might succeed only
/// because their directories are there already.
fn can_be_staged_with(task: &Task, run: &[Task]) -> bool {
    let before = || run.iter().flat_map(|task| &task.steps);
    let follows = before().any(|step| matches!(step, Step::Symlink { .. } | Step::SetAccess { .. }));
    if follows && writes(std::slice::from_ref(task)).next().is_some() {
        return false;
    }
    let count = writes(run).count();
    writes(std::slice::from_ref(task)).all(|path| {
        count < MAX_STAGED
            && before().all(|step| {
                let is_again = matches!(step, Step::WriteFile { path: other, .. } if other == path);
                !is_again && step.paths().iter().all(|other| !is_below(path, other))
            })
    })
}

/// Whether its directories are not made by the run already, possibly with another owner or mode, and no directory of
/// either is below one of the other that is given to another user, who could then replace it: all are made before any
/// has its owner.
fn can_be_made_with(task: &Task, run: &[Task]) -> bool {
    let replaceable =
        |path: &str, (above, access): (&str, &Access)| access.owner != "root" && is_below(path, above);
    directories(std::slice::from_ref(task)).all(|made| {
        directories(run)
            .all(|other| made.0 != other.0 && !replaceable(made.0, other) && !replaceable(other.0, made))
    })
}

fn directories(run: &[Task]) -> impl Iterator<Item = (&str, &Access)> {
    run.iter().flat_map(|task| &task.steps).filter_map(|step| match step {
        Step::MakeDirectory { path, access } => Some((path.as_str(), access)),
        _ => None,
    })
}

fn is_below(path: &str, directory: &str) -> bool {
    path.strip_prefix(directory).is_some_and(|rest| rest.starts_with('/'))
}

fn writes(run: &[Task]) -> impl Iterator<Item = &str> {
    run.iter().flat_map(|task| &task.steps).filter_map(|step| match step {
        Step::WriteFile { path, .. } => Some(path.as_str()),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resource::contract::step::UnitFile;

    fn access() -> Access {
        Access { owner: "root".into(), group: "root".into(), mode: 0o644 }
    }

    fn write(path: &str) -> Step {
        Step::WriteFile { path: path.into(), content: Vec::new(), access: access(), sensitive: false }
    }

    fn directory(path: &str) -> Step {
        Step::MakeDirectory { path: path.into(), access: access() }
    }

    /// Given to another user than root.
    fn given(path: &str) -> Step {
        Step::MakeDirectory { path: path.into(), access: Access { owner: "etcd".into(), ..access() } }
    }

    /// Of so many files.
    fn verify(files: usize) -> Step {
        let file = UnitFile { name: "a.service".into(), text: String::new() };
        Step::VerifyUnit { name: "a.service".into(), files: vec![file; files], sensitive: false }
    }

    fn unit(verb: UnitVerb) -> Step {
        Step::Unit { name: "a.service".into(), verb }
    }

    /// The batching of each run, and the number of its tasks.
    fn cut(tasks: Vec<Vec<Step>>) -> Vec<(Batching, usize)> {
        let task = |steps| Task { ids: Vec::new(), begins: true, ends: true, steps };
        let tasks: Vec<Task> = tasks.into_iter().map(task).collect();
        runs(&tasks).into_iter().map(|(batching, run)| (batching, run.len())).collect()
    }

    #[test]
    fn only_adjacent_tasks_that_do_not_interfere_run_together() {
        use Batching::{Apart, Directories, Services, Staged};
        let link = |path: &str| Step::Symlink { path: path.into(), target: "/x".into() };
        let set = |path: &str| Step::SetAccess { path: path.into(), access: access() };
        let run = || Step::Run { script: "true".into() };
        let sysctl = || Step::SetSysctl { key: "a.b".into(), value: "1".into() };
        for (tasks, expected) in [
            (vec![], vec![]),
            (vec![vec![write("/a")]], vec![(Apart, 1)]),
            (vec![vec![write("/a"), write("/b")]], vec![(Staged, 1)]),
            (vec![vec![write("/a")], vec![sysctl(), write("/b")], vec![link("/c")]], vec![(Staged, 3)]),
            (vec![vec![write("/a")], vec![run()], vec![write("/b")]], vec![(Apart, 1); 3]),
            (
                vec![vec![verify(1), write("/a")], vec![verify(0), write("/b")], vec![write("/c")]],
                vec![(Apart, 1), (Staged, 2)],
            ),
            (vec![vec![write("/a")], vec![write("/a")]], vec![(Apart, 1); 2]),
            (vec![vec![link("/a")], vec![write("/b")], vec![write("/a/b")]], vec![(Apart, 1), (Staged, 2)]),
            (vec![vec![write("/b")], vec![link("/a")], vec![write("/c")]], vec![(Staged, 2), (Apart, 1)]),
            (vec![vec![write("/a")], vec![write("/a/b")]], vec![(Apart, 1), (Apart, 1)]),
            (
                vec![vec![directory("/a")], vec![directory("/b")], vec![write("/a/x")], vec![write("/b/x")]],
                vec![(Directories, 2), (Staged, 2)],
            ),
            (
                vec![
                    vec![unit(UnitVerb::Enable), unit(UnitVerb::Start)],
                    vec![unit(UnitVerb::Start)],
                    vec![unit(UnitVerb::Enable), unit(UnitVerb::Restart)],
                    vec![unit(UnitVerb::Restart)],
                    vec![unit(UnitVerb::Stop)],
                    vec![unit(UnitVerb::Start)],
                ],
                vec![
                    (Services(UnitVerb::Start), 2),
                    (Services(UnitVerb::Restart), 2),
                    (Apart, 1),
                    (Apart, 1),
                ],
            ),
            (vec![vec![directory("/a")], vec![directory("/a")]], vec![(Apart, 1), (Apart, 1)]),
            (vec![vec![given("/a")], vec![directory("/a/b")]], vec![(Apart, 1), (Apart, 1)]),
            (vec![vec![directory("/a/b")], vec![given("/a")]], vec![(Apart, 1), (Apart, 1)]),
            (vec![vec![directory("/a")], vec![given("/a/b")]], vec![(Directories, 2)]),
            (vec![vec![set("/a")], vec![write("/a/b"), write("/c")]], vec![(Apart, 1), (Staged, 1)]),
            (vec![vec![], vec![]], vec![(Apart, 1), (Apart, 1)]),
        ] {
            assert_eq!(cut(tasks.clone()), expected, "{tasks:?}");
        }
        let many = (0..MAX_STAGED + 2).map(|n| vec![write(&format!("/{n}"))]).collect();
        assert_eq!(cut(many), [(Staged, MAX_STAGED), (Staged, 2)]);
    }
}
