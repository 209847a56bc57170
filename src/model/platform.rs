//! A platform: the combination of distribution, release and processor architecture that packages are built for.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::facts::{Facts, Os};

/// Displayed and serialised as `debian-13-amd64`.
///
/// Two hosts of one platform install the same packages from the same repository. Nothing else names an operating
/// system: RPM distributions have no codename.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Platform {
    /// `debian`, `ubuntu`, `rocky`.
    pub distribution: Distribution,
    /// `13`, `24.04`, `9`.
    pub release: Release,
    /// The hosts' processor architecture.
    pub architecture: Architecture,
}

/// `ID` of os-release(5): lowercase letters, digits, `.`, `_` and `-`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Distribution(String);

/// What packages depend on of `VERSION_ID` of os-release(5): letters, digits, `.` and `_`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Release(String);

/// A supported processor architecture, in the spelling of Go, OCI images and Debian.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Architecture {
    /// x86-64.
    Amd64,
    /// AArch64.
    Arm64,
}

/// An architecture as Debian and Go call it, by the kernel's name for it; another one has no other name here.
pub fn architecture_of(machine: &str) -> &str {
    match machine {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

/// A family of package managers, named as in the `format` of a `package_repository`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PackageFormat {
    /// dpkg and apt: Debian and its derivatives.
    Deb,
    /// rpm and dnf: Red Hat Enterprise Linux and its derivatives.
    Rpm,
}

/// A string or a host does not name a platform.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlatformError {
    /// Not `DISTRIBUTION-RELEASE-ARCHITECTURE`.
    #[error("{0:?} is not a platform, such as debian-13-amd64")]
    Syntax(String),
    /// Not an `ID` of os-release(5).
    #[error("{0:?} is not a distribution, such as debian or rocky")]
    Distribution(String),
    /// Empty, as on a rolling distribution, or not a `VERSION_ID` of os-release(5).
    #[error("{0:?} is not a release of a distribution, such as 13 or 24.04")]
    Release(String),
    /// Another architecture than [`Architecture::ALL`].
    #[error("{0:?} is not a supported architecture; supported are amd64 and arm64")]
    Architecture(String),
}

impl Platform {
    /// The platform of a host.
    ///
    /// # Errors
    /// When the host's distribution has no releases, or its architecture is not supported.
    pub fn of(facts: &Facts) -> Result<Self, PlatformError> {
        Ok(Self {
            distribution: facts.os.id.parse()?,
            release: Release::of(&facts.os)?,
            architecture: facts.arch.parse()?,
        })
    }
}

impl Platform {
    /// The properties of a host for which none of `platforms` provides packages: `architecture arm64`. Empty when
    /// the host's platform is among them.
    pub fn unavailable(facts: &Facts, platforms: &BTreeSet<Self>) -> Vec<String> {
        let release = Release::of(&facts.os);
        let is_of_system = |platform: &&Self| {
            platform.distribution.as_str() == facts.os.id && release.as_ref() == Ok(&platform.release)
        };
        let is_of_architecture = |platform: &&Self| platform.architecture.as_str() == facts.arch;
        let mut missing = Vec::new();
        if !platforms.iter().any(|platform| is_of_system(&platform)) {
            missing.push(format!("operating system {} {}", facts.os.id, facts.os.version));
        }
        if !platforms.iter().any(|platform| is_of_architecture(&platform)) {
            missing.push(format!("architecture {}", facts.arch));
        }
        let both = |platform: &&Self| is_of_system(platform) && is_of_architecture(platform);
        if missing.is_empty() && !platforms.iter().any(|platform| both(&platform)) {
            missing.push(format!("{} {} for {}", facts.os.id, facts.os.version, facts.arch));
        }
        missing
    }
}

impl Release {
    /// The release of a host. Minor releases of the Red Hat family are compatible with each other: 9.4 and 9.6 are 9.
    ///
    /// # Errors
    /// When the distribution has no releases.
    pub fn of(os: &Os) -> Result<Self, PlatformError> {
        let version = os.version.as_str();
        match PackageFormat::of(os) {
            Some(PackageFormat::Rpm) => version.split('.').next().unwrap_or(version).parse(),
            Some(PackageFormat::Deb) | None => version.parse(),
        }
    }

    /// As in `VERSION_ID`.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Distribution {
    /// As in `ID`.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The package format of a distribution that bundles can be built for; `None` for any other one.
    pub fn package_format(&self) -> Option<PackageFormat> {
        match self.0.as_str() {
            "debian" | "ubuntu" => Some(PackageFormat::Deb),
            "almalinux" | "centos" | "rhel" | "rocky" => Some(PackageFormat::Rpm),
            _ => None,
        }
    }
}

impl PackageFormat {
    /// The package format of a host's operating system; `None` for an unsupported family.
    pub fn of(os: &Os) -> Option<Self> {
        Self::of_family(&os.family)
    }

    /// That of a family of operating systems, [`Os::family`].
    pub fn of_family(family: &str) -> Option<Self> {
        match family {
            "debian" => Some(Self::Deb),
            "redhat" => Some(Self::Rpm),
            _ => None,
        }
    }

    /// `deb` or `rpm`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Deb => "deb",
            Self::Rpm => "rpm",
        }
    }

    /// The shell command that installs a package.
    pub fn install_command(self, package: &str) -> String {
        match self {
            Self::Deb => format!("apt-get install {package}"),
            Self::Rpm => format!("dnf install {package}"),
        }
    }

    /// The shell command that removes a package and its configuration.
    pub fn remove_command(self, package: &str) -> String {
        match self {
            Self::Deb => format!("apt-get purge {package}"),
            Self::Rpm => format!("dnf remove {package}"),
        }
    }
}

impl Architecture {
    /// In a fixed order.
    pub const ALL: [Self; 2] = [Self::Amd64, Self::Arm64];

    /// `amd64` or `arm64`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Amd64 => "amd64",
            Self::Arm64 => "arm64",
        }
    }
}

impl FromStr for Architecture {
    type Err = PlatformError;

    fn from_str(text: &str) -> Result<Self, PlatformError> {
        let found = Self::ALL.into_iter().find(|one| one.as_str() == text);
        found.ok_or_else(|| PlatformError::Architecture(text.to_owned()))
    }
}

impl FromStr for Distribution {
    type Err = PlatformError;

    fn from_str(text: &str) -> Result<Self, PlatformError> {
        let allowed = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"._-".contains(&b);
        if !text.is_empty() && text.bytes().all(allowed) {
            Ok(Self(text.to_owned()))
        } else {
            Err(PlatformError::Distribution(text.to_owned()))
        }
    }
}

impl FromStr for Release {
    type Err = PlatformError;

    fn from_str(text: &str) -> Result<Self, PlatformError> {
        let allowed = |b: u8| b.is_ascii_alphanumeric() || b"._".contains(&b);
        if text.starts_with(|c: char| c.is_ascii_alphanumeric()) && text.bytes().all(allowed) {
            Ok(Self(text.to_owned()))
        } else {
            Err(PlatformError::Release(text.to_owned()))
        }
    }
}

impl FromStr for Platform {
    type Err = PlatformError;

    fn from_str(text: &str) -> Result<Self, PlatformError> {
        // A distribution's ID may contain hyphens, the other two cannot.
        let mut parts = text.rsplitn(3, '-');
        let (Some(architecture), Some(release), Some(distribution)) =
            (parts.next(), parts.next(), parts.next())
        else {
            return Err(PlatformError::Syntax(text.to_owned()));
        };
        Ok(Self {
            distribution: distribution.parse()?,
            release: release.parse()?,
            architecture: architecture.parse()?,
        })
    }
}

macro_rules! serialised_as_string {
    ($($name:ident),*) => {$(
        impl TryFrom<String> for $name {
            type Error = PlatformError;

            fn try_from(text: String) -> Result<Self, PlatformError> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(value: $name) -> Self {
                value.to_string()
            }
        }
    )*};
}

serialised_as_string!(Platform, Distribution, Release);

impl fmt::Display for Platform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}-{}", self.distribution, self.release, self.architecture)
    }
}

impl fmt::Display for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for Architecture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_platform_is_derived_from_facts_without_a_codename() {
        let of = |id: &str, family: &str, version: &str, arch: &str| {
            let [mut facts, _] = Facts::examples();
            facts.os =
                Os { id: id.into(), family: family.into(), version: version.into(), codename: String::new() };
            facts.arch = arch.to_owned();
            Platform::of(&facts).map(|platform| platform.to_string()).map_err(|error| error.to_string())
        };
        for (id, family, version, arch, expected) in [
            ("debian", "debian", "13", "amd64", Ok("debian-13-amd64")),
            ("ubuntu", "debian", "24.04", "arm64", Ok("ubuntu-24.04-arm64")),
            ("rocky", "redhat", "9.6", "amd64", Ok("rocky-9-amd64")),
            ("rhel", "redhat", "10", "amd64", Ok("rhel-10-amd64")),
            (
                "arch",
                "arch",
                "",
                "amd64",
                Err("\"\" is not a release of a distribution, such as 13 or 24.04"),
            ),
            (
                "debian",
                "debian",
                "13",
                "riscv64",
                Err("\"riscv64\" is not a supported architecture; supported are amd64 and arm64"),
            ),
        ] {
            let expected = expected.map(str::to_owned).map_err(str::to_owned);
            assert_eq!(of(id, family, version, arch), expected);
        }
    }

    #[test]
    fn what_is_unavailable_for_a_host_is_named() {
        let platforms =
            ["debian-13-amd64", "debian-12-arm64", "rocky-9-amd64"].map(|text| text.parse().unwrap()).into();
        let [debian, rocky] = Facts::examples();
        let with = |facts: &Facts, version: &str, arch: &str| {
            let mut facts = facts.clone();
            (facts.os.version, facts.arch) = (version.to_owned(), arch.to_owned());
            Platform::unavailable(&facts, &platforms)
        };
        assert_eq!(with(&debian, "13", "amd64"), [""; 0]);
        assert_eq!(with(&rocky, "9.6", "amd64"), [""; 0]);
        assert_eq!(with(&debian, "13", "arm64"), ["debian 13 for arm64"]);
        assert_eq!(with(&debian, "11", "riscv64"), ["operating system debian 11", "architecture riscv64"]);
    }

    #[test]
    fn a_platform_is_parsed_from_its_own_form() {
        for text in ["debian-13-amd64", "opensuse-leap-15.6-arm64"] {
            assert_eq!(text.parse::<Platform>().unwrap().to_string(), text);
        }
        for bad in
            ["", "debian", "debian-13", "debian-13-x86_64", "Debian-13-amd64", "-13-amd64", "debian--amd64"]
        {
            assert!(bad.parse::<Platform>().is_err(), "{bad}");
        }
    }
}
