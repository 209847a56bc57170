//! What commands of the state engine have in common: states, hosts, and the work on each.

use std::num::NonZeroUsize;

use clap::Args;
use jiff::Timestamp;

use super::conduct::Conduct;
use super::failure::Failure;
use super::host_trouble::Outcomes;
use super::hosts::{HostArguments, Selected};
use super::{Global, setting};
use crate::engine::host::{Host, HostError, Looked};
use crate::engine::roster::{self, RosterFault};
use crate::engine::states::HostStates;
use crate::model;
use crate::model::event::HostOutcome;
use crate::model::facts::Facts;
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
    now: Timestamp,
}

/// One host, seen, with what it should be.
pub struct SeenHost<'a> {
    /// The host.
    pub host: Host<'a>,
    /// Its resources, and what there is of them.
    pub looked: Looked<HostStates>,
}

impl StateArguments {
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
    /// Does `work` on the hosts once they were seen; the rest is as [`Selected::each`] has it.
    pub async fn each<T>(
        &self,
        conduct: &Conduct<'_>,
        work: impl AsyncFn(SeenHost<'_>) -> Result<T, HostError>,
        judge: impl Fn(&T) -> (HostOutcome, usize),
    ) -> Outcomes<T> {
        let desired =
            |compiled: Result<Vec<Compiled>, Vec<RosterFault>>| roster::desired(compiled?, self.now);
        let on_one = async |named: &model::roster::Host, host: Host<'_>| {
            let known = roster::compiled_without_facts(self.setting(), named).map(desired).transpose();
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

    /// The same for work that changes nothing.
    pub async fn look<T>(&self, work: impl AsyncFn(SeenHost<'_>) -> Result<T, HostError>) -> Outcomes<T> {
        self.each(&Conduct::looking(self.limit), work, |_| (HostOutcome::Unchanged, 0)).await
    }

    /// How many hosts a run is about.
    pub fn hosts(&self) -> usize {
        self.selected.hosts.len()
    }

    /// The resources of every host, in the order to run. Hosts are asked what they are where that matters.
    pub async fn compiled(&self) -> Outcomes<Vec<Compiled>> {
        let on_one = async |named: &model::roster::Host, host: Host<'_>| {
            Ok(match roster::compiled_without_facts(self.setting(), named) {
                Some(compiled) => compiled,
                None => roster::compiled(self.setting(), named, &host.facts().await?),
            })
        };
        self.selected.each(&Conduct::looking(self.limit), on_one, |_| (HostOutcome::Unchanged, 0)).await
    }

    fn setting(&self) -> roster::Setting<'_> {
        roster::Setting {
            library: &self.library,
            states: &self.states,
            cluster: &self.selected.cluster,
            hosts: &self.selected.hosts,
        }
    }
}
