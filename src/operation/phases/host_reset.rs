//! The host is as it was before metalform first changed it.

use super::layer_applied::{applied, inputs};
use crate::operation::contract::{Blocker, NodeOperation, Phase, PhaseStatus, Scene, seen};
use crate::operation::effect::{Action, Look};
use crate::operation::layer::Layer;
use crate::operation::removal_goal::RemoveGoal;

/// What the states have is removed as by any other apply, and what programs wrote after it. It holds once a comparison
/// shows nothing of metalform's; the record of what was there before goes last, so that a run that was ended resumes.
///
/// Without a record, what the states have by name may be the administrator's: a host that metalform has not changed, or
/// that was reset before, is left as it is, unless it is metalform's alone.
#[derive(Debug)]
pub struct HostReset;

impl<O: NodeOperation<Goal = RemoveGoal>> Phase<O> for HostReset {
    fn title(&self) -> &'static str {
        "Host reset"
    }

    fn applies(&self, goal: &RemoveGoal) -> bool {
        !goal.offline
    }

    fn status(&self, scene: &Scene<'_, O>) -> PhaseStatus {
        let begun = scene.host_begun();
        if begun.host_forgotten {
            return PhaseStatus::Holds;
        }
        // The mark of a version without records goes with the states: once begun, a reset goes on.
        if !scene.goal.dedicated && !begun.touched && seen!(scene.host().survey, Look::Survey).untouched {
            return PhaseStatus::Holds;
        }
        let given = match inputs(scene) {
            Ok(given) => given,
            Err(first) => return first,
        };
        let keep = scene.goal.keep_data;
        if !begun.host_cleared {
            return match applied(scene, Layer::Removed) {
                Ok(()) => PhaseStatus::Act(Action::ClearHost(given, keep)),
                Err(first) => first,
            };
        }
        let differences = seen!(scene.host().differences, Look::HostDifferences(given, keep));
        let left: Vec<String> = differences.iter().filter(|one| one.ours).map(ToString::to_string).collect();
        if !left.is_empty() {
            return PhaseStatus::Blocked(Blocker::LeftBehind(left));
        }
        // With the data stays what a later reset needs to know.
        if keep.0 { PhaseStatus::Holds } else { PhaseStatus::Act(Action::ForgetHost) }
    }
}
