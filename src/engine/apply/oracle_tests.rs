//! The oracle of the batching: a plan applied as one program has the effect of the same plan applied step by step.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use sha2::{Digest, Sha256};

use super::progress::ProgressSummary;
use super::*;
use crate::engine::shells::{run, shells};
use crate::resource::contract::step::Access;

/// Plans of one run. `METALFORM_ORACLE_CASES` sets another number, `METALFORM_ORACLE_SEED` repeats a run.
const CASES: u32 = 24;

/// One resource of a random plan. Names are relative to the tree.
#[derive(Debug, Clone)]
enum Resource {
    File {
        name: &'static str,
        content: u8,
        mode: u32,
    },
    /// A file, and then a directory and a link beside it, as one resource.
    Several {
        name: &'static str,
        directory: &'static str,
        link: &'static str,
    },
    Directory {
        name: &'static str,
        mode: u32,
    },
    Link {
        name: &'static str,
        target: &'static str,
    },
    /// A line in a file that other resources edit too.
    Line {
        name: &'static str,
        line: u8,
    },
    Access {
        name: &'static str,
        mode: u32,
    },
    Absent {
        name: &'static str,
        recursive: bool,
    },
    /// A command, which no batch contains.
    Command {
        name: &'static str,
    },
}

/// Few names, so that resources meet: in one directory, below each other, through links.
const NAMES: [&str; 10] = ["a", "a.b", "b", "d", "d/a", "d/e", "d/e/a", "l", "l/a", "it's $(x) *"];
const MODES: [u32; 3] = [0o600, 0o644, 0o755];

fn resource() -> impl Strategy<Value = Resource> {
    let name = || prop::sample::select(NAMES.as_slice());
    let mode = || prop::sample::select(MODES.as_slice());
    prop_oneof![
        4 => (name(), any::<u8>(), mode()).prop_map(|(name, content, mode)| Resource::File { name, content, mode }),
        1 => (name(), name(), name())
            .prop_map(|(name, directory, link)| Resource::Several { name, directory, link }),
        3 => (name(), mode()).prop_map(|(name, mode)| Resource::Directory { name, mode }),
        2 => (name(), name()).prop_map(|(name, target)| Resource::Link { name, target }),
        3 => (prop::sample::select(["edited", "b"].as_slice()), any::<u8>())
            .prop_map(|(name, line)| Resource::Line { name, line }),
        1 => (name(), mode()).prop_map(|(name, mode)| Resource::Access { name, mode }),
        1 => (name(), any::<bool>()).prop_map(|(name, recursive)| Resource::Absent { name, recursive }),
        1 => name().prop_map(|name| Resource::Command { name }),
    ]
}

/// The work of a plan below `root`, as the kinds make it: an edit is made of what the edits before it leave.
fn works(plan: &[Resource], root: &Path) -> Vec<Work> {
    let owner = fs::metadata(root).unwrap();
    let access = |mode| Access { owner: owner.uid().to_string(), group: owner.gid().to_string(), mode };
    let at = |name: &str| root.join(name).to_str().unwrap().to_owned();
    let mut edited: BTreeMap<&str, Vec<u8>> = BTreeMap::new();
    let mut work = Vec::new();
    for (number, resource) in plan.iter().enumerate() {
        let write = |name: &str, content: u8, mode| Step::WriteFile {
            path: at(name),
            content: vec![content; usize::from(content) * 3],
            access: access(mode),
            sensitive: false,
        };
        let steps = match *resource {
            Resource::File { name, content, mode } => {
                edited.insert(name, vec![content; usize::from(content) * 3]);
                vec![write(name, content, mode)]
            }
            Resource::Several { name, directory, link } => vec![
                Step::MakeDirectory { path: at(directory), access: access(0o711) },
                write(name, 7, 0o640),
                Step::Symlink { path: at(link), target: "nowhere".into() },
            ],
            Resource::Directory { name, mode } => {
                vec![Step::MakeDirectory { path: at(name), access: access(mode | 0o100) }]
            }
            Resource::Link { name, target } => vec![Step::Symlink { path: at(name), target: target.into() }],
            Resource::Line { name, line } => {
                let before = edited.get(name).cloned();
                let mut content = before.clone().unwrap_or_default();
                content.extend_from_slice(format!("line {line}\n").as_bytes());
                edited.insert(name, content.clone());
                let found = before.map(|before| hex::encode(Sha256::digest(&before)));
                vec![Step::EditFile {
                    path: at(name),
                    found,
                    content,
                    access: access(0o644),
                    sensitive: false,
                }]
            }
            Resource::Access { name, mode } => {
                vec![Step::SetAccess { path: at(name), access: access(mode | 0o100) }]
            }
            Resource::Absent { name, recursive } => {
                edited.remove(name);
                vec![Step::Remove { path: at(name), recursive }]
            }
            Resource::Command { name } => {
                vec![Step::Run {
                    script: format!("echo {number} >>'{}'", at("log"))
                        + if name == "l" { "; false" } else { "" },
                }]
            }
        };
        work.push(Work { id: format!("resource:{number}"), steps });
    }
    work
}

/// Type, mode and content of everything below a directory.
fn tree(root: &Path) -> BTreeMap<PathBuf, String> {
    fn visit(root: &Path, directory: &Path, found: &mut BTreeMap<PathBuf, String>) {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let status = fs::symlink_metadata(&path).unwrap();
            let mode = status.permissions().mode() & 0o7777;
            let text = if status.is_symlink() {
                format!("link to {}", fs::read_link(&path).unwrap().display())
            } else if status.is_dir() {
                format!("directory {mode:o}")
            } else {
                format!("file {mode:o} {}", hex::encode(Sha256::digest(fs::read(&path).unwrap())))
            };
            found.insert(path.strip_prefix(root).unwrap().to_owned(), text);
            if status.is_dir() {
                visit(root, &path, found);
            }
        }
    }
    let mut found = BTreeMap::new();
    visit(root, root, &mut found);
    found
}

/// The ids that were done, in order, and those of the task that failed.
#[derive(Debug, PartialEq, Eq)]
struct Ending {
    done: Vec<String>,
    failed: Vec<String>,
}

fn nonce() -> Nonce {
    Nonce::new(3)
}

fn ending(ids: impl Fn(usize) -> Vec<String>, stdout: &[u8]) -> Ending {
    let mut done = Vec::new();
    for line in String::from_utf8_lossy(stdout).lines() {
        if let Some(progress::ProgressLine::Done(number)) = progress::parse(&nonce(), line) {
            done.extend(ids(number));
        }
    }
    let failed =
        ProgressSummary::of(&nonce(), stdout).failed.map(|(number, ..)| ids(number)).unwrap_or_default();
    Ending { done, failed }
}

/// As in production.
fn batched(shell: &str, works: &[Work]) -> Ending {
    let [segment] = segments(works).try_into().unwrap();
    let output = run(shell, &program(&segment, PackageManager::Apt, "", &nonce()));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    ending(|number| segment.tasks[number].ids.clone(), &output.stdout)
}

/// The oracle: each step is a program of its own.
fn one_by_one(shell: &str, works: &[Work]) -> Ending {
    let mut ending = Ending { done: Vec::new(), failed: Vec::new() };
    for work in works {
        for step in &work.steps {
            let task =
                Task { ids: vec![work.id.clone()], begins: true, ends: true, steps: vec![step.clone()] };
            let segment = Segment { tasks: vec![task], ..Segment::default() };
            let output = run(shell, &program(&segment, PackageManager::Apt, "", &nonce()));
            if ProgressSummary::of(&nonce(), &output.stdout).failed.is_some() {
                ending.failed = vec![work.id.clone()];
                return ending;
            }
        }
        ending.done.push(work.id.clone());
    }
    ending
}

/// Compares both ways to apply a plan, each in a directory of its own.
fn compare(shell: &str, plan: &[Resource]) -> Result<(), TestCaseError> {
    let (left, right) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let expected = one_by_one(shell, &works(plan, left.path()));
    let found = batched(shell, &works(plan, right.path()));
    if expected.failed.is_empty() {
        prop_assert_eq!(&found, &expected, "{}: {:#?}", shell, plan);
        prop_assert_eq!(tree(right.path()), tree(left.path()), "{}: {:#?}", shell, plan);
        return Ok(());
    }
    // Resources that were merged into one task fail together.
    prop_assert!(
        expected.failed.iter().all(|id| found.failed.contains(id)),
        "{}: {:?} failed, not {:?}: {:#?}",
        shell,
        found.failed,
        expected.failed,
        plan
    );
    let before: Vec<String> = expected.done.iter().filter(|id| !found.failed.contains(id)).cloned().collect();
    prop_assert_eq!(&found.done, &before, "{}: {:#?}", shell, plan);
    Ok(())
}

/// Plans that once had another effect when they were batched.
#[test]
fn known_differences_do_not_return() {
    let file = |name| Resource::File { name, content: 1, mode: 0o600 };
    let link = |name| Resource::Link { name, target: "nowhere" };
    let directory = |name, mode| Resource::Directory { name, mode };
    for plan in [
        // The link removed the staged file as a left-over of its own.
        vec![link("a"), file("a")],
        vec![link("a"), file("a.b")],
        // The directory of the second file was made before the first file.
        vec![file("a"), file("a/b")],
        // The higher mode won, not the last one.
        vec![directory("d", 0o755), directory("d", 0o600)],
        // The directory existed before its access was set.
        vec![Resource::Access { name: "d", mode: 0o755 }, file("d/a"), file("b")],
        // The directory was made that a link led to, and then through the link.
        vec![
            Resource::Link { name: "d", target: "l" },
            Resource::Directory { name: "d", mode: 0o600 },
            Resource::Directory { name: "l", mode: 0o600 },
        ],
        // So did the directory that a link led to.
        vec![Resource::Link { name: "l", target: "d" }, link("l/a"), file("d/a")],
    ] {
        for shell in shells() {
            compare(shell, &plan).unwrap();
        }
    }
}

#[test]
fn a_batched_program_has_the_effect_of_its_steps_one_by_one() {
    let variable = |name: &str| std::env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
    let cases = variable("METALFORM_ORACLE_CASES").and_then(|cases| cases.try_into().ok()).unwrap_or(CASES);
    let seed = variable("METALFORM_ORACLE_SEED").unwrap_or_else(rand::random);
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let random = TestRng::from_seed(RngAlgorithm::ChaCha, &seed.to_le_bytes().repeat(4));
    let mut runner = TestRunner::new_with_rng(config, random);
    let plans = prop::collection::vec(resource(), 1..12);
    let result = runner.run(&plans, |plan| {
        for shell in shells() {
            compare(shell, &plan)?;
        }
        Ok(())
    });
    if let Err(error) = result {
        panic!("METALFORM_ORACLE_SEED={seed}: {error}");
    }
}
