//! Hosts outside a cluster's API: YAML files, in `roster/` or given with `--roster`.
//!
//! ```yaml
//! defaults: { user: ops, sudo: true }
//! hosts:
//!   node-1: { address: 10.0.0.2, roles: [master, etcd], labels: { rack: a } }
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_saphyr::{Location, Spanned};

mod bastion;

use self::bastion::BastionRoute;
use super::document::{Booleans, Document, Problem, Problems};
use super::name::{HOST_NAME, HostName};
use super::node::{NodeSpec, Taint};
use super::one_or_many::OneOrMany;
use super::role::Role;
use super::ssh_syntax::{self, DEFAULT_KEYS, DEFAULT_PORT, DEFAULT_USER, SshSyntaxError};
use super::ssh_target::{HostKeyPolicy, SshTarget};
use super::values::OWN_VALUES;

/// Hosts, and the values that they share.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Roster {
    /// By name.
    pub hosts: BTreeMap<HostName, Host>,
    /// The `vars` of the files' defaults, merged: the root `cluster` of templates. A later file takes precedence.
    pub vars: BTreeMap<String, serde_json::Value>,
}

/// A machine that metalform reaches over SSH.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Host {
    /// Also the name of its Node.
    pub name: HostName,
    /// With defaults in place of absent fields.
    pub ssh: SshTarget,
    /// Never empty.
    pub roles: BTreeSet<Role>,
    /// For selectors and templates.
    pub labels: BTreeMap<String, String>,
    /// Taints of its Node; empty in a file.
    pub taints: Vec<Taint>,
    /// Additional fields of the root `node` of templates.
    pub vars: BTreeMap<String, serde_json::Value>,
}

impl From<NodeSpec> for Host {
    fn from(node: NodeSpec) -> Self {
        let NodeSpec { name, roles, ssh, taints, labels, control_plane_ip, workload_plane_ip, .. } = node;
        let addresses = [("control_plane_ip", control_plane_ip), ("workload_plane_ip", workload_plane_ip)];
        let vars =
            addresses.into_iter().filter_map(|(field, ip)| Some((field.to_owned(), ip?.to_string().into())));
        Self { name, ssh, roles, labels, taints, vars: vars.collect() }
    }
}

impl FromIterator<Host> for Roster {
    fn from_iter<T: IntoIterator<Item = Host>>(hosts: T) -> Self {
        let hosts = hosts.into_iter().map(|host| (host.name.clone(), host)).collect();
        Self { hosts, vars: BTreeMap::new() }
    }
}

/// A roster file.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "A metalform roster")]
struct File {
    /// Defaults of the fields of every host in this file.
    #[serde(default)]
    defaults: Entry,
    /// Hosts by name. The name is also the default of the address.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, Option<Entry>>", extend("propertyNames" = { "pattern": HOST_NAME }))]
    hosts: Hosts,
}

/// The fields of a host, or their defaults.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct Entry {
    /// An address, or a resolvable name.
    #[schemars(with = "Option<String>", extend("pattern" = r"^\S+$"))]
    address: Option<Spanned<String>>,
    /// SSH port; 22 by default.
    #[schemars(with = "Option<u16>", range(min = 1))]
    port: Option<Spanned<u16>>,
    /// SSH user; root by default.
    user: Option<String>,
    /// Paths of private keys to offer, absolute or below ~/.
    key: Option<OneOrMany>,
    /// Offer no other keys of the agent; false by default.
    identities_only: Option<bool>,
    /// Run programs with sudo; false by default.
    sudo: Option<bool>,
    /// The host key to accept, as in a .pub file, or accept-new; by default the one in known_hosts.
    #[schemars(with = "Option<String>")]
    host_key: Option<Spanned<String>>,
    /// Jump hosts, first hop first: [user@]address[:port], or hosts of this roster.
    bastion: Option<OneOrMany>,
    /// Roles, mapped to states by states/top.yaml; node by default.
    #[schemars(with = "Option<Vec<Role>>")]
    roles: Option<Vec<Spanned<String>>>,
    /// Labels for --on NAME=VALUE and for node.labels in templates.
    labels: BTreeMap<String, String>,
    /// Values for templates: node.NAME; those of defaults also cluster.NAME.
    vars: BTreeMap<String, serde_json::Value>,
}

impl Roster {
    /// The JSON schema (draft 7) of a file.
    pub fn schema() -> serde_json::Value {
        SchemaSettings::draft07().into_generator().into_root_schema_for::<File>().to_value()
    }

    /// Parses files. `defaults` apply to the hosts of the same file: a host's own field replaces the default, and
    /// `labels` and `vars` are merged by key. The default address is the name; the default role is [`Role::Node`].
    ///
    /// # Errors
    /// For each file a syntax problem alone, or every problem of its values; and hosts defined in two files.
    pub fn parse(documents: &[Document<'_>]) -> Result<Self, Problems> {
        let mut roster = Self::default();
        let mut problems = Vec::new();
        let mut routes = BTreeMap::new();
        let mut places = Vec::new();
        for document in documents {
            let file: File = match document.parse(Booleans::Strict) {
                Ok(file) => file,
                Err(Problems(found)) => {
                    problems.extend(found);
                    continue;
                }
            };
            for (name, entry) in file.hosts.0 {
                let route = entry.route(document, &file.defaults, &mut problems);
                let Some(host) = entry.host(document, &name, &file.defaults, &mut problems) else { continue };
                if let Some((route, at)) = route {
                    places.push((host.name.clone(), document, at));
                    routes.insert(host.name.clone(), route);
                }
                if let Some(first) = roster.hosts.insert(host.name.clone(), host) {
                    let message = format!("host {} is also defined in another file", first.name);
                    problems.push(document.problem(name.referenced, message));
                }
            }
            roster.vars.extend(file.defaults.vars);
        }
        if problems.is_empty() {
            let known = roster.hosts.clone();
            for (name, document, at) in places {
                match (bastion::bastion(&name, &known, &routes), roster.hosts.get_mut(&name)) {
                    (Ok(bastion), Some(host)) => host.ssh.bastion = bastion,
                    (Err(cycle), _) => problems.push(document.problem(at, cycle.to_string())),
                    (Ok(_), None) => {}
                }
            }
        }
        if problems.is_empty() { Ok(roster) } else { Err(Problems::in_order(problems)) }
    }
}

impl Entry {
    /// The host's bastions and their location.
    fn route(
        &self,
        document: &Document<'_>,
        defaults: &Self,
        problems: &mut Vec<Problem>,
    ) -> Option<(BastionRoute, Location)> {
        let given = self.bastion.as_ref().or(defaults.bastion.as_ref())?;
        let at = given.0.first()?.referenced;
        let mut hops = Vec::new();
        for part in &given.0 {
            match ssh_syntax::hops(&part.value) {
                Ok(some) => hops.extend(some),
                Err(error) => problems.push(document.problem(part.referenced, error.to_string())),
            }
        }
        Some((BastionRoute { hops, own: self.bastion.is_some() }, at))
    }

    fn host(
        self,
        document: &Document<'_>,
        name: &Spanned<String>,
        defaults: &Self,
        problems: &mut Vec<Problem>,
    ) -> Option<Host> {
        let before = problems.len();
        let mut tell = |at: Location, message: String| problems.push(document.problem(at, message));
        let host_name =
            name.value.parse::<HostName>().map_err(|error| tell(name.referenced, error.to_string())).ok();

        let address = self.address.as_ref().or(defaults.address.as_ref()).unwrap_or(name);
        if address.value.is_empty() || address.value.contains(char::is_whitespace) {
            tell(address.referenced, format!("address {:?} is empty or contains whitespace", address.value));
        }
        let port = self.port.as_ref().or(defaults.port.as_ref());
        if let Some(port) = port.filter(|port| port.value == 0) {
            tell(port.referenced, "port 0 is not between 1 and 65535".to_owned());
        }
        let mut ssh = SshTarget {
            host: address.value.clone(),
            port: port.map_or(DEFAULT_PORT, |port| port.value),
            user: self
                .user
                .as_ref()
                .or(defaults.user.as_ref())
                .map_or(DEFAULT_USER, String::as_str)
                .to_owned(),
            identity_files: DEFAULT_KEYS.iter().map(Into::into).collect(),
            identities_only: self.identities_only.or(defaults.identities_only).unwrap_or(false),
            sudo: self.sudo.or(defaults.sudo).unwrap_or(false),
            host_key: HostKeyPolicy::Known,
            bastion: None,
        };
        let mut refuse = |at: Location, error: SshSyntaxError| tell(at, error.to_string());
        if let Some(keys) = self.key.as_ref().or(defaults.key.as_ref()) {
            let path = |key: &Spanned<String>| {
                ssh_syntax::users_key_path(&key.value).map_err(|error| refuse(key.referenced, error)).ok()
            };
            ssh.identity_files = keys.0.iter().filter_map(path).collect();
        }
        if let Some(key) = self.host_key.as_ref().or(defaults.host_key.as_ref()) {
            match ssh_syntax::host_key(&key.value) {
                Ok(policy) => ssh.host_key = policy,
                Err(error) => refuse(key.referenced, error),
            }
        }
        let mut roles = BTreeSet::new();
        for role in self.roles.as_ref().or(defaults.roles.as_ref()).into_iter().flatten() {
            match role.value.parse::<Role>() {
                Ok(role) => {
                    roles.insert(role);
                }
                Err(error) => tell(role.referenced, error.to_string()),
            }
        }
        if roles.is_empty() {
            roles.insert(Role::Node);
        }
        let vars = merged(&defaults.vars, self.vars);
        for taken in OWN_VALUES.iter().filter(|own| vars.contains_key(**own)) {
            tell(name.referenced, format!("vars cannot set {taken:?}, which is a field of every node"));
        }
        let name = host_name.filter(|_| problems.len() == before)?;
        let labels = merged(&defaults.labels, self.labels);
        Some(Host { name, ssh, roles, labels, taints: Vec::new(), vars })
    }
}

fn merged<T: Clone>(defaults: &BTreeMap<String, T>, own: BTreeMap<String, T>) -> BTreeMap<String, T> {
    defaults.clone().into_iter().chain(own).collect()
}

/// Names with their locations, in the file's order. A host without a value is an empty entry.
#[derive(Default)]
struct Hosts(Vec<(Spanned<String>, Entry)>);

impl<'de> Deserialize<'de> for Hosts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct HostsVisitor;

        impl<'de> Visitor<'de> for HostsVisitor {
            type Value = Hosts;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a mapping of host names to hosts")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Hosts, A::Error> {
                let mut hosts = Vec::new();
                while let Some((name, entry)) = map.next_entry::<_, Option<Entry>>()? {
                    hosts.push((name, entry.unwrap_or_default()));
                }
                Ok(Hosts(hosts))
            }
        }

        deserializer.deserialize_map(HostsVisitor)
    }
}

#[cfg(test)]
#[path = "roster_tests.rs"]
mod tests;
