//! The free hosts that match one requirement, by failure domain.

use std::collections::{BTreeMap, BTreeSet};

use super::shortage::HostShortage;
use super::{HostRequirement, Mismatch, PoolHost, PoolState};
use crate::model::name::HostName;

/// Of one requirement; shared by all Machines that have it.
pub(super) struct Candidates<'a> {
    /// The best host of each domain last. A host that was taken for another requirement is still here.
    domains: BTreeMap<Option<&'a str>, Vec<&'a PoolHost>>,
    /// Free hosts at the beginning.
    free: u32,
    /// Why the others do not count.
    others: HostShortage,
}

impl<'a> Candidates<'a> {
    pub(super) fn of(requirement: &HostRequirement, hosts: &[&'a PoolHost]) -> Self {
        let mut candidates = Self { domains: BTreeMap::new(), free: 0, others: HostShortage::default() };
        for host in hosts {
            candidates.add(host, requirement.mismatch(host));
        }
        for hosts in candidates.domains.values_mut() {
            // None before any time: a host that has never failed is the best.
            hosts.sort_by(|one, other| (other.last_failure, &other.name).cmp(&(one.last_failure, &one.name)));
        }
        candidates
    }

    fn add(&mut self, host: &'a PoolHost, mismatch: Option<Mismatch>) {
        let others = &mut self.others;
        others.hosts += 1;
        match (mismatch, host.state) {
            (Some(Mismatch::Labels), _) => others.other_labels += 1,
            (Some(Mismatch::FailureDomain), _) => others.other_domain += 1,
            (Some(Mismatch::Distribution), _) => others.other_distribution += 1,
            (Some(Mismatch::Architecture), _) => others.other_architecture += 1,
            (None, PoolState::Quarantined) => others.quarantined += 1,
            (None, PoolState::Available) if host.claim.is_none() => {
                self.free += 1;
                self.domains.entry(host.failure_domain.as_deref()).or_default().push(host);
            }
            (None, PoolState::Available | PoolState::Busy) => others.in_use += 1,
        }
    }

    /// Takes the best host that is not taken. `spread` is the number of Machines of the group by domain.
    pub(super) fn take(
        &mut self,
        spread: &mut BTreeMap<Option<&'a str>, usize>,
        taken: &mut BTreeSet<&'a HostName>,
    ) -> Option<&'a HostName> {
        self.domains.retain(|_, hosts| {
            while hosts.last().is_some_and(|host| taken.contains(&host.name)) {
                hosts.pop();
            }
            !hosts.is_empty()
        });
        let rank = |domain: &Option<&str>, host: &PoolHost| {
            (spread.get(domain).copied().unwrap_or(0), host.last_failure, host.name.clone())
        };
        let best = self.domains.iter().filter_map(|(domain, hosts)| Some((*domain, *hosts.last()?)));
        let (domain, host) = best.min_by_key(|(domain, host)| rank(domain, host))?;
        taken.insert(&host.name);
        *spread.entry(domain).or_default() += 1;
        Some(&host.name)
    }

    /// Why none is left.
    pub(super) fn shortage(&self) -> HostShortage {
        HostShortage { in_use: self.others.in_use + self.free, ..self.others }
    }
}
