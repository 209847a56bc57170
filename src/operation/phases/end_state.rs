//! The node is proved to be what its manifest says (design law 4).

use std::time::Duration;

use super::control_plane::pods_ready;
use crate::etcd::membership::{MemberGoal, Move, Progress, next};
use crate::model::role::Role;
use crate::operation::goal::Goal;
use crate::operation::phase::{Action, Condition, Look, Next, Phase};
use crate::operation::world::{Reach, World};
use crate::seen;

/// Ready as that machine, its pods ready, its etcd member voting, a pod on it reached from this one.
#[derive(Debug)]
pub struct EndState;

impl Phase for EndState {
    fn title(&self) -> &'static str {
        "End state proved"
    }

    fn next(&self, goal: &Goal, world: &World) -> Next {
        if !world.reach_proved && !world.reach_pod {
            return Next::Act(Action::StartReachabilityPod);
        }
        let facts = seen!(world.facts, Look::Facts);
        let node = seen!(world.node, Look::Node).clone().unwrap_or_default();
        if !node.ready
            || node.machine_id != facts.machine_id
            || node.internal_ip != Some(goal.control_plane_ip)
        {
            let address = node.internal_ip.map_or_else(|| "no address".to_owned(), |ip| ip.to_string());
            return Next::Wait(Condition {
                sentence: format!("{} to be Ready, as this machine, at {}", goal.name, goal.control_plane_ip),
                last_seen: format!(
                    "{} at {address}, machine {}",
                    if node.ready {
                        "Ready".to_owned()
                    } else {
                        format!("not ready ({})", node.ready_message)
                    },
                    node.machine_id
                ),
                limit: Duration::from_secs(180),
                looks: vec![Look::Node],
            });
        }
        if let Err(first) = pods_ready(goal, world) {
            return first;
        }
        if goal.has(Role::Etcd) {
            let membership = seen!(world.membership, Look::Membership);
            let member = MemberGoal { name: goal.name.to_string(), peer_url: goal.peer_url() };
            let progress = Progress { started: true, waited: Duration::ZERO, limit: Duration::MAX };
            let decided = next(&member, membership, progress);
            if decided != Move::Holds {
                return Next::Wait(Condition {
                    sentence: format!("etcd on {} to be a healthy voter", goal.name),
                    last_seen: format!("{decided:?}"),
                    limit: Duration::from_secs(60),
                    looks: vec![Look::Membership],
                });
            }
        }
        if world.reach_proved {
            return if world.reach_pod { Next::Act(Action::DeleteReachabilityPod) } else { Next::Holds };
        }
        match seen!(world.reach, Look::Reach) {
            // Of an earlier run, usually. Another one is tried once: what ends it may end each.
            Reach::Ended(_) if !world.reach_pod_replaced => Next::Act(Action::DeleteReachabilityPod),
            Reach::NotYet(last_seen) | Reach::Ended(last_seen) => Next::Wait(Condition {
                sentence: format!("a pod on {} to answer from this node", goal.name),
                last_seen: last_seen.clone(),
                limit: Duration::from_secs(120),
                looks: vec![Look::Reach],
            }),
            Reach::Reached => Next::Holds,
        }
    }
}
