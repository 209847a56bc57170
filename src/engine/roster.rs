//! The desired state of a host of a roster: its states, compiled with the values of the roster and of the host.
//!
//! Values follow the contract of [`crate::model::values`]. Nothing outside a cluster signs certificates: states that
//! issue them are refused before any host is touched.

use std::collections::BTreeMap;
use std::net::IpAddr;

use ipnet::IpNet;
use jiff::Timestamp;
use serde_json::Value as Json;

use super::states::{DeclareError, HostStates};
use crate::model::facts::Facts;
use crate::model::role::Role;
use crate::model::roster::Host;
use crate::model::values::{NodeValues, ThisNode, Values};
use crate::render::{Value, Without, values_of};
use crate::resource;
use crate::state::{Compiled, Ensure, Library, Location, ResourceId, StateError, StateName, compile};

/// Everything but the facts that determines the values of the selected hosts.
#[derive(Debug, Clone, Copy)]
pub struct RosterContext<'a> {
    /// The states and templates.
    pub library: &'a Library,
    /// States to apply; empty for those of each host's roles.
    pub states: &'a [StateName],
    /// The root `cluster`: the `vars` of the roster's defaults.
    pub cluster: &'a BTreeMap<String, Json>,
    /// All selected hosts.
    pub hosts: &'a [Host],
}

/// The root that only the host provides.
const FACTS: &str = "facts";

/// Why the states of a host cannot be compiled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RosterFault {
    /// A state that cannot be evaluated with the host's values.
    #[error(transparent)]
    State(#[from] StateError),
    /// Values that the kind of a resource refuses.
    #[error(transparent)]
    Declare(#[from] DeclareError),
    /// A certificate to issue.
    #[error("{at}: {id} requires a CA, which only a cluster has")]
    NoAuthority {
        /// Of the resource in its state file.
        at: Location,
        /// The resource.
        id: ResourceId,
    },
}

impl RosterFault {
    /// The location in a state file or template.
    pub fn place(&self) -> &Location {
        match self {
            Self::State(error) => &error.at,
            Self::Declare(error) => &error.at,
            Self::NoAuthority { at, .. } => at,
        }
    }

    /// How to fix it, where that is known.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::State(error) => {
                let message = error.fault.to_string();
                let hints = [missing_value(&message), error.hint().map(|hint| hint.to_string())];
                let hints: Vec<String> = hints.into_iter().flatten().collect();
                (!hints.is_empty()).then(|| hints.join("; "))
            }
            Self::Declare(_) => None,
            Self::NoAuthority { .. } => Some(
                "apply states with certificates with `metalform bootstrap` or `metalform deploy-node`"
                    .to_owned(),
            ),
        }
    }
}

/// Which part of a roster provides an undefined value.
fn missing_value(message: &str) -> Option<String> {
    let path = message.strip_suffix("` is undefined")?.strip_prefix('`')?;
    let word = |c: char| c.is_ascii_alphanumeric() || "._".contains(c);
    let (root, rest) = path.split_once('.').filter(|_| path.chars().all(word))?;
    match root {
        "node" => Some(format!("set {rest} in the vars of the host in the roster")),
        "cluster" => Some(format!("set {rest} in the vars of the roster's defaults")),
        _ => None,
    }
}

/// The resources of a host, in the order to run. Pure.
///
/// # Errors
/// Every fault of the states with this host's values.
pub fn compiled(
    context: RosterContext<'_>,
    host: &Host,
    facts: &Facts,
) -> Result<Vec<Compiled>, Vec<RosterFault>> {
    compiled_with(context, host, &values_of(&values(context, host, Some(facts))))
}

/// The same before the host is observed; `None` when its states depend on facts. Pure.
///
/// # Errors
/// As [`compiled`].
pub fn compiled_without_facts(
    context: RosterContext<'_>,
    host: &Host,
) -> Option<Result<Vec<Compiled>, Vec<RosterFault>>> {
    // Addresses on the planes are derived from facts.
    if !Planes::of(context.cluster).is_empty() {
        return None;
    }
    let without = Without::new(values_of(&values(context, host, None)), FACTS);
    let compiled = compiled_with(context, host, &without.values());
    (!without.missed()).then_some(compiled)
}

fn compiled_with(
    context: RosterContext<'_>,
    host: &Host,
    values: &Value,
) -> Result<Vec<Compiled>, Vec<RosterFault>> {
    let states = match context.states {
        [] => {
            let roles: Vec<&str> = host.roles.iter().map(|role| role.as_str()).collect();
            context.library.states_of(&roles)
        }
        states => context.library.with_required(states),
    };
    states
        .and_then(|states| compile(context.library, &states, resource::kinds(), values))
        .map_err(|errors| errors.into_iter().map(RosterFault::from).collect())
}

/// The declared resources of a host, ready to be compared with it. Pure.
///
/// # Errors
/// Every resource that its kind refuses, or that requires a CA.
pub fn desired(compiled: Vec<Compiled>, now: Timestamp) -> Result<HostStates, Vec<RosterFault>> {
    let unsigned =
        |one: &&Compiled| resource::has_field(one.id.kind, "authority") && one.ensure == Ensure::Present;
    let faults: Vec<RosterFault> = compiled
        .iter()
        .filter(unsigned)
        .map(|one| RosterFault::NoAuthority { at: one.source.clone(), id: one.id.clone() })
        .collect();
    if !faults.is_empty() {
        return Err(faults);
    }
    HostStates::new(compiled, BTreeMap::new(), now)
        .map_err(|errors| errors.into_iter().map(RosterFault::from).collect())
}

fn values<'a>(
    context: RosterContext<'a>,
    host: &Host,
    facts: Option<&'a Facts>,
) -> Values<'a, BTreeMap<String, Json>> {
    let planes = Planes::of(context.cluster);
    let others = context.hosts.iter().filter(|peer| peer.name != host.name);
    let interface = |networks: &[IpNet]| Some(facts?.address_in(networks)?.0.to_owned());
    let unset = |field: &str, value: Option<String>| value.filter(|_| !host.vars.contains_key(field));
    Values {
        cluster: context.cluster,
        node: ThisNode {
            node: node_values(host, &planes, facts),
            control_plane_interface: unset("control_plane_interface", interface(&planes.control)),
            workload_plane_interface: unset("workload_plane_interface", interface(&planes.workload)),
            ..ThisNode::default()
        },
        facts,
        peers: others.map(|peer| (peer.name.to_string(), node_values(peer, &planes, None))).collect(),
    }
}

fn node_values(host: &Host, planes: &Planes, facts: Option<&Facts>) -> NodeValues {
    let ip = |field: &str, networks: &[IpNet]| {
        if host.vars.contains_key(field) {
            return None;
        }
        let by_ssh: Option<IpAddr> = host.ssh.host.parse().ok();
        let by_ssh = by_ssh.filter(|ip| networks.iter().any(|network| network.contains(ip)));
        facts.and_then(|facts| facts.address_in(networks)).map(|(_, ip)| ip).or(by_ssh)
    };
    NodeValues {
        name: host.name.to_string(),
        roles: host.roles.clone(),
        labels: host.labels.clone(),
        taints: host.taints.clone(),
        address: host.ssh.host.clone(),
        control_plane_ip: ip("control_plane_ip", &planes.control),
        workload_plane_ip: ip("workload_plane_ip", &planes.workload),
        api_server: host.roles.contains(&Role::Master),
        vars: host.vars.clone(),
    }
}

/// The networks of the planes, where the roster sets `cluster.networks`.
struct Planes {
    control: Vec<IpNet>,
    workload: Vec<IpNet>,
}

impl Planes {
    fn of(cluster: &BTreeMap<String, Json>) -> Self {
        let networks = |pointer: &str| {
            let list = cluster.get("networks").and_then(|networks| networks.pointer(pointer)?.as_array());
            list.into_iter().flatten().filter_map(|text| text.as_str()?.parse().ok()).collect()
        };
        Self { control: networks("/control_plane"), workload: networks("/workload_plane/cidrs") }
    }

    fn is_empty(&self) -> bool {
        self.control.is_empty() && self.workload.is_empty()
    }
}

#[cfg(test)]
#[path = "roster_tests.rs"]
pub(crate) mod tests;
