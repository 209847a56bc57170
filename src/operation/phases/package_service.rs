//! The bootstrap node serves packages and images, to itself as to the others.

use std::time::Duration;

use super::layer_applied::applied;
use crate::operation::goal::Goal;
use crate::operation::layer::Layer;
use crate::operation::phase::{Condition, Look, Next, Phase};
use crate::operation::world::World;
use crate::seen;

/// The first thing on the first host: everything else is installed from it.
#[derive(Debug)]
pub struct PackageService;

impl Phase for PackageService {
    fn title(&self) -> &'static str {
        "Package service"
    }

    fn next(&self, _goal: &Goal, world: &World) -> Next {
        seen!(world.facts, Look::Facts);
        if let Err(first) = applied(world, Layer::Serving) {
            return first;
        }
        match seen!(world.package_service, Look::PackageService) {
            None => Next::Holds,
            Some(complaint) => Next::Wait(Condition {
                sentence: "metalform serve to answer".to_owned(),
                last_seen: complaint.clone(),
                limit: Duration::from_secs(30),
                looks: vec![Look::PackageService],
            }),
        }
    }
}
