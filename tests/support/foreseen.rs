//! What dry runs foresee, kept and compared as for `deploy-node --plan`.

use std::collections::BTreeMap;

use metalform::engine::saved_plan::key::{Key, SALT};
use metalform::model::node::NodeSpec;
use metalform::operation::dry_run::Preview;
use metalform::service::cluster_changes::ClusterChanges;
use metalform::service::deploy::DeployReport;
use metalform::service::deployment_drift::{DeploymentDrift, NodeDrift, drift};
use metalform::service::foreseen_deployment::ForeseenDeployment;
use metalform::service::membership_steps::membership_steps;
use metalform::service::operation_report::{NodeReport, NodeWork};

/// The plan of one node.
pub fn deployment(spec: &NodeSpec, preview: &Preview) -> ForeseenDeployment {
    let work = NodeWork::Planned(preview.clone());
    let nodes = vec![NodeReport { name: spec.name.clone(), work, failure: None }];
    let changes = ClusterChanges { steps: membership_steps(&nodes), ..ClusterChanges::default() };
    let report = DeployReport { nodes, changes, host_keys: BTreeMap::new() };
    let selected = [spec.name.clone()].into();
    ForeseenDeployment::of(selected, std::slice::from_ref(spec), &report, &Key::new(&[7; SALT]))
}

/// What a plan would do, a line for each action.
pub fn planned(foreseen: &ForeseenDeployment) -> Vec<String> {
    let phases = foreseen.nodes.values().flat_map(|node| &node.phases);
    let mut lines: Vec<String> = phases
        .flat_map(|phase| {
            let actions = phase.actions.iter().map(|one| format!("{}: {}", phase.phase, one.action));
            actions.chain(phase.unforeseen.iter().map(|why| format!("{}: {why}", phase.phase)))
        })
        .collect();
    if lines.is_empty() {
        lines.push("nothing to change".to_owned());
    }
    lines
}

/// Why a saved plan is not carried out; the model and the real site have other resources.
pub fn refused(saved: &ForeseenDeployment, now: &ForeseenDeployment) -> Vec<String> {
    let mut lines: Vec<String> = drift(saved, now)
        .into_iter()
        .map(|drift| match drift {
            DeploymentDrift::Node {
                node,
                drift:
                    NodeDrift::NewChange { phase, .. }
                    | NodeDrift::NoChange { phase, .. }
                    | NodeDrift::OtherChange { phase, .. },
            } => format!("refused: {node}: {phase}: other changes"),
            other => format!("refused: {other}"),
        })
        .collect();
    lines.dedup();
    lines
}
