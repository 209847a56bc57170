//! The file of nameservers for pods that use the host's.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

/// Of the host's own programs (resolv.conf(5)).
pub(super) const HOST: &str = "/etc/resolv.conf";
/// Of systemd-resolved: the nameservers that its own, on 127.0.0.53, forwards to (systemd-resolved.service(8)).
pub(super) const RESOLVED: &str = "/run/systemd/resolve/resolv.conf";

/// Where systemd-resolved listens.
const STUB: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 53));

/// In the network of a pod, a loopback address is the pod itself: CoreDNS would forward to itself.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Resolver {
    /// Empty where the host has none.
    pub(super) file: &'static str,
    /// Those in the file, none when one of them is a loopback address.
    pub(super) nameservers: Vec<IpAddr>,
}

impl Resolver {
    pub(super) fn of(files: &BTreeMap<&str, String>) -> Self {
        let Some(text) = files.get(HOST) else { return Self { file: "", nameservers: Vec::new() } };
        let nameservers = nameservers(text);
        if !nameservers.iter().any(IpAddr::is_loopback) {
            return Self { file: HOST, nameservers };
        }
        // While resolved knows none, its file is still the one: a kubelet is not restarted for a link that is down.
        match files.get(RESOLVED).map(|text| self::nameservers(text)) {
            Some(forwarders)
                if !forwarders.iter().any(IpAddr::is_loopback)
                    && (nameservers.contains(&STUB) || !forwarders.is_empty()) =>
            {
                Self { file: RESOLVED, nameservers: forwarders }
            }
            // Pods in the host's network still reach it.
            _ => Self { file: HOST, nameservers: Vec::new() },
        }
    }
}

fn nameservers(text: &str) -> Vec<IpAddr> {
    text.lines().filter_map(nameserver).collect()
}

/// An address may carry a zone (`fe80::1%eth0`), which is left out.
fn nameserver(line: &str) -> Option<IpAddr> {
    let mut words = line.split_whitespace();
    (words.next()? == "nameserver").then_some(())?;
    words.next()?.split('%').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_file_are_understood() {
        assert_eq!(nameserver("nameserver fe80::1%eth0"), Some("fe80::1".parse().unwrap()));
        assert_eq!(nameserver("# nameserver 10.0.0.1"), None);
    }

    #[test]
    fn a_pod_is_not_given_a_nameserver_on_its_own_loopback_address() {
        const RESOLV_CONF: &str = "nameserver 127.0.0.53\noptions edns0 trust-ad\nsearch site.example\n";
        let cases = [
            (None, None, "", vec![]),
            (None, Some("nameserver 10.0.0.1"), "", vec![]),
            (Some("search site.example"), None, HOST, vec![]),
            (Some("nameserver 10.0.0.1\nnameserver fd00::1"), None, HOST, vec!["10.0.0.1", "fd00::1"]),
            (Some("nameserver 10.0.0.1"), Some("nameserver 10.0.0.2"), HOST, vec!["10.0.0.1"]),
            (Some(RESOLV_CONF), Some("nameserver 10.0.0.2\n"), RESOLVED, vec!["10.0.0.2"]),
            (Some(RESOLV_CONF), Some("# No DNS servers known.\n"), RESOLVED, vec![]),
            (Some("nameserver 127.0.0.1"), Some("# No DNS servers known.\n"), HOST, vec![]),
            (Some(RESOLV_CONF), Some("nameserver 127.0.0.1\n"), HOST, vec![]),
            // dnsmasq or unbound, and a second for when it does not run.
            (Some("nameserver ::1\nnameserver 10.0.0.1"), None, HOST, vec![]),
        ];
        for (host, resolved, file, nameservers) in cases {
            let present = [(HOST, host), (RESOLVED, resolved)].into_iter();
            let files: BTreeMap<&str, String> =
                present.filter_map(|(path, text)| Some((path, text?.to_owned()))).collect();
            let nameservers: Vec<IpAddr> =
                nameservers.iter().map(|address| address.parse().unwrap()).collect();
            assert_eq!(Resolver::of(&files), Resolver { file, nameservers }, "{host:?} {resolved:?}");
        }
    }
}
