//! What commands of the state engine have in common: states, hosts, and the work on each.

use std::num::NonZeroUsize;

use clap::Args;
use jiff::Timestamp;

use super::conduct::Conduct;
use super::failure::Failure;
use super::host_trouble::Outcomes;
use super::hosts::{HostArguments, Selected};
use super::{Global, setting};
use crate::engine::Desired;
use crate::engine::host::{HostError, HostSession, Looked};
use crate::engine::roster::{self, RosterFault};
use crate::engine::states::{HostStates, own_boot_id};
use crate::model;
use crate::model::event::HostOutcome;
use crate::model::facts::Facts;
use crate::model::name::HostName;
use crate::state::{Compiled, Library, StateName};

/// Which states, on which hosts.
#[derive(Debug, Args)]
pub struct StateArguments {
    /// States, with those that they require; without any, those of each host's roles
    #[arg(value_name = "STATE")]
    states: Vec<StateName>,
    #[command(flatten)]
    hosts: HostArguments,
}

/// The same, read and checked.
pub struct StateWork {
    library: Library,
    states: Vec<StateName>,
    selected: Selected,
    /// Hosts to work on at the same time.
    pub limit: NonZeroUsize,
    /// When this command began.
    pub now: Timestamp,
}

/// One host, seen, with what it should be.
pub struct SeenHost<'a, D = HostStates> {
    /// The host.
    pub host: HostSession<'a>,
    /// Its resources, and what there is of them.
    pub looked: Looked<D>,
}

/// How a host's resources become what it is compared with.
pub struct Making<F> {
    /// Whether the host's facts are wanted in any case.
    pub with_facts: bool,
    /// Of one host.
    pub make: F,
}

impl StateArguments {
    /// Hosts to work on at the same time.
    pub fn limit(&self) -> NonZeroUsize {
        self.hosts.limit
    }

    /// Reads states and hosts. No host is touched.
    ///
    /// # Errors
    /// Everything that is wrong with them.
    pub async fn read(&self, global: &Global) -> Result<StateWork, Failure> {
        let library = setting::library(global)?;
        library.with_required(&self.states).map_err(|errors| setting::faults(&errors))?;
        Ok(StateWork {
            library,
            states: self.states.clone(),
            selected: self.hosts.select().await?,
            limit: self.hosts.limit,
            now: setting::now(),
        })
    }
}

impl StateWork {
    /// Does `work` on the hosts once they were seen and compared with what `making` makes; the rest is as
    /// [`Selected::each`] has it.
    pub async fn each<D: Desired + Send, T>(
        &self,
        conduct: &Conduct<'_>,
        making: Making<impl Fn(&HostName, Vec<Compiled>) -> Result<D, Vec<RosterFault>> + Sync>,
        work: impl AsyncFn(SeenHost<'_, D>) -> Result<T, HostError>,
        judge: impl Fn(&T) -> (HostOutcome, usize),
    ) -> Outcomes<T> {
        let on_one = async |named: &model::roster::Host, host: HostSession<'_>| {
            let desired = |compiled: Result<Vec<Compiled>, Vec<RosterFault>>| {
                compiled.and_then(|compiled| (making.make)(&named.name, compiled))
            };
            let known = match making.with_facts {
                true => None,
                false => roster::compiled_without_facts(self.setting(), named).map(desired),
            };
            let known = known.transpose();
            let known = match known {
                Ok(known) => known,
                Err(faults) => return Ok(Err(faults)),
            };
            let by_facts = |facts: &Facts| desired(roster::compiled(self.setting(), named, facts));
            match host.look(known, by_facts).await? {
                Ok(looked) => Ok(Ok(work(SeenHost { host, looked }).await?)),
                Err(faults) => Ok(Err(faults)),
            }
        };
        self.selected.each(conduct, on_one, judge).await
    }

    /// What a host should be.
    ///
    /// # Errors
    /// Resources that their kind refuses, or that only a cluster can have.
    pub fn desired(&self, compiled: Vec<Compiled>) -> Result<HostStates, Vec<RosterFault>> {
        Ok(roster::desired(compiled, self.now)?.seen_from(own_boot_id()))
    }

    /// The hosts selected.
    pub fn hosts(&self) -> Vec<HostName> {
        self.selected.hosts.iter().map(|host| host.name.clone()).collect()
    }

    /// The resources of every host, in the order to run. Hosts are asked what they are where that matters.
    pub async fn compiled(&self) -> Outcomes<Vec<Compiled>> {
        let on_one = async |named: &model::roster::Host, host: HostSession<'_>| {
            Ok(match roster::compiled_without_facts(self.setting(), named) {
                Some(compiled) => compiled,
                None => roster::compiled(self.setting(), named, &host.facts().await?),
            })
        };
        self.selected.each(&Conduct::looking(self.limit), on_one, |_| (HostOutcome::Unchanged, 0)).await
    }

    fn setting(&self) -> roster::RosterContext<'_> {
        roster::RosterContext {
            library: &self.library,
            states: &self.states,
            cluster: &self.selected.cluster,
            hosts: &self.selected.hosts,
        }
    }
}
