//! A Host from what an operator enters: a host of a roster, or the options of a command.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use sha2::{Digest, Sha256};

use super::api::host::{HostObject, HostSpec, HostSpecError};
use super::api::host_ssh::HostSsh;
use crate::model::api_contract::ZONE;
use crate::model::name::HostName;
use crate::model::role::Role;
use crate::model::roster::Host;
use crate::model::ssh_syntax::{self, DEFAULT_KEYS, OWN_KEY, SshSyntaxError};
use crate::model::ssh_target::{HostKeyPolicy, SshTarget};

/// What an operator enters; absent fields have the defaults of the API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnteredHost {
    /// Also the name of its Node.
    pub name: HostName,
    /// What SSH connects to.
    pub address: String,
    /// TCP port.
    pub port: Option<u16>,
    /// Login user.
    pub user: Option<String>,
    /// Whether programs run with sudo.
    pub sudo: bool,
    /// A public key as in a `.pub` file, or its fingerprint.
    pub host_key: Option<String>,
    /// Jump hosts, first hop first.
    pub bastion: Option<String>,
    /// For host selectors.
    pub labels: BTreeMap<String, String>,
    /// The failure domain.
    pub zone: Option<String>,
}

/// Why an entry cannot be a Host.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EnteredHostError {
    /// It has roles that Machines do not have.
    #[error(
        "host {name}: role {role} is not possible: a Machine is a node without other roles; deploy it with `metalform deploy-node`"
    )]
    Role {
        /// Of the entry.
        name: HostName,
        /// The first one.
        role: Role,
    },
    /// A field has no meaning for a Host.
    #[error("host {name}: {field} is not a field of a Host")]
    Field {
        /// Of the entry.
        name: HostName,
        /// As in a roster.
        field: &'static str,
    },
    /// A private key of the operator's machine.
    #[error(
        "host {name}: key cannot be a file: the controllers log in with {OWN_KEY}, or with the Secret of spec.ssh.keySecretRef"
    )]
    Key {
        /// Of the entry.
        name: HostName,
    },
    /// The first key that answers would be accepted.
    #[error("host {name}: host_key accept-new is not possible: set the host key or its fingerprint")]
    AcceptNew {
        /// Of the entry.
        name: HostName,
    },
    /// The host key has another form.
    #[error("host {name}: {reason}")]
    HostKey {
        /// Of the entry.
        name: HostName,
        /// What is expected.
        reason: SshSyntaxError,
    },
    /// The API would refuse it.
    #[error("host {name}: {reason}")]
    Spec {
        /// Of the entry.
        name: HostName,
        /// Which field.
        reason: HostSpecError,
    },
}

impl EnteredHost {
    /// Of a host of a roster. The label `topology.kubernetes.io/zone` is also the failure domain.
    ///
    /// # Errors
    /// The first field that a Host does not have.
    pub fn from_roster(host: &Host) -> Result<Self, EnteredHostError> {
        let name = || host.name.clone();
        if let Some(role) = host.roles.iter().find(|role| **role != Role::Node) {
            return Err(EnteredHostError::Role { name: name(), role: *role });
        }
        if !host.vars.is_empty() {
            return Err(EnteredHostError::Field { name: name(), field: "vars" });
        }
        let keys = &host.ssh.identity_files;
        let is_default = keys.iter().eq(DEFAULT_KEYS.iter().map(std::path::Path::new));
        if !is_default && !keys.iter().eq([OWN_KEY].iter().map(std::path::Path::new)) {
            return Err(EnteredHostError::Key { name: name() });
        }
        let host_key = match &host.ssh.host_key {
            HostKeyPolicy::Known => None,
            HostKeyPolicy::AcceptNew => return Err(EnteredHostError::AcceptNew { name: name() }),
            HostKeyPolicy::Pinned(key) | HostKeyPolicy::Fingerprint(key) => Some(key.clone()),
        };
        // The nearest to the host is the last hop.
        let mut hops: Vec<String> =
            host.ssh.bastions().map(|hop: &SshTarget| format!("{}@{}", hop.user, hop.address())).collect();
        hops.reverse();
        Ok(Self {
            name: name(),
            address: host.ssh.host.clone(),
            port: Some(host.ssh.port),
            user: Some(host.ssh.user.clone()),
            sudo: host.ssh.sudo,
            host_key,
            bastion: (!hops.is_empty()).then(|| hops.join(",")),
            labels: host.labels.clone(),
            zone: host.labels.get(ZONE).cloned(),
        })
    }

    /// The object to create.
    ///
    /// # Errors
    /// The first field that the API would refuse, as far as it concerns SSH.
    pub fn object(&self) -> Result<HostObject, EnteredHostError> {
        let default = HostSsh::default();
        let host_key_fingerprint = self.host_key.as_deref().map(fingerprint).transpose();
        let ssh = HostSsh {
            port: self.port.map_or(default.port, i32::from),
            user: self.user.clone().unwrap_or(default.user),
            sudo: self.sudo,
            key_secret_ref: None,
            host_key_fingerprint: host_key_fingerprint
                .map_err(|reason| EnteredHostError::HostKey { name: self.name.clone(), reason })?,
            bastion: self.bastion.clone(),
        };
        let spec = HostSpec {
            address: self.address.clone(),
            ssh,
            failure_domain: self.zone.clone(),
            capacity: BTreeMap::new(),
            power: None,
        };
        spec.ssh_target(None).map_err(|reason| EnteredHostError::Spec { name: self.name.clone(), reason })?;
        let mut object = HostObject::new(self.name.as_str(), spec);
        object.metadata.labels = (!self.labels.is_empty()).then(|| self.labels.clone());
        Ok(object)
    }
}

/// As `ssh-keygen -l` prints it; a fingerprint stays.
fn fingerprint(key: &str) -> Result<String, SshSyntaxError> {
    if key.starts_with("SHA256:") {
        return Ok(key.to_owned());
    }
    let wrong = || SshSyntaxError::HostKey(key.to_owned());
    let HostKeyPolicy::Pinned(key) = ssh_syntax::host_key(key)? else { return Err(wrong()) };
    let blob = key.split_whitespace().nth(1).and_then(|blob| STANDARD.decode(blob).ok()).ok_or_else(wrong)?;
    Ok(format!("SHA256:{}", STANDARD_NO_PAD.encode(Sha256::digest(blob))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::document::Document;
    use crate::model::roster::Roster;

    /// The first host of a roster, as JSON of its Host or as an error.
    fn entered(entry: &str) -> Result<String, String> {
        let text = format!("hosts:\n  node-1: {entry}\n");
        let roster = Roster::parse(&[Document { file: "roster.yaml", text: &text }]).unwrap();
        let host = roster.hosts.values().next().unwrap();
        let object = EnteredHost::from_roster(host).and_then(|entry| entry.object());
        let object = object.map_err(|error| error.to_string())?;
        let labels = serde_json::to_string(&object.metadata.labels.unwrap_or_default()).unwrap();
        Ok(format!("{} {labels}", serde_json::to_string(&object.spec).unwrap()))
    }

    const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl";

    #[test]
    fn a_host_of_a_roster_is_a_host_of_the_pool() {
        let lines: Vec<String> = [
            "{}",
            "{address: 10.0.0.2, port: 2222, user: ops, sudo: true}",
            "{address: 10.0.0.2, labels: {rack: a, topology.kubernetes.io/zone: b}}",
            "{address: 10.0.0.2, bastion: 'a@gate:2200,inner'}",
            "{address: 10.0.0.2, roles: [node], key: /etc/metalform/pki/ssh}",
        ]
        .map(|entry| entered(entry).unwrap())
        .into();
        insta::assert_snapshot!(lines.join("\n"), @r#"
        {"address":"node-1","ssh":{"port":22,"user":"root","sudo":false}} {}
        {"address":"10.0.0.2","ssh":{"port":2222,"user":"ops","sudo":true}} {}
        {"address":"10.0.0.2","ssh":{"port":22,"user":"root","sudo":false},"failureDomain":"b"} {"rack":"a","topology.kubernetes.io/zone":"b"}
        {"address":"10.0.0.2","ssh":{"port":22,"user":"root","sudo":false,"bastion":"a@gate:2200,root@inner:22"}} {}
        {"address":"10.0.0.2","ssh":{"port":22,"user":"root","sudo":false}} {}
        "#);
    }

    #[test]
    fn a_host_key_becomes_its_fingerprint() {
        let object = entered(&format!("{{address: 10.0.0.2, host_key: '{KEY}'}}")).unwrap();
        // ssh-keygen -lf of the same key.
        assert!(object.contains("SHA256:+DiY3wvvV6TuJJhbpZisF/zLDA0zPMSvHdkr4UvCOqU"), "{object}");
    }

    #[test]
    fn what_a_host_cannot_be_is_refused() {
        for (entry, expected) in [
            ("{roles: [master, etcd]}", "role master is not possible"),
            ("{vars: {a: 1}}", "vars is not a field of a Host"),
            ("{key: ~/.ssh/id_rsa}", "key cannot be a file"),
            ("{host_key: accept-new}", "host_key accept-new is not possible"),
            (
                "{address: 10.0.0.2/24}",
                "spec.address is \"10.0.0.2/24\", expected an IP address or a host name",
            ),
        ] {
            let error = entered(entry).unwrap_err();
            assert!(error.starts_with("host node-1: ") && error.contains(expected), "{entry}: {error}");
        }
    }
}
