//! How the voters of etcd change, for people.

use crate::service::membership_steps::MembershipStep;

/// A line for each step; empty where there is none.
pub fn text(steps: &[MembershipStep]) -> String {
    let Some(first) = steps.first() else { return String::new() };
    let joins = steps.iter().filter(|step| step.voters_after > step.voters_before).count();
    // A slow host holds no other up.
    let order = if joins > 1 { ", in this order unless another host is ready first" } else { "" };
    let (voters, quorum) = (first.voters_before, first.quorum_before);
    let mut text = format!("etcd voters, one change at a time{order}: {voters}, quorum {quorum}\n");
    for step in steps {
        let even = match step.voters_after {
            after if after > 0 && after % 2 == 0 => {
                format!(", no more failures tolerated than with {}", after - 1)
            }
            _ => String::new(),
        };
        text.push_str(&format!("  {step}{even}\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_even_number_of_voters_is_pointed_out() {
        let step = |node: &str, voters_before, voters_after, quorum_before, quorum_after| MembershipStep {
            node: node.parse().unwrap(),
            voters_before,
            voters_after,
            quorum_before,
            quorum_after,
        };
        assert_eq!(text(&[]), "");
        insta::assert_snapshot!(text(&[step("b", 1, 2, 1, 2), step("c", 2, 3, 2, 2)]), @"
        etcd voters, one change at a time, in this order unless another host is ready first: 1, quorum 1
          b joins: 1 -> 2, quorum 1 -> 2, no more failures tolerated than with 1
          c joins: 2 -> 3, quorum 2 -> 2
        ");
        // Each node plans for itself: where all leave, none of these plans is refused.
        insta::assert_snapshot!(text(&[step("b", 2, 1, 2, 1), step("c", 1, 0, 1, 1)]), @"
        etcd voters, one change at a time: 2, quorum 2
          b leaves: 2 -> 1, quorum 2 -> 1
          c leaves: 1 -> 0, quorum 1 -> 1
        ");
    }
}
