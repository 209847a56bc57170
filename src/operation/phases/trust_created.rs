//! The bootstrap node has the cluster's CAs, and the certificates of its own.

use crate::operation::contract::{BootstrapNodeOperation, Phase, PhaseStatus, Scene, seen};
use crate::operation::effect::{Action, Look};

/// Only what is missing is created; a CA that exists is never replaced.
#[derive(Debug)]
pub struct TrustCreated;

impl<O: BootstrapNodeOperation> Phase<O> for TrustCreated {
    fn title(&self) -> &'static str {
        "Certificate authorities"
    }

    fn status(&self, scene: &Scene<'_, O>) -> PhaseStatus {
        let missing = seen!(scene.bootstrap().missing_trust, Look::Trust);
        if missing.is_empty() {
            PhaseStatus::Holds
        } else {
            PhaseStatus::Act(Action::CreateTrust(missing.clone()))
        }
    }
}
