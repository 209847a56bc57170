//! The Node of a Machine, as it is before its kubelet registers.
//!
//! It is created first, so that the kubelet cannot choose its provider ID, labels and taints: a kubelet that finds its
//! Node updates the status alone, and the API server refuses to change a provider ID that is set.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Node, NodeSpec, Taint as ApiTaint};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::api::host::HostSpec;
use super::api::host_ssh::HostSsh;
use super::job_order::NodeOrder;
use crate::model::api_contract::{NOT_READY_TAINT, PREFIX, SSH_HOST, VERSION};
use crate::model::name::HostName;
use crate::model::node::{NodeManifest, NodeMetadata, Taint};

/// The SSH annotations of a Node with the settings of a Host. A fingerprint of its host key is no setting of a Node: a
/// key that has it is remembered where it is first seen.
pub fn ssh_annotations(host: &HostSpec) -> BTreeMap<String, String> {
    let (ssh, default) = (&host.ssh, HostSsh::default());
    let mut annotations = BTreeMap::from([(SSH_HOST.to_owned(), host.address.clone())]);
    let mut set = |name: &str, value: String| annotations.insert(format!("{PREFIX}{name}"), value);
    if ssh.port != default.port {
        set("ssh-port", ssh.port.to_string());
    }
    if ssh.user != default.user {
        set("ssh-user", ssh.user.clone());
    }
    if ssh.sudo {
        set("ssh-sudo", "true".to_owned());
    }
    if let Some(bastion) = &ssh.bastion {
        set("ssh-bastion", bastion.clone());
    }
    annotations
}

/// The manifest of a Node on a Host, without what a Machine gives it.
pub fn manifest(name: &HostName, host: &HostSpec) -> NodeManifest {
    let metadata = NodeMetadata {
        name: Some(name.to_string()),
        annotations: ssh_annotations(host),
        ..NodeMetadata::default()
    };
    NodeManifest { metadata, ..NodeManifest::default() }
}

/// The Node to create.
pub fn object(name: &HostName, host: &HostSpec, order: &NodeOrder) -> Node {
    let settings = &order.settings;
    let not_ready =
        Taint { key: NOT_READY_TAINT.to_owned(), value: String::new(), effect: "NoSchedule".to_owned() };
    let taints = settings.taints.iter().chain([&not_ready]).map(|taint| ApiTaint {
        key: taint.key.clone(),
        value: (!taint.value.is_empty()).then(|| taint.value.clone()),
        effect: taint.effect.clone(),
        time_added: None,
    });
    let version = (VERSION.to_owned(), order.kubelet.clone());
    let labels = settings.labels.clone().into_iter().chain([version]).collect();
    let annotations = settings.annotations.clone().into_iter().chain(ssh_annotations(host)).collect();
    Node {
        metadata: ObjectMeta {
            name: Some(name.to_string()),
            labels: Some(labels),
            annotations: Some(annotations),
            ..ObjectMeta::default()
        },
        spec: Some(NodeSpec {
            provider_id: Some(order.provider_id.clone()),
            taints: Some(taints.collect()),
            ..NodeSpec::default()
        }),
        status: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::lifecycle::NodeSettings;
    use crate::model::node::NodeSpec as ParsedNode;
    use crate::model::ssh_target::HostKeyPolicy;

    fn host(yaml: &str) -> HostSpec {
        serde_saphyr::from_str(yaml).unwrap()
    }

    #[test]
    fn a_node_is_reached_as_its_host_is() {
        for yaml in [
            "address: 10.0.0.2",
            "{address: rack-1.example, ssh: {port: 2222, user: ops, sudo: true, bastion: 'a@gate:2200,inner'}}",
            "{address: 10.0.0.2, ssh: {hostKeyFingerprint: 'SHA256:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU'}}",
        ] {
            let host = host(yaml);
            let parsed = ParsedNode::parse(&manifest(&"rack-1".parse().unwrap(), &host)).unwrap();
            let mut expected = host.ssh_target(None).unwrap();
            // As for a key that is remembered.
            expected.host_key = HostKeyPolicy::Known;
            assert_eq!(parsed.ssh, expected, "{yaml}");
        }
    }

    #[test]
    fn a_node_is_created_with_all_that_its_machine_gives_it() {
        let dedicated =
            Taint { key: "dedicated".to_owned(), value: "db".to_owned(), effect: "NoExecute".to_owned() };
        let settings = NodeSettings {
            labels: [("tier".to_owned(), "a".to_owned())].into(),
            annotations: [("note".to_owned(), "b".to_owned())].into(),
            taints: vec![dedicated.clone()],
        };
        let order = NodeOrder {
            machine: "kube-system/m-1".to_owned(),
            provider_id: "metalform://rack-1/uid-1".to_owned(),
            kubelet: "1.35.4".to_owned(),
            settings,
            ssh_public_keys: Vec::new(),
        };
        let node = object(&"rack-1".parse().unwrap(), &host("address: 10.0.0.2"), &order);
        let parsed = ParsedNode::from_node(&node).unwrap();
        assert_eq!((parsed.name.as_str(), parsed.ssh.host.as_str()), ("rack-1", "10.0.0.2"));
        assert_eq!(parsed.provider_id.as_deref(), Some("metalform://rack-1/uid-1"));
        assert_eq!(parsed.labels["tier"], "a");
        assert_eq!(parsed.version.as_deref(), Some("1.35.4"));
        // The kubelet does not register with the taint that its Node has until it is Ready.
        assert_eq!(parsed.taints, [dedicated]);
        let spec = node.spec.unwrap();
        let keys: Vec<String> = spec.taints.unwrap().into_iter().map(|taint| taint.key).collect();
        assert_eq!(keys, ["dedicated", NOT_READY_TAINT]);
        assert_eq!(node.metadata.annotations.unwrap()["note"], "b");
    }
}
