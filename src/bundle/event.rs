//! Progress events of a build.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use super::download::progress::DownloadProgress;
use crate::model::platform::Architecture;

/// Displays as one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BundleEvent {
    /// The existing bundle has the same inputs.
    UpToDate {
        /// The bundle's directory.
        directory: PathBuf,
    },
    /// A part comes from the cache.
    Reused {
        /// Component or platform.
        part: String,
    },
    /// A part is being built.
    Started {
        /// Component or platform.
        part: String,
        /// Its source.
        origin: String,
    },
    /// The state of all downloads, at most once a second.
    Downloading(DownloadProgress),
    /// A download was interrupted; the rest is requested after a pause.
    Retrying {
        /// The download error, with the URL.
        reason: String,
        /// Number of the next attempt, from 2.
        attempt: u32,
        /// Number of all attempts.
        limit: u32,
        /// Until the next attempt.
        pause: Duration,
    },
    /// The official artefacts are unavailable; the Go module is built instead.
    FellBack {
        /// Name of the component.
        part: String,
        /// The download error.
        reason: String,
    },
    /// There is no program to package.
    NotPackaged {
        /// Name of the component.
        component: String,
        /// Of hosts that the bundle is for.
        architecture: Architecture,
    },
    /// A part was built and cached.
    Finished {
        /// Component or platform.
        part: String,
    },
    /// The bundle was replaced.
    Written {
        /// The bundle's directory.
        directory: PathBuf,
        /// Number of files, without `bundle.yaml`.
        files: usize,
        /// Sum of their sizes, in bytes.
        size: u64,
    },
}

impl fmt::Display for BundleEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UpToDate { directory } => write!(f, "bundle is up to date: {}", directory.display()),
            Self::Reused { part } => write!(f, "{part}: unchanged"),
            Self::Started { part, origin } => write!(f, "{part}: from {origin}"),
            Self::Downloading(progress) => progress.fmt(f),
            Self::Retrying { reason, attempt, limit, pause } => {
                write!(f, "{reason}; attempt {attempt} of {limit} in {} s", pause.as_secs())
            }
            Self::FellBack { part, reason } => {
                write!(f, "{part}: official artefacts are unavailable: {reason}")
            }
            Self::NotPackaged { component, architecture } => {
                write!(f, "{component}: not packaged for {architecture}: --program names a program for it")
            }
            Self::Finished { part } => write!(f, "{part}: done"),
            Self::Written { directory, files, size } => {
                write!(f, "bundle written: {}, {files} files, {} MiB", directory.display(), size >> 20)
            }
        }
    }
}

/// Receives events from any task.
pub type BundleEvents<'a> = &'a (dyn Fn(BundleEvent) + Send + Sync);
