//! The address of this machine that a workspace is opened with.

use std::net::IpAddr;

use super::recorded_nodes;
use crate::model::api_contract::CONTROL_PLANE_IP;
use crate::model::name::HostName;
use crate::model::node::NodeManifest;
use crate::workspace::layout::Layout;
use crate::workspace::node_records::NodeRecordsError;

/// The address at which hosts find this machine, of those that it has on the control plane: the one that its Node records.
/// Without a record the first; `bootstrap` refuses several then. `None` where it has none.
///
/// Of a machine with one address, no record is read.
///
/// # Errors
/// When there are several, the API does not answer, and the records on this machine cannot be read.
pub(super) async fn own_address(
    layout: &Layout,
    name: &HostName,
    addresses: &[IpAddr],
) -> Result<Option<IpAddr>, NodeRecordsError> {
    let recorded = match addresses {
        [] | [_] => None,
        _ => recorded_nodes::manifest(layout, name).await?.and_then(|node| recorded_in(&node)),
    };
    Ok(chosen(addresses, recorded))
}

/// Whatever else is wrong with the manifest: that is for the operations of the node itself.
fn recorded_in(node: &NodeManifest) -> Option<IpAddr> {
    node.metadata.annotations.get(CONTROL_PLANE_IP)?.parse().ok()
}

/// An address that this machine no longer has is of no use.
fn chosen(addresses: &[IpAddr], recorded: Option<IpAddr>) -> Option<IpAddr> {
    recorded.filter(|recorded| addresses.contains(recorded)).or_else(|| addresses.first().copied())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::node::NodeMetadata;
    use crate::workspace::node_records;

    /// A cluster whose API does not answer, with this record of the bootstrap node's address.
    async fn found(addresses: &[u8], recorded: Option<u8>) -> Option<IpAddr> {
        let directory = tempfile::tempdir().unwrap();
        let layout = Layout::below(directory.path());
        if let Some(last) = recorded {
            // Without an address for SSH, it is wrong.
            let annotations = [("metalform.dev/control-plane-ip".to_owned(), ip(last).to_string())];
            let metadata = NodeMetadata {
                name: Some("bootstrap".to_owned()),
                annotations: annotations.into(),
                ..NodeMetadata::default()
            };
            let manifest = NodeManifest { metadata, ..NodeManifest::default() };
            make_cluster(&layout);
            node_records::save(&layout, &[manifest]).unwrap();
        }
        let addresses: Vec<IpAddr> = addresses.iter().map(|last| ip(*last)).collect();
        own_address(&layout, &"bootstrap".parse().unwrap(), &addresses).await.unwrap()
    }

    /// Without a CA there is none.
    fn make_cluster(layout: &Layout) {
        for directory in [layout.pki().as_path(), layout.node_records().parent().unwrap()] {
            std::fs::create_dir_all(directory).unwrap();
        }
        std::fs::write(layout.pki().join("ca.crt"), "CA").unwrap();
    }

    fn ip(last: u8) -> IpAddr {
        [192, 0, 2, last].into()
    }

    #[tokio::test]
    async fn the_recorded_address_counts_where_this_machine_still_has_it() {
        for (addresses, recorded, expected) in [
            (&[][..], Some(1), None),
            (&[1], None, Some(1)),
            // It has moved. Where it has an etcd member, preflight refuses that.
            (&[2], Some(1), Some(2)),
            (&[100, 1], Some(1), Some(1)),
            (&[1, 100], Some(1), Some(1)),
            (&[100, 2], Some(1), Some(100)),
            // A cluster that does not exist yet.
            (&[100, 1], None, Some(100)),
        ] {
            assert_eq!(found(addresses, recorded).await, expected.map(ip), "{addresses:?} {recorded:?}");
        }
    }

    #[tokio::test]
    async fn records_are_read_only_where_there_is_a_choice() {
        let directory = tempfile::tempdir().unwrap();
        let layout = Layout::below(directory.path());
        make_cluster(&layout);
        std::fs::write(layout.node_records(), "damaged").unwrap();
        let name = "bootstrap".parse().unwrap();
        assert_eq!(own_address(&layout, &name, &[ip(1)]).await.unwrap(), Some(ip(1)));
        assert!(own_address(&layout, &name, &[ip(1), ip(100)]).await.is_err());
    }
}
