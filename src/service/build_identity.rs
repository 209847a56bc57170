//! Which build of metalform runs.

use std::fs::File;
use std::io::{self, Read};

use ring::digest;
use serde::{Deserialize, Serialize};

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
        // proc(5): refers to the running executable even after its file was replaced.
        let mut executable = File::open("/proc/self/exe")?;
        let mut context = digest::Context::new(&digest::SHA256);
        let mut buffer = vec![0; 1 << 20];
        loop {
            match executable.read(&mut buffer)? {
                0 => break,
                read => context.update(&buffer[..read]),
            }
        }
        Ok(Self { version: env!("CARGO_PKG_VERSION").to_owned(), sha256: hex::encode(context.finish()) })
    }
}
