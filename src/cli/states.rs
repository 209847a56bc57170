//! What commands of the state engine have in common: states, hosts, and the work on each.

use std::num::NonZeroUsize;

use clap::Args;
use jiff::Timestamp;

use super::failure::Failure;
use super::host_trouble::Outcomes;
use super::hosts::{HostArguments, Selected};
use super::{Global, setting};
use crate::engine::host::{Host, HostError};
use crate::engine::roster::{self, RosterFault};
use crate::engine::states::HostStates;
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
    limit: NonZeroUsize,
    now: Timestamp,
}

/// One host, reached, with what it should be.
pub struct ReachedHost<'a> {
    /// The host.
    pub host: Host<'a>,
    /// What it is.
    pub facts: Facts,
    /// Its resources, in the order to run.
    pub compiled: Vec<Compiled>,
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
    /// Does `work` on every host with what it should be.
    pub async fn each<T>(
        &self,
        work: impl AsyncFn(ReachedHost<'_>) -> Result<Result<T, Vec<RosterFault>>, HostError>,
    ) -> Outcomes<T> {
        let setting = roster::Setting {
            library: &self.library,
            states: &self.states,
            cluster: &self.selected.cluster,
            hosts: &self.selected.hosts,
        };
        self.selected
            .each(self.limit, async |named, host| {
                let facts = host.facts().await?;
                match roster::compiled(setting, named, &facts) {
                    Ok(compiled) => work(ReachedHost { host, facts, compiled }).await,
                    Err(faults) => Ok(Err(faults)),
                }
            })
            .await
    }

    /// What a host should be.
    ///
    /// # Errors
    /// Resources that their kind refuses.
    pub fn desired(&self, compiled: Vec<Compiled>) -> Result<HostStates, Vec<RosterFault>> {
        roster::desired(compiled, self.now)
    }
}
