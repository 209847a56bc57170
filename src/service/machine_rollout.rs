//! `machinedeployment rollout`: status, restart, undo, pause and resume.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use kube::api::{Api, Patch, PatchParams};
use kube::{Resource, ResourceExt};
use serde::Serialize;
use serde_json::{Value, json};

use super::command_error::{CommandError, ErrorClass};
use super::machine_api::{self, MachineApiError};
use crate::engine::wait::{WaitError, WaitStatus, wait_for};
use crate::kube_api::FIELD_MANAGER;
use crate::kube_api::client::ApiError;
use crate::machine::api::machine_deployment::MachineDeployment;
use crate::machine::api::machine_set::MachineSet;
use crate::machine::rollback::{Rollback, RollbackError, TemplateRevision, rollback};
use crate::machine::rollout_view::{RolloutStage, RolloutView, rollout_view};
use crate::model::api_contract::{RESTARTED_AT, REVISION};
use crate::operation::cluster_site::ApiPort;

/// A MachineDeployment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeploymentName {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl DeploymentName {
    /// The command that resumes its rollout.
    fn resume(&self) -> String {
        format!("`metalform machinedeployment rollout resume {} -n {}`", self.name, self.namespace)
    }

    /// The command that restores the template before.
    fn undo(&self) -> String {
        format!("`metalform machinedeployment rollout undo {} -n {}`", self.name, self.namespace)
    }

    /// The command that lists its Machines.
    fn machines(&self) -> String {
        format!("`metalform machine list -n {}`", self.namespace)
    }
}

/// What was done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RolloutChange {
    /// The MachineDeployment.
    pub name: String,
    /// Whether anything was written.
    pub changed: bool,
    /// For people.
    pub message: String,
}

/// Why a rollout is not what was requested.
#[derive(Debug, thiserror::Error)]
pub enum RolloutError {
    /// The API cannot be used.
    #[error(transparent)]
    Api(#[from] MachineApiError),
    /// It is paused.
    #[error("machinedeployment {} is paused", .0.name)]
    Paused(DeploymentName),
    /// There is nothing to restore.
    #[error("machinedeployment {name}: {reason}")]
    Rollback {
        /// The MachineDeployment.
        name: String,
        /// Why.
        reason: RollbackError,
    },
    /// The template cannot be read.
    #[error("machinedeployment {name}: spec.template: {source}")]
    Template {
        /// The MachineDeployment.
        name: String,
        /// Why.
        source: serde_json::Error,
    },
    /// It will not complete without a change.
    #[error("machinedeployment {}: {}", name.name, view.message)]
    Stopped {
        /// The MachineDeployment.
        name: DeploymentName,
        /// How far it is.
        view: RolloutView,
    },
    /// It is not complete in time.
    #[error("{error}")]
    Late {
        /// The MachineDeployment.
        name: DeploymentName,
        /// What was waited for.
        error: WaitError,
    },
}

impl CommandError for RolloutError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Api(error) => error.class(),
            Self::Paused(_) => ErrorClass::Refused,
            Self::Rollback { .. } | Self::Template { .. } => ErrorClass::Configuration,
            Self::Stopped { .. } | Self::Late { .. } => ErrorClass::Host,
        }
    }

    fn errors(&self) -> Vec<String> {
        vec![self.to_string()]
    }

    fn hints(&self) -> Vec<String> {
        let hint = match self {
            Self::Api(error) => return error.hints(),
            Self::Paused(name) => format!("run {} first", name.resume()),
            Self::Rollback { .. } => {
                "spec.revisionHistoryLimit is how many MachineSets are kept: kubectl get machinesets -A"
                    .to_owned()
            }
            Self::Template { .. } => return Vec::new(),
            Self::Stopped { name, view } => match view.stage {
                RolloutStage::Paused => format!("run {}", name.resume()),
                RolloutStage::Deleting => return Vec::new(),
                _ => format!(
                    "{} shows its Machines; {} restores the template before",
                    name.machines(),
                    name.undo()
                ),
            },
            Self::Late { name, .. } => {
                format!("{} shows its Machines; add hosts with `metalform host add`", name.machines())
            }
        };
        vec![hint]
    }
}

async fn open(port: &ApiPort, name: &DeploymentName) -> Result<Api<MachineDeployment>, MachineApiError> {
    Ok(Api::namespaced(machine_api::connect(port).await?, &name.namespace))
}

/// How far the rollout is now.
///
/// # Errors
/// When the API cannot be used, or there is no such MachineDeployment.
pub async fn status(port: &ApiPort, name: &DeploymentName) -> Result<RolloutView, RolloutError> {
    Ok(rollout_view(&machine_api::get(&open(port, name).await?, &name.name).await?))
}

/// Waits until the rollout is complete. `progress` receives each view that differs from the one before.
///
/// # Errors
/// When it cannot complete without a change (paused, deleted, no progress for progressDeadlineSeconds), when `limit` has
/// passed, or when the API refuses; moments without an API server are waited for.
pub async fn wait(
    port: &ApiPort,
    name: &DeploymentName,
    limit: Duration,
    progress: impl FnMut(&RolloutView),
) -> Result<RolloutView, RolloutError> {
    let api = &open(port, name).await?;
    let seen = Mutex::new((None, progress));
    let condition = format!("the rollout of machinedeployment {}", name.name);
    let waited = wait_for(condition, limit, || async {
        let view = match machine_api::get(api, &name.name).await {
            Ok(deployment) => rollout_view(&deployment),
            Err(MachineApiError::Api(error)) if error.is_transient() => {
                return WaitStatus::NotYet(error.to_string());
            }
            Err(error) => return WaitStatus::Holds(Err(error.into())),
        };
        let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
        let (last, progress) = &mut *seen;
        if last.as_ref() != Some(&view) {
            progress(&view);
            *last = Some(view.clone());
        }
        match view.stage {
            RolloutStage::Complete => WaitStatus::Holds(Ok(view)),
            RolloutStage::Progressing | RolloutStage::Blocked => WaitStatus::NotYet(view.message),
            RolloutStage::Paused | RolloutStage::DeadlineExceeded | RolloutStage::Deleting => {
                WaitStatus::Holds(Err(RolloutError::Stopped { name: name.clone(), view }))
            }
        }
    });
    waited.await.map_err(|error| RolloutError::Late { name: name.clone(), error })?
}

/// Replaces every Machine, by an annotation of the template.
///
/// # Errors
/// When it is paused, or the API cannot be used.
pub async fn restart(
    port: &ApiPort,
    name: &DeploymentName,
    now: Timestamp,
) -> Result<RolloutChange, RolloutError> {
    let api = open(port, name).await?;
    let deployment = machine_api::get(&api, &name.name).await?;
    if deployment.spec.paused {
        return Err(RolloutError::Paused(name.clone()));
    }
    let at = now.to_zoned(TimeZone::UTC).strftime("%Y-%m-%dT%H:%M:%S%.3f%z").to_string();
    let annotations = json!({ RESTARTED_AT: at });
    let template = json!({ "metadata": { "annotations": annotations } });
    patch(&api, &deployment, json!({ "template": template })).await?;
    Ok(RolloutChange { name: name.name.clone(), changed: true, message: "restarted".to_owned() })
}

/// Restores the template of a revision, by default of the latest other one.
///
/// # Errors
/// When it is paused, no MachineSet has the revision, or the API cannot be used.
pub async fn undo(
    port: &ApiPort,
    name: &DeploymentName,
    to: Option<u64>,
) -> Result<RolloutChange, RolloutError> {
    let api = open(port, name).await?;
    let deployment = machine_api::get(&api, &name.name).await?;
    if deployment.spec.paused {
        return Err(RolloutError::Paused(name.clone()));
    }
    let sets: Api<MachineSet> = Api::namespaced(api.clone().into_client(), &name.namespace);
    let encode = |template: &_| {
        serde_json::to_value(template)
            .map_err(|source| RolloutError::Template { name: name.name.clone(), source })
    };
    let mut revisions = Vec::new();
    for set in machine_api::list(&sets).await?.iter().filter(|set| is_controlled_by(set, &deployment)) {
        let revision = set.annotations().get(REVISION).and_then(|text| text.parse().ok()).unwrap_or(0);
        revisions.push(TemplateRevision { revision, template: encode(&set.spec.template)? });
    }
    let found = rollback(&encode(&deployment.spec.template)?, &revisions, to)
        .map_err(|reason| RolloutError::Rollback { name: name.name.clone(), reason })?;
    let (changed, message) = match found {
        Rollback::Unchanged(revision) => {
            (false, format!("unchanged: its template is that of revision {revision}"))
        }
        Rollback::Patch { revision, patch: template } => {
            patch(&api, &deployment, json!({ "template": template })).await?;
            (true, format!("rolled back to revision {revision}"))
        }
    };
    Ok(RolloutChange { name: name.name.clone(), changed, message })
}

/// Pauses or resumes.
///
/// # Errors
/// When the API cannot be used.
pub async fn set_paused(
    port: &ApiPort,
    name: &DeploymentName,
    paused: bool,
) -> Result<RolloutChange, RolloutError> {
    let api = open(port, name).await?;
    let deployment = machine_api::get(&api, &name.name).await?;
    let changed = deployment.spec.paused != paused;
    if changed {
        patch(&api, &deployment, json!({ "paused": paused })).await?;
    }
    let message = match (paused, changed) {
        (true, true) => "paused",
        (true, false) => "unchanged: it is paused",
        (false, true) => "resumed",
        (false, false) => "unchanged: it is not paused",
    };
    Ok(RolloutChange { name: name.name.clone(), changed, message: message.to_owned() })
}

fn is_controlled_by(set: &MachineSet, deployment: &MachineDeployment) -> bool {
    let uid = deployment.uid();
    let mut owners = set.meta().owner_references.iter().flatten();
    owners.any(|owner| owner.controller == Some(true) && Some(&owner.uid) == uid.as_ref())
}

/// A merge patch of the specification that was read: refused if it has changed meanwhile.
async fn patch(
    api: &Api<MachineDeployment>,
    deployment: &MachineDeployment,
    spec: Value,
) -> Result<(), MachineApiError> {
    let name = deployment.name_any();
    let metadata = json!({ "resourceVersion": deployment.resource_version() });
    let parameters = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
    let patch = Patch::Merge(json!({ "metadata": metadata, "spec": spec }));
    let patched = api.patch(&name, &parameters, &patch).await;
    patched.map_err(|error| ApiError::new("patch", format!("machinedeployment/{name}"), error))?;
    Ok(())
}
