//! What the addresses of a Node keep Hosts from having.

use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;

use super::api::conflict::OccupiedNode;
use super::api::provider_id::ProviderId;
use crate::model::api_contract::{MACHINE_UID, RECORDED_ADDRESSES, SSH_HOST};
use crate::model::role::Role;

/// A Node with every address that is known of it: recorded, reported and that of SSH.
///
/// It was a Host when its provider ID contains one and its label [`MACHINE_UID`], which no node identity can write, has
/// the same Machine: a kubelet sets the provider ID of a Node that it creates.
pub fn occupied(node: &Node) -> OccupiedNode {
    let annotations = node.annotations();
    let recorded = RECORDED_ADDRESSES.iter().chain([&SSH_HOST]).filter_map(|key| annotations.get(*key));
    let recorded = recorded.flat_map(|list| list.split(',')).map(|one| one.trim().to_owned());
    let reported = node.status.iter().filter_map(|status| status.addresses.as_ref()).flatten();
    let reported = reported.map(|address| address.address.clone());
    let mut addresses: Vec<String> = recorded.chain(reported).filter(|one| !one.is_empty()).collect();
    addresses.sort();
    addresses.dedup();
    let provider = node.spec.as_ref().and_then(|spec| spec.provider_id.as_deref());
    let provider = provider.and_then(|text| text.parse::<ProviderId>().ok());
    let host = provider
        .filter(|provider| node.labels().get(MACHINE_UID) == Some(&provider.machine_uid))
        .map(|provider| provider.host.to_string());
    let bootstrap = Role::Bootstrap.label();
    OccupiedNode {
        name: node.name_any(),
        addresses,
        host,
        is_bootstrap: node.labels().contains_key(&bootstrap),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_has_all_its_addresses_and_its_host() {
        for (yaml, expected) in [
            ("metadata: {name: a}", "a [] None false"),
            (
                "{metadata: {name: a, annotations: {metalform.dev/ssh-host: gate, metalform.dev/addresses: '10.0.0.2,fd00::2'}},
                  status: {addresses: [{type: InternalIP, address: 10.0.0.2}, {type: Hostname, address: a}]}}",
                "a [\"10.0.0.2\", \"a\", \"fd00::2\", \"gate\"] None false",
            ),
            ("metadata: {name: a, labels: {node-role.kubernetes.io/bootstrap: ''}}", "a [] None true"),
            ("{metadata: {name: a}, spec: {providerID: 'metalform://h/u1'}}", "a [] None false"),
            (
                "{metadata: {name: a, labels: {metalform.dev/machine-uid: u2}}, spec: {providerID: 'metalform://h/u1'}}",
                "a [] None false",
            ),
            (
                "{metadata: {name: a, labels: {metalform.dev/machine-uid: u1}}, spec: {providerID: 'metalform://h/u1'}}",
                "a [] Some(\"h\") false",
            ),
        ] {
            let node: Node = serde_saphyr::from_str(yaml).unwrap();
            let OccupiedNode { name, addresses, host, is_bootstrap } = occupied(&node);
            assert_eq!(format!("{name} {addresses:?} {host:?} {is_bootstrap}"), expected, "{yaml}");
        }
    }
}
