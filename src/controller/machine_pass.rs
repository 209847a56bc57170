//! One pass over a MachineDeployment, and one over a MachineSet. Those over a Machine and a Host are
//! [`super::machine_life_pass`] and [`super::host_life_pass`].
//!
//! # Guarantees
//! - Caches only show whether there is something to do: where they show nothing, no request is sent. All that is written
//!   was decided from what the API server had after the pass began, so that a controller sees its own writes, those
//!   of a killed one, and every Machine before it deletes one. Owners are read afresh before they adopt.
//! - Each write applies to the version that was read. The first conflict ends the pass; the next one decides again.
//! - A pass that is interrupted anywhere loses nothing: what is yet to be done follows from the objects.
//!
//! # Assumptions
//! One pass at a time over one object. Two controllers that overlap create no object twice and resize no set twice, since
//! names follow from what they are for, and versions are compared.

use jiff::{SignedDuration, Timestamp};
use kube::{Client, ResourceExt};

use super::machine_requests::{CarriedOut, carry_out, read_rollout, read_set};
use crate::kube_api::client::ApiError;
use crate::kube_api::tokens::TokenError;
use crate::machine::api::machine_deployment::MachineDeployment;
use crate::machine::object_event::ObjectEvent;
use crate::machine::object_write::MachineWrite;
use crate::machine::pass_events;
use crate::machine::pool_offer::PoolOffer;
use crate::machine::rollout_decision::{self, RolloutDecisionError, RolloutObjects};
use crate::machine::set_decision::{self, SetObjects};

/// What the pool offers a MachineDeployment.
pub type PoolOffers = dyn Fn(&MachineDeployment) -> PoolOffer + Send + Sync;

/// What a pass has done, and when the next one is due.
#[derive(Debug)]
pub struct MachinePass {
    /// Every write that was accepted, in order.
    pub done: Vec<MachineWrite>,
    /// What reports them, in order. Those of a pass that fails are lost: an Event has its error.
    pub events: Vec<ObjectEvent>,
    /// Where a Machine became Ready for the first time: the time from its creation.
    pub ready_after: Option<SignedDuration>,
    /// What ended the pass, if an object changed meanwhile.
    pub conflict: Option<ApiError>,
    /// When the next pass is due.
    pub next: NextPass,
}

/// When the next pass is due; any change of the objects makes it due too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextPass {
    /// At once: after a conflict, or where one write is a condition of the next.
    Now,
    /// At this time, also if nothing changes.
    At(Timestamp),
    /// After a change.
    OnChange,
}

/// Why a pass failed. What it has written before stays.
#[derive(Debug, thiserror::Error)]
pub enum MachinePassError {
    /// The API server does not answer, or refuses.
    #[error(transparent)]
    Api(#[from] ApiError),
    /// The MachineDeployment is invalid, or its MachineSet cannot be created.
    #[error("machinedeployment/{name}")]
    Decision {
        /// Of the MachineDeployment.
        name: String,
        source: RolloutDecisionError,
    },
    /// A token of a kubelet cannot be revoked.
    #[error(transparent)]
    Token(#[from] TokenError),
}

impl MachinePassError {
    /// Whether an Event has it. One of an object that had changed is repeated at once with the present one, and without an
    /// API server there is no Event either; what nothing can be decided for has an Event of its own.
    pub fn is_reported(&self) -> bool {
        let error = match self {
            Self::Api(error) | Self::Token(TokenError::Api(error)) => error,
            Self::Token(TokenError::NameTooLong { .. }) => return true,
            Self::Decision { .. } => return false,
        };
        !matches!(error, ApiError::Conflict { .. } | ApiError::Unreachable { .. })
    }
}

/// One pass over a MachineDeployment, whose caches show `cached`.
///
/// # Errors
/// When the API server does not answer or refuses, and when nothing can be decided.
pub async fn pass_over_deployment(
    client: &Client,
    cached: &RolloutObjects,
    offers: &PoolOffers,
    now: Timestamp,
) -> Result<MachinePass, MachinePassError> {
    let decide =
        |objects: &RolloutObjects| rollout_decision::decide(objects, &offers(&objects.deployment), now);
    if let Ok(plan) = decide(cached)
        && plan.writes.is_empty()
    {
        return Ok(MachinePass::resting(plan.wake));
    }
    let Some(objects) = read_rollout(client, cached, now).await? else {
        return Ok(MachinePass::resting(None));
    };
    let plan = decide(&objects)
        .map_err(|source| MachinePassError::Decision { name: objects.deployment.name_any(), source })?;
    let namespace = objects.deployment.namespace().unwrap_or_default();
    let carried = carry_out(client, &namespace, plan.writes).await?;
    let events = pass_events::of_deployment(&objects, &carried.done);
    Ok(MachinePass { events, ..MachinePass::after(carried, plan.wake, plan.again) })
}

/// One pass over a MachineSet, whose caches show `cached`.
///
/// # Errors
/// When the API server does not answer or refuses.
pub async fn pass_over_set(
    client: &Client,
    cached: &SetObjects,
    now: Timestamp,
) -> Result<MachinePass, MachinePassError> {
    let plan = set_decision::decide(cached, now);
    if plan.writes.is_empty() {
        return Ok(MachinePass::resting(plan.wake));
    }
    let Some(objects) = read_set(client, &cached.set).await? else { return Ok(MachinePass::resting(None)) };
    let plan = set_decision::decide(&objects, now);
    let namespace = objects.set.namespace().unwrap_or_default();
    let carried = carry_out(client, &namespace, plan.writes).await?;
    let events = pass_events::of_set(&objects.set, &carried.done);
    Ok(MachinePass { events, ..MachinePass::after(carried, plan.wake, plan.again) })
}

impl MachinePass {
    pub(super) fn resting(wake: Option<Timestamp>) -> Self {
        Self {
            done: Vec::new(),
            events: Vec::new(),
            ready_after: None,
            conflict: None,
            next: NextPass::of(wake),
        }
    }

    pub(super) fn after(carried: CarriedOut, wake: Option<Timestamp>, again: bool) -> Self {
        let next = if again || carried.conflict.is_some() { NextPass::Now } else { NextPass::of(wake) };
        Self { done: carried.done, events: Vec::new(), ready_after: None, conflict: carried.conflict, next }
    }
}

impl NextPass {
    fn of(wake: Option<Timestamp>) -> Self {
        wake.map_or(Self::OnChange, Self::At)
    }
}

pub(super) fn earliest(one: Option<Timestamp>, other: Option<Timestamp>) -> Option<Timestamp> {
    one.into_iter().chain(other).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_repeats_itself_or_reaches_no_api_server_has_no_event() {
        let refused = |code| {
            let status = kube::core::Status { code, ..kube::core::Status::failure("detail", "Reason") };
            ApiError::new("patch", "machine/m", kube::Error::Api(status.boxed()))
        };
        let undecided = || MachinePassError::Decision {
            name: "d".to_owned(),
            source: RolloutDecisionError::NameTaken { name: "d-1".to_owned() },
        };
        for (error, expected) in [
            (MachinePassError::Api(refused(403)), true),
            (MachinePassError::Api(refused(404)), true),
            (MachinePassError::Api(refused(422)), true),
            (MachinePassError::Api(refused(500)), true),
            (MachinePassError::Api(refused(409)), false),
            (MachinePassError::Api(ApiError::silent("get", "machine/m")), false),
            (MachinePassError::Token(TokenError::Api(refused(403))), true),
            (MachinePassError::Token(TokenError::Api(refused(409))), false),
            (MachinePassError::Token(TokenError::NameTooLong { name: "h".parse().unwrap() }), true),
            (undecided(), false),
        ] {
            assert_eq!(error.is_reported(), expected, "{error}");
        }
    }
}
