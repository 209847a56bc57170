//! The location of the archive of Debian, or of Ubuntu, for the build machine.

use std::fs;
use std::path::Path;

use tokio::process::Command;

use super::apt_sources::{AptSource, machine_sources, one_line};
use crate::bundle::program::{self, ProgramError};
use crate::model::platform::{Architecture, Distribution};

/// A distribution whose archive has Debian's structure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Archives {
    /// <https://www.debian.org/mirror/>
    Debian,
    /// <https://help.ubuntu.com/community/Repositories>
    Ubuntu,
}

/// Where Ubuntu's archive is for amd64, and where for all other architectures.
const UBUNTU_AMD64: &str = "://archive.ubuntu.com/ubuntu";
const UBUNTU_PORTS: &str = "://ports.ubuntu.com/ubuntu-ports";

/// The two trees of an archive: releases and their updates, and security updates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DebianArchive {
    /// URI of the tree with `SUITE` and `SUITE-updates`.
    pub main: String,
    /// URI of the tree with `SUITE-security`.
    pub security: String,
}

/// Why no archive was found.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// Nothing can be verified.
    #[error("{keyring} does not exist: install the package {package}")]
    NoKeyring {
        /// The keys of the distribution's releases.
        keyring: &'static str,
        /// The package that has them, on Debian and on Ubuntu.
        package: &'static str,
    },
    /// The build machine does not use the distribution's archive, and mmdebstrap is not installed.
    #[error(
        "this machine's package sources contain no archive of the distribution, and mmdebstrap cannot be run"
    )]
    NoMmdebstrap(#[source] ProgramError),
    /// mmdebstrap knows no archive for the suite.
    #[error(
        "neither this machine's package sources nor mmdebstrap contain an archive with the suite {suite}"
    )]
    Unknown {
        /// Suite of the release.
        suite: String,
    },
}

impl Archives {
    /// Those of a distribution; one that is not known is a derivative of Debian.
    pub fn of(distribution: &Distribution) -> Self {
        if distribution.as_str() == "ubuntu" { Self::Ubuntu } else { Self::Debian }
    }

    /// `ID` of os-release(5).
    fn id(self) -> &'static str {
        match self {
            Self::Debian => "debian",
            Self::Ubuntu => "ubuntu",
        }
    }

    /// The keys of its releases, and the package that has them.
    fn keyring(self) -> (&'static str, &'static str) {
        match self {
            Self::Debian => ("/usr/share/keyrings/debian-archive-keyring.gpg", "debian-archive-keyring"),
            Self::Ubuntu => ("/usr/share/keyrings/ubuntu-archive-keyring.gpg", "ubuntu-keyring"),
        }
    }

    /// Those of its components that may be redistributed and are supported, or built from the same sources as Debian's.
    fn components(self) -> &'static str {
        match self {
            Self::Debian => "main",
            Self::Ubuntu => "main universe",
        }
    }

    /// The archive at `uri`. Debian's servers and their mirrors have the security tree beside it, Ubuntu's in it.
    pub fn at(self, uri: &str) -> DebianArchive {
        let main = uri.trim_end_matches('/').to_owned();
        let security = match self {
            Self::Debian => format!("{main}-security"),
            Self::Ubuntu => main.clone(),
        };
        DebianArchive { main, security }
    }

    /// The archive in this machine's apt sources when it is of the distribution, otherwise the one that mmdebstrap would
    /// use for `suite`.
    ///
    /// # Errors
    /// When there is neither.
    pub async fn locate(
        self,
        suite: &str,
        architecture: Architecture,
    ) -> Result<DebianArchive, ArchiveError> {
        let release = fs::read_to_string("/etc/os-release").unwrap_or_default();
        let own = own_suite(&release, self).and_then(|own| self.choose(&machine_sources(), &own));
        let found = match own {
            Some(found) => found,
            None => self.chosen_by_mmdebstrap(suite).await?,
        };
        Ok(self.for_architecture(found, architecture))
    }

    async fn chosen_by_mmdebstrap(self, suite: &str) -> Result<DebianArchive, ArchiveError> {
        // The hook prints the sources that mmdebstrap chose, and ends it.
        let mut command = Command::new("mmdebstrap");
        command.args(["--quiet", "--variant=custom", "--format=null"]);
        command.args(["--setup-hook=cat \"$1\"/etc/apt/sources.list >&2; false", suite, "-"]);
        let output = program::finish(&mut command).await.map_err(ArchiveError::NoMmdebstrap)?;
        let sources = one_line(&String::from_utf8_lossy(&output.stderr));
        self.choose(&sources, suite).ok_or_else(|| ArchiveError::Unknown { suite: suite.to_owned() })
    }

    /// Recognises the distribution's sources by their suites, which other projects do not have.
    fn choose(self, sources: &[AptSource], suite: &str) -> Option<DebianArchive> {
        let with = |suite: &str| {
            let source = sources.iter().find(|source| source.suites.iter().any(|known| known == suite))?;
            Some(source.uri.trim_end_matches('/').to_owned())
        };
        let found = self.at(&with(suite)?);
        let security = with(&format!("{suite}-security")).unwrap_or(found.security);
        Some(DebianArchive { main: found.main, security })
    }

    /// Ubuntu's own servers have the other architectures elsewhere, with their security updates; mirrors may have all.
    fn for_architecture(self, archive: DebianArchive, architecture: Architecture) -> DebianArchive {
        match (self, archive.main.split_once(UBUNTU_AMD64)) {
            (Self::Ubuntu, Some((scheme, ""))) if architecture != Architecture::Amd64 => {
                self.at(&format!("{scheme}{UBUNTU_PORTS}"))
            }
            _ => archive,
        }
    }

    /// The lines of a sources.list(5) for a release with its updates and security updates.
    ///
    /// # Errors
    /// When this machine does not have the keys of the distribution.
    pub(super) fn sources_list(self, archive: &DebianArchive, suite: &str) -> Result<String, ArchiveError> {
        let (keyring, package) = self.keyring();
        if Path::new(keyring).exists() {
            Ok(self.lines(archive, suite))
        } else {
            Err(ArchiveError::NoKeyring { keyring, package })
        }
    }

    fn lines(self, archive: &DebianArchive, suite: &str) -> String {
        let suites = [
            (&archive.main, suite.to_owned()),
            (&archive.main, format!("{suite}-updates")),
            (&archive.security, format!("{suite}-security")),
        ];
        let ((keyring, _), components) = (self.keyring(), self.components());
        let line = |(uri, suite)| format!("deb [signed-by={keyring}] {uri} {suite} {components}\n");
        suites.map(line).concat()
    }
}

/// The suite of the machine's own release (`VERSION_CODENAME`), if it is of the distribution.
fn own_suite(os_release: &str, archives: Archives) -> Option<String> {
    let value = |key: &str| {
        let line = os_release.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
        line.map(|value| value.trim_matches('"').to_owned())
    };
    (value("ID")? == archives.id()).then(|| value("VERSION_CODENAME"))?
}

#[cfg(test)]
mod tests {
    use super::super::apt_sources::deb822;
    use super::*;

    #[test]
    fn the_archive_is_found_in_both_forms_of_source_lists() {
        let one = one_line(
            "# deb http://old.example/debian trixie main\ndeb-src http://a.example/debian trixie main\n\
             deb http://tools.example/apt stable main\n\
             deb [arch=amd64 signed-by=/k.gpg] http://a.example/debian/ trixie main contrib\n\
             deb http://a.example/debian trixie-updates main\n\
             deb http://s.example/sec trixie-security main\n",
        );
        let new = deb822(
            "Types: deb deb-src\n# was http://old.example\nURIs: http://a.example/debian\n\
             Suites: trixie\n trixie-updates\nComponents: main\n\n\
             Types: deb\nURIs: http://s.example/sec\nSuites: trixie-security\n\n\
             Enabled: no\nTypes: deb\nURIs: http://off.example/\nSuites: trixie\n",
        );
        let expected =
            DebianArchive { main: "http://a.example/debian".into(), security: "http://s.example/sec".into() };
        assert_eq!(Archives::Debian.choose(&one, "trixie").as_ref(), Some(&expected));
        assert_eq!(Archives::Debian.choose(&new, "trixie").as_ref(), Some(&expected));
        assert_eq!(Archives::Debian.choose(&new, "bookworm"), None);
    }

    #[test]
    fn a_machine_uses_its_archive_for_its_own_distribution_alone() {
        let (debian, ubuntu) =
            ("ID=debian\nVERSION_CODENAME=trixie\n", "ID=ubuntu\nVERSION_CODENAME=noble\n");
        assert_eq!(own_suite(debian, Archives::Debian).as_deref(), Some("trixie"));
        assert_eq!(own_suite(ubuntu, Archives::Ubuntu).as_deref(), Some("noble"));
        assert_eq!(own_suite(ubuntu, Archives::Debian), None);
        assert_eq!(own_suite(debian, Archives::Ubuntu), None);
    }

    #[test]
    fn ubuntu_has_other_architectures_on_another_server() {
        let sources = deb822(
            "Types: deb\nURIs: http://archive.ubuntu.com/ubuntu/\nSuites: noble noble-updates noble-backports\n\
             Components: main universe restricted multiverse\n\nTypes: deb\n\
             URIs: http://security.ubuntu.com/ubuntu/\nSuites: noble-security\n",
        );
        let found = Archives::Ubuntu.choose(&sources, "noble").unwrap();
        assert_eq!(found.security, "http://security.ubuntu.com/ubuntu");
        let arm = Archives::Ubuntu.for_architecture(found.clone(), Architecture::Arm64);
        assert_eq!(arm, Archives::Ubuntu.at("http://ports.ubuntu.com/ubuntu-ports"));
        assert_eq!(Archives::Ubuntu.for_architecture(found.clone(), Architecture::Amd64), found);
        let mirror = Archives::Ubuntu.at("http://mirror.example/ubuntu");
        assert_eq!(Archives::Ubuntu.for_architecture(mirror.clone(), Architecture::Arm64), mirror);
    }

    #[test]
    fn a_release_includes_its_updates_and_security_updates() {
        let lines = |archives: Archives, uri: &str, suite: &str| archives.lines(&archives.at(uri), suite);
        insta::assert_snapshot!(lines(Archives::Ubuntu, "http://a.example/ubuntu", "noble"), @r"
        deb [signed-by=/usr/share/keyrings/ubuntu-archive-keyring.gpg] http://a.example/ubuntu noble main universe
        deb [signed-by=/usr/share/keyrings/ubuntu-archive-keyring.gpg] http://a.example/ubuntu noble-updates main universe
        deb [signed-by=/usr/share/keyrings/ubuntu-archive-keyring.gpg] http://a.example/ubuntu noble-security main universe
        ");
        insta::assert_snapshot!(lines(Archives::Debian, "http://a.example/debian/", "trixie"), @r"
        deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://a.example/debian trixie main
        deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://a.example/debian trixie-updates main
        deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://a.example/debian-security trixie-security main
        ");
    }
}
