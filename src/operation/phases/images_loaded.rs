//! The registry runs and has every image of the bundle.

use std::time::Duration;

use super::layer_applied::applied;
use crate::operation::cause::Cause;
use crate::operation::class::FailureClass;
use crate::operation::condition::Condition;
use crate::operation::contract::{BootstrapNodeOperation, Phase, PhaseStatus, Scene, seen};
use crate::operation::effect::{Action, Look, LookKey};
use crate::operation::layer::Layer;

/// By digest: a tag that points elsewhere is missing.
#[derive(Debug)]
pub struct ImagesLoaded;

impl<O: BootstrapNodeOperation> Phase<O> for ImagesLoaded {
    fn title(&self) -> &'static str {
        "Images loaded"
    }

    fn status(&self, scene: &Scene<'_, O>) -> PhaseStatus {
        if let Err(first) = applied(scene, Layer::Registry) {
            return first;
        }
        if let Some(complaint) = seen!(scene.bootstrap().registry, Look::Registry) {
            let condition = Condition {
                sentence: "the image registry to accept connections".to_owned(),
                class: FailureClass::Host,
                last_seen: complaint.clone(),
                limit: Duration::from_secs(30),
                looks: vec![LookKey::Registry],
                causes: Vec::new(),
                hopeless: None,
            };
            let units = ["metalform-registry-writer.service", "metalform-registry.service"];
            let causes = units.map(|unit| Cause::Unit(unit.to_owned())).to_vec();
            return PhaseStatus::wait(condition.caused_by(scene.host(), causes));
        }
        let missing = seen!(scene.bootstrap().missing_images, Look::Images);
        if missing.is_empty() {
            PhaseStatus::Holds
        } else {
            PhaseStatus::Act(Action::LoadImages(missing.clone()))
        }
    }
}
