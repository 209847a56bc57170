//! The registry has every image of the bundle.

use crate::operation::goal::Goal;
use crate::operation::phase::{Action, Look, Next, Phase};
use crate::operation::world::World;
use crate::seen;

/// By digest: a tag that points elsewhere is missing.
#[derive(Debug)]
pub struct ImagesLoaded;

impl Phase for ImagesLoaded {
    fn title(&self) -> &'static str {
        "Images loaded"
    }

    fn next(&self, _goal: &Goal, world: &World) -> Next {
        if seen!(world.missing_images, Look::Images).is_empty() {
            Next::Holds
        } else {
            Next::Act(Action::LoadImages)
        }
    }
}
