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
    /// A voter that is not healthy, and has no data on its host.
    Lost,
    /// In the list, and neither.
    Silent,
    /// Not in the list: it was removed, or set aside by a recovery.
    No,
}

/// What is to be done, for a person to decide on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reconnection<N> {
    /// The node of a healthy voter.
    pub member: N,
    /// Nodes whose API servers continue with it, and are deployed then.
    pub api_servers: Vec<MemberNode<N>>,
    /// Other nodes that are deployed then: their member is not listed, or lost. No member joins while a voter is lost.
    pub joining: Vec<MemberNode<N>>,
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
        nodes.iter().filter(|node| counts(node)).cloned().collect::<Vec<MemberNode<N>>>()
    };
    let api_servers = of(|node| node.has_api_server && node.listed != Listed::Healthy);
    let joining = of(|node| !node.has_api_server && matches!(node.listed, Listed::Lost | Listed::No));
    if api_servers.is_empty() { None } else { Some(Reconnection { member, api_servers, joining }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn api_servers_beside_a_member_that_does_not_work_continue_with_one_that_does() {
        use Listed::{Healthy, Lost, No, Silent};
        let (api, etcd) = (true, false);
        for (nodes, named, expected) in [
            (vec![("a", api, Lost), ("b", etcd, Healthy)], None, Some("b: a; ")),
            (vec![("a", api, Silent), ("b", etcd, Healthy), ("c", etcd, Healthy)], Some("c"), Some("c: a; ")),
            (vec![("a", api, Silent), ("b", api, No), ("c", etcd, Healthy)], None, Some("c: a b; ")),
            (vec![("a", api, Silent), ("b", api, Healthy)], None, Some("b: a; ")),
            (vec![("a", api, Lost), ("b", etcd, Healthy), ("c", etcd, No)], None, Some("b: a; c")),
            (vec![("a", api, Lost), ("b", etcd, Healthy), ("c", etcd, Lost)], None, Some("b: a; c")),
            (vec![("a", api, Silent), ("b", etcd, Healthy), ("c", etcd, Silent)], None, Some("b: a; ")),
            (vec![("a", api, Silent), ("b", etcd, Healthy)], Some("a"), None),
            (vec![("a", api, Healthy), ("b", etcd, No)], None, None),
            (vec![("a", api, Silent), ("b", etcd, Silent)], None, None),
            (vec![("b", etcd, Healthy)], None, None),
        ] {
            let node = |(node, has_api_server, listed)| MemberNode { node, has_api_server, listed };
            let all: Vec<MemberNode<&str>> = nodes.iter().copied().map(node).collect();
            let names = |nodes: &[MemberNode<&'static str>]| {
                nodes.iter().map(|node| node.node).collect::<Vec<_>>().join(" ")
            };
            let plan = reconnection(&all, named.as_ref()).map(|plan| {
                format!("{}: {}; {}", plan.member, names(&plan.api_servers), names(&plan.joining))
            });
            assert_eq!(plan.as_deref(), expected, "{nodes:?} {named:?}");
        }
    }
}
