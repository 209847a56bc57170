//! Why a Machine waits for a host.

use std::fmt;

/// How many hosts the pool has, and why each is not the one. Displays as the message of a condition:
/// `no host is free: some in use, some with another distribution`. It has no numbers: with them, each change of a host would
/// be a write of every Machine that waits.
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
        f.write_str("no host is free")?;
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
            let share = if *count == self.hosts { "all" } else { "some" };
            write!(f, "{}{share} {reason}", if index == 0 { ": " } else { ", " })?;
        }
        Ok(())
    }
}
