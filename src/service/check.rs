//! `check`: validates states, templates, rosters and configurations without a host.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use jiff::Timestamp;

use super::command_error::{CommandError, ErrorClass};
use super::file_text::{self, FileTextError};
use super::roster_files::{self, RosterFilesError};
use crate::engine::roster as host_states;
use crate::engine::states::HostStates;
use crate::model::bootstrap_configuration::BootstrapConfiguration;
use crate::model::document::{Document, Problems};
use crate::model::error_chain::error_chain;
use crate::model::facts::Facts;
use crate::model::roster::{Host, Roster};
use crate::operation::values;
use crate::resource;
use crate::resource::contract::kind::Kind;
use crate::state::{Library, Location, Shapes, Tree, TreeError, check, literals, open_values};

/// What to validate.
#[derive(Debug, Clone)]
pub struct CheckRequest {
    /// The tree to validate when there are no paths; `None` is the one compiled in.
    pub tree: Option<PathBuf>,
    /// Directories and files.
    pub paths: Vec<PathBuf>,
    /// Rosters whose hosts must have every value that the states of their roles read.
    pub roster: Vec<PathBuf>,
}

/// What was validated without a fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckReport {
    /// In the order of the request.
    pub subjects: Vec<CheckedSubject>,
}

/// One path of the request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckedSubject {
    /// The path as given.
    pub name: String,
    /// Values that only a roster can give; empty where a roster was given.
    pub required_values: BTreeSet<String>,
}

/// Every fault, in the order found, each once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Faults {
    errors: Vec<String>,
    hints: Vec<String>,
}

/// Why a check failed.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// A path cannot be resolved.
    #[error("{}: {error}", path.display())]
    Path {
        /// As given.
        path: PathBuf,
        /// The system's error.
        error: std::io::Error,
    },
    /// A tree cannot be read.
    #[error("{}", error_chain(.0))]
    Tree(#[from] TreeError),
    /// A file cannot be read.
    #[error(transparent)]
    File(#[from] FileTextError),
    /// The roster to check against is wrong.
    #[error(transparent)]
    Roster(#[from] RosterFilesError),
    /// What was checked is wrong.
    #[error("{}", .0.errors.join("; "))]
    Faults(Faults),
}

impl CommandError for CheckError {
    fn class(&self) -> ErrorClass {
        ErrorClass::Configuration
    }

    fn errors(&self) -> Vec<String> {
        match self {
            Self::Roster(error) => error.errors(),
            Self::Faults(faults) => faults.errors.clone(),
            other => vec![other.to_string()],
        }
    }

    fn hints(&self) -> Vec<String> {
        match self {
            Self::Roster(error) => error.hints(),
            Self::Faults(faults) => faults.hints.clone(),
            _ => Vec::new(),
        }
    }
}

impl Faults {
    fn add(&mut self, error: String, hint: Option<String>) {
        for (line, lines) in [(Some(error), &mut self.errors), (hint, &mut self.hints)] {
            lines.extend(line.filter(|line| !lines.contains(line)));
        }
    }

    fn problems(&mut self, problems: &Problems) {
        problems.0.iter().for_each(|problem| self.add(problem.to_string(), None));
    }
}

/// What a path is.
enum Subject {
    /// The root of a tree; with a file, only that file's faults are shown.
    Tree(PathBuf, Option<String>),
    Roster,
    Configuration,
}

/// A tree and what is checked of it.
struct TreeCheck<'a> {
    root: &'a Path,
    tree: &'a Tree,
    only: Option<&'a str>,
    roster: Option<&'a Roster>,
    now: Timestamp,
}

/// Validates all paths.
///
/// # Errors
/// Every fault of what can be read, or the first path that cannot.
pub fn check_paths(request: &CheckRequest, now: Timestamp) -> Result<CheckReport, CheckError> {
    let roster = match request.roster.as_slice() {
        [] => None,
        files => Some(roster_files::read(files)?),
    };
    let roster = roster.as_ref();
    let mut faults = Faults::default();
    let mut subjects = Vec::new();
    if request.paths.is_empty() {
        let (name, tree) = match &request.tree {
            Some(root) => (root.display().to_string(), directory(root)?),
            None => ("the tree compiled in".to_owned(), Tree::embedded()),
        };
        let root = request.tree.as_deref().unwrap_or(Path::new(""));
        let required_values = TreeCheck { root, tree: &tree, only: None, roster, now }.run(&mut faults);
        subjects.push(CheckedSubject { name, required_values });
    }
    for path in &request.paths {
        let required_values = match subject(path)? {
            Subject::Tree(root, only) => {
                let tree = directory(&root)?;
                let only = only.as_deref();
                TreeCheck { root: &root, tree: &tree, only, roster, now }.run(&mut faults)
            }
            Subject::Roster => {
                check_document(path, &mut faults, roster_problems)?;
                BTreeSet::new()
            }
            Subject::Configuration => {
                check_document(path, &mut faults, |document| BootstrapConfiguration::parse(document).err())?;
                BTreeSet::new()
            }
        };
        subjects.push(CheckedSubject { name: path.display().to_string(), required_values });
    }
    if faults.errors.is_empty() { Ok(CheckReport { subjects }) } else { Err(CheckError::Faults(faults)) }
}

fn check_document(
    path: &Path,
    faults: &mut Faults,
    problems: impl FnOnce(&Document<'_>) -> Option<Problems>,
) -> Result<(), FileTextError> {
    let name = path.display().to_string();
    let text = file_text::read(path)?;
    if let Some(problems) = problems(&Document { file: &name, text: &text }) {
        faults.problems(&problems);
    }
    Ok(())
}

fn roster_problems(document: &Document<'_>) -> Option<Problems> {
    match Roster::parse(std::slice::from_ref(document)) {
        Ok(roster) if roster.hosts.is_empty() => {
            Some(Problems(vec![document.problem(None, "hosts: must name at least one host")]))
        }
        roster => roster.err(),
    }
}

fn directory(root: &Path) -> Result<Tree, TreeError> {
    Tree::directory(if root.as_os_str().is_empty() { Path::new(".") } else { root })
}

fn subject(path: &Path) -> Result<Subject, CheckError> {
    let absolute =
        std::path::absolute(path).map_err(|error| CheckError::Path { path: path.to_owned(), error })?;
    if path.is_dir() {
        let is_states = absolute.ends_with("states") || path.join("top.yaml").exists();
        return Ok(match path.parent() {
            Some(parent) if is_states && !path.join("states").is_dir() => {
                let root = if path.ends_with("states") { parent.to_owned() } else { path.join("..") };
                Subject::Tree(root, None)
            }
            _ => Subject::Tree(path.to_owned(), None),
        });
    }
    if let Some((root, below)) = in_tree(path).or_else(|| in_tree(&absolute)) {
        return Ok(Subject::Tree(root, Some(below)));
    }
    if !path.exists() {
        return Ok(Subject::Tree(path.to_owned(), None));
    }
    let has_version = file_text::read(path)?.lines().any(|line| line.starts_with("apiVersion:"));
    Ok(if has_version { Subject::Configuration } else { Subject::Roster })
}

/// The root of the tree that contains a file, and the file's path relative to it.
fn in_tree(path: &Path) -> Option<(PathBuf, String)> {
    let folder =
        path.ancestors().skip(1).find(|path| path.ends_with("states") || path.ends_with("templates"))?;
    let root = folder.parent()?;
    path.is_file().then(|| (root.to_owned(), path.strip_prefix(root).unwrap_or(path).display().to_string()))
}

impl TreeCheck<'_> {
    /// Adds the faults of the tree. Returns the values that only a roster can give.
    fn run(&self, faults: &mut Faults) -> BTreeSet<String> {
        let library = Library::read(self.tree);
        // Certificates exist only in a cluster, so a tree with certificates is one for clusters.
        let is_cluster = self.roster.is_none()
            && library.as_ref().is_ok_and(|library| library.has_kind(Kind::Certificate));
        let shapes = if is_cluster { values::shapes() } else { Shapes::of_any_host() };
        let found = check(self.tree, resource::kinds(), &shapes);
        let complete = found.is_empty();
        for error in found.iter().filter(|error| self.includes(&error.at)) {
            faults.add(self.located(&error.to_string()), error.hint().map(|hint| hint.to_string()));
        }
        let Some(library) = library.ok().filter(|_| complete) else { return BTreeSet::new() };
        let literals = literals(&library, resource::kinds());
        for error in HostStates::new(literals, BTreeMap::new(), self.now).err().into_iter().flatten() {
            if self.includes(&error.at) {
                faults.add(self.located(&error.to_string()), None);
            }
        }
        let Some(roster) = self.roster else { return open_values(self.tree, &shapes) };
        for ((_, line), (hosts, hint)) in faults_on_hosts(&library, roster, self.now) {
            let on = if hosts.len() == roster.hosts.len() {
                String::new()
            } else {
                format!(" (on {})", hosts.into_iter().collect::<Vec<_>>().join(", "))
            };
            faults.add(self.located(&format!("{line}{on}")), hint);
        }
        BTreeSet::new()
    }

    fn includes(&self, at: &Location) -> bool {
        self.only.is_none_or(|only| only == at.file)
    }

    /// A line with its path relative to the current directory instead of the tree.
    fn located(&self, line: &str) -> String {
        match self.root.to_str() {
            None | Some("" | ".") => line.to_owned(),
            Some(root) => format!("{}/{line}", root.trim_end_matches('/')),
        }
    }
}

/// Faults by location and line, each with the hosts that have it and a hint.
type FaultsOnHosts<'a> = BTreeMap<(Location, String), (BTreeSet<&'a str>, Option<String>)>;

/// The faults of each host's states, with the values of the roster and facts of typical machines.
fn faults_on_hosts<'a>(library: &Library, roster: &'a Roster, now: Timestamp) -> FaultsOnHosts<'a> {
    let hosts: Vec<Host> = roster.hosts.values().cloned().collect();
    let inputs = host_states::RosterContext { library, states: &[], cluster: &roster.vars, hosts: &hosts };
    let mut faults = FaultsOnHosts::new();
    for host in roster.hosts.values() {
        for facts in Facts::examples() {
            let result = host_states::compiled(inputs, host, &facts)
                .and_then(|compiled| host_states::desired(compiled, now));
            for fault in result.err().into_iter().flatten() {
                let entry = faults
                    .entry((fault.place().clone(), fault.to_string()))
                    .or_insert_with(|| (BTreeSet::new(), fault.hint()));
                entry.0.insert(host.name.as_str());
            }
        }
    }
    faults
}
