//! Which of a node's states are applied together.

use std::collections::BTreeSet;

/// States that are applied in one go. `states/top.yaml` says what a role is made of; a layer is the part of
/// it that a phase is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Layer {
    /// The package repository and the registry of the bootstrap node.
    Serving,
    /// What the first control plane needs before there is an API to ask for a pod network.
    First {
        /// As etcd takes it; `new` only once in a cluster's life.
        initial_cluster: String,
        /// `new` or `existing`.
        initial_cluster_state: String,
    },
    /// Everything of the node but etcd and the control plane.
    Base,
    /// The same when the kubelet has its certificate.
    Joined,
    /// What an etcd member needs before it is one.
    Etcd,
    /// The member.
    EtcdMember {
        /// As etcd takes it.
        initial_cluster: String,
        /// `new` or `existing`.
        initial_cluster_state: String,
    },
    /// API server, controller manager, scheduler.
    ControlPlane,
    /// The proxy to the API servers, of a node that is deployed.
    Proxy,
}

/// States of the bootstrap node that come before any other.
const SERVING: &[&str] = &["serve", "node-base", "node-packages", "registry"];
/// States that the first control plane needs from the base.
const FIRST: &[&str] = &["node-base", "node-packages", "containerd", "apiserver-proxy", "kubelet"];

/// What the proxy of a node stands on, and the proxy.
const PROXY: &[&str] = &["node-base", "node-packages", "apiserver-proxy"];

impl Layer {
    /// For people.
    pub fn title(&self) -> &'static str {
        match self {
            Self::Serving => "package service",
            Self::First { .. } => "first control plane",
            Self::Base => "base system",
            Self::Joined => "joined",
            Self::Etcd => "etcd prerequisites",
            Self::EtcdMember { .. } => "etcd member",
            Self::ControlPlane => "control plane",
            Self::Proxy => "API server proxy",
        }
    }

    /// The states of this layer, of all those that the node has, in order.
    pub fn states(&self, all: &[String]) -> Vec<String> {
        let only = |wanted: &dyn Fn(&str) -> bool| all.iter().filter(|name| wanted(name)).cloned().collect();
        match self {
            Self::Serving => SERVING.iter().map(|&name| name.to_owned()).collect(),
            Self::First { .. } => {
                let first: BTreeSet<&str> = FIRST.iter().copied().collect();
                only(&|name| first.contains(name) || is_etcd(name) || is_control_plane(name))
            }
            Self::Base => only(&|name| !is_etcd(name) && !is_control_plane(name)),
            Self::Joined => vec!["kubelet-joined".to_owned()],
            Self::Etcd => only(&|name| name == "etcd"),
            Self::EtcdMember { .. } => only(&|name| name == "etcd-member"),
            Self::ControlPlane => only(&is_control_plane),
            Self::Proxy => PROXY.iter().map(|&name| name.to_owned()).collect(),
        }
    }

    /// The flags of the etcd member that this layer starts, if it starts one.
    pub fn member_flags(&self) -> Option<(&str, &str)> {
        match self {
            Self::First { initial_cluster, initial_cluster_state }
            | Self::EtcdMember { initial_cluster, initial_cluster_state } => {
                Some((initial_cluster, initial_cluster_state))
            }
            _ => None,
        }
    }
}

fn is_etcd(state: &str) -> bool {
    matches!(state, "etcd" | "etcd-member")
}

fn is_control_plane(state: &str) -> bool {
    matches!(state, "kube-apiserver" | "kube-controller-manager" | "kube-scheduler")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Vec<String> {
        [
            "node-base",
            "node-packages",
            "containerd",
            "apiserver-proxy",
            "pod-network",
            "kubelet",
            "kube-proxy",
            "etcd",
            "etcd-member",
            "kube-apiserver",
        ]
        .map(str::to_owned)
        .to_vec()
    }

    #[test]
    fn base_etcd_and_control_plane_are_all_there_is_and_do_not_overlap() {
        let flags = (String::new(), String::new());
        let member = Layer::EtcdMember { initial_cluster: flags.0, initial_cluster_state: flags.1 };
        let mut states: Vec<String> = [Layer::Base, Layer::Etcd, member, Layer::ControlPlane]
            .iter()
            .flat_map(|layer| layer.states(&all()))
            .collect();
        states.sort();
        let mut every = all();
        every.sort();
        assert_eq!(states, every);
    }

    #[test]
    fn the_first_control_plane_waits_for_no_pod_network() {
        let first = Layer::First { initial_cluster: String::new(), initial_cluster_state: String::new() };
        let states = first.states(&all());
        assert!(!states.contains(&"pod-network".to_owned()));
        assert!(states.contains(&"kube-apiserver".to_owned()));
    }
}
