//! What a host of a roster should be: its states with the values that a roster and the host itself give.
//!
//! Outside a cluster there is no authority: states that issue certificates are refused before any host is
//! touched.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value as Json;

use super::states::{DeclareError, HostStates};
use crate::model::facts::Facts;
use crate::model::name::HostName;
use crate::model::role::Role;
use crate::model::roster::Host;
use crate::render::{Value, Without, values_of, with_value};
use crate::resource;
use crate::state::{Compiled, Ensure, Library, Location, ResourceId, StateError, StateName, compile};

/// What one host is seen as by states and templates, but for its facts.
#[derive(Debug, Clone, Copy)]
pub struct Setting<'a> {
    /// The states and templates.
    pub library: &'a Library,
    /// States to apply; the host's roles say which where this is empty.
    pub states: &'a [StateName],
    /// `cluster`: what the roster says for all hosts.
    pub cluster: &'a BTreeMap<String, Json>,
    /// Every host selected, this one among them.
    pub hosts: &'a [Host],
}

/// The root of templates that only the host itself can give.
const FACTS: &str = "facts";

/// The other three.
#[derive(Debug, Serialize)]
struct Values<'a> {
    cluster: &'a BTreeMap<String, Json>,
    node: BTreeMap<&'a str, Json>,
    peers: BTreeMap<&'a HostName, Peer<'a>>,
}

/// Another host that was selected.
#[derive(Debug, Serialize)]
struct Peer<'a> {
    address: &'a str,
    roles: Vec<Role>,
}

/// Why a host's states come to nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RosterFault {
    /// A state does not fit the host's values.
    #[error(transparent)]
    State(#[from] StateError),
    /// A kind does not take a resource's values.
    #[error(transparent)]
    Declare(#[from] DeclareError),
    /// Nobody can sign.
    #[error("{at}: {id} needs an authority to sign it, and there is none outside a cluster")]
    NoAuthority {
        /// Where it is written.
        at: Location,
        /// Which resource.
        id: ResourceId,
    },
}

impl RosterFault {
    /// Where it is.
    pub fn place(&self) -> &Location {
        match self {
            Self::State(error) => &error.at,
            Self::Declare(error) => &error.at,
            Self::NoAuthority { at, .. } => at,
        }
    }

    /// What to do about it, where that is known.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::State(error) => error.hint().map(|hint| hint.to_string()),
            Self::Declare(_) => None,
            Self::NoAuthority { .. } => Some(
                "apply states with certificates with `metalform deploy-node`, or name other states"
                    .to_owned(),
            ),
        }
    }
}

/// The resources of a host, in the order to run. Pure.
///
/// # Errors
/// Every fault of the states with this host's values.
pub fn compiled(setting: Setting<'_>, host: &Host, facts: &Facts) -> Result<Vec<Compiled>, Vec<RosterFault>> {
    let values = with_value(&values_of(&values(setting, host)), FACTS, values_of(facts));
    compiled_with(setting, host, &values)
}

/// The same before the host was asked what it is; `None` when its states depend on that. Pure.
///
/// # Errors
/// As [`compiled`].
pub fn compiled_without_facts(
    setting: Setting<'_>,
    host: &Host,
) -> Option<Result<Vec<Compiled>, Vec<RosterFault>>> {
    let without = Without::new(values_of(&values(setting, host)), FACTS);
    let compiled = compiled_with(setting, host, &without.values());
    (!without.missed()).then_some(compiled)
}

fn compiled_with(
    setting: Setting<'_>,
    host: &Host,
    values: &Value,
) -> Result<Vec<Compiled>, Vec<RosterFault>> {
    let states = match setting.states {
        [] => {
            let roles: Vec<&str> = host.roles.iter().map(|role| role.as_str()).collect();
            setting.library.states_of(&roles)
        }
        states => setting.library.with_required(states),
    };
    states
        .and_then(|states| compile(setting.library, &states, resource::kinds(), values))
        .map_err(|errors| errors.into_iter().map(RosterFault::from).collect())
}

/// The same as something that the host can be compared with. Pure.
///
/// # Errors
/// Every resource that its kind refuses, or that only a cluster can have.
pub fn desired(compiled: Vec<Compiled>, now: Timestamp) -> Result<HostStates, Vec<RosterFault>> {
    let unsigned = |one: &&Compiled| {
        matches!(one.id.kind.as_str(), "certificate" | "kubeconfig") && one.ensure == Ensure::Present
    };
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

fn values<'a>(setting: Setting<'a>, host: &'a Host) -> Values<'a> {
    let roles = |host: &Host| host.roles.iter().copied().collect::<Vec<_>>();
    let own = [
        ("name", Json::from(host.name.as_str())),
        ("roles", host.roles.iter().map(|role| role.as_str()).collect()),
        ("labels", Json::from_iter(host.labels.iter().map(|(key, value)| (key.clone(), value.clone())))),
        ("address", Json::from(host.ssh.host.as_str())),
    ];
    let vars = host.vars.iter().map(|(name, value)| (name.as_str(), value.clone()));
    Values {
        cluster: setting.cluster,
        node: vars.chain(own).collect(),
        peers: setting
            .hosts
            .iter()
            .filter(|peer| peer.name != host.name)
            .map(|peer| (&peer.name, Peer { address: &peer.ssh.host, roles: roles(peer) }))
            .collect(),
    }
}

#[cfg(test)]
#[path = "roster_tests.rs"]
pub(crate) mod tests;
