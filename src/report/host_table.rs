//! Hosts of the pool as a table and as text.

use super::table::{columns, table};
use crate::service::host_list::ListedHost;

const HEAD: [&str; 11] =
    ["NAME", "ADDRESS", "STATE", "MACHINE", "OS", "ZONE", "ARCH", "CPUS", "MEMORY", "FAILURES", "SINCE"];
/// Columns without `-o wide`.
const NARROW: usize = 5;

/// One line for each Host.
pub fn text(hosts: &[ListedHost], wide: bool) -> String {
    let columns = if wide { HEAD.len() } else { NARROW };
    let rows: Vec<Vec<String>> =
        hosts.iter().map(|host| cells(host).into_iter().take(columns).collect()).collect();
    table(&HEAD[..columns], &rows)
}

/// What is known of one Host, one line a field.
pub fn details(host: &ListedHost) -> String {
    let mut rows: Vec<[String; 2]> = HEAD
        .iter()
        .zip(cells(host))
        .filter(|(_, value)| value != "-")
        .map(|(head, value)| [format!("{}:", head.to_lowercase()), value])
        .collect();
    rows.extend(host.quarantine.clone().map(|reason| ["quarantine:".to_owned(), reason]));
    columns(&rows, "  ").into_iter().map(|line| line + "\n").collect()
}

fn cells(host: &ListedHost) -> [String; 11] {
    let dash = || "-".to_owned();
    let or_dash = |value: &Option<String>| value.clone().unwrap_or_else(dash);
    [
        host.name.clone(),
        host.address.clone(),
        host.state.to_string(),
        or_dash(&host.machine),
        or_dash(&host.os),
        or_dash(&host.zone),
        or_dash(&host.architecture),
        host.cpus.map_or_else(dash, |cpus| cpus.to_string()),
        host.memory.map_or_else(dash, |bytes| format!("{} MiB", bytes >> 20)),
        host.failures.to_string(),
        host.state_since.map_or_else(dash, |since| since.to_string()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::api::host::HostObject;

    fn hosts() -> Vec<ListedHost> {
        [
            "{metadata: {name: a}, spec: {address: 10.0.0.2}}",
            "{metadata: {name: rack-2, annotations: {metalform.dev/quarantine: smoke}}, spec: {address: 10.0.0.3, failureDomain: b}, status: {state: Quarantined, failures: 3,
              stateSince: '2026-11-23T12:00:00Z', claim: {machine: {namespace: kube-system, name: m-1, uid: u}, token: 1, since: '2026-11-23T11:00:00Z'},
              facts: {machineId: a, bootId: b, operatingSystem: debian, operatingSystemVersion: '13', architecture: amd64,
              kernel: k, cpus: 4, memory: 8589934592, addresses: []}}}",
        ]
        .map(|yaml| {
            let yaml = yaml.replacen('{', "{apiVersion: metalform.dev/v1alpha1, kind: Host, ", 1);
            ListedHost::from(&serde_saphyr::from_str::<HostObject>(&yaml).unwrap())
        })
        .into()
    }

    #[test]
    fn what_is_not_known_is_a_dash() {
        let hosts = hosts();
        assert_eq!(
            text(&hosts, false),
            "NAME     ADDRESS    STATE         MACHINE           OS\n\
             a        10.0.0.2   Unknown       -                 -\n\
             rack-2   10.0.0.3   Quarantined   kube-system/m-1   debian 13\n"
        );
        let wide = text(&hosts, true);
        assert!(
            wide.ends_with("debian 13   b      amd64   4      8192 MiB   3          2026-11-23T12:00:00Z\n"),
            "{wide}"
        );
    }

    #[test]
    fn details_leave_out_what_is_not_known() {
        let hosts = hosts();
        assert_eq!(
            details(&hosts[0]),
            "name:      a\naddress:   10.0.0.2\nstate:     Unknown\nfailures:  0\n"
        );
        assert!(details(&hosts[1]).ends_with("quarantine:  smoke\n"));
    }
}
