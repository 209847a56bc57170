//! What can be wrong with a bundle.

use std::fmt;

use super::format::Unmet;
use super::manifest;
use crate::model::platform::Platform;

/// A problem of a bundle. Displays as one line.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum BundleProblem {
    /// A file in the manifest that does not exist.
    Missing {
        /// Path in the bundle.
        path: String,
        /// The image or package that it belongs to, where it does: `image registry.k8s.io/pause:3.10.1`.
        of: Option<String>,
    },
    /// A file with another content than in the manifest.
    Altered {
        /// Path in the bundle.
        path: String,
        /// Digest and size of the file.
        found: String,
        /// Digest and size in the manifest.
        expected: String,
        /// As of a missing file.
        of: Option<String>,
    },
    /// A file that is not in the manifest.
    Unlisted(String),
    /// A component that is missing, or has another version than in the list.
    Version {
        /// Name of the component.
        component: String,
        /// In the bundle.
        found: Option<String>,
        /// In the list.
        expected: String,
    },
    /// An image of the list that is missing.
    NoImage(String),
    /// A blob of an image that is missing or altered.
    Blob {
        /// Of the image.
        reference: String,
        /// `manifest`, `config` or `layer`.
        part: &'static str,
        /// `sha256:` and the digits.
        digest: String,
    },
    /// An image or a package that states ask for.
    Asked {
        /// `image etcd`, `package haproxy for debian-12-amd64`.
        what: String,
        /// The place that asks for it: `states/etcd.yaml:15`.
        by: String,
    },
    /// A platform of the list without packages.
    NoPlatform(Platform),
    /// A package that cannot be installed from the bundle alone.
    Unmet {
        /// The hosts' platform.
        platform: Platform,
        /// The missing dependency.
        unmet: Unmet,
    },
}

impl BundleProblem {
    /// Of a file that is damaged.
    pub(super) fn path(&self) -> Option<&str> {
        match self {
            Self::Missing { path, .. } | Self::Altered { path, .. } => Some(path),
            _ => None,
        }
    }
}

impl fmt::Display for BundleProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing { path, of } => write!(f, "{path}{}: missing", Of(of)),
            Self::Altered { path, found, expected, of } => {
                write!(f, "{path}{}: found {found}, expected {expected}", Of(of))
            }
            Self::Unlisted(path) => write!(f, "{path}: not in {}", manifest::FILE_NAME),
            Self::Version { component, found: None, expected } => {
                write!(f, "component {component}: missing, expected {expected}")
            }
            Self::Version { component, found: Some(found), expected } => {
                write!(f, "component {component}: found {found}, expected {expected}")
            }
            Self::NoImage(reference) => write!(f, "image {reference}: missing"),
            Self::Blob { reference, part, digest } => {
                write!(f, "image {reference}: missing {part} {digest}")
            }
            Self::Asked { what, by } => write!(f, "{what}: missing, and {by} asks for it"),
            Self::NoPlatform(platform) => write!(f, "{platform}: no package index"),
            Self::Unmet { platform, unmet } => write!(f, "{platform}: {unmet}"),
        }
    }
}

/// What a file is part of, in parentheses.
struct Of<'a>(&'a Option<String>);

impl fmt::Display for Of<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.as_ref().map_or(Ok(()), |of| write!(f, " ({of})"))
    }
}
