//! The ways that lead over other hosts: which bastions stand before a host, and how each of them is reached.

use std::collections::BTreeMap;

use super::Host;
use crate::model::name::HostName;
use crate::model::ssh_syntax::Hop;
use crate::model::ssh_target::SshTarget;

/// What a roster says of the way to one host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Way {
    /// From the first bastion to the last.
    pub(super) hops: Vec<Hop>,
    /// Whether it is the host's own and not from the defaults.
    pub(super) own: bool,
}

/// A way that leads in a circle: the hosts on it, of which the last is the first.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the way leads in a circle: {}", .0.iter().map(HostName::as_str).collect::<Vec<_>>().join(", "))]
pub(super) struct Circle(Vec<HostName>);

/// The bastion next to a host, with those before it.
///
/// A bastion that is a host of the roster has that host's settings, also its own way when it is the first one. Any
/// other is logged in to as [`Hop::target`] says. Where the way is from the defaults, a bastion on it goes
/// over those before it alone: so `defaults: { bastion: gate }` may stand beside a host `gate`.
///
/// # Errors
/// When the host would be reached over itself.
pub(super) fn bastion(
    host: &HostName,
    hosts: &BTreeMap<HostName, Host>,
    ways: &BTreeMap<HostName, Way>,
) -> Result<Option<Box<SshTarget>>, Circle> {
    follow(host, hosts, ways, &mut Vec::new())
}

fn follow(
    name: &HostName,
    hosts: &BTreeMap<HostName, Host>,
    ways: &BTreeMap<HostName, Way>,
    from: &mut Vec<HostName>,
) -> Result<Option<Box<SshTarget>>, Circle> {
    let circle = from.contains(name);
    from.push(name.clone());
    if circle {
        return Err(Circle(from.clone()));
    }
    let mut before: Option<Box<SshTarget>> = None;
    if let (Some(way), Some(host)) = (ways.get(name), hosts.get(name)) {
        for (place, hop) in way.hops.iter().enumerate() {
            let Some(named) = hop.host.parse::<HostName>().ok().and_then(|name| hosts.get(&name)) else {
                before = Some(Box::new(SshTarget { bastion: before, ..hop.target(&host.ssh) }));
                continue;
            };
            if named.name == *name && !way.own {
                break;
            }
            if named.name == *name || place == 0 {
                before = follow(&named.name, hosts, ways, from)?;
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

    /// `user@host:port` of each bastion of host `h`, from the first to the last.
    fn way(text: &str) -> Result<Vec<String>, String> {
        let roster =
            Roster::parse(&[Document { file: "r", text }]).map_err(|problems| problems.to_string())?;
        let mut way = Vec::new();
        let mut bastion = &roster.hosts[&"h".parse().unwrap()].ssh.bastion;
        while let Some(this) = bastion {
            assert!(!this.sudo);
            way.insert(0, format!("{}@{}", this.user, this.address()));
            bastion = &this.bastion;
        }
        Ok(way)
    }

    #[test]
    fn a_way_leads_over_addresses_and_over_hosts_of_the_roster() {
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
            assert_eq!(way(&text), Ok(expected.into_iter().map(str::to_owned).collect()), "{text}");
        }
    }

    #[test]
    fn a_way_does_not_lead_in_a_circle() {
        for (text, expected) in [
            ("hosts: {h: {bastion: h}}", "r:1:22: bastion: the way leads in a circle: h, h"),
            (
                "hosts: {h: {bastion: a}, a: {bastion: h}}",
                "r:1:22: bastion: the way leads in a circle: h, a, h\nr:1:39: bastion: the way leads in a circle: a, h, a",
            ),
        ] {
            assert_eq!(way(text), Err(expected.to_owned()));
        }
    }

    #[test]
    fn a_bastion_is_new_where_its_host_may_be_and_has_the_host_s_keys() {
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
