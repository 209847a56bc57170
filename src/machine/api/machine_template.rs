//! What Machines of a MachineSet have in common.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::machine::MachineSpec;
use super::machine_metadata::MachineMetadata;
use crate::model::api_contract::MACHINE_TEMPLATE_HASH;

/// The template of a Machine. Any change of it replaces every node of a MachineDeployment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachineTemplate {
    /// Labels and annotations of the Machines; the labels are added to the Nodes too.
    pub metadata: MachineMetadata,
    /// The specification of the Machines.
    pub spec: MachineSpec,
}

impl MachineTemplate {
    /// The labels of the Node: those of the template, without its hash, and its `spec.metadata`, which take precedence.
    pub fn node_labels(&self) -> BTreeMap<String, String> {
        let mut labels = self.metadata.labels.clone();
        labels.remove(MACHINE_TEMPLATE_HASH);
        labels.extend(self.spec.metadata.labels.clone());
        labels
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_has_the_labels_of_both_metadata() {
        let template: MachineTemplate = serde_saphyr::from_str(
            "{metadata: {labels: {group: a, disk: hdd, machine-template-hash: b}}, spec: {metadata: {labels: {disk: ssd}, creationTimestamp: null},
              providerSpec: {value: {}}, versions: {kubelet: 1.35.4}}}",
        )
        .unwrap();
        let labels = [("disk", "ssd"), ("group", "a")].map(|(key, value)| (key.to_owned(), value.to_owned()));
        assert_eq!(template.node_labels(), labels.into());
    }
}
