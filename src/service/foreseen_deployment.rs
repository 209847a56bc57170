//! What a dry run foresees for all nodes of a deployment.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::deploy::DeployReport;
use super::foreseen_node::{ForeseenAction, ForeseenNode};
use super::membership_steps::MembershipStep;
use super::operation_report::NodeWork;
use crate::engine::saved_plan::key::Key;
use crate::model::name::HostName;
use crate::model::node::NodeSpec;

/// What a dry run foresees for all nodes of a deployment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ForeseenDeployment {
    /// Every selected Node, also those without a plan.
    pub selected: BTreeSet<HostName>,
    /// Those whose dry run did not fail.
    pub nodes: BTreeMap<HostName, ForeseenNode>,
    /// How the voters of etcd change.
    pub steps: Vec<MembershipStep>,
}

impl ForeseenDeployment {
    /// Of the dry run of these Nodes.
    pub fn of(selected: BTreeSet<HostName>, specs: &[NodeSpec], report: &DeployReport, key: &Key) -> Self {
        let mut nodes = BTreeMap::new();
        for node in report.nodes.iter().filter(|node| node.failure.is_none()) {
            let spec = specs.iter().find(|spec| spec.name == node.name);
            if let (Some(spec), NodeWork::Planned(preview)) = (spec, &node.work) {
                let host_keys = report.host_keys.get(&node.name).map(Vec::as_slice).unwrap_or_default();
                nodes.insert(node.name.clone(), ForeseenNode::of(spec, preview, host_keys, key));
            }
        }
        Self { selected, nodes, steps: report.changes.steps.clone() }
    }

    /// What is to be done, for the record of the operation.
    pub(super) fn lines(&self) -> Vec<String> {
        let of_node = |(name, node): (&HostName, &ForeseenNode)| {
            let actions = node.phases.iter().flat_map(|phase| &phase.actions);
            let line = |action: &ForeseenAction| match action.changes.len() {
                0 => format!("{name}: {}", action.action),
                resources => format!("{name}: {} ({resources} changes)", action.action),
            };
            actions.map(line).collect::<Vec<_>>()
        };
        self.nodes.iter().flat_map(of_node).chain(self.steps.iter().map(ToString::to_string)).collect()
    }
}
