//! What users of a cluster see of an operation on a node: few things, in their words.

use std::collections::BTreeSet;

use super::event::{Event, Milestone, NodeFailure, OperationKind};
use super::name::HostName;
use super::operation_record::OperationBegun;

/// Bytes of a message (the API accepts 1024), and of the error in it.
const MESSAGE: usize = 1024;
const ERROR: usize = 640;

/// One thing about a node, for an Event of the API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeNotice {
    /// The node.
    pub node: HostName,
    /// One word in UpperCamelCase, as programs match it.
    pub reason: &'static str,
    /// Whether it needs attention.
    pub warning: bool,
    /// At most 1024 bytes, one line.
    pub message: String,
}

/// Selects the notices of one operation among its events.
///
/// # Guarantees
/// Each reason is used once a node: at most five for a deployment, however often it retries.
#[derive(Debug)]
pub struct NodeNotices {
    operation: OperationBegun,
    used: BTreeSet<(HostName, &'static str)>,
}

impl NodeNotices {
    /// Those of this operation.
    pub fn new(operation: OperationBegun) -> Self {
        Self { operation, used: BTreeSet::new() }
    }

    /// The notice of an event; `None` for what only administrators need to know.
    pub fn take(&mut self, event: &Event) -> Option<NodeNotice> {
        let (reason, warning, message) = match event {
            Event::NodeBegun { operation, .. } => (reasons(*operation).begun, false, self.begun_message()),
            Event::NodeEnded { operation, failure: Some(failure), host, .. } => {
                let Reasons { failed, interrupted, .. } = reasons(*operation);
                let reason = if failure.interrupted { interrupted } else { failed };
                (reason, true, self.failed_message(host, failure))
            }
            Event::NodeEnded { operation, changed, elapsed, failure: None, .. } => {
                let changes = match changed {
                    0 => "nothing to change".to_owned(),
                    changed => format!("{changed} changed in {:.1} s", elapsed.as_secs_f64()),
                };
                let Reasons { completed, completion, .. } = reasons(*operation);
                (completed, false, format!("{completion}: {changes}"))
            }
            Event::Reached { milestone, .. } => {
                let (reason, message) = reached(*milestone);
                (reason, false, message.to_owned())
            }
            _ => return None,
        };
        let node = event.host()?.clone();
        let message = line(&message, MESSAGE);
        self.used.insert((node.clone(), reason)).then_some(NodeNotice { node, reason, warning, message })
    }

    fn begun_message(&self) -> String {
        let OperationBegun { id, user, .. } = &self.operation;
        format!("{user} runs `{}`, operation {id}", line(&self.operation.command_line(), ERROR))
    }

    fn failed_message(&self, node: &HostName, failure: &NodeFailure) -> String {
        let errors = &failure.errors;
        let error = errors.first().map_or("", String::as_str);
        let error = line(error.strip_prefix(&format!("{node}: ")).unwrap_or(error), ERROR);
        let more = match errors.len().saturating_sub(1) {
            0 => String::new(),
            more => format!(" (and {more} more)"),
        };
        let show = format!("`metalform operations show {}` shows all", self.operation.id);
        let hint = failure.hints.first().map(|hint| format!("{hint}; ")).unwrap_or_default();
        format!("{error}{more}; {hint}{show}")
    }
}

/// The reasons of the notices of an operation, and the message of its completion.
struct Reasons {
    begun: &'static str,
    completed: &'static str,
    failed: &'static str,
    interrupted: &'static str,
    completion: &'static str,
}

fn reasons(operation: OperationKind) -> Reasons {
    match operation {
        OperationKind::Deployment => Reasons {
            begun: "DeploymentBegun",
            completed: "DeploymentCompleted",
            failed: "DeploymentFailed",
            interrupted: "DeploymentInterrupted",
            completion: "the node is deployed and verified",
        },
        OperationKind::Removal => Reasons {
            begun: "RemovalBegun",
            completed: "RemovalCompleted",
            failed: "RemovalFailed",
            interrupted: "RemovalInterrupted",
            completion: "the node has left the cluster",
        },
        OperationKind::Reset => Reasons {
            begun: "ResetBegun",
            completed: "ResetCompleted",
            failed: "ResetFailed",
            interrupted: "ResetInterrupted",
            completion: "the host is what it was before it became a node",
        },
    }
}

fn reached(milestone: Milestone) -> (&'static str, &'static str) {
    match milestone {
        Milestone::DrainBegun => {
            ("Draining", "no new pod is placed on the node; its pods are evicted within their budgets")
        }
        Milestone::EtcdMemberAdded => {
            ("EtcdMemberAdded", "the node's etcd member is a learner: it copies the data and has no vote yet")
        }
        Milestone::EtcdMemberPromoted => ("EtcdMemberPromoted", "the node's etcd member votes"),
        Milestone::EtcdMemberRemoved => ("EtcdMemberRemoved", "the node's etcd member was removed"),
    }
}

/// In one line without control characters, of at most this many bytes.
fn line(text: &str, limit: usize) -> String {
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.len() <= limit {
        return text;
    }
    let end = (0..=limit.saturating_sub(3)).rfind(|end| text.is_char_boundary(*end)).unwrap_or(0);
    format!("{}...", &text[..end])
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use jiff::Timestamp;

    use super::*;

    fn notices() -> NodeNotices {
        NodeNotices::new(OperationBegun {
            id: "20270115T080000Z-4711".to_owned(),
            time: Timestamp::UNIX_EPOCH,
            command: ["metalform", "deploy-node", "node-1"].map(str::to_owned).into(),
            user: "ada".to_owned(),
            process: 4711,
            version: "1.0.0".to_owned(),
        })
    }

    fn host() -> HostName {
        "node-1".parse().unwrap()
    }

    fn ended(operation: OperationKind, changed: usize, failure: Option<NodeFailure>) -> Event {
        let elapsed = Duration::from_millis(61_240);
        Event::NodeEnded { host: host(), operation, changed, elapsed, failure }
    }

    fn failure(interrupted: bool, errors: &[&str], hints: &[&str]) -> Option<NodeFailure> {
        let owned = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect();
        Some(NodeFailure { interrupted, errors: owned(errors), hints: owned(hints) })
    }

    #[test]
    fn an_event_is_what_a_user_of_the_cluster_understands_or_nothing() {
        use OperationKind::{Deployment, Removal, Reset};
        let begun = |operation| Event::NodeBegun { host: host(), operation };
        let reached = |milestone| Event::Reached { host: host(), milestone };
        let phase = "Base system".to_owned();
        let events = [
            Event::RunBegun { hosts: 3 },
            Event::PhaseBegun { host: host(), phase },
            Event::Acted { host: host(), action: "cordon the node".to_owned() },
            begun(Deployment),
            reached(Milestone::EtcdMemberAdded),
            reached(Milestone::EtcdMemberPromoted),
            ended(Deployment, 46, None),
            begun(Removal),
            reached(Milestone::DrainBegun),
            reached(Milestone::EtcdMemberRemoved),
            ended(Removal, 12, None),
            begun(Reset),
            ended(Reset, 0, None),
            ended(
                Deployment,
                3,
                failure(false, &["node-1: no SSH connection"], &["`metalform node check node-1` tests it"]),
            ),
            ended(Removal, 0, failure(false, &["a", "b\tc", "c"], &[])),
            ended(
                Reset,
                0,
                failure(true, &["node-1: interrupted"], &["run the same command again; it resumes"]),
            ),
        ];
        let mut notices = notices();
        let lines: Vec<String> = events
            .iter()
            .filter_map(|event| notices.take(event))
            .map(|NodeNotice { node, reason, warning, message }| {
                format!("{node} {} {reason}: {message}", if warning { "Warning" } else { "Normal" })
            })
            .collect();
        insta::assert_snapshot!(lines.join("\n"), @"
        node-1 Normal DeploymentBegun: ada runs `metalform deploy-node node-1`, operation 20270115T080000Z-4711
        node-1 Normal EtcdMemberAdded: the node's etcd member is a learner: it copies the data and has no vote yet
        node-1 Normal EtcdMemberPromoted: the node's etcd member votes
        node-1 Normal DeploymentCompleted: the node is deployed and verified: 46 changed in 61.2 s
        node-1 Normal RemovalBegun: ada runs `metalform deploy-node node-1`, operation 20270115T080000Z-4711
        node-1 Normal Draining: no new pod is placed on the node; its pods are evicted within their budgets
        node-1 Normal EtcdMemberRemoved: the node's etcd member was removed
        node-1 Normal RemovalCompleted: the node has left the cluster: 12 changed in 61.2 s
        node-1 Normal ResetBegun: ada runs `metalform deploy-node node-1`, operation 20270115T080000Z-4711
        node-1 Normal ResetCompleted: the host is what it was before it became a node: nothing to change
        node-1 Warning DeploymentFailed: no SSH connection; `metalform node check node-1` tests it; `metalform operations show 20270115T080000Z-4711` shows all
        node-1 Warning RemovalFailed: a (and 2 more); `metalform operations show 20270115T080000Z-4711` shows all
        node-1 Warning ResetInterrupted: interrupted; run the same command again; it resumes; `metalform operations show 20270115T080000Z-4711` shows all
        ");
    }

    #[test]
    fn a_reason_is_used_once_a_node_and_a_message_fits_into_an_event() {
        let mut notices = notices();
        let begun = |host: &str| Event::NodeBegun {
            host: host.parse().unwrap(),
            operation: OperationKind::Deployment,
        };
        assert!(notices.take(&begun("node-1")).is_some());
        assert_eq!(notices.take(&begun("node-1")), None);
        assert!(notices.take(&begun("node-2")).is_some());
        let long = "é\n".repeat(2000);
        let notice =
            notices.take(&ended(OperationKind::Deployment, 0, failure(false, &[&long], &[&long]))).unwrap();
        assert!(notice.message.len() <= 1024 && notice.message.ends_with("..."), "{}", notice.message.len());
        assert!(!notice.message.contains('\n'));
    }
}
