//! Builds binaries from the Go module of a project, where its official artefacts are unavailable.
//!
//! The versions in the list pin the whole build (minimal version selection), and the digest of go.sum, where the list has
//! it, the content of every module; else Go verifies them against the checksum database. GOPROXY, GOSUMDB and GOFLAGS are
//! those of the environment.

use std::collections::BTreeMap;
use std::path::Path;

use tokio::process::Command;

use super::component::{Component, GoSource};
use super::digest::Sha256;
use super::go_module;
use super::origins::Origins;
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
    /// Another module, version or content than in the list.
    #[error(
        "the modules differ from those of the component list: go.sum has SHA-256 {found}, expected {expected}"
    )]
    Altered {
        /// Of go.sum.
        found: Sha256,
        /// In the list.
        expected: Sha256,
    },
    /// Go chose a version of a module that the list does not name.
    #[error("the source imports modules that `requires` does not name")]
    Unlisted,
}

/// Builds every binary of `source` statically for Linux into `into`, and returns the digest of go.sum, which there is none
/// of without other modules; `work` is an empty directory for the wrapper module.
///
/// # Errors
/// The first failure of go.
pub(super) async fn build(
    component: &Component,
    source: &GoSource,
    architecture: Architecture,
    (work, into): (&Path, &Path),
) -> Result<Origins, GoError> {
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
        written.map_err(file(&path))?;
    }
    program::run(go(source, architecture).current_dir(work).args(["mod", "tidy"])).await?;
    let go_sum = go_sum(source, &work.join("go.sum"))?;
    let ldflags = format!("-s -w {}", component.expand(&source.ldflags, architecture));
    let own = source.mains.keys().map(|binary| (binary, format!("./cmd/{binary}")));
    let imported = source.packages.iter().map(|(binary, path)| (binary, path.clone()));
    for (binary, path) in own.chain(imported) {
        let mut command = go(source, architecture);
        command.current_dir(work).args([
            "build",
            "-mod=readonly",
            "-trimpath",
            "-buildvcs=false",
            "-ldflags",
            ldflags.trim_end(),
            "-o",
        ]);
        // Relative paths are those of this process, and go runs in the directory of the module.
        let target = std::path::absolute(into.join(binary)).map_err(file(into))?;
        program::run(command.arg(target).arg(path)).await?;
    }
    Ok(Origins { artefacts: BTreeMap::new(), go_sum })
}

/// The digest of what `go mod tidy` has found, if it is that of the list. `go build` accepts no other content then.
fn go_sum(source: &GoSource, path: &Path) -> Result<Option<Sha256>, GoError> {
    let found = if path.exists() { Some(Sha256::of_file(path).map_err(file(path))?.0) } else { None };
    match (&found, &source.sum) {
        (Some(_), None) if source.requires.is_empty() => Err(GoError::Unlisted),
        (_, None) => Ok(found),
        (found, Some(expected)) if found.as_ref() == Some(expected) => Ok(Some(expected.clone())),
        (found, Some(expected)) => {
            let found = found.clone().unwrap_or_else(|| Sha256::of(b""));
            Err(GoError::Altered { found, expected: expected.clone() })
        }
    }
}

async fn staging_go_mod(
    component: &Component,
    source: &GoSource,
    architecture: Architecture,
) -> Result<String, GoError> {
    let module = go_module::required(component, source, architecture);
    let module: String = module.into_iter().map(|(path, version)| format!("{path}@{version}")).collect();
    let mut command = go(source, architecture);
    let (answer, _) = program::run(command.args(["mod", "download", "-json", &module])).await?;
    let answer: Option<serde_json::Value> = serde_json::from_slice(&answer).ok();
    let path =
        answer.as_ref().and_then(|answer| answer["GoMod"].as_str()).ok_or(GoError::NoGoMod { module })?;
    std::fs::read_to_string(path).map_err(file(Path::new(path)))
}

fn file(path: &Path) -> impl Fn(std::io::Error) -> GoError {
    move |source| GoError::File { path: path.display().to_string(), source }
}

fn go(source: &GoSource, architecture: Architecture) -> Command {
    let mut command = Command::new("go");
    command.env("CGO_ENABLED", "0").env("GOOS", "linux").env("GOARCH", architecture.as_str());
    if source.sum.is_some() {
        // Modules are compared with the list. Of Go's own toolchains there is a digest only in the database, which they
        // are verified against all the same.
        command.env("GONOSUMDB", "*");
    }
    command
}
