//! When a state is applied: `states/top.yaml` names the stage of each state of a role.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::model::near::Near;

/// A part of what a node is made of. The phases of an operation apply one or several of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// `metalform serve` on the bootstrap node, from which every package and image comes.
    Serving,
    /// The addresses of the nodes that serve packages and images.
    Mirrors,
    /// Kernel settings and packages.
    System,
    /// The image registry of the bootstrap node and of the mirrors.
    Registry,
    /// The proxy to the API servers.
    Proxy,
    /// The container runtime and the kubelet.
    Runtime,
    /// What a node needs besides: pod network, services, images of its role.
    Base,
    /// What changes once the kubelet has its certificate.
    Joined,
    /// What an etcd member needs before it is added: certificates and images.
    Etcd,
    /// The etcd member.
    EtcdMember,
    /// What the control plane needs before it starts: certificates, configuration and images.
    ControlPlaneFiles,
    /// API server, controller manager and scheduler.
    ControlPlane,
}

/// A stage that does not exist.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown stage {name:?}{near}; the stages are: {}", Stage::ALL.map(Stage::as_str).join(", "))]
pub struct StageError {
    /// The name in the file.
    pub name: String,
    /// The existing name that is most like it.
    pub near: Near,
}

impl Stage {
    /// Every stage.
    pub const ALL: [Self; 12] = [
        Self::Serving,
        Self::Mirrors,
        Self::System,
        Self::Registry,
        Self::Proxy,
        Self::Runtime,
        Self::Base,
        Self::Joined,
        Self::Etcd,
        Self::EtcdMember,
        Self::ControlPlaneFiles,
        Self::ControlPlane,
    ];

    /// The name in `states/top.yaml`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Serving => "serving",
            Self::Mirrors => "mirrors",
            Self::System => "system",
            Self::Registry => "registry",
            Self::Proxy => "proxy",
            Self::Runtime => "runtime",
            Self::Base => "base",
            Self::Joined => "joined",
            Self::Etcd => "etcd",
            Self::EtcdMember => "etcd-member",
            Self::ControlPlaneFiles => "control-plane-files",
            Self::ControlPlane => "control-plane",
        }
    }
}

impl FromStr for Stage {
    type Err = StageError;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|stage| stage.as_str() == name).ok_or_else(|| StageError {
            name: name.to_owned(),
            near: Near::to(name, Self::ALL.map(Self::as_str)),
        })
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stage_is_parsed_from_its_name_and_no_other_name_is() {
        for stage in Stage::ALL {
            assert_eq!(stage.as_str().parse(), Ok(stage));
        }
        let error = "etcd-membr".parse::<Stage>().unwrap_err().to_string();
        assert!(error.starts_with("unknown stage \"etcd-membr\"; did you mean \"etcd-member\"?"), "{error}");
    }
}
