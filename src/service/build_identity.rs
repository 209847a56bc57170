//! Which build of metalform runs.

use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::bundle::digest::Sha256;
use crate::bundle::own_program::RUNNING;

/// The version of a build, and the digest of its executable: two builds of one version may plan differently.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BuildIdentity {
    /// The version of the package.
    pub version: String,
    /// SHA-256 of the executable, lowercase hex.
    pub sha256: String,
}

impl BuildIdentity {
    /// The running build. Reads the whole executable: some tens of megabytes.
    ///
    /// # Errors
    /// When the executable cannot be read.
    pub fn of_this_process() -> io::Result<Self> {
        let (sha256, _) = Sha256::of_file(Path::new(RUNNING))?;
        Ok(Self { version: env!("CARGO_PKG_VERSION").to_owned(), sha256: sha256.to_string() })
    }
}
