//! What a dry run foresees for one node, for comparing it with a later one: names and digests, no content.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize};

use super::operation_failure::blocker_lines;
use crate::engine::saved_plan::change;
use crate::engine::saved_plan::key::{Digest, Key};
use crate::model::name::HostName;
use crate::model::node::NodeSpec;
use crate::operation::dry_run::{PhasePreview, PlannedAction, Preview, Unforeseen};
use crate::operation::effect::Action;
use crate::resource::contract::change::Verdict;
use crate::transport::host_keys::AcceptedHostKey;

/// What a dry run foresees for one node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ForeseenNode {
    /// What metalform reads of the Node.
    pub manifest: BTreeMap<ManifestPart, Digest>,
    /// Of the host's machine id, which is confidential (machine-id(5)).
    pub machine: Digest,
    /// Algorithm and fingerprint of the host's key and of those of its bastions, by address and port. None of the machine
    /// that metalform runs on.
    pub host_keys: BTreeMap<String, String>,
    /// The phases that have something to do, in order.
    pub phases: Vec<ForeseenPhase>,
}

/// A part of a Node's manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ManifestPart {
    /// Labels of roles.
    Roles,
    /// The label of the version.
    Version,
    /// Taints, in any order.
    Taints,
    /// Annotations of SSH.
    Ssh,
    /// Annotations of recorded addresses.
    Addresses,
}

/// What one phase would do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ForeseenPhase {
    /// Its title.
    pub phase: String,
    /// Those with a lasting effect, in order.
    pub actions: Vec<ForeseenAction>,
    /// Why nothing is known of what comes after them: it depends on the results, or on other machines.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unforeseen: Vec<String>,
}

/// One action.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ForeseenAction {
    /// A sentence.
    pub action: String,
    /// By `kind:name` of the resource, a digest of its differences and steps.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub changes: BTreeMap<String, Digest>,
}

impl fmt::Display for ManifestPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Roles => "roles",
            Self::Version => "version",
            Self::Taints => "taints",
            Self::Ssh => "SSH settings",
            Self::Addresses => "recorded addresses",
        })
    }
}

impl ForeseenNode {
    /// Of a dry run of this manifest; `host_keys` are those that it accepted.
    pub fn of(spec: &NodeSpec, preview: &Preview, host_keys: &[AcceptedHostKey], key: &Key) -> Self {
        let keys = host_keys.iter().map(|accepted| (accepted.address.clone(), accepted.key.clone()));
        let phases = preview.phases.iter().map(|phase| foreseen(&spec.name, phase, key));
        Self {
            manifest: manifest(spec, key),
            machine: key.digest(&preview.machine_id),
            host_keys: keys.collect(),
            phases: phases
                .filter(|phase| !phase.actions.is_empty() || !phase.unforeseen.is_empty())
                .collect(),
        }
    }

    /// The phase with this title; one that has nothing to do where it is not among them.
    pub fn phase(&self, title: &str) -> ForeseenPhase {
        let found = self.phases.iter().find(|phase| phase.phase == title).cloned();
        found.unwrap_or_else(|| ForeseenPhase {
            phase: title.to_owned(),
            actions: Vec::new(),
            unforeseen: Vec::new(),
        })
    }
}

fn manifest(spec: &NodeSpec, key: &Key) -> BTreeMap<ManifestPart, Digest> {
    let taints: BTreeSet<String> = spec.taints.iter().map(ToString::to_string).collect();
    BTreeMap::from([
        (ManifestPart::Roles, key.digest(&spec.roles)),
        (ManifestPart::Version, key.digest(&spec.version)),
        (ManifestPart::Taints, key.digest(&taints)),
        (ManifestPart::Ssh, key.digest(&spec.ssh)),
        (ManifestPart::Addresses, key.digest(&(spec.control_plane_ip, spec.workload_plane_ip))),
    ])
}

fn foreseen(node: &HostName, phase: &PhasePreview, key: &Key) -> ForeseenPhase {
    let lasting = phase.actions.iter().filter(|planned| planned.action.lasts());
    ForeseenPhase {
        phase: phase.title.to_owned(),
        actions: lasting.map(|planned| action(planned, key)).collect(),
        unforeseen: phase.end.iter().flat_map(|end| unforeseen(node, end)).collect(),
    }
}

/// Without what was seen at the moment.
fn unforeseen(node: &HostName, end: &Unforeseen) -> Vec<String> {
    match end {
        Unforeseen::Wait { condition, .. } => vec![format!("wait for {condition}")],
        Unforeseen::Unseen { look, .. } => vec![format!("the result of: {look}")],
        Unforeseen::Blocked(blocker) => blocker_lines(node, blocker),
    }
}

fn action(planned: &PlannedAction, key: &Key) -> ForeseenAction {
    let verdicts: BTreeMap<String, Verdict> = match &planned.action {
        Action::Apply(_, plan) | Action::UpdateProxy(_, plan) => plan.0.plan().verdicts.into_iter().collect(),
        _ => BTreeMap::new(),
    };
    let changes = planned.changes.iter().map(|planned| {
        let digest = verdicts.get(&planned.id).and_then(|verdict| change(verdict, key));
        let of_others = || key.digest(&(&planned.differences, &planned.files));
        (planned.id.clone(), digest.unwrap_or_else(of_others))
    });
    ForeseenAction { action: planned.action.sentence(), changes: changes.collect() }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::engine::host::Looked;
    use crate::engine::saved_plan::key::SALT;
    use crate::engine::{Desired, Item};
    use crate::model::node::{NodeManifest, Taint};
    use crate::model::role::Role;
    use crate::operation::host_access::{HostPlan, SharedDesired};
    use crate::operation::layer::Layer;
    use crate::resource::contract::change::{Change, Difference};
    use crate::resource::contract::probe::Observed;
    use crate::resource::contract::step::Step;

    /// A file whose content is secret: only the steps differ.
    struct Secret(&'static str);

    impl Desired for Secret {
        fn items(&self) -> Vec<Item> {
            Vec::new()
        }

        fn verdicts(&self, _: &Observed) -> Vec<(String, Verdict)> {
            let differences = vec![Difference::Field { name: "state".into(), before: None, after: None }];
            let steps = vec![Step::Run { script: self.0.to_owned() }];
            vec![("file:/etc/secret".to_owned(), Verdict::Change(Change { differences, steps }))]
        }
    }

    type Edit = fn(&mut NodeSpec);

    fn foreseen(secret: &'static str, edit: Edit) -> ForeseenNode {
        let annotations = [("metalform.dev/ssh-host".to_owned(), "192.0.2.1".to_owned())].into();
        let mut manifest = NodeManifest::default();
        (manifest.metadata.name, manifest.metadata.annotations) = (Some("node".to_owned()), annotations);
        let mut spec = NodeSpec::parse(&manifest).unwrap();
        edit(&mut spec);
        let desired: SharedDesired = Arc::new(Secret(secret));
        let plan = Arc::new(HostPlan(Looked { desired, facts: None, observed: Observed::default() }));
        let changes = plan.changes();
        let apply = PlannedAction { action: Action::Apply(Layer::Base, plan), changes };
        let token = PlannedAction { action: Action::CreateJoinToken, changes: Vec::new() };
        let wait = Unforeseen::Wait { condition: "etcd".to_owned(), last_seen: "at 09:00".to_owned() };
        let phases = vec![
            PhasePreview { title: "Base system", actions: vec![token, apply], end: None },
            PhasePreview { title: "Preflight", actions: Vec::new(), end: None },
            PhasePreview { title: "etcd voter", actions: Vec::new(), end: Some(wait) },
        ];
        let preview =
            Preview { phases, machine_id: Some("0123456789abcdef".to_owned()), ..Preview::default() };
        let accepted =
            [AcceptedHostKey { address: "192.0.2.1:22".into(), key: "SHA256:a".into(), new: true }];
        ForeseenNode::of(&spec, &preview, &accepted, &Key::new(&[7; SALT]))
    }

    #[test]
    fn what_lasts_is_kept_without_its_content() {
        let node = foreseen("hunter2", |_| {});
        let text = serde_json::to_string(&node).unwrap();
        assert!(!text.contains("hunter2") && !text.contains("0123456789abcdef"), "{text}");
        assert_eq!(serde_json::from_str::<ForeseenNode>(&text).unwrap(), node);
        let lines = node.phases.iter().flat_map(|phase| {
            let actions = phase.actions.iter().map(|one| {
                let ids: Vec<&str> = one.changes.keys().map(String::as_str).collect();
                format!("{}: {} {ids:?}", phase.phase, one.action)
            });
            actions.chain(phase.unforeseen.iter().map(|why| format!("{}: {why}", phase.phase)))
        });
        let expected = ["Base system: apply base system [\"file:/etc/secret\"]", "etcd voter: wait for etcd"];
        assert_eq!(lines.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_secret_that_differs_is_another_change() {
        assert_eq!(foreseen("one", |_| {}), foreseen("one", |_| {}));
        assert_ne!(foreseen("one", |_| {}).phases, foreseen("other", |_| {}).phases);
    }

    #[test]
    fn each_part_of_a_manifest_has_a_digest_of_its_own() {
        let table: [(Edit, &[ManifestPart]); 6] = [
            (|spec| spec.roles = [Role::Etcd].into(), &[ManifestPart::Roles]),
            (|spec| spec.version = Some("1.34.0".to_owned()), &[ManifestPart::Version]),
            (|spec| spec.ssh.port = 2222, &[ManifestPart::Ssh]),
            (|spec| spec.control_plane_ip = Some([192, 0, 2, 1].into()), &[ManifestPart::Addresses]),
            (
                |spec| {
                    let (key, effect) = ("a".to_owned(), "NoSchedule".to_owned());
                    spec.taints = vec![Taint { key, value: String::new(), effect }];
                },
                &[ManifestPart::Taints],
            ),
            // A template that reads other labels has another result: a change of a resource.
            (|spec| drop(spec.labels.insert("team".to_owned(), "a".to_owned())), &[]),
        ];
        let before = foreseen("one", |_| {}).manifest;
        for (number, (edit, expected)) in table.into_iter().enumerate() {
            let now = foreseen("one", edit).manifest;
            let differing: Vec<ManifestPart> =
                now.iter().filter(|(part, digest)| before[part] != **digest).map(|(part, _)| *part).collect();
            assert_eq!(differing, expected, "case {number}");
        }
    }
}
