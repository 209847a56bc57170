//! Routes through bastions: the bastions of a host, and the SSH settings of each.

use std::collections::BTreeMap;

use super::Host;
use crate::model::name::HostName;
use crate::model::ssh_syntax::Hop;
use crate::model::ssh_target::SshTarget;

/// The bastions of a host, as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BastionRoute {
    /// From the first hop to the last.
    pub(super) hops: Vec<Hop>,
    /// Whether the host sets it, rather than the defaults.
    pub(super) own: bool,
}

/// A route through the host itself: the hosts on it, the first of which is also the last.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("bastion cycle: {}", .0.iter().map(HostName::as_str).collect::<Vec<_>>().join(" -> "))]
pub(super) struct BastionCycle(Vec<HostName>);

/// The last bastion before a host, with those before it.
///
/// A bastion that is a host of the roster has that host's settings, and as the first hop also its route. Any other
/// has the settings of [`Hop::target`]. With a route from the defaults, a bastion on it uses the hops before it
/// only: `defaults: { bastion: gate }` may be combined with a host `gate`.
///
/// # Errors
/// When the route leads through the host itself.
pub(super) fn bastion(
    host: &HostName,
    hosts: &BTreeMap<HostName, Host>,
    routes: &BTreeMap<HostName, BastionRoute>,
) -> Result<Option<Box<SshTarget>>, BastionCycle> {
    follow(host, hosts, routes, &mut Vec::new())
}

fn follow(
    name: &HostName,
    hosts: &BTreeMap<HostName, Host>,
    routes: &BTreeMap<HostName, BastionRoute>,
    from: &mut Vec<HostName>,
) -> Result<Option<Box<SshTarget>>, BastionCycle> {
    let cycle = from.contains(name);
    from.push(name.clone());
    if cycle {
        return Err(BastionCycle(from.clone()));
    }
    let mut before: Option<Box<SshTarget>> = None;
    if let (Some(route), Some(host)) = (routes.get(name), hosts.get(name)) {
        for (place, hop) in route.hops.iter().enumerate() {
            let Some(named) = hop.host.parse::<HostName>().ok().and_then(|name| hosts.get(&name)) else {
                before = Some(Box::new(SshTarget { bastion: before, ..hop.target(&host.ssh) }));
                continue;
            };
            if named.name == *name && !route.own {
                break;
            }
            if named.name == *name || place == 0 {
                before = follow(&named.name, hosts, routes, from)?;
            }
            before = Some(Box::new(SshTarget {
                user: hop.user.clone().unwrap_or_else(|| named.ssh.user.clone()),
                port: hop.port.unwrap_or(named.ssh.port),
                sudo: false,
                bastion: before,
                ..named.ssh.clone()
            }));
        }
    }
    from.pop();
    Ok(before)
}

#[cfg(test)]
mod tests {
    use crate::model::document::Document;
    use crate::model::roster::Roster;

    /// `user@host:port` of each bastion of host `h`, from the first hop to the last.
    fn route(text: &str) -> Result<Vec<String>, String> {
        let roster =
            Roster::parse(&[Document { file: "r", text }]).map_err(|problems| problems.to_string())?;
        let mut route = Vec::new();
        let mut bastion = &roster.hosts[&"h".parse().unwrap()].ssh.bastion;
        while let Some(this) = bastion {
            assert!(!this.sudo);
            route.insert(0, format!("{}@{}", this.user, this.address()));
            bastion = &this.bastion;
        }
        Ok(route)
    }

    #[test]
    fn a_route_leads_through_addresses_and_hosts_of_the_roster() {
        let gates = "gate: {address: 10.0.0.1, port: 2222, user: jump, sudo: true}, far: {address: 10.0.0.2, bastion: gate}";
        for (text, expected) in [
            ("hosts: {h: {user: me, bastion: 'gate'}}".to_owned(), vec!["me@gate:22"]),
            ("hosts: {h: {bastion: 'a, x@b:23'}}".to_owned(), vec!["root@a:22", "x@b:23"]),
            ("hosts: {h: {bastion: [a, 'x@b:23']}}".to_owned(), vec!["root@a:22", "x@b:23"]),
            (format!("hosts: {{h: {{bastion: gate}}, {gates}}}"), vec!["jump@10.0.0.1:2222"]),
            (format!("hosts: {{h: {{bastion: 'me@gate:23'}}, {gates}}}"), vec!["me@10.0.0.1:23"]),
            (
                format!("hosts: {{h: {{bastion: far}}, {gates}}}"),
                vec!["jump@10.0.0.1:2222", "root@10.0.0.2:22"],
            ),
            (format!("hosts: {{h: {{bastion: [x, far]}}, {gates}}}"), vec!["root@x:22", "root@10.0.0.2:22"]),
            ("{defaults: {bastion: [a, h, b]}, hosts: {h: {}, a: {}}}".to_owned(), vec!["root@a:22"]),
            ("{defaults: {bastion: h}, hosts: {h: {}}}".to_owned(), vec![]),
            ("{defaults: {bastion: gate}, hosts: {gate: {address: g}, h: {}}}".to_owned(), vec!["root@g:22"]),
        ] {
            assert_eq!(route(&text), Ok(expected.into_iter().map(str::to_owned).collect()), "{text}");
        }
    }

    #[test]
    fn a_route_has_no_cycle() {
        for (text, expected) in [
            ("hosts: {h: {bastion: h}}", "r:1:22: bastion cycle: h -> h"),
            (
                "hosts: {h: {bastion: a}, a: {bastion: h}}",
                "r:1:22: bastion cycle: h -> a -> h\nr:1:39: bastion cycle: a -> h -> a",
            ),
        ] {
            assert_eq!(route(text), Err(expected.to_owned()));
        }
    }

    #[test]
    fn a_bastion_has_the_keys_and_the_host_key_policy_of_its_host() {
        let text = "hosts: {h: {bastion: a, host_key: accept-new, key: /k, identities_only: true}}";
        let roster = Roster::parse(&[Document { file: "r", text }]).unwrap();
        let host = &roster.hosts[&"h".parse().unwrap()].ssh;
        let bastion = host.bastion.as_ref().unwrap();
        assert_eq!(
            (&bastion.host_key, &bastion.identity_files, bastion.identities_only),
            (&host.host_key, &host.identity_files, true)
        );
    }
}
