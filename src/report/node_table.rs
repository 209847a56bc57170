//! Nodes as a table, and one that was checked.

use super::diff::printable_line;
use super::table::table;
use crate::service::node_check::CheckedNode;
use crate::service::node_list::ListedNode;

const HEAD: [&str; 7] = ["NAME", "STATUS", "ROLES", "VERSION", "CONTROL-PLANE", "WORKLOAD-PLANE", "OS"];
/// Columns without `-o wide`.
const NARROW: usize = 4;

/// One line for each Node.
pub fn text(nodes: &[ListedNode], wide: bool) -> String {
    let columns = if wide { HEAD.len() } else { NARROW };
    let rows: Vec<Vec<String>> =
        nodes.iter().map(|node| cells(node).into_iter().take(columns).collect()).collect();
    table(&HEAD[..columns], &rows)
}

/// The line of a Node whose host can be logged in to; what the host reports may be anything.
pub fn checked(node: &CheckedNode) -> String {
    let CheckedNode { name, target, facts, .. } = node;
    let os = format!("{} {}, {}", facts.os.id, facts.os.version, facts.arch);
    printable_line(&format!("{name}: OK ({}@{}, {os})", target.user, target.address())) + "\n"
}

fn cells(node: &ListedNode) -> [String; 7] {
    let or_dash = |value: &Option<String>| value.clone().unwrap_or_else(|| "-".to_owned());
    [
        node.name.clone(),
        node.status.as_str().to_owned(),
        node.roles.join(","),
        or_dash(&node.version),
        or_dash(&node.control_plane),
        or_dash(&node.workload_plane),
        or_dash(&node.os),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::facts::Facts;
    use crate::model::ssh_target::{HostKeyPolicy, SshTarget};

    #[test]
    fn a_checked_node_is_one_line_whatever_its_host_reports() {
        let target = SshTarget {
            host: "192.0.2.7".to_owned(),
            port: 22,
            user: "root".to_owned(),
            identity_files: Vec::new(),
            identities_only: false,
            sudo: false,
            host_key: HostKeyPolicy::Known,
            bastion: None,
        };
        let mut facts = Facts::examples()[0].clone();
        facts.os.version = "13\u{1b}[2J\nnode-2: OK".to_owned();
        let node = CheckedNode { name: "node-1".parse().unwrap(), target, facts, other_sources: Vec::new() };
        assert_eq!(checked(&node), "node-1: OK (root@192.0.2.7:22, debian 13\\u{1b}[2J node-2: OK, amd64)\n");
    }
}
