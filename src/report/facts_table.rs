//! Facts of hosts as a table.

use std::collections::BTreeMap;
use std::net::IpAddr;

use super::table::table;
use crate::model::facts::Facts;

const HEAD: [&str; 9] =
    ["NAME", "OS", "ARCH", "CPUS", "MEMORY", "ADDRESSES", "KERNEL", "FREE BELOW /VAR", "MACHINE-ID"];
/// Columns without `-o wide`.
const NARROW: usize = 6;

/// One line for each host.
pub fn text(hosts: &BTreeMap<&str, &Facts>, wide: bool) -> String {
    let columns = if wide { HEAD.len() } else { NARROW };
    let rows: Vec<Vec<String>> =
        hosts.iter().map(|(name, facts)| cells(name, facts).into_iter().take(columns).collect()).collect();
    table(&HEAD[..columns], &rows)
}

fn cells(name: &str, facts: &Facts) -> [String; 9] {
    let addresses = facts.addresses.values().flatten().filter(|cidr| !is_link_local(cidr.address));
    [
        name.to_owned(),
        format!("{} {}", facts.os.id, facts.os.version).trim_end().to_owned(),
        facts.arch.clone(),
        facts.cpus.to_string(),
        gibibytes(facts.memory),
        addresses.map(|cidr| cidr.address.to_string()).collect::<Vec<_>>().join(","),
        facts.kernel.clone(),
        gibibytes(facts.disk_free),
        facts.machine_id.clone(),
    ]
}

/// Every interface has one, so they do not identify a host.
fn is_link_local(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(v6) if v6.is_unicast_link_local())
}

fn gibibytes(bytes: u64) -> String {
    let tenths = bytes / ((1 << 30) / 10);
    format!("{}.{} GiB", tenths / 10, tenths % 10)
}
