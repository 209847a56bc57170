//! The `v1/Node` manifest of a machine.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::IpAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::api_contract::{
    ALIAS_PREFIX, CONTROL_PLANE_IP, METALK8S_VERSION, MIRROR, NOT_READY_TAINT, PREFIX, ROLE_LABEL_PREFIX,
    TRANSIENT_TAINT_PREFIXES, VERSION, WORKLOAD_PLANE_IP,
};
use super::name::{HostName, NameError};
use super::role::{Role, RoleError};
use super::skew::{self, SkewError};
use super::ssh_syntax::SshSyntaxError;
use super::ssh_target::SshTarget;

mod bootstrap_role;
mod settings;

/// A validated manifest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NodeSpec {
    /// `metadata.name`.
    pub name: HostName,
    /// Never empty.
    pub roles: BTreeSet<Role>,
    /// Label `metalform.dev/version`: the Kubernetes version to deploy, without a leading `v`. `None` for the bootstrap node,
    /// which has the version of the first bundle: earlier builds of metalform gave it a label that names the one of that time.
    pub version: Option<String>,
    /// SSH settings. The host key is pinned by the manifest, or must be known.
    pub ssh: SshTarget,
    /// In the manifest's order, without those that Kubernetes adds and removes itself.
    pub taints: Vec<Taint>,
    /// All labels of the manifest.
    pub labels: BTreeMap<String, String>,
    /// The address on the control plane that was recorded when the node was deployed.
    pub control_plane_ip: Option<IpAddr>,
    /// The address on the workload plane that was recorded when the node was deployed.
    pub workload_plane_ip: Option<IpAddr>,
    /// `spec.providerID`, which the kubelet registers with where there is no Node.
    pub provider_id: Option<String>,
    /// Keys of MetalK8s that have no meaning here and were ignored; one line each.
    pub warnings: Vec<String>,
}

/// The part of a `v1/Node` that a [`NodeSpec`] is parsed from, in the form of the API.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NodeManifest {
    /// Standard object metadata.
    pub metadata: NodeMetadata,
    /// `spec.taints` and `spec.providerID`.
    pub spec: NodeTaints,
}

/// `metadata` of a [`NodeManifest`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NodeMetadata {
    /// Missing in a manifest with `generateName`.
    pub name: Option<String>,
    /// As in the API.
    pub labels: BTreeMap<String, String>,
    /// As in the API.
    pub annotations: BTreeMap<String, String>,
}

/// `spec` of a [`NodeManifest`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NodeTaints {
    /// As in the API.
    pub taints: Vec<Taint>,
    /// As in the API.
    #[serde(rename = "providerID", skip_serializing_if = "Option::is_none")]
    pub provider_id: Option<String>,
}

/// A taint. Displays as kubectl writes it: `key=value:effect`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Taint {
    /// `node-role.kubernetes.io/infra`.
    pub key: String,
    /// Empty for a taint without a value.
    #[serde(default)]
    pub value: String,
    /// `NoSchedule`, `PreferNoSchedule` or `NoExecute`.
    pub effect: String,
}

/// All problems of a manifest; never empty. Displays as one line each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeProblems {
    /// `metadata.name`, or a placeholder.
    pub node: String,
    /// In the order of the fields of [`NodeSpec`].
    pub problems: Vec<NodeProblem>,
}

/// A problem of a manifest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NodeProblem {
    /// No `metadata.name`.
    #[error("metadata.name is missing")]
    NoName,
    /// `metadata.name` is not a host name.
    #[error(transparent)]
    Name(#[from] NameError),
    /// A label with [`ROLE_LABEL_PREFIX`] and an unknown role.
    #[error("label {label}: {source}")]
    Role {
        /// With its prefix.
        label: String,
        /// Lists the known roles.
        source: RoleError,
    },
    /// A role label with a value such as `false`, which Kubernetes would not honour.
    #[error("label {label} has the value {value:?}, expected \"\"; to remove the role, remove the label")]
    RoleValue {
        /// With its prefix.
        label: String,
        /// Neither empty nor `true`.
        value: String,
    },
    /// The bootstrap node as its own mirror.
    #[error("label {MIRROR}: the bootstrap node serves packages and images already; remove the label")]
    MirrorOfItself,
    /// The bootstrap node without its role.
    #[error("label {label} is missing: this machine is the bootstrap node")]
    NoBootstrapRole {
        /// With its prefix.
        label: String,
    },
    /// The role of the bootstrap node on another node.
    #[error("label {label}: the bootstrap node is {bootstrap_node}, this machine")]
    AnotherBootstrapRole {
        /// With its prefix.
        label: String,
        /// Its name.
        bootstrap_node: String,
    },
    /// A required annotation.
    #[error("annotation {annotation} is missing")]
    Missing {
        /// With its prefix.
        annotation: String,
    },
    /// A key and its alias are both set, to different values.
    #[error("{ours} is {value:?}, but {alias} is {other:?}; keep one of them")]
    Conflict {
        /// The key with metalform's prefix.
        ours: String,
        /// The value of `ours`.
        value: String,
        /// The key with MetalK8s' prefix.
        alias: String,
        /// The value of `alias`.
        other: String,
    },
    /// A value of another type than expected.
    #[error("annotation {annotation} is {value:?}, expected {expected}")]
    Value {
        /// With its prefix.
        annotation: String,
        /// As written.
        value: String,
        /// `true or false`.
        expected: &'static str,
    },
    /// An SSH setting that cannot be parsed.
    #[error("annotation {annotation}: {source}")]
    Ssh {
        /// With its prefix.
        annotation: String,
        /// Quotes the value.
        source: SshSyntaxError,
    },
    /// A misspelt annotation.
    #[error("unknown annotation {annotation}; known are {known}")]
    Unknown {
        /// With its prefix.
        annotation: String,
        /// Without the prefix, separated by commas.
        known: String,
    },
    /// An effect that Kubernetes does not define.
    #[error("taint {taint}: the effect is not NoSchedule, PreferNoSchedule or NoExecute")]
    TaintEffect {
        /// As kubectl writes it.
        taint: String,
    },
    /// A version that no bundle contains.
    #[error("label {VERSION} is {wanted:?}, but the bundle contains Kubernetes {}", available.join(" and "))]
    Version {
        /// The value of the label.
        wanted: String,
        /// The versions in the bundles.
        available: Vec<String>,
    },
    /// A kubelet that may not join the API servers.
    #[error("label {VERSION} is {wanted:?}, but {reason}")]
    Skew {
        /// The value of the label.
        wanted: String,
        /// By the version skew policy.
        reason: SkewError,
    },
    /// A node of the control plane with the version of another bundle than the first.
    #[error(
        "label {VERSION} is {wanted:?}, but nodes with the role {role} have the version of the first bundle, {first}"
    )]
    ControlPlaneVersion {
        /// The value of the label.
        wanted: String,
        /// The role that requires it.
        role: Role,
        /// The version in the first bundle.
        first: String,
    },
}

impl NodeSpec {
    /// Validates a manifest, or the manifest of a live Node.
    ///
    /// # Errors
    /// All problems at once.
    pub fn parse(manifest: &NodeManifest) -> Result<Self, NodeProblems> {
        let mut problems = Vec::new();
        let NodeMetadata { name, labels, annotations } = &manifest.metadata;
        let host_name = host_name(name.as_deref(), &mut problems);
        let roles = roles(labels, &mut problems);
        let ssh = settings::ssh_target(annotations, &mut problems);
        let taints = taints(&manifest.spec.taints, &mut problems);
        let version = labels.get(VERSION).filter(|_| !roles.contains(&Role::Bootstrap)).cloned();
        let address = |key: &str| annotations.get(key).and_then(|text| text.parse().ok());
        match (host_name, ssh) {
            (Some(name), Some(ssh)) if problems.is_empty() => Ok(Self {
                name,
                roles,
                version,
                ssh,
                taints,
                labels: labels.clone(),
                control_plane_ip: address(CONTROL_PLANE_IP),
                workload_plane_ip: address(WORKLOAD_PLANE_IP),
                provider_id: manifest.spec.provider_id.clone(),
                warnings: warnings(labels),
            }),
            _ => {
                let node = name.clone().unwrap_or_else(|| "(without a name)".to_owned());
                Err(NodeProblems { node, problems })
            }
        }
    }

    /// Checks the requested Kubernetes version against those in the bundles, that of the first bundle first. A Node without
    /// a request gets the latter, and one with a part of the control plane must have it.
    ///
    /// # Errors
    /// When no bundle contains it, or another one than the first where that is required.
    pub fn check_version(&self, available: &[&str]) -> Result<(), NodeProblems> {
        let Some(wanted) = self.version.clone() else { return Ok(()) };
        let version = wanted.trim_start_matches('v');
        let first = available.first().copied().unwrap_or_default();
        let of_first = [Role::Master, Role::Etcd].into_iter().find(|role| self.roles.contains(role));
        let problem = match of_first {
            _ if version == first => return Ok(()),
            _ if !available.contains(&version) => {
                let available = available.iter().map(|&version| version.to_owned()).collect();
                NodeProblem::Version { wanted, available }
            }
            Some(role) => NodeProblem::ControlPlaneVersion { wanted, role, first: first.to_owned() },
            None => match kubelet_skew(version, first) {
                Ok(()) => return Ok(()),
                Err(reason) => NodeProblem::Skew { wanted, reason },
            },
        };
        Err(NodeProblems { node: self.name.to_string(), problems: vec![problem] })
    }
}

/// Whether a kubelet of this version may join API servers of the other.
fn kubelet_skew(kubelet: &str, server: &str) -> Result<(), SkewError> {
    skew::check(kubelet.parse()?, &[server.parse()?])
}

fn host_name(name: Option<&str>, problems: &mut Vec<NodeProblem>) -> Option<HostName> {
    let Some(name) = name else {
        problems.push(NodeProblem::NoName);
        return None;
    };
    name.parse().map_err(|error| problems.push(NodeProblem::Name(error))).ok()
}

/// The name of the role that a label assigns, where it assigns one.
pub fn role_name(label: &str) -> Option<&str> {
    if label == MIRROR { Some(Role::Mirror.as_str()) } else { label.strip_prefix(ROLE_LABEL_PREFIX) }
}

fn roles(labels: &BTreeMap<String, String>, problems: &mut Vec<NodeProblem>) -> BTreeSet<Role> {
    let mut roles = BTreeSet::new();
    for (label, value) in labels {
        let Some(role) = role_name(label) else { continue };
        match role.parse() {
            Err(source) => problems.push(NodeProblem::Role { label: label.clone(), source }),
            // Kubernetes ignores the value: "false" would assign the role all the same.
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
    if roles.contains(&Role::Bootstrap) && roles.contains(&Role::Mirror) {
        problems.push(NodeProblem::MirrorOfItself);
    }
    roles
}

/// Whether a Node with these annotations is one that a kubelet created: metalform and operators annotate theirs.
pub fn is_bare(annotations: &BTreeMap<String, String>) -> bool {
    !annotations.keys().any(|key| key.starts_with(PREFIX) || key.starts_with(ALIAS_PREFIX))
}

/// The roles that labels assign; other labels and unknown roles are ignored.
pub fn roles_of(labels: &BTreeMap<String, String>) -> BTreeSet<Role> {
    roles(labels, &mut Vec::new())
}

fn taints(given: &[Taint], problems: &mut Vec<NodeProblem>) -> Vec<Taint> {
    let taints = persistent_taints(given);
    for taint in &taints {
        if !matches!(taint.effect.as_str(), "NoSchedule" | "PreferNoSchedule" | "NoExecute") {
            problems.push(NodeProblem::TaintEffect { taint: taint.to_string() });
        }
    }
    taints
}

/// The taints that neither Kubernetes nor the controllers of Machines add and remove themselves.
pub fn persistent_taints(taints: &[Taint]) -> Vec<Taint> {
    let transient = |taint: &Taint| {
        taint.key == NOT_READY_TAINT
            || TRANSIENT_TAINT_PREFIXES.iter().any(|prefix| taint.key.starts_with(prefix))
    };
    taints.iter().filter(|taint| !transient(taint)).cloned().collect()
}

fn warnings(labels: &BTreeMap<String, String>) -> Vec<String> {
    let release = labels.get(METALK8S_VERSION);
    let warning = |release: &String| {
        format!(
            "label {METALK8S_VERSION} ({release:?}) is a release of MetalK8s; it has no meaning here and is ignored"
        )
    };
    release.map(warning).into_iter().collect()
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
