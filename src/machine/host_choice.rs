//! Which host each waiting Machine gets.
//!
//! # Guarantees
//! - A host serves one Machine: none is given that another Machine has noted or claimed.
//! - A Machine that has noted or claimed a host gets that host or none: a controller that was killed between the two
//!   writes resumes, and never takes a second one.
//! - The Machine that has waited longest chooses first.
//! - Among hosts that match: in the failure domain that has the fewest Machines of the same deployment, then the host
//!   whose last failure is the longest ago, then by name. The same input results in the same choice.
//!
//! # How it is used
//! The caller writes the host's name into the Machine first, then claims the host with the resource version that it
//! observed; a conflict changes nothing, and the next choice is made on newer values.

mod candidates;
mod shortage;

pub use self::shortage::HostShortage;

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use self::candidates::Candidates;
use super::api::label_selector::LabelSelector;
use crate::model::name::HostName;
use crate::model::platform::{Architecture, Distribution};

/// A host of the pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolHost {
    /// Its name.
    pub name: HostName,
    /// What it is doing.
    pub state: PoolState,
    /// `metadata.uid` of the Machine in its claim.
    pub claim: Option<String>,
    /// For selectors.
    pub labels: BTreeMap<String, String>,
    /// From its facts; `None` before they were observed.
    pub distribution: Option<Distribution>,
    /// As above.
    pub architecture: Option<Architecture>,
    /// `topology.kubernetes.io/zone`, a rack, …: hosts with the same value fail together.
    pub failure_domain: Option<String>,
    /// When a Machine last failed on it.
    pub last_failure: Option<Timestamp>,
}

/// The state of a host, as far as a choice depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PoolState {
    /// Clean and verified.
    Available,
    /// A Machine is provisioned, runs or is being removed on it, or it has yet to be verified as clean.
    Busy,
    /// Only a person returns it to the pool.
    Quarantined,
}

/// A Machine without a Node that has yet to claim a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitingMachine {
    /// `metadata.uid`.
    pub uid: String,
    /// Its name.
    pub name: String,
    /// When it was created: the oldest chooses first.
    pub created: Timestamp,
    /// Its MachineDeployment, or what else its Machines are spread for.
    pub group: String,
    /// The host that it has noted.
    pub noted: Option<HostName>,
    /// What the host must be.
    pub requirement: HostRequirement,
}

/// What a Machine requires of its host.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct HostRequirement {
    /// On the labels of the host.
    pub selector: LabelSelector,
    /// The one that it must be in.
    pub failure_domain: Option<String>,
    /// An operating system cannot be installed, only required.
    pub distribution: Option<Distribution>,
    /// As above.
    pub architecture: Option<Architecture>,
}

/// The choice for one Machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostChoice {
    /// This host is its own from now on.
    Host(HostName),
    /// None is free that matches.
    None(HostShortage),
    /// The host that it has noted is not available to it.
    NotedUnavailable(HostName),
}

impl HostRequirement {
    /// Whether a host is what is required, free or not. A host whose facts are unknown does not match a required one.
    fn mismatch(&self, host: &PoolHost) -> Option<Mismatch> {
        if !self.selector.matches(&host.labels) {
            Some(Mismatch::Labels)
        } else if self.failure_domain.is_some() && self.failure_domain != host.failure_domain {
            Some(Mismatch::FailureDomain)
        } else if self.distribution.is_some() && self.distribution != host.distribution {
            Some(Mismatch::Distribution)
        } else if self.architecture.is_some() && self.architecture != host.architecture {
            Some(Mismatch::Architecture)
        } else {
            None
        }
    }
}

/// Why a host does not match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mismatch {
    Labels,
    FailureDomain,
    Distribution,
    Architecture,
}

/// Chooses for every waiting Machine. The choices are by `uid`; `group` is that of a Machine that has claimed a host, by its
/// `uid`.
///
/// The time is that of looking at each host once for each distinct requirement, and of sorting those that match.
pub fn choose<'a>(
    machines: &'a [WaitingMachine],
    hosts: &[&'a PoolHost],
    group: impl Fn(&str) -> &'a str,
) -> BTreeMap<String, HostChoice> {
    let mut waiting: Vec<&WaitingMachine> = machines.iter().collect();
    waiting.sort_by(|one, other| (one.created, &one.name).cmp(&(other.created, &other.name)));
    let by_claim: BTreeMap<&str, &PoolHost> =
        hosts.iter().rev().filter_map(|host| Some((host.claim.as_deref()?, *host))).collect();
    let mut choices = BTreeMap::new();
    let mut spread: BTreeMap<&str, BTreeMap<Option<&str>, usize>> = BTreeMap::new();
    for host in hosts {
        if let Some(claim) = &host.claim {
            *spread.entry(group(claim)).or_default().entry(host.failure_domain.as_deref()).or_default() += 1;
        }
    }
    // What is noted is taken, before anything is chosen.
    let mut taken: BTreeSet<&HostName> = BTreeSet::new();
    let noting = waiting
        .iter()
        .filter(|machine| machine.noted.is_some() || by_claim.contains_key(machine.uid.as_str()));
    let by_name: BTreeMap<&HostName, &PoolHost> = if noting.clone().next().is_some() {
        hosts.iter().map(|host| (&host.name, *host)).collect()
    } else {
        BTreeMap::new()
    };
    for machine in noting {
        let claimed = by_claim.get(machine.uid.as_str()).map(|host| &host.name);
        let Some(name) = claimed.or(machine.noted.as_ref()) else { continue };
        let host = by_name.get(name).copied().filter(|host| match &host.claim {
            Some(claim) => *claim == machine.uid,
            None => host.state == PoolState::Available && !taken.contains(name),
        });
        let choice = match host {
            Some(host) => {
                if host.claim.is_none() {
                    let domains = spread.entry(&machine.group).or_default();
                    *domains.entry(host.failure_domain.as_deref()).or_default() += 1;
                }
                taken.insert(&host.name);
                HostChoice::Host(host.name.clone())
            }
            None => HostChoice::NotedUnavailable(name.clone()),
        };
        choices.insert(machine.uid.clone(), choice);
    }
    let mut candidates: BTreeMap<&HostRequirement, Candidates<'_>> = BTreeMap::new();
    for machine in waiting {
        if choices.contains_key(&machine.uid) {
            continue;
        }
        let candidates = candidates
            .entry(&machine.requirement)
            .or_insert_with(|| Candidates::of(&machine.requirement, hosts));
        let domains = spread.entry(&machine.group).or_default();
        let choice = match candidates.take(domains, &mut taken) {
            Some(host) => HostChoice::Host(host.clone()),
            None => HostChoice::None(candidates.shortage()),
        };
        choices.insert(machine.uid.clone(), choice);
    }
    choices
}

/// Hosts that are available, match and are noted by no Machine: what a rollout can count on.
pub fn free_hosts(requirement: &HostRequirement, machines: &[WaitingMachine], hosts: &[&PoolHost]) -> u32 {
    let noted: BTreeSet<&HostName> = machines.iter().filter_map(|machine| machine.noted.as_ref()).collect();
    let free = hosts.iter().filter(|host| {
        host.state == PoolState::Available
            && host.claim.is_none()
            && !noted.contains(&host.name)
            && requirement.mismatch(host).is_none()
    });
    u32::try_from(free.count()).unwrap_or(u32::MAX)
}

/// Hosts that match, also those that are in use; not those that only a person returns to the pool.
pub(super) fn matching<'a>(
    requirement: &HostRequirement,
    hosts: &[&'a PoolHost],
) -> impl Iterator<Item = &'a PoolHost> {
    let matches = |host: &&PoolHost| requirement.mismatch(host).is_none();
    hosts.iter().copied().filter(|host| host.state != PoolState::Quarantined).filter(matches)
}

#[cfg(test)]
mod tests;
