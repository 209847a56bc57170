//! What several objects must not have in common, which the API server cannot check.
//!
//! The object that exists for longer is right: a later one never disturbs it. A conflict is therefore reported for the
//! later one of two alone, by creation time and then by name; an object without a creation time is the latest.

use std::net::IpAddr;

use jiff::Timestamp;
use kube::ResourceExt;

use super::host::HostObject;
use super::machine_deployment::MachineDeployment;

/// Reason of the conditions of a MachineDeployment that is in conflict with an earlier one.
pub const SELECTOR_CONFLICT: &str = "SelectorConflict";

/// A MachineDeployment and an earlier one manage each other's Machines.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MachineDeploymentConflict {
    /// Its selector matches the template of another one.
    #[error("selector {selector} matches the Machines of MachineDeployment {other}")]
    SelectsOthers {
        /// As kubectl writes it.
        selector: String,
        /// The earlier one, in the same namespace.
        other: String,
    },
    /// The selector of another one matches its template.
    #[error("template.metadata.labels match the selector {selector} of MachineDeployment {other}")]
    SelectedByOther {
        /// Of the earlier one.
        selector: String,
        /// The earlier one, in the same namespace.
        other: String,
    },
}

/// A Host is a machine that exists already.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HostConflict {
    /// An earlier Host has its address.
    #[error("address {address} is that of Host {other}")]
    AddressOfHost {
        /// Of both.
        address: String,
        /// The earlier one.
        other: String,
    },
    /// A node that it did not become has its address.
    #[error("address {address} is that of Node {node}, which no Machine has deployed")]
    AddressOfNode {
        /// Of both.
        address: String,
        /// The Node.
        node: String,
    },
    /// It is the bootstrap node.
    #[error("address {address} is that of the bootstrap node {node}")]
    AddressOfBootstrap {
        /// Of both.
        address: String,
        /// The bootstrap node.
        node: String,
    },
    /// A node that it did not become has its name, which its own Node would have.
    #[error("a Node of this name exists, which no Machine has deployed")]
    NameOfNode,
}

/// A node of the cluster, as far as Hosts must differ from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OccupiedNode {
    /// Name of the Node.
    pub name: String,
    /// All its addresses and names.
    pub addresses: Vec<String>,
    /// The Host that it was, by its provider ID; `None` for a node that no Machine has deployed.
    pub host: Option<String>,
    /// Whether it is the bootstrap node.
    pub is_bootstrap: bool,
}

/// The conflicts of a MachineDeployment with earlier ones of its namespace, that with the earliest one first. `others`
/// may contain it. One that is being deleted keeps its Machines until it is gone.
pub fn of_machine_deployment<'a>(
    deployment: &MachineDeployment,
    others: impl IntoIterator<Item = &'a MachineDeployment>,
) -> Vec<MachineDeploymentConflict> {
    let others = others.into_iter().filter(|other| {
        other.namespace() == deployment.namespace() && is_earlier(age(*other), age(deployment))
    });
    let mut earlier: Vec<&MachineDeployment> = others.collect();
    earlier.sort_by_key(|other| age(*other));
    let conflict = |other: &MachineDeployment| {
        let (spec, of_other) = (&deployment.spec, &other.spec);
        let name = other.name_any();
        if spec.selector.matches(&of_other.template.metadata.labels) {
            let selector = spec.selector.to_string();
            Some(MachineDeploymentConflict::SelectsOthers { selector, other: name })
        } else if of_other.selector.matches(&spec.template.metadata.labels) {
            let selector = of_other.selector.to_string();
            Some(MachineDeploymentConflict::SelectedByOther { selector, other: name })
        } else {
            None
        }
    };
    earlier.into_iter().filter_map(conflict).collect()
}

/// The conflicts of a Host with nodes, in their order, and with earlier Hosts, in the order of `others`, which may
/// contain it. That with the node of its name is left out where it has another one.
pub fn of_host<'a>(
    host: &HostObject,
    others: impl IntoIterator<Item = &'a HostObject>,
    nodes: &[OccupiedNode],
) -> Vec<HostConflict> {
    let name = host.name_any();
    let (address, own) = (|| host.spec.address.clone(), Address::of(&host.spec.address));
    let with_node = nodes.iter().filter_map(|node| {
        let same = node.addresses.iter().any(|one| own.is(one));
        match node {
            node if !same || node.host.as_ref() == Some(&name) => None,
            node if node.is_bootstrap => {
                Some(HostConflict::AddressOfBootstrap { address: address(), node: node.name.clone() })
            }
            // The Host that became this node has the address too.
            node if node.host.is_some() => None,
            node => Some(HostConflict::AddressOfNode { address: address(), node: node.name.clone() }),
        }
    });
    let same = others.into_iter().filter(|other| own.is(&other.spec.address));
    let earlier = same.filter(|other| is_earlier(age(*other), age(host)));
    let with_host =
        earlier.map(|other| HostConflict::AddressOfHost { address: address(), other: other.name_any() });
    let mut conflicts: Vec<HostConflict> = with_node.chain(with_host).collect();
    if conflicts.is_empty() && nodes.iter().any(|node| node.name == name && node.host.is_none()) {
        conflicts.push(HostConflict::NameOfNode);
    }
    conflicts
}

/// An address, parsed once to be compared with many.
struct Address<'a> {
    text: &'a str,
    ip: Option<IpAddr>,
}

impl<'a> Address<'a> {
    fn of(text: &'a str) -> Self {
        Self { text, ip: text.parse().ok().map(|ip: IpAddr| ip.to_canonical()) }
    }

    /// Addresses in any spelling, and names whatever their case.
    fn is(&self, other: &str) -> bool {
        match self.ip {
            Some(ip) => other.parse().is_ok_and(|other: IpAddr| other.to_canonical() == ip),
            None => self.text.eq_ignore_ascii_case(other),
        }
    }
}

type Age = (Timestamp, String);

fn age(object: &impl ResourceExt) -> Age {
    let created = object.creation_timestamp().map_or(Timestamp::MAX, |time| time.0);
    (created, object.name_any())
}

fn is_earlier(one: Age, other: Age) -> bool {
    one < other
}

#[cfg(test)]
mod tests;
