//! What was observed on a Host.

use std::net::IpAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::facts::Facts;

/// The part of the facts of a host by which it is chosen and recognised.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HostFacts {
    /// `/etc/machine-id`.
    pub machine_id: String,
    /// `/proc/sys/kernel/random/boot_id`.
    pub boot_id: String,
    /// `ID` of os-release(5): debian, ubuntu.
    pub operating_system: String,
    /// `VERSION_ID` of os-release(5): 13, 24.04.
    pub operating_system_version: String,
    /// amd64, arm64.
    pub architecture: String,
    /// `uname -r`.
    pub kernel: String,
    /// Number of logical processors.
    pub cpus: i64,
    /// Memory in bytes.
    pub memory: i64,
    /// Addresses of all interfaces but the loopback interface.
    #[schemars(length(max = 256))]
    pub addresses: Vec<String>,
}

impl From<&Facts> for HostFacts {
    fn from(facts: &Facts) -> Self {
        let addresses = facts.addresses.values().flatten();
        Self {
            machine_id: facts.machine_id.clone(),
            boot_id: facts.boot_id.clone(),
            operating_system: facts.os.id.clone(),
            operating_system_version: facts.os.version.clone(),
            architecture: facts.arch.clone(),
            kernel: facts.kernel.clone(),
            cpus: facts.cpus.into(),
            memory: i64::try_from(facts.memory).unwrap_or(i64::MAX),
            addresses: addresses.map(|cidr| cidr.address.to_string()).collect(),
        }
    }
}

impl HostFacts {
    /// The addresses that can be parsed.
    pub fn addresses(&self) -> impl Iterator<Item = IpAddr> {
        self.addresses.iter().filter_map(|address| address.parse().ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_of_a_host_are_those_that_were_observed() {
        let facts = HostFacts::from(&Facts::examples()[0]);
        assert_eq!(
            (facts.operating_system.as_str(), facts.operating_system_version.as_str()),
            ("debian", "13")
        );
        assert_eq!((facts.cpus, facts.memory), (4, 8 << 30));
        assert_eq!(facts.addresses, ["192.0.2.1"]);
        assert_eq!(facts.addresses().collect::<Vec<_>>(), [IpAddr::from([192, 0, 2, 1])]);
    }
}
