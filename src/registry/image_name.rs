//! Names of images in the registry.

use std::fmt;
use std::str::FromStr;

use oci_spec::distribution::Reference;

/// Registry, repository and tag: `docker.io/library/busybox:1.37`. The registry's name is the first part of the name of
/// the repository that has it, as containerd requests it from a mirror.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ImageName {
    /// `docker.io/library/busybox`.
    pub repository: String,
    /// `1.37`.
    pub tag: String,
}

/// Why the registry cannot serve an image of this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ImageNameError {
    /// No reference.
    #[error("image {0:?} is not a valid repository name")]
    Syntax(String),
    /// A digest, and no tag.
    #[error("image {0} has no tag")]
    NoTag(String),
    /// A registry that is not named by a host name in lowercase letters, such as one with a port.
    #[error("image {0}: the name of its registry must be a host name in lowercase, without a port")]
    Host(String),
}

impl ImageName {
    /// A name that is complete, as those of bundles are.
    ///
    /// # Errors
    /// Also when the registry or the tag would have to be added.
    pub fn complete(reference: &str) -> Result<Self, ImageNameError> {
        let name: Self = reference.parse()?;
        if name.to_string() == reference {
            Ok(name)
        } else {
            Err(ImageNameError::Syntax(reference.to_owned()))
        }
    }
}

impl FromStr for ImageName {
    type Err = ImageNameError;

    /// As docker completes it: `busybox` is `docker.io/library/busybox:latest`. A digest beside the tag is left out.
    fn from_str(reference: &str) -> Result<Self, ImageNameError> {
        let parsed: Reference =
            reference.parse().map_err(|_| ImageNameError::Syntax(reference.to_owned()))?;
        let Some(tag) = parsed.tag() else { return Err(ImageNameError::NoTag(reference.to_owned())) };
        if !is_host(parsed.registry()) {
            return Err(ImageNameError::Host(reference.to_owned()));
        }
        let repository = format!("{}/{}", parsed.registry(), parsed.repository());
        Ok(Self { repository, tag: tag.to_owned() })
    }
}

impl fmt::Display for ImageName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.repository, self.tag)
    }
}

/// A host that is valid in a repository's name: lowercase, and without a port.
pub fn is_host(text: &str) -> bool {
    text.split('.').all(|label| {
        let inner = label.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
        !label.is_empty() && inner && !label.starts_with('-') && !label.ends_with('-')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_completed_as_docker_does_and_has_a_host_that_a_mirror_can_serve() {
        let digest = format!("sha256:{}", "a".repeat(64));
        let cases = [
            ("busybox", Some("docker.io/library/busybox:latest")),
            ("team/app:1", Some("docker.io/team/app:1")),
            ("registry.k8s.io/pause:3.10", Some("registry.k8s.io/pause:3.10")),
            (&format!("quay.io/a/b:1@{digest}"), Some("quay.io/a/b:1")),
            (&format!("quay.io/a/b@{digest}"), None),
            ("localhost:5000/a:1", None),
            ("example.org:443/a:1", None),
            ("a/../b:1", None),
            ("../etc:1", None),
            ("example.org/a//b:1", None),
            ("example.org/A:1", None),
            ("example.org/a:1/2", None),
            ("example.org/a:", None),
            ("", None),
        ];
        for (reference, expected) in cases {
            let found = reference.parse::<ImageName>().map(|name| name.to_string());
            assert_eq!(found.as_deref().ok(), expected, "{reference}: {found:?}");
        }
    }

    #[test]
    fn names_of_bundles_are_complete() {
        assert!(ImageName::complete("registry.k8s.io/pause:3.10").is_ok());
        for incomplete in ["pause:3.10", "registry.k8s.io/pause", "team/app:1"] {
            assert!(ImageName::complete(incomplete).is_err(), "{incomplete}");
        }
    }
}
