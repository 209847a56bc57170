//! The output of `ip -o addr show`.

use std::collections::BTreeMap;

use crate::model::facts::Cidr;

/// Addresses by interface, loopback left out.
pub(super) fn parse(text: &str) -> BTreeMap<String, Vec<Cidr>> {
    let mut addresses: BTreeMap<String, Vec<Cidr>> = BTreeMap::new();
    for (interface, cidr) in text.lines().filter_map(line).filter(|(interface, _)| interface != "lo") {
        addresses.entry(interface).or_default().push(cidr);
    }
    addresses
}

/// `2: eth0    inet 10.0.0.5/24 brd ...`, or `inet 10.0.0.5 peer 10.0.0.6/32` between two hosts.
fn line(line: &str) -> Option<(String, Cidr)> {
    let mut words = line.split_whitespace().skip(1);
    let interface = words.next()?;
    let interface = interface.split_once('@').map_or(interface, |(name, _)| name);
    if !matches!(words.next()?, "inet" | "inet6") {
        return None;
    }
    let local = words.next()?;
    let network = if words.next() == Some("peer") { words.next()? } else { local };
    let address = local.split('/').next()?.parse().ok()?;
    let prefix = network.rsplit_once('/').and_then(|(_, prefix)| prefix.parse().ok())?;
    Some((interface.to_owned(), Cidr { address, prefix }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_grouped_by_interface() {
        let text = "1: lo    inet 127.0.0.1/8 scope host lo\\       valid_lft forever\n\
                    2: host0@if7    inet 10.1.0.5/24 brd 10.1.0.255 scope global host0\\  valid_lft forever\n\
                    2: host0    inet6 fe80::1/64 scope link \\       valid_lft forever\n\
                    3: tun0    inet 10.9.0.1 peer 10.9.0.2/32 scope global tun0\\       valid_lft forever\n";
        let cidr = |address: &str, prefix| Cidr { address: address.parse().unwrap(), prefix };
        let expected = BTreeMap::from([
            ("host0".to_owned(), vec![cidr("10.1.0.5", 24), cidr("fe80::1", 64)]),
            ("tun0".to_owned(), vec![cidr("10.9.0.1", 32)]),
        ]);
        assert_eq!(parse(text), expected);
    }
}
