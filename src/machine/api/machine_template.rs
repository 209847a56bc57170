//! What Machines of a MachineSet have in common.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::machine::MachineSpec;
use super::machine_metadata::MachineMetadata;

/// The template of a Machine. Any change of it replaces every node of a MachineDeployment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachineTemplate {
    /// Labels and annotations of the Machines; the labels are added to the Nodes too.
    pub metadata: MachineMetadata,
    /// The specification of the Machines.
    pub spec: MachineSpec,
}
