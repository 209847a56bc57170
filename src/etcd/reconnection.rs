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

/// Why no API server can continue with another member.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReconnectionObstacle<N> {
    /// The node that was named.
    #[error("the etcd member of {0} is no healthy voter")]
    NotHealthy(N),
    /// Of all nodes.
    #[error("no known node has a healthy voter of etcd")]
    NoneHealthy,
    /// None of them would be connected to another member.
    #[error("the etcd member beside each API server that was reached is a healthy voter")]
    MembersWork,
}

/// With the healthy voter of the node that was named, else with the first.
///
/// # Errors
/// When the member beside each API server is healthy, and when no voter is, or the named one is not.
pub fn reconnection<N: Clone + PartialEq>(
    nodes: &[MemberNode<N>],
    named: Option<&N>,
) -> Result<Reconnection<N>, ReconnectionObstacle<N>> {
    let chosen = |node: &&MemberNode<N>| named.is_none_or(|named| *named == node.node);
    let mut healthy = nodes.iter().filter(|node| node.listed == Listed::Healthy);
    let not_healthy = || match named {
        Some(named) => ReconnectionObstacle::NotHealthy(named.clone()),
        None => ReconnectionObstacle::NoneHealthy,
    };
    let member = healthy.find(chosen).ok_or_else(not_healthy)?.node.clone();
    let of = |counts: fn(&MemberNode<N>) -> bool| {
        nodes.iter().filter(|node| counts(node)).cloned().collect::<Vec<MemberNode<N>>>()
    };
    let api_servers = of(|node| node.has_api_server && node.listed != Listed::Healthy);
    let joining = of(|node| !node.has_api_server && matches!(node.listed, Listed::Lost | Listed::No));
    if api_servers.is_empty() {
        return Err(ReconnectionObstacle::MembersWork);
    }
    Ok(Reconnection { member, api_servers, joining })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn api_servers_beside_a_member_that_does_not_work_continue_with_one_that_does() {
        use Listed::{Healthy, Lost, No, Silent};
        use ReconnectionObstacle::{MembersWork, NoneHealthy, NotHealthy};
        let (api, etcd) = (true, false);
        for (nodes, named, expected) in [
            (vec![("a", api, Lost), ("b", etcd, Healthy)], None, Ok("b: a; ")),
            (vec![("a", api, Silent), ("b", etcd, Healthy), ("c", etcd, Healthy)], Some("c"), Ok("c: a; ")),
            (vec![("a", api, Silent), ("b", api, No), ("c", etcd, Healthy)], None, Ok("c: a b; ")),
            (vec![("a", api, Silent), ("b", api, Healthy)], None, Ok("b: a; ")),
            (vec![("a", api, Lost), ("b", etcd, Healthy), ("c", etcd, No)], None, Ok("b: a; c")),
            (vec![("a", api, Lost), ("b", etcd, Healthy), ("c", etcd, Lost)], None, Ok("b: a; c")),
            (vec![("a", api, Silent), ("b", etcd, Healthy), ("c", etcd, Silent)], None, Ok("b: a; ")),
            (vec![("a", api, Silent), ("b", etcd, Healthy)], Some("a"), Err(NotHealthy("a"))),
            (vec![("a", api, Healthy), ("b", etcd, No)], None, Err(MembersWork)),
            (vec![("a", api, Silent), ("b", etcd, Silent)], None, Err(NoneHealthy)),
            (vec![("b", etcd, Healthy)], None, Err(MembersWork)),
        ] {
            let node = |(node, has_api_server, listed)| MemberNode { node, has_api_server, listed };
            let all: Vec<MemberNode<&str>> = nodes.iter().copied().map(node).collect();
            let names = |nodes: &[MemberNode<&'static str>]| {
                nodes.iter().map(|node| node.node).collect::<Vec<_>>().join(" ")
            };
            let plan = reconnection(&all, named.as_ref()).map(|plan| {
                format!("{}: {}; {}", plan.member, names(&plan.api_servers), names(&plan.joining))
            });
            assert_eq!(plan, expected.map(str::to_owned), "{nodes:?} {named:?}");
        }
    }
}
