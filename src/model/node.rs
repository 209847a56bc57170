//! What a `v1/Node` manifest asks for.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use k8s_openapi::api::core::v1::Node;
use schemars::JsonSchema;
use serde::Serialize;

use super::name::{HostName, NameError};
use super::role::{ROLE_LABEL_PREFIX, Role, RoleError};
use super::ssh_syntax::SshSyntaxError;
use super::ssh_target::SshTarget;

mod settings;

use settings::Settings;

/// Our prefix of labels and annotations.
pub const PREFIX: &str = "metalform.dev/";
/// Taints that Kubernetes itself puts on a Node and takes away again, such as `not-ready`: no part of what the
/// manifest asks for (kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration).
const PASSING_TAINTS: &str = "node.kubernetes.io/";
/// MetalK8s' prefix, read as an alias of ours.
pub const ALIAS_PREFIX: &str = "metalk8s.scality.com/";

/// A machine to be a node, as its manifest has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NodeSpec {
    /// `metadata.name`.
    pub name: HostName,
    /// Never empty.
    pub roles: BTreeSet<Role>,
    /// Label `metalform.dev/version`: the release that the node is to run.
    pub version: Option<String>,
    /// How it is reached. Its host key is pinned by the manifest, or must be known.
    pub ssh: SshTarget,
    /// In the manifest's order.
    pub taints: Vec<Taint>,
    /// All of the manifest's labels.
    pub labels: BTreeMap<String, String>,
}

/// A taint. Displays as kubectl writes it: `key=value:effect`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Taint {
    /// `node-role.kubernetes.io/infra`.
    pub key: String,
    /// Empty where there is none.
    pub value: String,
    /// `NoSchedule`, `PreferNoSchedule` or `NoExecute`.
    pub effect: String,
}

/// Everything that is wrong with a manifest; never empty. Displays as one line each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeProblems {
    /// `metadata.name`, as far as there is one.
    pub node: String,
    /// In the order of the fields of [`NodeSpec`].
    pub problems: Vec<NodeProblem>,
}

/// One thing that is wrong with a manifest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NodeProblem {
    /// There is no `metadata.name`.
    #[error("metadata.name is missing")]
    NoName,
    /// It is not a host name.
    #[error(transparent)]
    Name(#[from] NameError),
    /// A label under `node-role.kubernetes.io/` that names no role of ours.
    #[error("label {label}: {source}")]
    Role {
        /// The label.
        label: String,
        /// Why.
        source: RoleError,
    },
    /// A role label whose value might mean that the role is not wanted.
    #[error(
        "label {label} has the value {value:?}; write \"\", or remove the label if the role is not wanted"
    )]
    RoleValue {
        /// The label.
        label: String,
        /// Its value.
        value: String,
    },
    /// An annotation without which the host cannot be reached.
    #[error("annotation {annotation} is missing")]
    Missing {
        /// Its name.
        annotation: String,
    },
    /// Our key and its alias are both given, and differ.
    #[error("{ours} is {value:?}, but {alias} is {other:?}; keep one of them")]
    Conflict {
        /// Our key.
        ours: String,
        /// Its value.
        value: String,
        /// The alias.
        alias: String,
        /// Its value.
        other: String,
    },
    /// A value that is not what it should be.
    #[error("annotation {annotation} is {value:?}; {expected} is expected")]
    Value {
        /// Its name.
        annotation: String,
        /// Its value.
        value: String,
        /// What it should be: `true or false`.
        expected: &'static str,
    },
    /// A value that cannot be read.
    #[error("annotation {annotation}: {source}")]
    Ssh {
        /// Its name.
        annotation: String,
        /// Why.
        source: SshSyntaxError,
    },
    /// An annotation that starts like ours but is none.
    #[error("annotation {annotation} is not known; known are {known}")]
    Unknown {
        /// Its name.
        annotation: String,
        /// Those that would be, comma separated.
        known: String,
    },
    /// A taint's effect that Kubernetes does not know.
    #[error("taint {taint}: its effect is not NoSchedule, PreferNoSchedule or NoExecute")]
    TaintEffect {
        /// As kubectl writes it.
        taint: String,
    },
}

impl NodeSpec {
    /// Reads a manifest, or a live Node object.
    ///
    /// # Errors
    /// Every problem at once.
    pub fn from_node(node: &Node) -> Result<Self, NodeProblems> {
        let mut problems = Vec::new();
        let none = BTreeMap::new();
        let labels = node.metadata.labels.as_ref().unwrap_or(&none);

        let name = name(node, &mut problems);
        let roles = roles(labels, &mut problems);
        let version =
            Settings::new(labels).get("version", &mut problems).map(|(_, version)| version.to_owned());
        let annotations = node.metadata.annotations.as_ref().unwrap_or(&none);
        let ssh = settings::ssh_target(annotations, &mut problems);
        let taints = taints(node, &mut problems);
        match (name, ssh) {
            (Some(name), Some(ssh)) if problems.is_empty() => {
                Ok(Self { name, roles, version, ssh, taints, labels: labels.clone() })
            }
            _ => {
                let node = node.metadata.name.clone().unwrap_or_else(|| "(without a name)".to_owned());
                Err(NodeProblems { node, problems })
            }
        }
    }
}

fn name(node: &Node, problems: &mut Vec<NodeProblem>) -> Option<HostName> {
    let Some(name) = &node.metadata.name else {
        problems.push(NodeProblem::NoName);
        return None;
    };
    name.parse().map_err(|error| problems.push(NodeProblem::Name(error))).ok()
}

/// Values other than the usual empty one are asked about, for `"false"` would give the role all the same.
fn roles(labels: &BTreeMap<String, String>, problems: &mut Vec<NodeProblem>) -> BTreeSet<Role> {
    let mut roles = BTreeSet::new();
    for (label, value) in labels {
        let Some(role) = label.strip_prefix(ROLE_LABEL_PREFIX) else { continue };
        match role.parse() {
            Err(source) => problems.push(NodeProblem::Role { label: label.clone(), source }),
            Ok(_) if !matches!(value.as_str(), "" | "true") => {
                problems.push(NodeProblem::RoleValue { label: label.clone(), value: value.clone() });
            }
            Ok(role) => {
                roles.insert(role);
            }
        }
    }
    if roles.is_empty() {
        roles.insert(Role::Node);
    }
    roles
}

fn taints(node: &Node, problems: &mut Vec<NodeProblem>) -> Vec<Taint> {
    let given = node.spec.iter().flat_map(|spec| spec.taints.iter().flatten());
    let taints: Vec<Taint> = given
        .filter(|taint| !taint.key.starts_with(PASSING_TAINTS))
        .map(|taint| Taint {
            key: taint.key.clone(),
            value: taint.value.clone().unwrap_or_default(),
            effect: taint.effect.clone(),
        })
        .collect();
    for taint in &taints {
        if !matches!(taint.effect.as_str(), "NoSchedule" | "PreferNoSchedule" | "NoExecute") {
            problems.push(NodeProblem::TaintEffect { taint: taint.to_string() });
        }
    }
    taints
}

impl std::error::Error for NodeProblems {}

impl fmt::Display for NodeProblems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.problems.iter().enumerate() {
            write!(f, "{}node {}: {problem}", if index == 0 { "" } else { "\n" }, self.node)?;
        }
        Ok(())
    }
}

impl fmt::Display for Taint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let separator = if self.value.is_empty() { "" } else { "=" };
        write!(f, "{}{separator}{}:{}", self.key, self.value, self.effect)
    }
}

#[cfg(test)]
mod tests;
