//! Arguments of `plan`, `apply` and `render`.

use clap::Args;

use super::Global;
use super::host_arguments::HostArguments;
use crate::service::states::StatesRequest;
use crate::state::StateName;

/// Which states, on which hosts.
#[derive(Debug, Args)]
pub struct StateArguments {
    /// States, applied with those that they require [default: those of each host's roles]
    #[arg(value_name = "STATE")]
    states: Vec<StateName>,
    /// Which hosts.
    #[command(flatten)]
    pub hosts: HostArguments,
}

impl StateArguments {
    /// The request.
    pub fn request(&self, global: &Global) -> StatesRequest {
        StatesRequest {
            tree: global.tree.clone(),
            states: self.states.clone(),
            hosts: self.hosts.selection(),
            limit: self.hosts.limit,
        }
    }
}
