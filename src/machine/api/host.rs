//! A Host: a machine of the pool that Machines claim. The Rust type is [`HostObject`], because a host of a roster is a
//! `Host` too.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::Path;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::host_power::HostPower;
use super::host_ssh::{HostSsh, HostSshError};
use super::host_status::HostStatus;
use super::{rules, schema};
use crate::model::name::HostName;
use crate::model::ssh_target::SshTarget;

/// A machine of the pool. `metadata.name` is also the name of its Node; `metadata.labels` are what host selectors select.
#[expect(clippy::duplicated_attributes, reason = "several printer columns have the same type")]
#[derive(CustomResource, Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "metalform.dev",
    version = "v1alpha1",
    kind = "Host",
    root = "HostObject",
    doc = "A machine of the pool that Machines claim, reached over SSH.",
    derive = "PartialEq",
    status = "HostStatus",
    category = "metalform",
    printcolumn(name = "Address", type_ = "string", json_path = ".spec.address"),
    printcolumn(name = "State", type_ = "string", json_path = ".status.state"),
    printcolumn(name = "Machine", type_ = "string", json_path = ".status.claim.machine.name"),
    printcolumn(name = "OS", type_ = "string", json_path = ".status.facts.operatingSystem", priority = 1),
    printcolumn(name = "Failure-Domain", type_ = "string", json_path = ".spec.failureDomain", priority = 1),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct HostSpec {
    /// The IP address or host name that SSH connects to. No other Host has the same.
    #[schemars(length(max = 253), extend("x-kubernetes-validations" = rules::address()))]
    pub address: String,
    /// How SSH connects.
    #[serde(default)]
    pub ssh: HostSsh,
    /// The failure domain, such as a rack: Machines are spread over them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(min = 1, max = 63))]
    pub failure_domain: Option<String>,
    /// The capacity that a Node of it will have (cpu, memory, ...), for cluster-autoscaler; what is absent follows from
    /// status.facts.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::capacity")]
    pub capacity: BTreeMap<String, Quantity>,
    /// How its power is switched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power: Option<HostPower>,
}

/// A Host is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HostSpecError {
    /// Its address is neither an IP address nor a host name.
    #[error("spec.address is {0:?}, expected an IP address or a host name")]
    Address(String),
    /// Its SSH settings are invalid.
    #[error("spec.ssh.{0}")]
    Ssh(#[from] HostSshError),
}

impl HostSpec {
    /// The SSH settings. `key` is the path by which the private key of `ssh.keySecretRef` is held, if it has one.
    ///
    /// # Errors
    /// The first problem.
    pub fn ssh_target(&self, key: Option<&Path>) -> Result<SshTarget, HostSpecError> {
        let is_name = || self.address.to_ascii_lowercase().parse::<HostName>().is_ok();
        if self.address.parse::<IpAddr>().is_err() && !is_name() {
            return Err(HostSpecError::Address(self.address.clone()));
        }
        Ok(self.ssh.target(&self.address, key)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ssh_target::HostKeyPolicy;

    const FINGERPRINT: &str = "SHA256:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU";

    fn target(yaml: &str, key: Option<&str>) -> Result<SshTarget, String> {
        let spec: HostSpec = serde_saphyr::from_str(yaml).unwrap();
        spec.ssh_target(key.map(Path::new)).map_err(|error| error.to_string())
    }

    #[test]
    fn ssh_settings_have_the_defaults_of_a_node() {
        let expected = SshTarget {
            host: "10.0.0.2".into(),
            port: 22,
            user: "root".into(),
            identity_files: vec!["/etc/metalform/pki/ssh".into()],
            identities_only: true,
            sudo: false,
            host_key: HostKeyPolicy::Known,
            bastion: None,
        };
        assert_eq!(target("address: 10.0.0.2", None), Ok(expected));
    }

    #[test]
    fn every_ssh_setting_is_used() {
        let yaml = format!(
            "{{address: node-1.example, ssh: {{port: 2222, user: ops, sudo: true, bastion: 'a@gate:2200,inner', \
             keySecretRef: {{namespace: kube-system, name: ops}}, hostKeyFingerprint: '{FINGERPRINT}'}}}}"
        );
        let target = target(&yaml, Some("/run/key")).unwrap();
        assert_eq!((target.port, target.user.as_str(), target.sudo), (2222, "ops", true));
        assert_eq!(target.identity_files, [Path::new("/run/key")]);
        assert_eq!(target.host_key, HostKeyPolicy::Fingerprint(FINGERPRINT.into()));
        let hops: Vec<String> = target
            .bastions()
            .map(|hop| format!("{}@{} {:?}", hop.user, hop.address(), hop.host_key))
            .collect();
        assert_eq!(hops, ["ops@inner:22 Known", "a@gate:2200 Known"]);
    }

    #[test]
    fn an_invalid_host_has_one_error() {
        for (yaml, expected) in [
            ("address: ''", "spec.address is \"\", expected an IP address or a host name"),
            (
                "address: 10.0.0.2/24",
                "spec.address is \"10.0.0.2/24\", expected an IP address or a host name",
            ),
            (
                "address: '10.0.0.2:22'",
                "spec.address is \"10.0.0.2:22\", expected an IP address or a host name",
            ),
            ("{address: a, ssh: {port: 0}}", "spec.ssh.port is 0, expected a number from 1 to 65535"),
            ("{address: a, ssh: {port: 65536}}", "spec.ssh.port is 65536, expected a number from 1 to 65535"),
            ("{address: a, ssh: {user: ''}}", "spec.ssh.user is \"\", expected a string without blanks"),
            ("{address: a, ssh: {user: a b}}", "spec.ssh.user is \"a b\", expected a string without blanks"),
            (
                "{address: a, ssh: {bastion: '@'}}",
                "spec.ssh.bastion: \"@\" is not a bastion, such as \"user@host:22\"; separate several by commas, first hop first",
            ),
            (
                "{address: a, ssh: {hostKeyFingerprint: 'MD5:00'}}",
                "spec.ssh.hostKeyFingerprint is \"MD5:00\", expected SHA256: and 43 characters",
            ),
            (
                "{address: a, ssh: {keySecretRef: {namespace: b, name: c}}}",
                "spec.ssh.keySecretRef: the key of Secret b/c is not available",
            ),
        ] {
            assert_eq!(target(yaml, None), Err(expected.to_owned()), "{yaml}");
        }
    }
}
