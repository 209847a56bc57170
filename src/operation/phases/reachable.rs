//! The host answers over SSH.

use crate::operation::goal::Goal;
use crate::operation::phase::{Look, Next, Phase};
use crate::operation::world::World;
use crate::seen;

/// Looking at the facts is the proof: connection, host key, key, sudo and shell are all needed for it.
#[derive(Debug)]
pub struct Reachable;

impl Phase for Reachable {
    fn title(&self) -> &'static str {
        "Reachable"
    }

    fn next(&self, _goal: &Goal, world: &World) -> Next {
        seen!(world.facts, Look::Facts);
        Next::Holds
    }
}
