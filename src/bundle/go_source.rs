//! Builds binaries from the Go module of a project, where its official artefacts are unavailable.
//!
//! The versions in the list pin the whole build (minimal version selection), and Go verifies every module against the
//! checksum database; GOPROXY, GOSUMDB and GOFLAGS are those of the environment.

use std::path::Path;

use tokio::process::Command;

use super::component::{Component, GoSource};
use super::go_module;
use super::program::{self, ProgramError};
use crate::model::platform::Architecture;

/// Why the module did not provide the binaries.
#[derive(Debug, thiserror::Error)]
pub enum GoError {
    /// `go` is not installed, or failed.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// The wrapper module could not be written, or a go.mod could not be read.
    #[error("cannot use {path}")]
    File {
        /// Of the file.
        path: String,
        /// From the operating system.
        source: std::io::Error,
    },
    /// Unexpected output of `go mod download -json`.
    #[error("go mod download did not report the go.mod of {module}")]
    NoGoMod {
        /// Module and version.
        module: String,
    },
}

/// Builds every binary of `source` statically for Linux into `into`; `work` is an empty directory for the wrapper
/// module.
///
/// # Errors
/// The first failure of go.
pub(super) async fn build(
    component: &Component,
    source: &GoSource,
    architecture: Architecture,
    (work, into): (&Path, &Path),
) -> Result<(), GoError> {
    let staging = if source.replace_staging {
        Some(staging_go_mod(component, source, architecture).await?)
    } else {
        None
    };
    for (name, content) in go_module::files(component, source, architecture, staging.as_deref()) {
        let path = work.join(name);
        let written = path
            .parent()
            .map_or(Ok(()), std::fs::create_dir_all)
            .and_then(|()| std::fs::write(&path, content));
        written.map_err(|source| GoError::File { path: path.display().to_string(), source })?;
    }
    program::run(go(work, architecture).args(["mod", "tidy"])).await?;
    let ldflags = format!("-s -w {}", component.expand(&source.ldflags, architecture));
    let own = source.mains.keys().map(|binary| (binary, format!("./cmd/{binary}")));
    let imported = source.packages.iter().map(|(binary, path)| (binary, path.clone()));
    for (binary, path) in own.chain(imported) {
        let mut command = go(work, architecture);
        command.args(["build", "-trimpath", "-buildvcs=false", "-ldflags", ldflags.trim_end(), "-o"]);
        program::run(command.arg(into.join(binary)).arg(path)).await?;
    }
    Ok(())
}

async fn staging_go_mod(
    component: &Component,
    source: &GoSource,
    architecture: Architecture,
) -> Result<String, GoError> {
    let module = go_module::required(component, source, architecture);
    let module: String = module.into_iter().map(|(path, version)| format!("{path}@{version}")).collect();
    let mut command = Command::new("go");
    let (answer, _) = program::run(command.args(["mod", "download", "-json", &module])).await?;
    let answer: Option<serde_json::Value> = serde_json::from_slice(&answer).ok();
    let path =
        answer.as_ref().and_then(|answer| answer["GoMod"].as_str()).ok_or(GoError::NoGoMod { module })?;
    std::fs::read_to_string(path).map_err(|source| GoError::File { path: path.to_owned(), source })
}

fn go(work: &Path, architecture: Architecture) -> Command {
    let mut command = Command::new("go");
    command
        .current_dir(work)
        .env("CGO_ENABLED", "0")
        .env("GOOS", "linux")
        .env("GOARCH", architecture.as_str());
    command
}
