//! The host is fit to be this node.

use crate::operation::goal::Goal;
use crate::operation::phase::{Blocker, Look, Next, Phase};
use crate::operation::preflight::failures;
use crate::operation::world::World;
use crate::seen;

/// Nothing on the host was changed before this holds.
#[derive(Debug)]
pub struct Preflight;

impl Phase for Preflight {
    fn title(&self) -> &'static str {
        "Preflight"
    }

    fn next(&self, goal: &Goal, world: &World) -> Next {
        let facts = seen!(world.facts, Look::Facts);
        let survey = seen!(world.survey, Look::Survey);
        let found = if goal.first {
            failures(goal, facts, survey, std::iter::empty())
        } else {
            let peers = seen!(world.peers, Look::Peers);
            failures(goal, facts, survey, peers.iter())
        };
        if found.is_empty() { Next::Holds } else { Next::Blocked(Blocker::Preflight(found)) }
    }
}
