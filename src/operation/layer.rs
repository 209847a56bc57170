//! Which of a node's states are applied together.

use serde::{Deserialize, Serialize};

use crate::state::{Stage, StateName};

/// The stages that one phase applies in one go. `states/top.yaml` assigns states to stages.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Layer {
    /// `metalform serve`.
    Serving,
    /// The registry, and what its package needs.
    Registry,
    /// What the first etcd member needs before its cluster begins.
    First,
    /// Everything of the node but etcd and the control plane.
    Base,
    /// What changes once the kubelet has its certificate.
    Joined,
    /// What an etcd member needs before it is one.
    Etcd,
    /// The member.
    EtcdMember {
        /// As etcd takes it.
        initial_cluster: String,
        /// Whether it may start without data: its data directory is created.
        first_start: bool,
    },
    /// What the control plane needs before it starts.
    ControlPlaneFiles,
    /// API server, controller manager, scheduler.
    ControlPlane,
    /// What a node knows of the others: the addresses of the mirrors and, in its proxy, of the API servers.
    Proxy,
    /// Nothing of any role: what states have is absent.
    Removed,
    /// Nothing of the roles that the node does not have.
    OtherRoles,
}

impl Layer {
    /// For people, after "apply".
    pub fn title(&self) -> &'static str {
        match self {
            Self::Serving => "package service",
            Self::Registry => "image registry",
            Self::First => "prerequisites of the first etcd member",
            Self::Base => "base system",
            Self::Joined => "joined",
            Self::Etcd => "etcd prerequisites",
            Self::EtcdMember { .. } => "etcd member",
            Self::ControlPlaneFiles => "control plane files",
            Self::ControlPlane => "control plane",
            Self::Proxy => "addresses of API servers and mirrors",
            Self::Removed => "removal of packages and files",
            Self::OtherRoles => "removal of the files of other roles",
        }
    }

    /// The stages of this layer.
    pub fn stages(&self) -> &'static [Stage] {
        use Stage::*;
        match self {
            Self::Serving => &[Serving],
            Self::Registry => &[Mirrors, System, Registry],
            Self::First => &[Mirrors, System, Proxy, Runtime, Etcd],
            Self::Base => &[Serving, Mirrors, System, Registry, Proxy, Runtime, Base, Joined],
            Self::Joined => &[Joined],
            Self::Etcd => &[Etcd],
            Self::EtcdMember { .. } => &[EtcdMember],
            Self::ControlPlaneFiles => &[ControlPlaneFiles],
            Self::ControlPlane => &[ControlPlane],
            Self::Proxy => &[Mirrors, Proxy],
            Self::Removed | Self::OtherRoles => &Stage::ALL,
        }
    }

    /// The states of this layer, of all those that the node has, in their order.
    pub fn states(&self, all: &[(Stage, StateName)]) -> Vec<StateName> {
        all.iter()
            .filter(|(stage, _)| self.stages().contains(stage))
            .map(|(_, state)| state.clone())
            .collect()
    }

    /// The states that the resources of this layer refer to: its own, the system's packages, whose changes restart
    /// services, and the files of its static pods. What is only referred to is not applied.
    pub fn states_referred_to(&self, all: &[(Stage, StateName)]) -> Vec<StateName> {
        let referred: &[Stage] = match self {
            Self::Serving | Self::Removed | Self::OtherRoles => &[],
            Self::EtcdMember { .. } => &[Stage::System, Stage::Etcd],
            Self::ControlPlane => &[Stage::System, Stage::Proxy, Stage::Etcd, Stage::ControlPlaneFiles],
            Self::Registry
            | Self::First
            | Self::Base
            | Self::Joined
            | Self::Etcd
            | Self::ControlPlaneFiles
            | Self::Proxy => &[Stage::System],
        };
        all.iter()
            .filter(|(stage, _)| self.stages().contains(stage) || referred.contains(stage))
            .map(|(_, state)| state.clone())
            .collect()
    }

    /// `--initial-cluster` of the etcd member that this layer starts, if it starts one.
    pub fn initial_cluster(&self) -> Option<&str> {
        match self {
            Self::EtcdMember { initial_cluster, .. } => Some(initial_cluster),
            _ => None,
        }
    }

    /// Whether it starts or restarts what must not restart on two nodes at once: an etcd member, an API server.
    pub fn restarts_in_turn(&self) -> bool {
        matches!(self, Self::EtcdMember { .. } | Self::ControlPlane)
    }

    /// Whether the etcd member that this layer starts may start without data.
    pub fn is_first_start(&self) -> bool {
        matches!(self, Self::EtcdMember { first_start: true, .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::{Library, Tree};

    fn all() -> Vec<(Stage, StateName)> {
        let library = Library::read(&Tree::embedded()).unwrap();
        library.staged(&["bootstrap", "etcd", "infra", "master", "mirror", "node"]).unwrap()
    }

    #[test]
    fn the_layers_of_deploy_node_contain_every_state_once() {
        let member = Layer::EtcdMember { initial_cluster: String::new(), first_start: true };
        let mut states: Vec<StateName> =
            [Layer::Base, Layer::Etcd, member, Layer::ControlPlaneFiles, Layer::ControlPlane]
                .iter()
                .flat_map(|layer| layer.states(&all()))
                .collect();
        states.sort();
        let mut every: Vec<StateName> = all().into_iter().map(|(_, state)| state).collect();
        every.sort();
        assert_eq!(states, every);
    }

    #[test]
    fn the_first_control_plane_waits_for_no_pod_network() {
        let layers = [Layer::First, Layer::ControlPlaneFiles, Layer::ControlPlane];
        let states: Vec<String> =
            layers.iter().flat_map(|layer| layer.states(&all())).map(|state| state.to_string()).collect();
        assert!(!states.contains(&"pod-network".to_owned()));
        assert!(states.contains(&"kube-apiserver".to_owned()));
    }

    #[test]
    fn of_another_node_only_the_proxy_is_touched() {
        let states: Vec<String> = Layer::Proxy.states(&all()).iter().map(ToString::to_string).collect();
        assert_eq!(states, ["mirrors", "apiserver-proxy"]);
    }
}
