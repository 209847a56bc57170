//! Labels, annotations and taints of the Node of a Machine.

use std::collections::{BTreeMap, BTreeSet};

use super::machine_node::MachineNode;
use crate::model::api_contract::{MACHINE_SETTINGS, MACHINE_UID, NODE_MACHINE, NOT_READY_TAINT};
use crate::model::node::Taint;

/// What a Machine gives its Node.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NodeSettings {
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    pub annotations: BTreeMap<String, String>,
    /// Taints; one of the same key and effect replaces another.
    pub taints: Vec<Taint>,
}

/// How to change a Node. Every key is ours, or was.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NodeSettingsChange {
    /// `None` removes the label.
    pub labels: BTreeMap<String, Option<String>>,
    /// `None` removes the annotation.
    pub annotations: BTreeMap<String, Option<String>>,
    /// All taints, where they change.
    pub taints: Option<Vec<Taint>>,
}

impl NodeSettingsChange {
    /// Whether nothing changes.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.annotations.is_empty() && self.taints.is_none()
    }
}

impl NodeSettings {
    /// Those of a Machine: what its template contains, and which Machine it is, for us and for cluster-autoscaler.
    pub fn of_machine(mut self, namespace: &str, name: &str, uid: &str) -> Self {
        self.labels.insert(MACHINE_UID.to_owned(), uid.to_owned());
        self.annotations.insert(NODE_MACHINE.to_owned(), format!("{namespace}/{name}"));
        self
    }

    /// What differs on a Node. `admitted`: it is ready for pods, and loses the taint that it has registered with.
    pub(super) fn change(&self, node: &MachineNode, admitted: bool) -> NodeSettingsChange {
        let recorded = node.annotations.get(MACHINE_SETTINGS).map_or("", String::as_str);
        let earlier: BTreeSet<&str> = recorded.split(',').filter(|key| !key.is_empty()).collect();
        let labels = changed(&self.labels, &node.labels, earlier_keys(&earlier, "label:"));
        let mut annotations =
            changed(&self.annotations, &node.annotations, earlier_keys(&earlier, "annotation:"));
        let record = self.record();
        if record != recorded {
            annotations.insert(MACHINE_SETTINGS.to_owned(), Some(record));
        }
        let taints = self.taints_of(node, &earlier, admitted);
        NodeSettingsChange {
            labels,
            annotations,
            taints: Some(taints).filter(|taints| *taints != node.taints),
        }
    }

    fn taints_of(&self, node: &MachineNode, earlier: &BTreeSet<&str>, admitted: bool) -> Vec<Taint> {
        let mut taints: Vec<Taint> = Vec::new();
        for present in &node.taints {
            let is_ours = earlier.contains(taint_key(present).as_str());
            match self.taints.iter().find(|taint| is_same(taint, present)) {
                Some(taint) => taints.push(taint.clone()),
                None if is_ours || (admitted && present.key == NOT_READY_TAINT) => {}
                None => taints.push(present.clone()),
            }
        }
        let missing =
            self.taints.iter().filter(|taint| !node.taints.iter().any(|present| is_same(taint, present)));
        taints.extend(missing.cloned());
        taints
    }

    /// The keys that are ours from now on.
    fn record(&self) -> String {
        let labels = self.labels.keys().map(|key| format!("label:{key}"));
        let annotations = self.annotations.keys().map(|key| format!("annotation:{key}"));
        let keys: BTreeSet<String> =
            labels.chain(annotations).chain(self.taints.iter().map(taint_key)).collect();
        keys.into_iter().collect::<Vec<_>>().join(",")
    }
}

fn changed<'a>(
    goal: &BTreeMap<String, String>,
    present: &BTreeMap<String, String>,
    earlier: impl Iterator<Item = &'a str>,
) -> BTreeMap<String, Option<String>> {
    let set = goal.iter().filter(|(key, value)| present.get(*key) != Some(*value));
    let mut change: BTreeMap<String, Option<String>> =
        set.map(|(key, value)| (key.clone(), Some(value.clone()))).collect();
    let removed = earlier.filter(|key| !goal.contains_key(*key) && present.contains_key(*key));
    change.extend(removed.map(|key| (key.to_owned(), None)));
    change
}

fn earlier_keys<'a>(earlier: &BTreeSet<&'a str>, kind: &'a str) -> impl Iterator<Item = &'a str> {
    earlier.clone().into_iter().filter_map(move |key| key.strip_prefix(kind))
}

fn taint_key(taint: &Taint) -> String {
    format!("taint:{}:{}", taint.key, taint.effect)
}

fn is_same(one: &Taint, other: &Taint) -> bool {
    one.key == other.key && one.effect == other.effect
}

#[cfg(test)]
mod tests;
