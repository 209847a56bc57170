//! Times of writing: one `stat` of all files, beside the host's clock.

use std::collections::{BTreeMap, BTreeSet};

use super::questions::Questions;
use super::{Answers, ObserveError, Section};
use crate::engine::frame::Sections;
use crate::model::shell_word::quote;
use crate::resource::contract::probe::{Answer, Probe};

/// Where dpkg has a list of the files of each package. Its name has a suffix for a foreign architecture.
const LISTS: &str = "/var/lib/dpkg/info";

pub(super) fn ask(questions: &Questions<'_>) -> Vec<Section> {
    let (mut files, mut lists) = (BTreeSet::new(), BTreeSet::new());
    for (some, packages) in questions.written.iter().copied().filter_map(parts) {
        files.extend(some.iter().map(|file| quote(file)));
        lists.extend(packages.iter().map(|name| {
            let list = quote(&format!("{LISTS}/{name}"));
            format!("{list}.list {list}:*.list")
        }));
    }
    let words = files.into_iter().chain(lists).collect::<Vec<_>>().join(" ");
    // What does not exist is not printed.
    vec![("written", format!("date +%s\nstat --printf='%Y %n\\0' -- {words} 2>/dev/null\n"))]
}

pub(super) fn answer(
    questions: &Questions<'_>,
    sections: &Sections,
    answers: &mut Answers,
) -> Result<(), ObserveError> {
    let text = sections.text("written")?;
    let unreadable = || ObserveError::Unreadable { section: "written", found: text.clone() };
    let (now, entries) = text.split_once('\n').ok_or_else(unreadable)?;
    let now: i64 = now.parse().map_err(|_| unreadable())?;
    let times: BTreeMap<&str, i64> = entries
        .split('\0')
        .filter_map(|entry| entry.split_once(' '))
        .filter_map(|(time, path)| Some((path, time.parse().ok()?)))
        .filter(|(_, time)| *time <= now)
        .collect();
    for probe in questions.written.iter().copied() {
        let Some((files, packages)) = parts(probe) else { continue };
        let of_files = files.iter().filter_map(|file| times.get(file.as_str()));
        let of_packages = packages.iter().flat_map(|name| of_package(&times, name));
        answers.insert(probe.clone(), Answer::Written(of_files.chain(of_packages).max().copied()));
    }
    Ok(())
}

fn parts(probe: &Probe) -> Option<(&[String], &[String])> {
    match probe {
        Probe::Written { files, packages } => Some((files, packages)),
        _ => None,
    }
}

fn of_package<'t>(times: &'t BTreeMap<&str, i64>, name: &str) -> impl Iterator<Item = &'t i64> {
    let (own, foreign) = (format!("{LISTS}/{name}.list"), format!("{LISTS}/{name}:"));
    times
        .iter()
        .filter(move |(path, _)| **path == own || path.starts_with(&foreign) && path.ends_with(".list"))
        .map(|(_, time)| time)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::engine::frame;
    use crate::engine::nonce::Nonce;
    use crate::engine::observe::{parse, program};
    use crate::engine::shells::{run, shells};
    use crate::transport::Program;

    #[test]
    fn the_newest_file_counts_unless_it_is_of_the_future() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
        for (name, time) in [("it's old", "@1000"), ("new\n2", "@2000"), ("of the future", "+1 hour")] {
            std::fs::write(at(name), "").unwrap();
            assert!(Command::new("touch").args(["-d", time, &at(name)]).status().unwrap().success());
        }
        let written = |names: &[&str]| Probe::Written {
            files: names.iter().map(|name| at(name)).collect(),
            packages: Vec::new(),
        };
        let probes = BTreeSet::from([
            written(&["it's old", "new\n2", "of the future"]),
            written(&["it's old", "none"]),
            written(&["none"]),
            written(&["of the future"]),
        ]);
        for shell in shells() {
            let observed =
                parse(&probes, &Nonce::new(3), &run(shell, &program(&probes, &Nonce::new(3)))).unwrap();
            let newest = |names: &[&str]| observed.get(&written(names)).cloned();
            assert_eq!(
                newest(&["it's old", "new\n2", "of the future"]),
                Some(Answer::Written(Some(2000))),
                "{shell}"
            );
            assert_eq!(newest(&["it's old", "none"]), Some(Answer::Written(Some(1000))), "{shell}");
            assert_eq!(newest(&["none"]), Some(Answer::Written(None)), "{shell}");
            assert_eq!(newest(&["of the future"]), Some(Answer::Written(None)), "{shell}");
        }
    }

    #[test]
    fn a_package_is_known_by_its_list_of_any_architecture() {
        let written =
            |package: &str| Probe::Written { files: Vec::new(), packages: vec![package.to_owned()] };
        let probes = BTreeSet::from([written("runc"), written("containerd")]);
        let lists = [(100, "runc"), (200, "runc:arm64"), (300, "runc-tools"), (901, "runc:amd64")]
            .map(|(time, name)| format!("{time} {LISTS}/{name}.list\\000"));
        let section = ("written", format!("printf '900\\n{}'\n", lists.concat()));
        let program = Program { script: frame::script(&Nonce::new(3), &[section]), payload: Vec::new() };
        let observed = parse(&probes, &Nonce::new(3), &run("sh", &program)).unwrap();
        assert_eq!(observed.get(&written("runc")), Some(&Answer::Written(Some(200))));
        assert_eq!(observed.get(&written("containerd")), Some(&Answer::Written(None)));
    }
}
