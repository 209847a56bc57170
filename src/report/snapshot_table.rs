//! Snapshots as rows, for `etcd snapshots`, and what `etcd save-snapshots` did.

use jiff::Timestamp;
use serde::Serialize;

use super::etcd_table::mebibytes;
use super::table::table;
use crate::etcd::snapshot_copies::SnapshotCopies;
use crate::etcd::snapshot_name::SnapshotName;
use crate::model::name::HostName;
use crate::service::etcd_save_snapshots::KeptSnapshot;

const HEADER: [&str; 6] = ["NAME", "TIME", "REVISION", "SIZE", "NODES", "VERIFIED"];

/// One snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SnapshotRow {
    /// Its file name, the same on every node.
    pub name: String,
    /// When it was taken.
    pub time: Timestamp,
    /// It has this revision or a later one.
    pub revision: u64,
    /// Bytes of a copy that is whole, else of the largest.
    pub size: u64,
    /// The nodes with a copy that is whole.
    pub nodes: Vec<HostName>,
    /// The nodes with a copy that is damaged.
    pub damaged: Vec<HostName>,
}

/// One row for each snapshot, the oldest first.
pub fn rows(copies: &SnapshotCopies) -> Vec<SnapshotRow> {
    copies.names().into_iter().map(|name| row(copies, name)).collect()
}

fn row(copies: &SnapshotCopies, name: &SnapshotName) -> SnapshotRow {
    let hosts = |whole: bool| {
        let of = copies.of(name).filter(move |(_, copy)| copy.hash.is_some() == whole);
        of.map(|(host, _)| host.clone()).collect()
    };
    let size = copies.of(name).map(|(_, copy)| (copy.hash.is_some(), copy.size)).max();
    SnapshotRow {
        name: name.to_string(),
        time: name.time(),
        revision: name.revision(),
        size: size.map_or(0, |(_, size)| size),
        nodes: hosts(true),
        damaged: hosts(false),
    }
}

/// The rows as a table.
pub fn text(rows: &[SnapshotRow]) -> String {
    let cells: Vec<[String; 6]> = rows.iter().map(SnapshotRow::cells).collect();
    table(&HEADER, &cells)
}

impl SnapshotRow {
    fn cells(&self) -> [String; 6] {
        let nodes = if self.nodes.is_empty() { "-".to_owned() } else { names(&self.nodes, ",") };
        let verified = if self.damaged.is_empty() {
            "yes".to_owned()
        } else {
            format!("damaged on {}", names(&self.damaged, ", "))
        };
        [
            self.name.clone(),
            self.time.to_string(),
            self.revision.to_string(),
            mebibytes(self.size),
            nodes,
            verified,
        ]
    }
}

/// What `etcd save-snapshots` saved.
pub fn kept(snapshot: &KeptSnapshot) -> String {
    let KeptSnapshot { name, size, member, hosts, .. } = snapshot;
    format!("{name}: {} from {member}, on {}\n", mebibytes(*size), names(hosts, ", "))
}

fn names(hosts: &[HostName], separator: &str) -> String {
    hosts.iter().map(HostName::as_str).collect::<Vec<_>>().join(separator)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::etcd::snapshot_copies::{HostSnapshots, SnapshotCopy};

    #[test]
    fn a_row_names_the_nodes_with_a_copy_and_those_whose_copy_is_damaged() {
        let host = |name: &str, files: &[(&str, u64, bool)]| {
            let file = |(file, size, whole): &(&str, u64, bool)| {
                let hash = whole.then(|| "same".to_owned());
                (file.parse().unwrap(), SnapshotCopy { size: *size, hash })
            };
            (name.parse().unwrap(), files.iter().map(file).collect::<HostSnapshots>())
        };
        let [first, second, third] =
            ["etcd-20261123T000000Z-769.db", "etcd-20261123T060000Z-801.db", "etcd-20261123T120000Z-1044.db"];
        let found = [
            host("bootstrap", &[(first, 2 << 20, true), (second, 5 << 20, true), (third, 9 << 20, false)]),
            host("master-2", &[(first, 2 << 20, true), (second, 4096, false)]),
            host("master-3", &[]),
        ];
        let copies = SnapshotCopies::new(&"bootstrap".parse().unwrap(), found.into());
        insta::assert_snapshot!(text(&rows(&copies)), @"
        NAME                            TIME                   REVISION   SIZE      NODES                VERIFIED
        etcd-20261123T000000Z-769.db    2026-11-23T00:00:00Z   769        2.0 MiB   bootstrap,master-2   yes
        etcd-20261123T060000Z-801.db    2026-11-23T06:00:00Z   801        5.0 MiB   bootstrap            damaged on master-2
        etcd-20261123T120000Z-1044.db   2026-11-23T12:00:00Z   1044       9.0 MiB   -                    damaged on bootstrap
        ");
        insta::assert_json_snapshot!(rows(&copies)[1], @r#"
        {
          "name": "etcd-20261123T060000Z-801.db",
          "time": "2026-11-23T06:00:00Z",
          "revision": 801,
          "size": 5242880,
          "nodes": [
            "bootstrap"
          ],
          "damaged": [
            "master-2"
          ]
        }
        "#);
    }
}
