//! Whether a kubelet's version may join API servers of theirs: the Kubernetes version skew policy
//! (<https://kubernetes.io/releases/version-skew-policy/#kubelet>).

use std::fmt;
use std::str::FromStr;

/// Minor releases by which a kubelet may be older than an API server.
const OLDEST: u32 = 3;
/// The same for kubelets before 1.25.
const OLDEST_BEFORE_1_25: u32 = 2;

/// A version of Kubernetes: `1.30.3`, `v1.30.3`, `v1.31.0-rc.1`. Ordered by its numbers; what follows them is not compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct KubernetesVersion {
    /// `1`.
    pub major: u32,
    /// `30`.
    pub minor: u32,
    /// `3`.
    pub patch: u32,
}

/// Why a kubelet's version is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SkewError {
    /// Not `MAJOR.MINOR.PATCH`.
    #[error("{0:?} is not a version of Kubernetes: write 1.30.3")]
    Syntax(String),
    /// Another major version.
    #[error("kubelet {kubelet} and the API server {server} have different major versions")]
    Major {
        /// Of the Machine.
        kubelet: KubernetesVersion,
        /// That differs.
        server: KubernetesVersion,
    },
    /// A kubelet must not be newer than any API server that it may reach.
    #[error("kubelet {kubelet} is newer than the API server {server}: upgrade the control plane first")]
    TooNew {
        /// Of the Machine.
        kubelet: KubernetesVersion,
        /// The oldest one.
        server: KubernetesVersion,
    },
    /// A kubelet must not be too old for any API server that it may reach.
    #[error("kubelet {kubelet} is more than {limit} minor releases older than the API server {server}")]
    TooOld {
        /// Of the Machine.
        kubelet: KubernetesVersion,
        /// The newest one.
        server: KubernetesVersion,
        /// Minor releases.
        limit: u32,
    },
}

impl FromStr for KubernetesVersion {
    type Err = SkewError;

    fn from_str(text: &str) -> Result<Self, SkewError> {
        let error = || SkewError::Syntax(text.to_owned());
        let numbers = text.strip_prefix('v').unwrap_or(text);
        let end = numbers.find(['-', '+']).unwrap_or(numbers.len());
        // Semantic versions have something after the sign.
        if end + 1 == numbers.len() {
            return Err(error());
        }
        let number = |part: Option<&str>| {
            let digits =
                part.filter(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()));
            digits.and_then(|digits| digits.parse().ok()).ok_or_else(error)
        };
        let mut parts = numbers[..end].split('.');
        let version =
            Self { major: number(parts.next())?, minor: number(parts.next())?, patch: number(parts.next())? };
        if parts.next().is_some() { Err(error()) } else { Ok(version) }
    }
}

impl fmt::Display for KubernetesVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

/// Checks the kubelet of a Machine against every API server of the cluster. Patch releases do not count. Without a known
/// API server there is nothing to compare.
///
/// # Errors
/// Why it must not join.
pub fn check(kubelet: KubernetesVersion, servers: &[KubernetesVersion]) -> Result<(), SkewError> {
    let (Some(&oldest), Some(&newest)) = (servers.iter().min(), servers.iter().max()) else {
        return Ok(());
    };
    if let Some(&server) = servers.iter().find(|server| server.major != kubelet.major) {
        return Err(SkewError::Major { kubelet, server });
    }
    if kubelet.minor > oldest.minor {
        return Err(SkewError::TooNew { kubelet, server: oldest });
    }
    let limit = if (kubelet.major, kubelet.minor) < (1, 25) { OLDEST_BEFORE_1_25 } else { OLDEST };
    if newest.minor - kubelet.minor > limit {
        return Err(SkewError::TooOld { kubelet, server: newest, limit });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kubelet_is_never_newer_and_at_most_three_minors_older() {
        for (kubelet, servers, expected) in [
            ("1.30.3", "1.30.3", ""),
            ("v1.30.9", "1.30.0", ""),
            ("1.30.3", "v1.31.0 1.32.1 1.33.0", ""),
            (
                "1.30.3",
                "1.34.0",
                "kubelet 1.30.3 is more than 3 minor releases older than the API server 1.34.0",
            ),
            (
                "1.31.0",
                "1.30.9",
                "kubelet 1.31.0 is newer than the API server 1.30.9: upgrade the control plane first",
            ),
            // In the middle of an upgrade both ends count.
            (
                "1.31.0",
                "1.31.2 1.30.9",
                "kubelet 1.31.0 is newer than the API server 1.30.9: upgrade the control plane first",
            ),
            (
                "1.30.0",
                "1.33.0 1.34.0",
                "kubelet 1.30.0 is more than 3 minor releases older than the API server 1.34.0",
            ),
            ("1.24.9", "1.26.0", ""),
            (
                "1.24.9",
                "1.27.0",
                "kubelet 1.24.9 is more than 2 minor releases older than the API server 1.27.0",
            ),
            ("1.25.0", "1.28.0", ""),
            ("2.0.0", "1.30.0", "kubelet 2.0.0 and the API server 1.30.0 have different major versions"),
            ("1.31.0-rc.1", "1.31.0", ""),
            ("1.30.3+k3s1", "1.30.3", ""),
            ("1.30.3", "", ""),
        ] {
            let servers: Vec<_> = servers.split_whitespace().map(|text| text.parse().unwrap()).collect();
            let got = check(kubelet.parse().unwrap(), &servers);
            assert_eq!(got.err().map(|error| error.to_string()).unwrap_or_default(), expected, "{kubelet}");
        }
    }

    #[test]
    fn other_strings_are_refused() {
        for text in [
            "",
            "v",
            "1",
            "1.30",
            "1.30.",
            "1.30.x",
            "1..3",
            "1.30.3.4",
            "vv1.30.3",
            "1.30.3-",
            "1.30.3+",
            "-1.2.3",
            "1.99999999999.0",
        ] {
            assert_eq!(text.parse::<KubernetesVersion>(), Err(SkewError::Syntax(text.to_owned())), "{text}");
        }
    }
}
