//! A bundle as the bootstrap node serves it.

use std::path::PathBuf;
use std::str::FromStr;

use super::oci_layout;

/// A bundle as the bootstrap node serves it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServedBundle {
    /// Its version of Kubernetes: `1.35.4`.
    pub kubernetes: String,
    /// Its directory.
    pub directory: PathBuf,
}

/// A bundle that is not written as `VERSION=DIRECTORY`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected VERSION=DIRECTORY, such as 1.35.4=/srv/metalform/1.35")]
pub struct ServedBundleError;

impl ServedBundle {
    /// As [`served_path`].
    pub fn path(&self) -> String {
        served_path(&self.kubernetes)
    }

    /// The directory of the blobs of its images, each named by its SHA-256.
    pub fn blobs(&self) -> PathBuf {
        self.directory.join(oci_layout::BLOBS)
    }
}

/// Where the packages of the bundle with this version of Kubernetes are below the server's address, and its signed indexes
/// below their directory on the bootstrap node: `bundles/1.35.4`.
pub fn served_path(kubernetes: &str) -> String {
    format!("bundles/{kubernetes}")
}

impl FromStr for ServedBundle {
    type Err = ServedBundleError;

    /// `VERSION=DIRECTORY`. The version is part of a URL, and has no character that would have to be escaped there.
    fn from_str(text: &str) -> Result<Self, ServedBundleError> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-+".contains(&byte);
        match text.split_once('=') {
            Some((version, directory))
                if version.starts_with(|first: char| first.is_ascii_digit())
                    && version.bytes().all(plain)
                    && directory.starts_with('/') =>
            {
                Ok(Self { kubernetes: version.to_owned(), directory: directory.into() })
            }
            _ => Err(ServedBundleError),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_and_an_absolute_directory() {
        let served: ServedBundle = "1.35.4=/srv/a=b".parse().unwrap();
        assert_eq!(
            (served.path().as_str(), served.directory.as_path()),
            ("bundles/1.35.4", "/srv/a=b".as_ref())
        );
        for text in
            ["", "/srv/a", "1.35.4", "1.35.4=", "1.35.4=srv", "=/srv", "../x=/srv", "1{a}=/srv", "1/2=/srv"]
        {
            assert_eq!(text.parse::<ServedBundle>(), Err(ServedBundleError), "{text}");
        }
    }
}
