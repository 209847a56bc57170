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
    /// The first etcd member, and what it needs.
    First {
        /// As etcd takes it.
        initial_cluster: String,
        /// `new` only once in a cluster's life, else `existing`.
        initial_cluster_state: String,
        /// Whether it may start without data: its data directory is created.
        first_start: bool,
    },
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
        /// `new` or `existing`.
        initial_cluster_state: String,
        /// Whether it may start without data: its data directory is created.
        first_start: bool,
    },
    /// What the control plane needs before it starts.
    ControlPlaneFiles,
    /// API server, controller manager, scheduler.
    ControlPlane,
    /// The proxy to the API servers, and nothing else.
    Proxy,
}

impl Layer {
    /// For people, after "apply".
    pub fn title(&self) -> &'static str {
        match self {
            Self::Serving => "package service",
            Self::Registry => "image registry",
            Self::First { .. } => "first etcd member",
            Self::Base => "base system",
            Self::Joined => "joined",
            Self::Etcd => "etcd prerequisites",
            Self::EtcdMember { .. } => "etcd member",
            Self::ControlPlaneFiles => "control plane files",
            Self::ControlPlane => "control plane",
            Self::Proxy => "API server proxy",
        }
    }

    /// The stages of this layer.
    pub fn stages(&self) -> &'static [Stage] {
        use Stage::*;
        match self {
            Self::Serving => &[Serving],
            Self::Registry => &[System, Registry],
            Self::First { .. } => &[System, Proxy, Runtime, Etcd, EtcdMember],
            Self::Base => &[Serving, System, Registry, Proxy, Runtime, Base, Joined],
            Self::Joined => &[Joined],
            Self::Etcd => &[Etcd],
            Self::EtcdMember { .. } => &[EtcdMember],
            Self::ControlPlaneFiles => &[ControlPlaneFiles],
            Self::ControlPlane => &[ControlPlane],
            Self::Proxy => &[Proxy],
        }
    }

    /// The states of this layer, of all those that the node has, in their order.
    pub fn states(&self, all: &[(Stage, StateName)]) -> Vec<StateName> {
        all.iter()
            .filter(|(stage, _)| self.stages().contains(stage))
            .map(|(_, state)| state.clone())
            .collect()
    }

    /// The states that the resources of this layer refer to: its own, and the system's packages, whose changes
    /// restart services. What is only referred to is not applied.
    pub fn states_referred_to(&self, all: &[(Stage, StateName)]) -> Vec<StateName> {
        let referred = |stage: &Stage| self.stages().contains(stage) || *stage == Stage::System;
        let alone = matches!(self, Self::Serving);
        all.iter()
            .filter(|(stage, _)| if alone { self.stages().contains(stage) } else { referred(stage) })
            .map(|(_, state)| state.clone())
            .collect()
    }

    /// The flags of the etcd member that this layer starts, if it starts one.
    pub fn member_flags(&self) -> Option<(&str, &str)> {
        match self {
            Self::First { initial_cluster, initial_cluster_state, .. }
            | Self::EtcdMember { initial_cluster, initial_cluster_state, .. } => {
                Some((initial_cluster, initial_cluster_state))
            }
            _ => None,
        }
    }

    /// Whether the etcd member that this layer starts may start without data.
    pub fn is_first_start(&self) -> bool {
        matches!(self, Self::First { first_start: true, .. } | Self::EtcdMember { first_start: true, .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::{Library, Tree};

    fn flags() -> (String, String) {
        (String::new(), String::new())
    }

    fn all() -> Vec<(Stage, StateName)> {
        let library = Library::read(&Tree::embedded()).unwrap();
        library.staged(&["bootstrap", "etcd", "infra", "master", "node"]).unwrap()
    }

    #[test]
    fn the_layers_of_deploy_node_contain_every_state_once() {
        let (initial_cluster, initial_cluster_state) = flags();
        let member = Layer::EtcdMember { initial_cluster, initial_cluster_state, first_start: true };
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
        let (initial_cluster, initial_cluster_state) = flags();
        let first = Layer::First { initial_cluster, initial_cluster_state, first_start: true };
        let layers = [first, Layer::ControlPlaneFiles, Layer::ControlPlane];
        let states: Vec<String> =
            layers.iter().flat_map(|layer| layer.states(&all())).map(|state| state.to_string()).collect();
        assert!(!states.contains(&"pod-network".to_owned()));
        assert!(states.contains(&"kube-apiserver".to_owned()));
    }

    #[test]
    fn of_another_node_only_the_proxy_is_touched() {
        let states: Vec<String> = Layer::Proxy.states(&all()).iter().map(ToString::to_string).collect();
        assert_eq!(states, ["apiserver-proxy"]);
    }
}
