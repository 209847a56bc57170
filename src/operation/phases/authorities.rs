//! The bootstrap node has the cluster's authorities, and what it issues for itself.

use crate::operation::goal::Goal;
use crate::operation::phase::{Action, Look, Next, Phase};
use crate::operation::world::World;
use crate::seen;

/// Only what is missing is made; nothing that exists is ever replaced.
#[derive(Debug)]
pub struct AuthoritiesMade;

impl Phase for AuthoritiesMade {
    fn title(&self) -> &'static str {
        "Authorities"
    }

    fn next(&self, _goal: &Goal, world: &World) -> Next {
        if seen!(world.missing_trust, Look::Trust).is_empty() {
            Next::Holds
        } else {
            Next::Act(Action::CreateTrust)
        }
    }
}
