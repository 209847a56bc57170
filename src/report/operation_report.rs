//! The outcome of an operation on each node, as text and for JSON.

use serde::Serialize;

use super::diff::{self, Paint, Shown};
use super::document::rounded_seconds;
use super::{operation_table, preview};
use crate::model::event::HostOutcome;
use crate::model::name::HostName;
use crate::operation::dry_run::PhasePreview;
use crate::operation::run::PhaseRun;
use crate::service::command_error::CommandError;
use crate::service::operation_report::{NodeReport, NodeWork};

/// One node, for JSON.
#[derive(Debug, Serialize)]
pub struct OperationRow {
    /// Its name.
    pub host: String,
    /// Of a dry run, what a run would end with.
    outcome: HostOutcome,
    /// `null` for a dry run.
    seconds: Option<f64>,
    errors: Vec<String>,
    /// In order; those of a failed run end with the ones that were begun.
    phases: Vec<PhaseRow>,
}

#[derive(Debug, Serialize)]
struct PhaseRow {
    phase: &'static str,
    /// Seconds since the beginning of the run; `null` for a dry run.
    start: Option<f64>,
    /// `null` for a dry run.
    seconds: Option<f64>,
    /// Resources and objects.
    changed: usize,
    actions: Vec<ActionRow>,
    /// Why further actions of the phase are not known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unforeseen: Vec<String>,
}

#[derive(Debug, Serialize)]
struct ActionRow {
    action: String,
    changes: Vec<ResourceRow>,
}

#[derive(Debug, Serialize)]
struct ResourceRow {
    resource: String,
    /// Only of a dry run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    differences: Vec<Shown>,
    /// Paths that a run would write or remove.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    files: Vec<String>,
}

/// A row for each node.
pub fn rows(nodes: &[NodeReport]) -> Vec<OperationRow> {
    nodes.iter().map(row).collect()
}

fn row(node: &NodeReport) -> OperationRow {
    let (seconds, phases) = match &node.work {
        NodeWork::Done(summary) => (Some(summary.elapsed), summary.phases.iter().map(done).collect()),
        NodeWork::Planned(preview) => {
            (None, preview.phases.iter().map(|phase| planned(&node.name, phase)).collect())
        }
    };
    OperationRow {
        host: node.name.to_string(),
        outcome: node.outcome(),
        seconds: seconds.map(rounded_seconds),
        errors: node.failure.as_ref().map(CommandError::errors).unwrap_or_default(),
        phases,
    }
}

fn done(phase: &PhaseRun) -> PhaseRow {
    let resource =
        |id: &String| ResourceRow { resource: id.clone(), differences: Vec::new(), files: Vec::new() };
    let actions = phase.actions.iter().map(|action| ActionRow {
        action: action.sentence.clone(),
        changes: action.resources.iter().map(resource).collect(),
    });
    PhaseRow {
        phase: phase.title,
        start: Some(rounded_seconds(phase.began)),
        seconds: Some(rounded_seconds(phase.elapsed)),
        changed: phase.changed,
        actions: actions.collect(),
        unforeseen: Vec::new(),
    }
}

fn planned(name: &HostName, phase: &PhasePreview) -> PhaseRow {
    let actions = phase.actions.iter().map(|planned| ActionRow {
        action: planned.action.sentence(),
        changes: planned
            .changes
            .iter()
            .map(|change| ResourceRow {
                resource: change.id.clone(),
                differences: diff::shown(&change.differences),
                files: change.files.clone(),
            })
            .collect(),
    });
    PhaseRow {
        phase: phase.title,
        start: None,
        seconds: None,
        changed: phase.actions.iter().map(|planned| planned.changes.len()).sum(),
        actions: actions.collect(),
        unforeseen: phase.end.iter().flat_map(|end| preview::unforeseen(name, end)).collect(),
    }
}

/// The table of phases, or for a dry run the plan, of each node that did not fail.
pub fn text(nodes: &[NodeReport], paint: Paint) -> String {
    let succeeded = nodes.iter().filter(|node| node.failure.is_none());
    succeeded
        .map(|node| match &node.work {
            NodeWork::Done(summary) => operation_table::text(node.name.as_str(), summary),
            NodeWork::Planned(planned) => preview::text(&node.name, planned, paint),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::model::resumption::ResumedBy;
    use crate::operation::driver::ActionRecord;
    use crate::operation::dry_run::{PlannedAction, Preview};
    use crate::operation::effect::Action;
    use crate::operation::run::{RunError, RunSummary};
    use crate::report::document::HostsDocument;
    use crate::service::operation_failure::OperationFailure;

    fn node(name: &str, work: NodeWork, error: Option<RunError>) -> NodeReport {
        let name: HostName = name.parse().unwrap();
        let failure = error.map(|error| OperationFailure::Run {
            node: name.clone(),
            error,
            without_host: None,
            by_manifest: false,
            resumed: ResumedBy::SameCommand,
        });
        NodeReport { name, work, failure }
    }

    fn summary() -> RunSummary {
        let action = ActionRecord {
            sentence: "apply base".to_owned(),
            resources: vec!["file:/etc/a".to_owned()],
            voters: false,
        };
        let phase = PhaseRun {
            title: "Base system",
            began: Duration::from_millis(1500),
            elapsed: Duration::from_micros(2_000_400),
            changed: 1,
            actions: vec![action],
        };
        RunSummary { phases: vec![phase], changed: 1, elapsed: Duration::from_millis(3500) }
    }

    #[test]
    fn a_failed_node_is_in_the_document_with_its_phases_and_errors() {
        let nodes = [
            node("node-1", NodeWork::Done(summary()), None),
            node("node-2", NodeWork::Done(summary()), Some(RunError::Interrupted)),
        ];
        insta::assert_json_snapshot!(HostsDocument::new("DeployNode", &rows(&nodes)), @r#"
        {
          "apiVersion": "metalform.dev/v1alpha1",
          "kind": "DeployNode",
          "hosts": [
            {
              "host": "node-1",
              "outcome": "changed",
              "seconds": 3.5,
              "errors": [],
              "phases": [
                {
                  "phase": "Base system",
                  "start": 1.5,
                  "seconds": 2.0,
                  "changed": 1,
                  "actions": [
                    {
                      "action": "apply base",
                      "changes": [
                        {
                          "resource": "file:/etc/a"
                        }
                      ]
                    }
                  ]
                }
              ]
            },
            {
              "host": "node-2",
              "outcome": "stopped",
              "seconds": 3.5,
              "errors": [
                "node-2: interrupted"
              ],
              "phases": [
                {
                  "phase": "Base system",
                  "start": 1.5,
                  "seconds": 2.0,
                  "changed": 1,
                  "actions": [
                    {
                      "action": "apply base",
                      "changes": [
                        {
                          "resource": "file:/etc/a"
                        }
                      ]
                    }
                  ]
                }
              ]
            }
          ]
        }
        "#);
        let text = text(&nodes, Paint::Plain);
        assert!(text.contains("Summary for node-1") && !text.contains("node-2"), "{text}");
    }

    #[test]
    fn a_dry_run_lists_each_file_that_would_be_created() {
        let files = ["/etc/kubernetes/pki/ca.crt", "/etc/kubernetes/pki/ca.key"].map(str::to_owned);
        let action = Action::CreateTrust(files.into());
        let changes = action.changes();
        let phase =
            PhasePreview { title: "Trust", actions: vec![PlannedAction { action, changes }], end: None };
        let nodes =
            [node("node-1", NodeWork::Planned(Preview { phases: vec![phase], ..Preview::default() }), None)];
        insta::assert_json_snapshot!(rows(&nodes), @r#"
        [
          {
            "host": "node-1",
            "outcome": "changed",
            "seconds": null,
            "errors": [],
            "phases": [
              {
                "phase": "Trust",
                "start": null,
                "seconds": null,
                "changed": 2,
                "actions": [
                  {
                    "action": "create the CAs and the certificates of this machine",
                    "changes": [
                      {
                        "resource": "file:/etc/kubernetes/pki/ca.crt",
                        "differences": [
                          {
                            "field": {
                              "name": "state",
                              "before": null,
                              "after": "created"
                            }
                          }
                        ],
                        "files": [
                          "/etc/kubernetes/pki/ca.crt"
                        ]
                      },
                      {
                        "resource": "file:/etc/kubernetes/pki/ca.key",
                        "differences": [
                          {
                            "field": {
                              "name": "state",
                              "before": null,
                              "after": "created"
                            }
                          }
                        ],
                        "files": [
                          "/etc/kubernetes/pki/ca.key"
                        ]
                      }
                    ]
                  }
                ]
              }
            ]
          }
        ]
        "#);
    }
}
