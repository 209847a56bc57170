//! Tasks that stand next to each other and can be carried out together, as one program would by hand: many
//! files with one `sync`, many directories with one `mkdir`, many services with one `systemctl`.
//!
//! # Guarantees
//! The order of effects that can be told apart stays. Each resource is still begun, done or failed by itself.

use super::Task;
use crate::resource::contract::step::{Step, UnitVerb};

/// As many files as are staged at a time: their names are arguments of one process.
const LARGEST: usize = 200;

/// How a run of tasks is carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Manner {
    /// One after another.
    Apart,
    /// Their files are made side by side first; then one after another, each puts its own in place.
    Staged,
    /// Directories, made at once.
    Directories,
    /// Services, enabled and then started (or restarted) at once: systemd keeps the order that their units ask
    /// for, as at boot.
    Services(UnitVerb),
}

/// Cuts tasks into runs. Pure.
pub(super) fn runs(tasks: &[Task]) -> Vec<(Manner, &[Task])> {
    let mut runs = Vec::new();
    let mut rest = tasks;
    while let Some(first) = rest.first() {
        let manner = manner(first);
        let mut length = 1;
        while let Some(task) = rest.get(length)
            && self::manner(task) == manner
            && manner != Manner::Apart
            && (manner != Manner::Staged || can_be_staged_with(task, &rest[..length]))
        {
            length += 1;
        }
        let (run, others) = rest.split_at(length);
        // One alone has nothing to be carried out with.
        runs.push((if writes(run).nth(1).is_some() || length > 1 { manner } else { Manner::Apart }, run));
        rest = others;
    }
    runs
}

fn manner(task: &Task) -> Manner {
    let all = |is: fn(&Step) -> bool| task.begins && task.ends && task.steps.iter().all(is);
    if task.steps.is_empty() {
        Manner::Apart
    } else if all(|step| matches!(step, Step::MakeDirectory { .. })) {
        Manner::Directories
    } else if all(|step| is_unit_step(step, UnitVerb::Start)) {
        Manner::Services(UnitVerb::Start)
    } else if all(|step| is_unit_step(step, UnitVerb::Restart)) {
        Manner::Services(UnitVerb::Restart)
    } else if all(leaves_staged_files_alone) {
        Manner::Staged
    } else {
        Manner::Apart
    }
}

fn is_unit_step(step: &Step, wanted: UnitVerb) -> bool {
    matches!(step, Step::Unit { verb, .. } if *verb == UnitVerb::Enable || *verb == wanted)
}

/// Whether what is staged before the step is as good after it: it makes no user, removes no directory, and
/// runs nothing that might.
/// And it reads nothing from the payload, whose place is lost where a file could not be made.
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
        )
}

/// Whether its files can be made before the run has done anything: no link that the run makes leads to them,
/// and none is written twice.
fn can_be_staged_with(task: &Task, run: &[Task]) -> bool {
    let before = || run.iter().flat_map(|task| &task.steps);
    let count = writes(run).count();
    writes(std::slice::from_ref(task)).all(|path| {
        count < LARGEST
            && before().all(|step| match step {
                Step::WriteFile { path: other, .. } => other != path,
                Step::Symlink { path: link, .. } => {
                    !path.strip_prefix(link.as_str()).is_some_and(|rest| rest.starts_with('/'))
                }
                // All others that `leaves_staged_files_alone` admits.
                Step::SetAccess { .. }
                | Step::SetSysctl { .. }
                | Step::LoadModule(_)
                | Step::ReloadUnitFiles
                | Step::VerifyUnit { .. } => true,
                Step::EditFile { .. }
                | Step::WriteAuthorizedKeys { .. }
                | Step::MakeDirectory { .. }
                | Step::Remove { .. }
                | Step::Download { .. }
                | Step::Unpack { .. }
                | Step::Await { .. }
                | Step::Reboot { .. }
                | Step::RefreshPackageIndex
                | Step::InstallPackages(_)
                | Step::RemovePackages(_)
                | Step::HoldPackage { .. }
                | Step::Unit { .. }
                | Step::SwapOff
                | Step::PullImage(_)
                | Step::IssueCertificate(_)
                | Step::ReplaceRoute { .. }
                | Step::Account { .. }
                | Step::SetPassword { .. }
                | Step::Mount { .. }
                | Step::Run { .. } => false,
            })
    })
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
    use crate::resource::contract::step::{Access, UnitFile};

    fn access() -> Access {
        Access { owner: "root".into(), group: "root".into(), mode: 0o644 }
    }

    fn write(path: &str) -> Step {
        Step::WriteFile { path: path.into(), content: Vec::new(), access: access(), sensitive: false }
    }

    fn directory(path: &str) -> Step {
        Step::MakeDirectory { path: path.into(), access: access() }
    }

    /// Of so many files.
    fn verify(files: usize) -> Step {
        let file = UnitFile { name: "a.service".into(), text: String::new() };
        Step::VerifyUnit { name: "a.service".into(), files: vec![file; files], sensitive: false }
    }

    fn unit(verb: UnitVerb) -> Step {
        Step::Unit { name: "a.service".into(), verb }
    }

    /// How many tasks each run has, and how it is carried out.
    fn cut(tasks: Vec<Vec<Step>>) -> Vec<(Manner, usize)> {
        let task = |steps| Task { ids: Vec::new(), begins: true, ends: true, steps };
        let tasks: Vec<Task> = tasks.into_iter().map(task).collect();
        runs(&tasks).into_iter().map(|(manner, run)| (manner, run.len())).collect()
    }

    #[test]
    fn only_neighbours_that_cannot_disturb_each_other_run_together() {
        use Manner::{Apart, Directories, Services, Staged};
        let link = |path: &str| Step::Symlink { path: path.into(), target: "/x".into() };
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
            (vec![vec![link("/a")], vec![write("/b")], vec![write("/a/b")]], vec![(Staged, 2), (Apart, 1)]),
            (vec![vec![link("/a")], vec![write("/ab")]], vec![(Staged, 2)]),
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
            (vec![vec![], vec![]], vec![(Apart, 1), (Apart, 1)]),
        ] {
            assert_eq!(cut(tasks.clone()), expected, "{tasks:?}");
        }
        let many = (0..LARGEST + 2).map(|n| vec![write(&format!("/{n}"))]).collect();
        assert_eq!(cut(many), [(Staged, LARGEST), (Staged, 2)]);
    }
}
