//! How what a deployment would do now differs from what was foreseen when its plan was saved.

use std::collections::BTreeSet;

use super::foreseen_deployment::ForeseenDeployment;
use super::foreseen_node::{ForeseenAction, ForeseenNode, ForeseenPhase, ManifestPart};
use super::membership_steps::MembershipStep;
use crate::model::name::HostName;

/// One difference, on one line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DeploymentDrift {
    /// A Node was created, or selected otherwise.
    #[error("{0}: selected now, but not when the plan was made")]
    Selected(HostName),
    /// A Node was deleted.
    #[error("{0}: in the plan, but no longer selected")]
    NotSelected(HostName),
    /// Of one node.
    #[error("{node}: {drift}")]
    Node {
        /// The node.
        node: HostName,
        /// What differs.
        drift: NodeDrift,
    },
    /// Voters changed, or will change otherwise.
    #[error("etcd voters: {} now, but {} in the plan", sentence(now), sentence(planned))]
    Membership {
        /// In the plan.
        planned: Vec<MembershipStep>,
        /// Now.
        now: Vec<MembershipStep>,
    },
}

/// One difference of a node.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NodeDrift {
    /// The manifest was changed.
    #[error("{0} of the Node differ from those in the plan")]
    Manifest(ManifestPart),
    /// Another machine has this name, or the host was reinstalled.
    #[error("this is not the machine that the plan was made for")]
    OtherMachine,
    /// The host, or a bastion, has another key.
    #[error("host key of {address} is {found}, but {planned} in the plan")]
    HostKey {
        /// Of the machine.
        address: String,
        /// Algorithm and fingerprint.
        found: String,
        /// Algorithm and fingerprint.
        planned: String,
    },
    /// An action that was not foreseen.
    #[error("{phase}: {action}: required now, but not in the plan")]
    NewAction {
        /// The phase.
        phase: String,
        /// A sentence.
        action: String,
    },
    /// An action that was foreseen.
    #[error("{phase}: {action}: in the plan, but not required any more")]
    NoAction {
        /// The phase.
        phase: String,
        /// A sentence.
        action: String,
    },
    /// The same actions in another order.
    #[error("{0}: the order of actions differs from the plan")]
    Reordered(String),
    /// A resource that was not to be changed.
    #[error("{phase}: {resource} requires a change that is not in the plan")]
    NewChange {
        /// The phase.
        phase: String,
        /// `kind:name`.
        resource: String,
    },
    /// A resource that was to be changed.
    #[error("{phase}: {resource} requires no change any more, but the plan changes it")]
    NoChange {
        /// The phase.
        phase: String,
        /// `kind:name`.
        resource: String,
    },
    /// A resource that was to be changed otherwise.
    #[error("{phase}: {resource} requires another change than the plan has")]
    OtherChange {
        /// The phase.
        phase: String,
        /// `kind:name`.
        resource: String,
    },
    /// Foresight ends elsewhere.
    #[error("{phase}: what cannot be foreseen differs from the plan: {}", if now.is_empty() { "nothing any more" } else { now })]
    Unforeseen {
        /// The phase.
        phase: String,
        /// Why nothing is known of what comes after; empty where it is known.
        now: String,
    },
}

fn sentence(steps: &[MembershipStep]) -> String {
    if steps.is_empty() {
        return "no change".to_owned();
    }
    let step = |step: &MembershipStep| {
        let verb = if step.voters_after > step.voters_before { "joins" } else { "leaves" };
        format!("{} {verb} ({} -> {})", step.node, step.voters_before, step.voters_after)
    };
    steps.iter().map(step).collect::<Vec<_>>().join(", ")
}

/// Every difference; none where the plan is what would be done now. A node that is selected but has no plan now is not
/// compared: its failure is the caller's to report.
pub fn drift(saved: &ForeseenDeployment, now: &ForeseenDeployment) -> Vec<DeploymentDrift> {
    let others = |these: &BTreeSet<HostName>, those| these.difference(those).cloned().collect::<Vec<_>>();
    let new = others(&now.selected, &saved.selected).into_iter().map(DeploymentDrift::Selected);
    let gone = others(&saved.selected, &now.selected).into_iter().map(DeploymentDrift::NotSelected);
    let mut found: Vec<DeploymentDrift> = new.chain(gone).collect();
    for (node, planned) in &saved.nodes {
        let drifts = now.nodes.get(node).map(|now| node_drift(planned, now)).unwrap_or_default();
        found.extend(drifts.into_iter().map(|drift| DeploymentDrift::Node { node: node.clone(), drift }));
    }
    // Of a part of the nodes there are other steps.
    if saved.nodes.len() == now.nodes.len() && saved.steps != now.steps {
        let (planned, now) = (saved.steps.clone(), now.steps.clone());
        found.push(DeploymentDrift::Membership { planned, now });
    }
    found
}

/// What a node does is not compared where it is another one: everything would differ.
fn node_drift(saved: &ForeseenNode, now: &ForeseenNode) -> Vec<NodeDrift> {
    let parts = saved.manifest.iter().filter(|(part, planned)| now.manifest.get(part) != Some(planned));
    let mut found: Vec<NodeDrift> = parts.map(|(part, _)| NodeDrift::Manifest(*part)).collect();
    if saved.machine != now.machine {
        found.push(NodeDrift::OtherMachine);
    }
    for (address, planned) in &saved.host_keys {
        if let Some(key) = now.host_keys.get(address).filter(|found| *found != planned) {
            let (address, found_key, planned) = (address.clone(), key.clone(), planned.clone());
            found.push(NodeDrift::HostKey { address, found: found_key, planned });
        }
    }
    if !found.is_empty() {
        return found;
    }
    let new = now.phases.iter().filter(|one| saved.phases.iter().all(|planned| planned.phase != one.phase));
    for title in saved.phases.iter().chain(new).map(|phase| &phase.phase) {
        found.extend(phase_drift(&saved.phase(title), &now.phase(title)));
    }
    found
}

fn phase_drift(saved: &ForeseenPhase, now: &ForeseenPhase) -> Vec<NodeDrift> {
    let phase = || saved.phase.clone();
    let sentences = |of: &ForeseenPhase| of.actions.iter().map(|one| one.action.clone()).collect::<Vec<_>>();
    let (planned, required) = (sentences(saved), sentences(now));
    let new = required.iter().filter(|action| !planned.contains(action)).cloned();
    let gone = planned.iter().filter(|action| !required.contains(action)).cloned();
    let new = new.map(|action| NodeDrift::NewAction { phase: phase(), action });
    let gone = gone.map(|action| NodeDrift::NoAction { phase: phase(), action });
    let mut found: Vec<NodeDrift> = new.chain(gone).collect();
    if found.is_empty() && planned != required {
        found.push(NodeDrift::Reordered(phase()));
    }
    for planned in &saved.actions {
        if let Some(now) = now.actions.iter().find(|now| now.action == planned.action) {
            found.extend(action_drift(&saved.phase, planned, now));
        }
    }
    if saved.unforeseen != now.unforeseen {
        found.push(NodeDrift::Unforeseen { phase: phase(), now: now.unforeseen.join("; ") });
    }
    found
}

fn action_drift(phase: &str, saved: &ForeseenAction, now: &ForeseenAction) -> Vec<NodeDrift> {
    let ids: BTreeSet<&String> = saved.changes.keys().chain(now.changes.keys()).collect();
    let differs = |id: &String| {
        let (phase, resource) = (phase.to_owned(), id.clone());
        match (saved.changes.get(id), now.changes.get(id)) {
            (None, Some(_)) => Some(NodeDrift::NewChange { phase, resource }),
            (Some(_), None) => Some(NodeDrift::NoChange { phase, resource }),
            (planned, now) if planned != now => Some(NodeDrift::OtherChange { phase, resource }),
            _ => None,
        }
    };
    ids.into_iter().filter_map(differs).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::engine::saved_plan::key::{Digest, Key, SALT};

    fn digest(of: &str) -> Digest {
        Key::new(&[7; SALT]).digest(of)
    }

    fn name(text: &str) -> HostName {
        text.parse().unwrap()
    }

    fn action(sentence: &str, changes: &[(&str, &str)]) -> ForeseenAction {
        let changes = changes.iter().map(|(id, change)| ((*id).to_owned(), digest(change))).collect();
        ForeseenAction { action: sentence.to_owned(), changes }
    }

    fn phase(title: &str, actions: Vec<ForeseenAction>) -> ForeseenPhase {
        ForeseenPhase { phase: title.to_owned(), actions, unforeseen: Vec::new() }
    }

    fn joins(node: &str, voters: usize) -> MembershipStep {
        MembershipStep {
            node: name(node),
            voters_before: voters,
            voters_after: voters + 1,
            quorum_before: 2,
            quorum_after: 2,
        }
    }

    /// One node with something to do, and one that could not be planned.
    fn planned() -> ForeseenDeployment {
        let base = [action("record", &[]), action("apply base", &[("file:/a", "a"), ("file:/b", "b")])];
        let etcd = [action("add a learner", &[])];
        let node = ForeseenNode {
            manifest: [(ManifestPart::Roles, digest("etcd")), (ManifestPart::Taints, digest(""))].into(),
            machine: digest("machine"),
            host_keys: [("192.0.2.2:22".to_owned(), "ssh-ed25519 SHA256:a".to_owned())].into(),
            phases: vec![phase("Base", base.to_vec()), phase("etcd", etcd.to_vec())],
        };
        ForeseenDeployment {
            selected: ["away", "node"].map(name).into(),
            nodes: BTreeMap::from([(name("node"), node)]),
            steps: vec![joins("node", 3)],
        }
    }

    type Edit = fn(&mut ForeseenDeployment, &mut ForeseenNode);

    #[test]
    fn every_difference_is_one_line() {
        let table: &[(Edit, &[&str])] = &[
            (|_, _| {}, &[]),
            (
                |all, _| all.selected = ["node", "new"].map(name).into(),
                &[
                    "new: selected now, but not when the plan was made",
                    "away: in the plan, but no longer selected",
                ],
            ),
            (
                // What follows from other roles is not listed.
                |_, node| {
                    node.manifest.insert(ManifestPart::Roles, digest("infra"));
                    node.phases.clear();
                },
                &["node: roles of the Node differ from those in the plan"],
            ),
            (
                |_, node| node.machine = digest("other"),
                &["node: this is not the machine that the plan was made for"],
            ),
            (
                |_, node| {
                    node.host_keys.insert("192.0.2.2:22".into(), "ssh-ed25519 SHA256:b".into());
                },
                &[
                    "node: host key of 192.0.2.2:22 is ssh-ed25519 SHA256:b, but ssh-ed25519 SHA256:a in the plan",
                ],
            ),
            (
                |_, node| {
                    node.phases[0].actions[1] =
                        action("apply base", &[("file:/b", "other"), ("file:/c", "c")]);
                },
                &[
                    "node: Base: file:/a requires no change any more, but the plan changes it",
                    "node: Base: file:/b requires another change than the plan has",
                    "node: Base: file:/c requires a change that is not in the plan",
                ],
            ),
            (
                |_, node| {
                    node.phases.remove(1);
                    node.phases.push(phase("Proxies", vec![action("apply proxy", &[("file:/d", "d")])]));
                },
                &[
                    "node: etcd: add a learner: in the plan, but not required any more",
                    "node: Proxies: apply proxy: required now, but not in the plan",
                ],
            ),
            (
                |_, node| node.phases[0].actions.reverse(),
                &["node: Base: the order of actions differs from the plan"],
            ),
            (
                |_, node| node.phases[1].unforeseen = vec!["wait for etcd".to_owned()],
                &["node: etcd: what cannot be foreseen differs from the plan: wait for etcd"],
            ),
            (
                |all, _| all.steps = vec![joins("node", 4)],
                &["etcd voters: node joins (4 -> 5) now, but node joins (3 -> 4) in the plan"],
            ),
            (
                |all, _| all.steps.clear(),
                &["etcd voters: no change now, but node joins (3 -> 4) in the plan"],
            ),
        ];
        for (number, (edit, expected)) in table.iter().enumerate() {
            let mut now = planned();
            let mut node = now.nodes[&name("node")].clone();
            edit(&mut now, &mut node);
            now.nodes.insert(name("node"), node);
            let found: Vec<String> = drift(&planned(), &now).iter().map(ToString::to_string).collect();
            assert_eq!(found, *expected, "case {number}");
        }
    }

    #[test]
    fn a_node_without_a_plan_now_is_not_compared() {
        let now = ForeseenDeployment { nodes: BTreeMap::new(), steps: Vec::new(), ..planned() };
        assert_eq!(drift(&planned(), &now), []);
    }
}
