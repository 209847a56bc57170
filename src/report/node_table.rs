//! Nodes as a table.

use super::table::table;
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
