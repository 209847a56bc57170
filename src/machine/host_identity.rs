//! Whether the machine that answers at the address of a Host is the one that the Host describes.

use k8s_openapi::api::core::v1::Node;

use super::api::provider_id::ProviderId;
use crate::model::facts::Facts;
use crate::model::name::HostName;

/// The machine is not to be changed for the Host.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HostIdentityError {
    /// The Node of its name may be in use.
    #[error("Node {node} exists with provider ID {found:?}, which no Machine on this host has deployed")]
    ForeignNode {
        /// Its name.
        node: HostName,
        /// Empty: it has none.
        found: String,
    },
    /// The machine may be that of another Host or Node.
    #[error("the hostname is {found}, not {expected}")]
    Hostname {
        /// Of the machine.
        found: String,
        /// The name of the Host.
        expected: HostName,
    },
}

/// Whether the Node with the name of a Host is that of a Machine on it. Its provider ID cannot be changed once it is set.
///
/// # Errors
/// When it is not.
pub fn check_node(host: &HostName, node: Option<&Node>) -> Result<(), HostIdentityError> {
    let Some(node) = node else { return Ok(()) };
    let found = node.spec.as_ref().and_then(|spec| spec.provider_id.clone()).unwrap_or_default();
    match found.parse::<ProviderId>() {
        Ok(id) if id.host == *host => Ok(()),
        _ => Err(HostIdentityError::ForeignNode { node: host.clone(), found }),
    }
}

/// Whether a machine with these facts is the host: by the machine ID of its Node, or else by its name.
///
/// # Errors
/// When it is not, or the Node with the name of the Host is not that of a Machine on it.
pub fn check(host: &HostName, facts: &Facts, node: Option<&Node>) -> Result<(), HostIdentityError> {
    check_node(host, node)?;
    let info = node.and_then(|node| node.status.as_ref()?.node_info.as_ref());
    let is_node = info.is_some_and(|info| !info.machine_id.is_empty() && info.machine_id == facts.machine_id);
    if is_node || facts.hostname == host.as_str() {
        return Ok(());
    }
    Err(HostIdentityError::Hostname { found: facts.hostname.clone(), expected: host.clone() })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_host_is_the_machine_of_its_node_or_has_its_name() {
        let host: HostName = "h1".parse().unwrap();
        let node = |id: &str, machine: &str| {
            let node = json!({ "metadata": { "name": "h1" }, "spec": { "providerID": id },
                "status": { "nodeInfo": { "machineID": machine } } });
            Some(serde_json::from_value::<Node>(node).unwrap())
        };
        let foreign = |id: &str| {
            format!("Node h1 exists with provider ID \"{id}\", which no Machine on this host has deployed")
        };
        let named = "the hostname is h2, not h1".to_owned();
        for (hostname, node, expected) in [
            ("h1", None, String::new()),
            ("h2", None, named.clone()),
            ("h1", node("metalform://h1/u-1", ""), String::new()),
            ("h2", node("metalform://h1/u-1", ""), named.clone()),
            ("h2", node("metalform://h1/u-1", "m-1"), String::new()),
            ("h2", node("metalform://h1/u-1", "m-2"), named),
            // The host was installed again.
            ("h1", node("metalform://h1/u-1", "m-2"), String::new()),
            ("h1", node("", "m-1"), foreign("")),
            ("h1", node("metalform://h2/u-1", "m-1"), foreign("metalform://h2/u-1")),
        ] {
            let facts = Facts {
                hostname: hostname.to_owned(),
                machine_id: "m-1".to_owned(),
                ..Facts::examples()[0].clone()
            };
            let found = check(&host, &facts, node.as_ref()).err().map(|error| error.to_string());
            assert_eq!(found.unwrap_or_default(), expected, "{hostname} {node:?}");
        }
    }
}
