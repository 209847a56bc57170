//! The bootstrap node serves packages and images, to itself as to the others.

use std::time::Duration;

use super::layer_applied::applied;
use crate::operation::cause::Cause;
use crate::operation::class::FailureClass;
use crate::operation::condition::Condition;
use crate::operation::contract::{BootstrapNodeOperation, Phase, PhaseStatus, Scene, seen};
use crate::operation::effect::{Look, LookKey};
use crate::operation::layer::Layer;

/// The first thing on the first host: everything else is installed from it.
#[derive(Debug)]
pub struct PackageService;

impl<O: BootstrapNodeOperation> Phase<O> for PackageService {
    fn title(&self) -> &'static str {
        "Package service"
    }

    fn status(&self, scene: &Scene<'_, O>) -> PhaseStatus {
        if let Err(first) = applied(scene, Layer::Serving) {
            return first;
        }
        match seen!(scene.bootstrap().package_service, Look::PackageService) {
            None => PhaseStatus::Holds,
            Some(complaint) => {
                let condition = Condition {
                    sentence: "metalform serve to accept connections".to_owned(),
                    class: FailureClass::Host,
                    last_seen: complaint.clone(),
                    limit: Duration::from_secs(30),
                    looks: vec![LookKey::PackageService],
                    causes: Vec::new(),
                    hopeless: None,
                };
                let causes = vec![Cause::Unit("metalform.service".to_owned())];
                PhaseStatus::wait(condition.caused_by(scene.host(), causes))
            }
        }
    }
}
