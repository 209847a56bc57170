//! The file of a deployment's plan: written by `expand --dry-run --out FILE`, read by `expand --plan FILE`.

use std::num::NonZeroUsize;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::build_identity::BuildIdentity;
use super::deploy::DeployRequest;
use super::foreseen_deployment::ForeseenDeployment;
use super::node_selection::NodeSelection;
use super::operation_report::RunOptions;
use super::saved_file::{SavedFile, SavedFileError};
use super::workspace_origin::WorkspaceOrigin;
use crate::engine::saved_plan::key::SALT;
use crate::model::api_contract::API_VERSION;

/// A saved plan of a deployment. It contains names, sentences and digests, and no content.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DeploymentFile {
    api_version: String,
    kind: String,
    /// The build that made the plan. Another build may compile states or plan changes differently.
    metalform: BuildIdentity,
    made: Timestamp,
    request: SavedRequest,
    /// Of the digests' key, hexadecimal.
    salt: String,
    /// What the dry run foresaw.
    pub foreseen: ForeseenDeployment,
}

/// The request that the plan was made for.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct SavedRequest {
    nodes: NodeSelection,
    replace_member: bool,
    replace_machine: bool,
    /// Paths are absolute.
    workspace: WorkspaceOrigin,
}

impl SavedFile for DeploymentFile {
    const KIND: &'static str = "SavedDeployment";

    fn salt(&self) -> &str {
        &self.salt
    }
}

impl DeploymentFile {
    /// What was foreseen of a request. Paths of `workspace` must be absolute.
    ///
    /// # Errors
    /// When the running build cannot be identified.
    pub fn new(
        salt: [u8; SALT],
        made: Timestamp,
        request: &DeployRequest,
        workspace: WorkspaceOrigin,
        foreseen: ForeseenDeployment,
    ) -> Result<Self, SavedFileError> {
        Ok(Self {
            api_version: API_VERSION.to_owned(),
            kind: Self::KIND.to_owned(),
            metalform: BuildIdentity::of_this_process().map_err(SavedFileError::Executable)?,
            made,
            request: SavedRequest {
                nodes: request.nodes.clone(),
                replace_member: request.replace_member,
                replace_machine: request.replace_machine,
                workspace,
            },
            salt: hex::encode(salt),
            foreseen,
        })
    }

    /// The workspace that the plan was made in; SSH options that are set in `given` replace those of the plan.
    pub fn workspace(&self, given: WorkspaceOrigin) -> WorkspaceOrigin {
        let WorkspaceOrigin { tree, ssh } = &self.request.workspace;
        WorkspaceOrigin { tree: tree.clone(), ssh: given.ssh.or(ssh) }
    }

    /// The request that the plan was made for.
    pub(super) fn request(&self, run: RunOptions, limit: NonZeroUsize) -> DeployRequest {
        let SavedRequest { nodes, replace_member, replace_machine, .. } = &self.request;
        DeployRequest {
            nodes: nodes.clone(),
            run,
            replace_member: *replace_member,
            replace_machine: *replace_machine,
            limit,
        }
    }
}
