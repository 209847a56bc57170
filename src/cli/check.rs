//! `metalform check`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;

use super::failure::{Exit, Failure};
use super::{Global, hosts, output, setting};
use crate::engine::roster;
use crate::engine::states::HostStates;
use crate::model::bootstrap_configuration::BootstrapConfiguration;
use crate::model::document::{Document, Problems};
use crate::model::facts::Facts;
use crate::model::roster::{Host, Roster};
use crate::operation::values;
use crate::resource;
use crate::resource::contract::kind::Kind;
use crate::state::{Library, Location, Shapes, Tree, check, literals, open_values};

/// Check states, templates, rosters and configurations with no host present: every fault, with line and column
///
/// A directory is a tree, or the states/ of one. A file below states/ or templates/ is checked in its tree, and only its
/// own faults are shown; any other file is a roster, or a BootstrapConfiguration where it has an apiVersion.
#[derive(Debug, Args)]
pub struct Check {
    /// Directories and files; without any, the tree of --tree or the one compiled in
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// See whether these hosts have every value that the states of their roles read; may be repeated
    #[arg(long, value_name = "FILE")]
    roster: Vec<PathBuf>,
}

/// What a path is.
enum Subject {
    /// The root of a tree, and the file in it that is meant, if not all are.
    Tree(PathBuf, Option<String>),
    Roster,
    Configuration,
}

/// What is wrong, in the order in which it was found, each thing once.
#[derive(Default)]
struct Faults {
    errors: Vec<String>,
    hints: Vec<String>,
}

impl Faults {
    fn add(&mut self, error: String, hint: Option<String>) {
        for (text, texts) in [(Some(error), &mut self.errors), (hint, &mut self.hints)] {
            texts.extend(text.filter(|text| !texts.contains(text)));
        }
    }

    fn problems(&mut self, problems: &Problems) {
        problems.0.iter().for_each(|problem| self.add(problem.to_string(), None));
    }
}

impl Check {
    /// Runs it.
    ///
    /// # Errors
    /// One line for each fault.
    pub fn run(&self, global: &Global) -> Result<ExitCode, Failure> {
        let roster = match self.roster.as_slice() {
            [] => None,
            files => Some(hosts::read_roster(files)?),
        };
        let mut faults = Faults::default();
        let mut sound = String::new();
        let mut say = |name: &str, open: &BTreeSet<String>| {
            let open: Vec<&str> = open.iter().map(String::as_str).collect();
            sound.push_str(&match open.as_slice() {
                [] => format!("{name}: sound\n"),
                open => format!("{name}: sound, if a roster gives {} (see --roster)\n", open.join(", ")),
            });
        };
        if self.paths.is_empty() {
            let (name, tree) = match &global.tree {
                Some(root) => (root.display().to_string(), directory(root)?),
                None => ("the tree compiled in".to_owned(), Tree::embedded()),
            };
            let root = global.tree.as_deref().unwrap_or(Path::new(""));
            say(&name, &check_tree(root, &tree, None, roster.as_ref(), &mut faults));
        }
        for path in &self.paths {
            let name = path.display().to_string();
            let open = match subject(path)? {
                Subject::Tree(root, only) => {
                    check_tree(&root, &directory(&root)?, only.as_deref(), roster.as_ref(), &mut faults)
                }
                subject => {
                    let text = hosts::read_text(path)?;
                    let document = Document { file: &name, text: &text };
                    let problems = match subject {
                        Subject::Configuration => BootstrapConfiguration::parse(&document).err(),
                        _ => match Roster::parse(&[document]) {
                            Ok(roster) if roster.hosts.is_empty() => {
                                let message = "no host is named here, below hosts:";
                                Some(Problems(vec![document.problem(None, message)]))
                            }
                            roster => roster.err(),
                        },
                    };
                    problems.iter().for_each(|problems| faults.problems(problems));
                    BTreeSet::new()
                }
            };
            say(&name, &open);
        }
        if !faults.errors.is_empty() {
            let Faults { errors, hints } = faults;
            return Err(Failure { exit: Exit::Configuration, errors, hints });
        }
        output::print(&sound)?;
        Ok(ExitCode::SUCCESS)
    }
}

fn directory(root: &Path) -> Result<Tree, Failure> {
    let root = if root.as_os_str().is_empty() { Path::new(".") } else { root };
    Tree::directory(root).map_err(|error| Failure::from_error(Exit::Configuration, &error))
}

fn subject(path: &Path) -> Result<Subject, Failure> {
    let whole = std::path::absolute(path)
        .map_err(|error| Failure::new(Exit::Configuration, format!("{}: {error}", path.display())))?;
    if path.is_dir() {
        let is_states = whole.ends_with("states") || path.join("top.yaml").exists();
        return Ok(match path.parent() {
            Some(parent) if is_states && !path.join("states").is_dir() => {
                let root = if path.ends_with("states") { parent.to_owned() } else { path.join("..") };
                Subject::Tree(root, None)
            }
            _ => Subject::Tree(path.to_owned(), None),
        });
    }
    if let Some((root, below)) = in_tree(path).or_else(|| in_tree(&whole)) {
        return Ok(Subject::Tree(root, Some(below)));
    }
    if !path.exists() {
        return Ok(Subject::Tree(path.to_owned(), None));
    }
    let has_version = hosts::read_text(path)?.lines().any(|line| line.starts_with("apiVersion:"));
    Ok(if has_version { Subject::Configuration } else { Subject::Roster })
}

/// The root of the tree that a file lies in, and its path below that.
fn in_tree(path: &Path) -> Option<(PathBuf, String)> {
    let folder =
        path.ancestors().skip(1).find(|path| path.ends_with("states") || path.ends_with("templates"))?;
    let root = folder.parent()?;
    path.is_file().then(|| (root.to_owned(), path.strip_prefix(root).unwrap_or(path).display().to_string()))
}

/// Notes every fault of a tree, or of the one file in it that is meant. What is left are values that only a roster gives.
fn check_tree(
    root: &Path,
    tree: &Tree,
    only: Option<&str>,
    roster: Option<&Roster>,
    faults: &mut Faults,
) -> BTreeSet<String> {
    let library = Library::read(tree);
    // Outside a cluster nobody signs: a tree with certificates is one for a cluster.
    let is_cluster =
        roster.is_none() && library.as_ref().is_ok_and(|library| library.has_kind(Kind::Certificate));
    let shapes = if is_cluster { values::shapes() } else { Shapes::of_any_host() };
    let shown = |file: &str| only.is_none_or(|only| only == file);
    let prefix = |line: String| match root.to_str() {
        None | Some("" | ".") => line,
        Some(root) => format!("{}/{line}", root.trim_end_matches('/')),
    };
    let found = check(tree, resource::kinds(), &shapes);
    let complete = found.is_empty();
    for error in found.iter().filter(|error| shown(&error.at.file)) {
        faults.add(prefix(error.to_string()), error.hint().map(|hint| hint.to_string()));
    }
    let Some(library) = library.ok().filter(|_| complete) else { return BTreeSet::new() };
    let literals = literals(&library, resource::kinds());
    for error in HostStates::new(literals, BTreeMap::new(), setting::now()).err().into_iter().flatten() {
        if shown(&error.at.file) {
            faults.add(prefix(error.to_string()), None);
        }
    }
    let Some(roster) = roster else { return open_values(tree, &shapes) };
    for ((_, line), (hosts, hint)) in on_hosts(&library, roster) {
        let on = if hosts.len() == roster.hosts.len() {
            String::new()
        } else {
            format!(" (on {})", hosts.into_iter().collect::<Vec<_>>().join(", "))
        };
        faults.add(prefix(format!("{line}{on}")), hint);
    }
    BTreeSet::new()
}

/// A fault by its place and its line: the hosts that have it, and what to do about it.
type OnHosts<'a> = BTreeMap<(Location, String), (BTreeSet<&'a str>, Option<String>)>;

/// What is wrong with the states of each host's roles, with the values of the roster and of ordinary machines: the hosts
/// that have each fault.
fn on_hosts<'a>(library: &Library, roster: &'a Roster) -> OnHosts<'a> {
    let hosts: Vec<Host> = roster.hosts.values().cloned().collect();
    let setting = roster::RosterContext { library, states: &[], cluster: &roster.vars, hosts: &hosts };
    let mut faults = OnHosts::new();
    for host in roster.hosts.values() {
        for facts in Facts::examples() {
            let outcome = roster::compiled(setting, host, &facts)
                .and_then(|compiled| roster::desired(compiled, setting::now()));
            for fault in outcome.err().into_iter().flatten() {
                let entry = faults
                    .entry((fault.place().clone(), fault.to_string()))
                    .or_insert_with(|| (BTreeSet::new(), fault.hint()));
                entry.0.insert(host.name.as_str());
            }
        }
    }
    faults
}
