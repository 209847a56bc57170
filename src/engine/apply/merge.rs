//! Steps of many resources as fewer tasks.
//!
//! # Guarantees
//! The invariant of [`super`]: only adjacent resources become one task, and only where they do nothing but install
//! packages, remove packages, pull images, or edit one file and apply the kernel settings in it.

use super::{Task, Work};
use crate::resource::contract::step::{PackageVersion, Step, UnitVerb};

/// One task for each resource, or for each run of resources that can be merged.
pub(super) fn tasks(works: &[Work]) -> Vec<Task> {
    let works = without_repetition(works);
    works
        .chunk_by(|a, b| matches!((batch(a), batch(b)), (Some(a), Some(b)) if a == b))
        .map(|run| {
            let steps: Vec<Step> = run.iter().flat_map(|work| work.steps.iter().cloned()).collect();
            let steps = match run.first().and_then(batch) {
                Some(Batch::Packages) if run.len() > 1 => transaction(steps),
                Some(Batch::Removals) => removal(steps),
                Some(Batch::Edits(_)) => one_edit(steps),
                Some(Batch::Keys(_)) => one_write(steps),
                _ => steps,
            };
            Task { ids: run.iter().map(|work| work.id.clone()).collect(), begins: true, ends: true, steps }
        })
        .collect()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Batch<'a> {
    Packages,
    Removals,
    Images,
    /// Edits of the file at this path.
    Edits(&'a str),
    /// The authorized keys of this user.
    Keys(&'a str),
}

fn batch(work: &Work) -> Option<Batch<'_>> {
    let package = |step: &Step| {
        matches!(step, Step::RefreshPackageIndex | Step::InstallPackages(_) | Step::HoldPackage { .. })
    };
    let removed = |step: &Step| matches!(step, Step::RemovePackages(_) | Step::HoldPackage { .. });
    if work.steps.is_empty() {
        None
    } else if work.steps.iter().all(removed)
        && work.steps.iter().any(|s| matches!(s, Step::RemovePackages(_)))
    {
        Some(Batch::Removals)
    } else if work.steps.iter().all(package) {
        Some(Batch::Packages)
    } else if work.steps.iter().all(|step| matches!(step, Step::PullImage(_))) {
        Some(Batch::Images)
    } else if let [Step::WriteAuthorizedKeys { user, .. }] = work.steps.as_slice() {
        Some(Batch::Keys(user))
    } else {
        edited(work).map(Batch::Edits)
    }
}

/// The one file that the work edits, if it does nothing else but apply the settings in it.
fn edited(work: &Work) -> Option<&str> {
    let mut file = None;
    for step in &work.steps {
        match step {
            Step::EditFile { path, .. } if file.is_none_or(|file| file == path) => file = Some(path.as_str()),
            Step::SetSysctl { .. } | Step::LoadModule(_) => {}
            _ => return None,
        }
    }
    file
}

/// Each edit is based on the result of the one before it, so the last contains all of them; it is valid if the file is
/// still what the first is based on.
fn one_edit(steps: Vec<Step>) -> Vec<Step> {
    let (edits, mut steps): (Vec<Step>, Vec<Step>) =
        steps.into_iter().partition(|step| matches!(step, Step::EditFile { .. }));
    let hides = edits.iter().any(|step| matches!(step, Step::EditFile { sensitive: true, .. }));
    let first = edits.first().cloned();
    if let (Some(Step::EditFile { found, .. }), Some(Step::EditFile { path, content, access, .. })) =
        (first, edits.into_iter().next_back())
    {
        steps.push(Step::EditFile { path, found, content, access, sensitive: hides });
    }
    steps
}

/// Refresh, then install everything at once, then holds.
fn transaction(steps: Vec<Step>) -> Vec<Step> {
    let mut refresh = Vec::new();
    let mut packages: Vec<PackageVersion> = Vec::new();
    let mut rest = Vec::new();
    for step in steps {
        match step {
            Step::RefreshPackageIndex => refresh = vec![step],
            Step::InstallPackages(more) => {
                for package in more {
                    if !packages.contains(&package) {
                        packages.push(package);
                    }
                }
            }
            other => rest.push(other),
        }
    }
    let install = if packages.is_empty() { None } else { Some(Step::InstallPackages(packages)) };
    refresh.into_iter().chain(install).chain(rest).collect()
}

/// The same for a user's keys.
fn one_write(mut steps: Vec<Step>) -> Vec<Step> {
    let last = steps.pop();
    let upon = steps.into_iter().next();
    match (upon, last) {
        (
            Some(Step::WriteAuthorizedKeys { found, .. }),
            Some(Step::WriteAuthorizedKeys { user, content, .. }),
        ) => vec![Step::WriteAuthorizedKeys { user, found, content }],
        (_, last) => last.into_iter().collect(),
    }
}

/// Release holds, then remove everything at once.
fn removal(steps: Vec<Step>) -> Vec<Step> {
    let mut names = Vec::new();
    let mut holds = Vec::new();
    for step in steps {
        match step {
            Step::RemovePackages(more) => names.extend(more),
            hold => holds.push(hold),
        }
    }
    holds.into_iter().chain([Step::RemovePackages(names)]).collect()
}

/// Leaves out a refresh of the package index, or a reload of unit files, when no step since the last one can change what
/// it reads.
fn without_repetition(works: &[Work]) -> Vec<Work> {
    let (mut index_is_fresh, mut units_are_fresh) = (false, false);
    let mut keep = |step: &Step| match step {
        Step::RefreshPackageIndex => !std::mem::replace(&mut index_is_fresh, true),
        Step::ReloadUnitFiles => !std::mem::replace(&mut units_are_fresh, true),
        Step::ReloadUnit(_) => !units_are_fresh,
        other => {
            index_is_fresh &= !changes(other, &["/etc/apt/", "/etc/yum.repos.d/", "/etc/dnf/"], false);
            units_are_fresh &= !changes(other, &["/systemd/", "/etc/fstab/"], true);
            true
        }
    };
    let mut works: Vec<Work> = works
        .iter()
        .map(|work| {
            let steps = work.steps.iter().filter(|step| keep(step)).cloned().collect();
            Work { id: work.id.clone(), steps }
        })
        .collect();
    reload_late(&mut works);
    reload_at_last(&mut works);
    works
}

/// Reloads unit files once after all services are enabled or disabled, which reloads none: until then systemd reports
/// all units as changed (version 253 and later), or these as they were (earlier ones).
fn reload_at_last(works: &mut [Work]) {
    let is_link = |step: &Step| matches!(step, Step::Unit { verb: UnitVerb::Enable | UnitVerb::Disable, .. });
    let Some(last) = works.iter().rposition(|work| work.steps.iter().any(is_link)) else { return };
    let later = works[last..].iter().flat_map(|work| &work.steps).skip_while(|step| !is_link(step));
    if !later.into_iter().any(|step| matches!(step, Step::ReloadUnitFiles)) {
        works[last].steps.push(Step::ReloadUnitFiles);
    }
}

/// Leaves out a reload of unit files that is followed by another before anything depends on it.
fn reload_late(works: &mut [Work]) {
    let mut follows = false;
    for work in works.iter_mut().rev() {
        let mut kept: Vec<Step> = Vec::new();
        for step in std::mem::take(&mut work.steps).into_iter().rev() {
            let wanted = match &step {
                Step::ReloadUnitFiles => !std::mem::replace(&mut follows, true),
                Step::ReloadUnit(_) => !follows,
                // It ends with one.
                Step::RemovePackages(_) => {
                    follows = true;
                    true
                }
                // They depend on no reload, and are none.
                Step::Unit { verb: UnitVerb::Enable | UnitVerb::Disable | UnitVerb::Stop, .. }
                | Step::VerifyUnit { .. }
                | Step::WriteFile { .. }
                | Step::Symlink { .. }
                | Step::SetAccess { .. }
                | Step::Remove { .. } => true,
                Step::EditFile { .. }
                | Step::WriteAuthorizedKeys { .. }
                | Step::MakeDirectory { .. }
                | Step::Download { .. }
                | Step::Unpack { .. }
                | Step::Await { .. }
                | Step::Reboot { .. }
                | Step::RefreshPackageIndex
                | Step::InstallPackages(_)
                | Step::HoldPackage { .. }
                | Step::Unit {
                    verb:
                        UnitVerb::Start
                        | UnitVerb::Restart
                        | UnitVerb::ReloadOrRestart
                        | UnitVerb::Mask
                        | UnitVerb::Unmask,
                    ..
                }
                | Step::SetSysctl { .. }
                | Step::LoadModule(_)
                | Step::SwapOff
                | Step::PullImage(_)
                | Step::IssueCertificate(_)
                | Step::ReplaceRoute { .. }
                | Step::Account { .. }
                | Step::SetPassword { .. }
                | Step::Mount { .. }
                | Step::Run { .. } => {
                    follows = false;
                    true
                }
            };
            kept.extend(wanted.then_some(step));
        }
        kept.reverse();
        work.steps = kept;
    }
}

/// Whether a step can change files below one of `places`.
fn changes(step: &Step, places: &[&str], packages_do: bool) -> bool {
    match step {
        Step::Run { .. } => true,
        Step::InstallPackages(_) | Step::RemovePackages(_) => packages_do,
        other => other
            .content_path()
            .is_some_and(|path| places.iter().any(|place| format!("{path}/").contains(place))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resource::contract::step::Access;

    fn work(id: &str, steps: Vec<Step>) -> Work {
        Work { id: id.to_owned(), steps }
    }

    fn install(names: &[&str]) -> Step {
        let package = |name: &&str| PackageVersion { name: (*name).to_owned(), version: None, hold: false };
        Step::InstallPackages(names.iter().map(package).collect())
    }

    fn write(path: &str) -> Step {
        let access = Access { owner: "root".into(), group: "root".into(), mode: 0o644 };
        Step::WriteFile { path: path.to_owned(), content: Vec::new(), access, sensitive: false }
    }

    fn merged(works: &[Work]) -> Vec<(Vec<String>, Vec<Step>)> {
        tasks(works).into_iter().map(|task| (task.ids, task.steps)).collect()
    }

    fn ids(ids: &[&str]) -> Vec<String> {
        ids.iter().map(|id| (*id).to_owned()).collect()
    }

    #[test]
    fn packages_that_follow_each_other_are_one_transaction() {
        let works = [
            work("package:a", vec![Step::RefreshPackageIndex, install(&["a"])]),
            work("package:b", vec![Step::RefreshPackageIndex, install(&["b", "a"])]),
            work("file:/x", vec![write("/x")]),
            work("package:c", vec![Step::RefreshPackageIndex, install(&["c"])]),
        ];
        let expected = [
            (ids(&["package:a", "package:b"]), vec![Step::RefreshPackageIndex, install(&["a", "b"])]),
            (ids(&["file:/x"]), vec![write("/x")]),
            (ids(&["package:c"]), vec![install(&["c"])]),
        ];
        assert_eq!(merged(&works), expected);
    }

    #[test]
    fn packages_that_go_one_after_the_other_go_in_one_transaction() {
        let remove = |names: &[&str]| Step::RemovePackages(ids(names));
        let release = || Step::HoldPackage { name: "b".into(), hold: false };
        let works = [
            work("package:a", vec![remove(&["a"])]),
            work("package:b", vec![release(), remove(&["b"])]),
            work("package:c", vec![Step::RefreshPackageIndex, install(&["c"])]),
        ];
        let expected = [
            (ids(&["package:a", "package:b"]), vec![release(), remove(&["a", "b"])]),
            (ids(&["package:c"]), vec![Step::RefreshPackageIndex, install(&["c"])]),
        ];
        assert_eq!(merged(&works), expected);
    }

    #[test]
    fn a_new_package_source_makes_the_index_stale() {
        let source = write("/etc/apt/sources.list.d/metalform.sources");
        let works = [
            work("package:a", vec![Step::RefreshPackageIndex]),
            work("file:source", vec![source.clone()]),
            work("package:b", vec![Step::RefreshPackageIndex]),
        ];
        let steps: Vec<Step> = merged(&works).into_iter().flat_map(|(_, steps)| steps).collect();
        assert_eq!(steps, [Step::RefreshPackageIndex, source, Step::RefreshPackageIndex]);
    }

    #[test]
    fn unit_files_are_read_again_only_when_one_has_changed() {
        let unit = write("/etc/systemd/system/a.service");
        let works = [
            work("a", vec![unit.clone(), Step::ReloadUnitFiles]),
            work("b", vec![write("/etc/b.conf"), Step::ReloadUnitFiles]),
            work("c", vec![unit.clone(), Step::ReloadUnitFiles]),
        ];
        let steps: Vec<Step> = merged(&works).into_iter().flat_map(|(_, steps)| steps).collect();
        let reload = Step::ReloadUnitFiles;
        assert_eq!(steps, [unit.clone(), write("/etc/b.conf"), unit.clone(), reload.clone()]);
        let start = Step::Unit { name: "a.service".into(), verb: UnitVerb::Start };
        let works = [
            work("a", vec![unit.clone(), Step::ReloadUnitFiles, start.clone()]),
            work("c", vec![unit.clone(), Step::ReloadUnitFiles]),
        ];
        let steps: Vec<Step> = merged(&works).into_iter().flat_map(|(_, steps)| steps).collect();
        assert_eq!(steps, [unit.clone(), reload.clone(), start.clone(), unit.clone(), reload.clone()]);
        let enable = Step::Unit { name: "a.service".into(), verb: UnitVerb::Enable };
        let works = [
            work("a", vec![unit.clone(), Step::ReloadUnitFiles]),
            work("b", vec![enable.clone(), start.clone()]),
        ];
        let steps: Vec<Step> = merged(&works).into_iter().flat_map(|(_, steps)| steps).collect();
        assert_eq!(steps, [unit.clone(), reload.clone(), enable.clone(), start.clone(), reload.clone()]);
        let works =
            [work("a", vec![enable.clone(), start.clone()]), work("b", vec![enable.clone(), start.clone()])];
        let steps: Vec<Step> = merged(&works).into_iter().flat_map(|(_, steps)| steps).collect();
        assert_eq!(steps, [enable.clone(), start.clone(), enable, start, reload], "once, after the last");
        let remove = Step::RemovePackages(vec!["a".to_owned()]);
        let works =
            [work("a", vec![unit.clone(), Step::ReloadUnitFiles]), work("package:a", vec![remove.clone()])];
        let steps: Vec<Step> = merged(&works).into_iter().flat_map(|(_, steps)| steps).collect();
        assert_eq!(steps, [unit, remove], "it ends with one");
    }

    #[test]
    fn edits_of_one_file_are_one_write_of_the_last_text_upon_the_first() {
        let edit = |found: &str, text: &str| Step::EditFile {
            path: "/etc/sysctl.d/k8s.conf".to_owned(),
            found: Some(found.to_owned()),
            content: text.as_bytes().to_vec(),
            access: Access { owner: "root".into(), group: "root".into(), mode: 0o644 },
            sensitive: false,
        };
        let set = |key: &str| Step::SetSysctl { key: key.to_owned(), value: "1".to_owned() };
        let works = [
            work("sysctl:a", vec![set("a"), edit("0", "a\n")]),
            work("sysctl:b", vec![set("b"), edit("1", "a\nb\n")]),
            work("line:c", vec![edit("2", "a\nb\nc\n")]),
            work("file:/x", vec![write("/x")]),
            work("sysctl:d", vec![edit("3", "d\n")]),
        ];
        let expected = [
            (ids(&["sysctl:a", "sysctl:b", "line:c"]), vec![set("a"), set("b"), edit("0", "a\nb\nc\n")]),
            (ids(&["file:/x"]), vec![write("/x")]),
            (ids(&["sysctl:d"]), vec![edit("3", "d\n")]),
        ];
        assert_eq!(merged(&works), expected);
    }

    #[test]
    fn image_pulls_are_one_task() {
        let pull = |image: &str| Step::PullImage(image.to_owned());
        let works = [work("image:a", vec![pull("a")]), work("image:b", vec![pull("b")])];
        assert_eq!(merged(&works), [(ids(&["image:a", "image:b"]), vec![pull("a"), pull("b")])]);
    }
}
