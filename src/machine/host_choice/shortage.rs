//! Why a Machine waits for a host.

use std::fmt;

/// How many hosts the pool has, and why each is not the one. Displays as the message of a condition:
/// `0 of 12 hosts are free: 9 in use, 2 quarantined, 1 with another distribution`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HostShortage {
    /// All hosts of the pool.
    pub hosts: u32,
    /// Hosts that match and have a Machine, or are given to one that has waited longer.
    pub in_use: u32,
    /// Hosts that match and are quarantined.
    pub quarantined: u32,
    /// Hosts with other labels than the selector.
    pub other_labels: u32,
    /// Hosts with matching labels in another failure domain, or in none.
    pub other_domain: u32,
    /// Hosts with matching labels and another distribution, or an unknown one.
    pub other_distribution: u32,
    /// Hosts with matching labels and distribution, and another architecture, or an unknown one.
    pub other_architecture: u32,
}

impl fmt::Display for HostShortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.hosts == 0 {
            return f.write_str("the pool has no hosts");
        }
        write!(f, "0 of {} hosts are free", self.hosts)?;
        let reasons = [
            (self.in_use, "in use"),
            (self.quarantined, "quarantined"),
            (self.other_labels, "with labels that the selector does not match"),
            (self.other_domain, "in another failure domain"),
            (self.other_distribution, "with another distribution"),
            (self.other_architecture, "with another architecture"),
        ];
        let reasons = reasons.iter().filter(|(count, _)| *count > 0);
        for (index, (count, reason)) in reasons.enumerate() {
            write!(f, "{}{count} {reason}", if index == 0 { ": " } else { ", " })?;
        }
        Ok(())
    }
}
