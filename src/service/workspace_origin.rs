//! What the options of a command specify of the workspace.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::ssh_options::SshOptions;

/// What the options of a command specify of the workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WorkspaceOrigin {
    /// Where states and templates are read; `None` is the tree compiled in.
    pub tree: Option<PathBuf>,
    /// How hosts are logged in to.
    pub ssh: SshOptions,
}

impl WorkspaceOrigin {
    /// With relative paths resolved against `directory`.
    #[must_use]
    pub fn resolved(&self, directory: &Path) -> Self {
        Self { tree: self.tree.as_ref().map(|tree| directory.join(tree)), ssh: self.ssh.resolved(directory) }
    }
}
