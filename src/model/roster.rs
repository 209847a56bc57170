//! Hosts that metalform may reach without asking an API: YAML files, in `roster/` or given with `--roster`.
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

use self::bastion::Way;
use super::document::{Booleans, Document, Problem, Problems};
use super::name::{HOST_NAME, HostName};
use super::node::NodeSpec;
use super::one_or_many::OneOrMany;
use super::role::Role;
use super::ssh_syntax::{self, DEFAULT_KEYS, DEFAULT_PORT, DEFAULT_USER, SshSyntaxError};
use super::ssh_target::{HostKeyPolicy, SshTarget};

/// What templates know of a host whatever its `vars` are.
pub const OWN_VALUES: [&str; 4] = ["name", "roles", "labels", "address"];

/// Hosts, and what holds for them all.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Roster {
    /// By name.
    pub hosts: BTreeMap<HostName, Host>,
    /// The `vars` of the files' defaults: the `cluster` of templates. Of two files, the later one counts.
    pub vars: BTreeMap<String, serde_json::Value>,
}

/// One host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Host {
    /// What it is called, and will be called as a Node.
    pub name: HostName,
    /// How it is reached.
    pub ssh: SshTarget,
    /// What it is for; never empty.
    pub roles: BTreeSet<Role>,
    /// For selecting hosts.
    pub labels: BTreeMap<String, String>,
    /// For templates.
    pub vars: BTreeMap<String, serde_json::Value>,
}

impl From<NodeSpec> for Host {
    fn from(node: NodeSpec) -> Self {
        let NodeSpec { name, roles, version: _, ssh, taints: _, labels } = node;
        Self { name, ssh, roles, labels, vars: BTreeMap::new() }
    }
}

impl FromIterator<Host> for Roster {
    fn from_iter<T: IntoIterator<Item = Host>>(hosts: T) -> Self {
        let hosts = hosts.into_iter().map(|host| (host.name.clone(), host)).collect();
        Self { hosts, vars: BTreeMap::new() }
    }
}

/// Hosts that metalform may reach over SSH.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "A roster of metalform")]
struct File {
    /// What every host has that does not say otherwise.
    #[serde(default)]
    defaults: Entry,
    /// By name, which is a host's address where it has no other.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, Option<Entry>>", extend("propertyNames" = { "pattern": HOST_NAME }))]
    hosts: Hosts,
}

/// A host, or what hosts have that do not say otherwise.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct Entry {
    /// An address, or a name that resolves.
    #[schemars(with = "Option<String>", extend("pattern" = r"^\S+$"))]
    address: Option<Spanned<String>>,
    /// Of its sshd; 22 by default.
    #[schemars(with = "Option<u16>", range(min = 1))]
    port: Option<Spanned<u16>>,
    /// To log in as; root by default.
    user: Option<String>,
    /// Private keys to offer, by their absolute paths.
    key: Option<OneOrMany>,
    /// Whether an agent may offer only these keys.
    identities_only: Option<bool>,
    /// Whether programs run under sudo; false by default.
    sudo: Option<bool>,
    /// The only key to accept, as in a .pub file; what known_hosts says by default.
    #[schemars(with = "Option<String>")]
    host_key: Option<Spanned<String>>,
    /// The way to it: user@host:port, or a host of the roster; of several, the nearest first.
    bastion: Option<OneOrMany>,
    /// What it is for: states/top.yaml says which states that means; node by default.
    #[schemars(with = "Option<Vec<Role>>")]
    roles: Option<Vec<Spanned<String>>>,
    /// For --on NAME=VALUE.
    labels: BTreeMap<String, String>,
    /// For templates: node.NAME, and those of the defaults cluster.NAME too.
    vars: BTreeMap<String, serde_json::Value>,
}

impl Roster {
    /// The JSON schema (draft 7) of a file.
    pub fn schema() -> serde_json::Value {
        SchemaSettings::draft07().into_generator().into_root_schema_for::<File>().to_value()
    }

    /// Reads files. `defaults` hold for the hosts of the same file: a host's own field takes the place of
    /// the default, and `labels` and `vars` are merged key by key. An address left out is the name; a role
    /// left out is [`Role::Node`].
    ///
    /// # Errors
    /// For each file a problem of form alone, or every problem of its values; and names that stand in two
    /// files.
    pub fn parse(documents: &[Document<'_>]) -> Result<Self, Problems> {
        let mut roster = Self::default();
        let mut problems = Vec::new();
        let mut ways = BTreeMap::new();
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
                let way = entry.way(document, &file.defaults, &mut problems);
                let Some(host) = entry.host(document, &name, &file.defaults, &mut problems) else { continue };
                if let Some((way, at)) = way {
                    places.push((host.name.clone(), document, at));
                    ways.insert(host.name.clone(), way);
                }
                if let Some(first) = roster.hosts.insert(host.name.clone(), host) {
                    let message = format!("host {} stands in another file too", first.name);
                    problems.push(document.problem(name.referenced, message));
                }
            }
            roster.vars.extend(file.defaults.vars);
        }
        if problems.is_empty() {
            let known = roster.hosts.clone();
            for (name, document, at) in places {
                match (bastion::bastion(&name, &known, &ways), roster.hosts.get_mut(&name)) {
                    (Ok(bastion), Some(host)) => host.ssh.bastion = bastion,
                    (Err(circle), _) => problems.push(document.problem(at, format!("bastion: {circle}"))),
                    (Ok(_), None) => {}
                }
            }
        }
        if problems.is_empty() { Ok(roster) } else { Err(Problems::in_order(problems)) }
    }
}

impl Entry {
    /// What it says of the way, and where.
    fn way(
        &self,
        document: &Document<'_>,
        defaults: &Self,
        problems: &mut Vec<Problem>,
    ) -> Option<(Way, Location)> {
        let said = self.bastion.as_ref().or(defaults.bastion.as_ref())?;
        let at = said.0.first()?.referenced;
        let mut hops = Vec::new();
        for part in &said.0 {
            match ssh_syntax::hops(&part.value) {
                Ok(some) => hops.extend(some),
                Err(error) => problems.push(document.problem(part.referenced, error.to_string())),
            }
        }
        Some((Way { hops, own: self.bastion.is_some() }, at))
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
            tell(address.referenced, format!("address {:?} is empty or has blanks", address.value));
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
            tell(name.referenced, format!("vars cannot have {taken:?}: in templates it is the host's own"));
        }
        let name = host_name.filter(|_| problems.len() == before)?;
        Some(Host { name, ssh, roles, labels: merged(&defaults.labels, self.labels), vars })
    }
}

fn merged<T: Clone>(defaults: &BTreeMap<String, T>, own: BTreeMap<String, T>) -> BTreeMap<String, T> {
    defaults.clone().into_iter().chain(own).collect()
}

/// Names with their places, in the file's order. A host of which nothing is said is an empty entry.
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
