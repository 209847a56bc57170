//! Which API servers continue with another member of etcd, while etcd has its quorum. Pure.
//!
//! An API server beside a member uses that one alone. Where no other API server is left, its member cannot be replaced as
//! that of any other node: to take the lease needs the API.

/// A node that shall have a member of etcd.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberNode<N> {
    /// Its name.
    pub node: N,
    /// Whether it has an API server, too.
    pub has_api_server: bool,
    /// Its member, as etcd has it.
    pub listed: Listed,
}

/// A member, as etcd has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listed {
    /// A healthy voter.
    Healthy,
    /// In the list, and not that.
    Silent,
    /// Not in the list: it was removed, or set aside by a recovery.
    No,
}

/// What is to be done, for a person to decide on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reconnection<N> {
    /// The node of a healthy voter.
    pub member: N,
    /// Nodes whose API servers continue with it, and are deployed then. Their own member is replaced, if its data is lost.
    pub api_servers: Vec<N>,
    /// Other nodes that are deployed then: etcd does not list their members.
    pub joining: Vec<N>,
}

/// With the healthy voter of the node that was named, else with the first. `None` where the member beside each API server
/// is healthy, or no voter is.
pub fn reconnection<N: Clone + PartialEq>(
    nodes: &[MemberNode<N>],
    named: Option<&N>,
) -> Option<Reconnection<N>> {
    let chosen = |node: &&MemberNode<N>| named.is_none_or(|named| *named == node.node);
    let mut healthy = nodes.iter().filter(|node| node.listed == Listed::Healthy);
    let member = healthy.find(chosen)?.node.clone();
    let of = |counts: fn(&MemberNode<N>) -> bool| {
        nodes.iter().filter(|node| counts(node)).map(|node| node.node.clone()).collect::<Vec<N>>()
    };
    let api_servers = of(|node| node.has_api_server && node.listed != Listed::Healthy);
    let joining = of(|node| !node.has_api_server && node.listed == Listed::No);
    if api_servers.is_empty() { None } else { Some(Reconnection { member, api_servers, joining }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn api_servers_beside_a_member_that_does_not_work_continue_with_one_that_does() {
        use Listed::{Healthy, No, Silent};
        let some = |member, api_servers: &[&'static str], joining: &[&'static str]| {
            Some(Reconnection { member, api_servers: api_servers.to_vec(), joining: joining.to_vec() })
        };
        let (api, etcd) = (true, false);
        for (nodes, named, expected) in [
            (vec![("a", api, Silent), ("b", etcd, Healthy)], None, some("b", &["a"], &[])),
            (
                vec![("a", api, Silent), ("b", etcd, Healthy), ("c", etcd, Healthy)],
                Some("c"),
                some("c", &["a"], &[]),
            ),
            (
                vec![("a", api, Silent), ("b", api, No), ("c", etcd, Healthy)],
                None,
                some("c", &["a", "b"], &[]),
            ),
            (vec![("a", api, Silent), ("b", api, Healthy)], None, some("b", &["a"], &[])),
            (
                vec![("a", api, Silent), ("b", etcd, Healthy), ("c", etcd, No)],
                None,
                some("b", &["a"], &["c"]),
            ),
            (
                vec![("a", api, Silent), ("b", etcd, Healthy), ("c", etcd, Silent)],
                None,
                some("b", &["a"], &[]),
            ),
            (vec![("a", api, Silent), ("b", etcd, Healthy)], Some("a"), None),
            (vec![("a", api, Healthy), ("b", etcd, No)], None, None),
            (vec![("a", api, Silent), ("b", etcd, Silent)], None, None),
            (vec![("b", etcd, Healthy)], None, None),
        ] {
            let node = |(node, has_api_server, listed)| MemberNode { node, has_api_server, listed };
            let all: Vec<MemberNode<&str>> = nodes.iter().copied().map(node).collect();
            assert_eq!(reconnection(&all, named.as_ref()), expected, "{nodes:?} {named:?}");
        }
    }
}
