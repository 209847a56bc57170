//! What a build tells whoever watches it.

use std::fmt;
use std::path::PathBuf;

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BundleEvent {
    /// Nothing had to be done.
    UpToDate {
        /// The bundle's directory.
        directory: PathBuf,
    },
    /// An earlier result with the same inputs is used.
    Reused {
        /// Component, or operating system.
        part: String,
    },
    /// Work begins.
    Started {
        /// Component, or operating system.
        part: String,
        /// Where it comes from.
        origin: String,
    },
    /// The official artefacts cannot be had; the Go module is built instead.
    FellBack {
        /// Component.
        part: String,
        /// Why.
        reason: String,
    },
    /// A part is done and kept.
    Finished {
        /// Component, or operating system.
        part: String,
    },
    /// The bundle is in place.
    Written {
        /// The bundle's directory.
        directory: PathBuf,
        /// Files in it, `bundle.yaml` not counted.
        files: usize,
        /// Bytes in them.
        size: u64,
    },
}

impl fmt::Display for BundleEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UpToDate { directory } => write!(f, "bundle is up to date: {}", directory.display()),
            Self::Reused { part } => write!(f, "{part}: unchanged"),
            Self::Started { part, origin } => write!(f, "{part}: from {origin}"),
            Self::FellBack { part, reason } => write!(f, "{part}: no official artefacts ({reason})"),
            Self::Finished { part } => write!(f, "{part}: done"),
            Self::Written { directory, files, size } => {
                write!(f, "bundle is written: {}, {files} files, {} MiB", directory.display(), size >> 20)
            }
        }
    }
}

/// Receives events, from any task.
pub type Events<'a> = &'a (dyn Fn(BundleEvent) + Send + Sync);
