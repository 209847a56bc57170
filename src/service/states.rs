//! States applied to hosts: what `plan`, `apply` and `render` have in common.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use jiff::Timestamp;

use super::command_context::CommandContext;
use super::command_error::{CommandError, ErrorClass};
use super::fleet_options::FleetRun;
use super::fleet_work::HostResults;
use super::hosts::{HostSelection, SelectError, SelectedHosts};
use crate::engine::Desired;
use crate::engine::host::{HostError, HostSession, Looked};
use crate::engine::roster::{self, RosterFault};
use crate::engine::states::{HostStates, own_boot_id};
use crate::model::error_chain::error_chain;
use crate::model::event::HostOutcome;
use crate::model::facts::Facts;
use crate::model::name::HostName;
use crate::model::roster::Host;
use crate::state::{BundleNeed, Compiled, Library, StateError, StateName, Tree, TreeError};

/// Which states, on which hosts.
#[derive(Debug, Clone)]
pub struct StatesRequest {
    /// Where states and templates are read; `None` is the tree compiled in.
    pub tree: Option<PathBuf>,
    /// The states, without those that they require; empty for those of each host's roles.
    pub states: Vec<StateName>,
    /// The hosts.
    pub hosts: HostSelection,
    /// Hosts to work on at the same time.
    pub limit: NonZeroUsize,
}

/// States and hosts, read and checked.
pub struct StateWork {
    library: Library,
    states: Vec<StateName>,
    selected: SelectedHosts,
    limit: NonZeroUsize,
    now: Timestamp,
}

/// One host, observed, with its desired state.
pub struct ObservedHost<'a, D = HostStates> {
    /// The session.
    pub session: HostSession<'a>,
    /// The desired state and what was observed.
    pub looked: Looked<D>,
}

/// How the compiled resources of a host become what it is compared with.
pub struct Making<F> {
    /// Whether facts are collected even when the states do not depend on them.
    pub with_facts: bool,
    /// For one host.
    pub make: F,
}

/// Why states cannot be applied to any host.
#[derive(Debug, thiserror::Error)]
pub enum StatesError {
    /// The tree cannot be read.
    #[error("{}", error_chain(.0))]
    Tree(TreeError),
    /// States or templates are wrong.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    States(Vec<StateError>),
    /// The hosts.
    #[error(transparent)]
    Hosts(#[from] SelectError),
}

impl CommandError for StatesError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Hosts(error) => error.class(),
            Self::Tree(_) | Self::States(_) => ErrorClass::Configuration,
        }
    }

    fn errors(&self) -> Vec<String> {
        match self {
            Self::Hosts(error) => error.errors(),
            Self::States(errors) => errors.iter().map(ToString::to_string).collect(),
            Self::Tree(_) => vec![self.to_string()],
        }
    }

    fn hints(&self) -> Vec<String> {
        match self {
            Self::Hosts(error) => error.hints(),
            Self::Tree(_) => Vec::new(),
            Self::States(errors) => {
                let mut hints: Vec<String> = Vec::new();
                for hint in errors.iter().filter_map(|error| Some(error.hint()?.to_string())) {
                    if !hints.contains(&hint) {
                        hints.push(hint);
                    }
                }
                hints
            }
        }
    }
}

/// The states and templates of a tree; `None` is the one compiled in.
///
/// # Errors
/// When it cannot be read, or a state is wrong.
pub fn library(tree: Option<&Path>) -> Result<Library, StatesError> {
    Library::read(&read_tree(tree)?).map_err(StatesError::States)
}

/// What a tree asks of a bundle, each with the first place that does; `None` is the tree compiled in.
///
/// # Errors
/// As [`library`].
pub fn bundle_needs(tree: Option<&Path>) -> Result<BTreeMap<BundleNeed, String>, StatesError> {
    let tree = read_tree(tree)?;
    let library = Library::read(&tree).map_err(StatesError::States)?;
    Ok(crate::state::bundle_needs(&tree, &library))
}

fn read_tree(tree: Option<&Path>) -> Result<Tree, StatesError> {
    match tree {
        Some(directory) => Tree::directory(directory).map_err(StatesError::Tree),
        None => Ok(Tree::embedded()),
    }
}

impl StatesRequest {
    /// Reads states and hosts. No host is connected to.
    ///
    /// # Errors
    /// Everything that is wrong with the states, or the first thing that is wrong with the hosts.
    pub async fn read(&self, context: &CommandContext<'_>) -> Result<StateWork, StatesError> {
        let library = library(self.tree.as_deref())?;
        library.with_required(&self.states).map_err(StatesError::States)?;
        Ok(StateWork {
            library,
            states: self.states.clone(),
            selected: self.hosts.select(context).await?,
            limit: self.limit,
            now: (context.clock)(),
        })
    }

    /// With relative paths resolved against `directory`.
    #[must_use]
    pub fn resolved(&self, directory: &Path) -> Self {
        let tree = self.tree.as_ref().map(|tree| directory.join(tree));
        Self { tree, hosts: self.hosts.resolved(directory), ..self.clone() }
    }
}

impl StateWork {
    /// Observes each host, compares it with what `making` makes of its resources, and runs `work`; otherwise as
    /// [`SelectedHosts::for_each`].
    pub async fn for_each<D: Desired + Send, T>(
        &self,
        run: &FleetRun<'_>,
        making: Making<impl Fn(&HostName, Vec<Compiled>) -> Result<D, Vec<RosterFault>> + Sync>,
        work: impl AsyncFn(ObservedHost<'_, D>) -> Result<T, HostError>,
        judge: impl Fn(&T) -> (HostOutcome, usize),
    ) -> HostResults<T> {
        let on_one = async |host: &Host, session: HostSession<'_>| {
            let desired = |compiled: Result<Vec<Compiled>, Vec<RosterFault>>| {
                compiled.and_then(|compiled| (making.make)(&host.name, compiled))
            };
            let known = match making.with_facts {
                true => None,
                false => roster::compiled_without_facts(self.roster(), host).map(desired).transpose()?,
            };
            let by_facts = |facts: &Facts| desired(roster::compiled(self.roster(), host, facts));
            let looked = session.look(known, by_facts).await??;
            Ok(work(ObservedHost { session, looked }).await?)
        };
        self.selected.for_each(run, on_one, judge).await
    }

    /// The desired state of a host.
    ///
    /// # Errors
    /// Resources that their kind refuses, or that exist only in a cluster.
    pub fn desired(&self, compiled: Vec<Compiled>) -> Result<HostStates, Vec<RosterFault>> {
        Ok(roster::desired(compiled, self.now)?.seen_from(own_boot_id()))
    }

    /// The names of the selected hosts, in order.
    pub fn hosts(&self) -> Vec<HostName> {
        self.selected.hosts.iter().map(|host| host.name.clone()).collect()
    }

    /// When the command began.
    pub fn began(&self) -> Timestamp {
        self.now
    }

    /// Hosts to work on at the same time.
    pub fn limit(&self) -> NonZeroUsize {
        self.limit
    }

    /// The resources of every host, in the order to run. A host is connected to only where its states depend on
    /// facts.
    pub async fn compiled(&self, context: &CommandContext<'_>) -> HostResults<Vec<Compiled>> {
        let on_one = async |host: &Host, session: HostSession<'_>| {
            Ok(match roster::compiled_without_facts(self.roster(), host) {
                Some(compiled) => compiled?,
                None => roster::compiled(self.roster(), host, &session.facts().await?)?,
            })
        };
        let run = FleetRun::read_only(self.limit, context);
        self.selected.for_each(&run, on_one, |_| (HostOutcome::Unchanged, 0)).await
    }

    fn roster(&self) -> roster::RosterContext<'_> {
        roster::RosterContext {
            library: &self.library,
            states: &self.states,
            cluster: &self.selected.cluster,
            hosts: &self.selected.hosts,
        }
    }
}
