//! Which API servers continue with another member of etcd, while etcd has its quorum. Pure.
//!
//! An API server beside a member uses that one alone. Where no other API server is left, its member cannot be replaced as
//! that of any other node: to take the lease needs the API.

/// What is to be done, for a person to decide on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reconnection<N> {
    /// The node of a healthy voter.
    pub member: N,
    /// Nodes whose API servers continue with it. Their own member is replaced, if its data is lost.
    pub api_servers: Vec<N>,
}

/// With the healthy voter of the node that was named, else with the first. `beside_members`: nodes with an API server and a
/// member. `None` where the member beside each is healthy, or no voter is.
pub fn reconnection<N: Clone + PartialEq>(
    beside_members: &[N],
    healthy_voters: &[N],
    named: Option<&N>,
) -> Option<Reconnection<N>> {
    let chosen = |voter: &&N| named.is_none_or(|named| named == *voter);
    let member = healthy_voters.iter().find(chosen)?.clone();
    let api_servers: Vec<N> =
        beside_members.iter().filter(|node| !healthy_voters.contains(node)).cloned().collect();
    if api_servers.is_empty() { None } else { Some(Reconnection { member, api_servers }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn api_servers_beside_a_member_that_does_not_work_continue_with_one_that_does() {
        let some = |member, api_servers: &[&'static str]| {
            Some(Reconnection { member, api_servers: api_servers.to_vec() })
        };
        for (beside, healthy, named, expected) in [
            (vec!["a"], vec!["b", "c"], None, some("b", &["a"])),
            (vec!["a"], vec!["b", "c"], Some("c"), some("c", &["a"])),
            (vec!["a", "b"], vec!["c", "d", "e"], None, some("c", &["a", "b"])),
            (vec!["a", "b"], vec!["b", "c"], None, some("b", &["a"])),
            (vec!["a"], vec!["b", "c"], Some("a"), None),
            (vec!["a", "b"], vec!["a", "b", "c"], None, None),
            (vec!["a"], vec![], None, None),
            (vec![], vec!["b"], None, None),
        ] {
            assert_eq!(reconnection(&beside, &healthy, named.as_ref()), expected, "{beside:?} {healthy:?}");
        }
    }
}
