//! The location of Debian's archive for the build machine.

use std::fs;
use std::path::Path;

use tokio::process::Command;

use super::stanza::{self, Stanza};
use crate::bundle::program::{self, ProgramError};

/// The keys of Debian's releases (package debian-archive-keyring).
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// The two trees of the archive: releases and their updates, and security updates.
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
    /// The build machine does not use Debian's archive, and mmdebstrap is not installed.
    #[error("this machine's package sources contain no Debian archive, and mmdebstrap cannot be run")]
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

/// One line or paragraph of a package source list.
#[derive(Debug, Clone, PartialEq, Eq)]
struct AptSource {
    uri: String,
    suites: Vec<String>,
}

impl DebianArchive {
    /// The archive at `uri`. The security tree is beside it, as on Debian's servers and their mirrors.
    pub fn at(uri: &str) -> Self {
        let main = uri.trim_end_matches('/').to_owned();
        Self { security: format!("{main}-security"), main }
    }

    /// The archive in this machine's apt sources when it is Debian, otherwise the one that mmdebstrap would use for
    /// `suite`.
    ///
    /// # Errors
    /// When there is neither.
    pub async fn locate(suite: &str) -> Result<Self, ArchiveError> {
        let release = fs::read_to_string("/etc/os-release").unwrap_or_default();
        if let Some(found) = own_suite(&release).and_then(|own| choose(&machine_sources(), &own)) {
            return Ok(found);
        }
        // The hook prints the sources that mmdebstrap chose, and ends it.
        let mut command = Command::new("mmdebstrap");
        command.args(["--quiet", "--variant=custom", "--format=null"]);
        command.args(["--setup-hook=cat \"$1\"/etc/apt/sources.list >&2; false", suite, "-"]);
        let output = program::finish(&mut command).await.map_err(ArchiveError::NoMmdebstrap)?;
        let sources = one_line(&String::from_utf8_lossy(&output.stderr));
        choose(&sources, suite).ok_or_else(|| ArchiveError::Unknown { suite: suite.to_owned() })
    }

    /// The lines of a sources.list(5) for a release with its updates and security updates.
    pub(super) fn sources_list(&self, suite: &str) -> String {
        let suites = [
            (&self.main, suite.to_owned()),
            (&self.main, format!("{suite}-updates")),
            (&self.security, format!("{suite}-security")),
        ];
        let line = |(uri, suite)| format!("deb [signed-by={KEYRING}] {uri} {suite} main\n");
        suites.map(line).concat()
    }
}

/// The suite of the machine's own release (`VERSION_CODENAME`), if it is Debian.
fn own_suite(os_release: &str) -> Option<String> {
    let value = |key: &str| {
        let line = os_release.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
        line.map(|value| value.trim_matches('"').to_owned())
    };
    (value("ID")? == "debian").then(|| value("VERSION_CODENAME"))?
}

/// Unreadable source lists are treated as empty.
fn machine_sources() -> Vec<AptSource> {
    let read = |path: &Path| fs::read_to_string(path).unwrap_or_default();
    let mut sources = one_line(&read(Path::new("/etc/apt/sources.list")));
    let listed = fs::read_dir("/etc/apt/sources.list.d").into_iter().flatten().flatten();
    let mut paths: Vec<_> = listed.map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("list") => sources.extend(one_line(&read(&path))),
            Some("sources") => sources.extend(deb822(&read(&path))),
            _ => {}
        }
    }
    sources
}

fn one_line(text: &str) -> Vec<AptSource> {
    let source = |line: &str| {
        let rest = line.trim().strip_prefix("deb ")?.trim_start();
        let rest = match rest.strip_prefix('[') {
            Some(options) => options.split_once(']')?.1,
            None => rest,
        };
        let mut words = rest.split_whitespace();
        Some(AptSource { uri: words.next()?.to_owned(), suites: vec![words.next()?.to_owned()] })
    };
    text.lines().filter_map(source).collect()
}

fn deb822(text: &str) -> Vec<AptSource> {
    let words = |stanza: &Stanza, field: &str| -> Vec<String> {
        stanza
            .get(field)
            .map(|value| value.split_whitespace().map(str::to_owned).collect())
            .unwrap_or_default()
    };
    let sources = |stanza: Stanza| {
        let disabled = stanza.get("Enabled").is_some_and(|value| value == "no");
        let usable = !disabled && words(&stanza, "Types").iter().any(|word| word == "deb");
        let suites = words(&stanza, "Suites");
        let uris = if usable { words(&stanza, "URIs") } else { Vec::new() };
        uris.into_iter().map(move |uri| AptSource { uri, suites: suites.clone() })
    };
    stanza::parse(text).into_iter().flat_map(sources).collect()
}

/// Recognises Debian's sources by their suites, which other projects do not have.
fn choose(sources: &[AptSource], suite: &str) -> Option<DebianArchive> {
    let with = |suite: &str| {
        let source = sources.iter().find(|source| source.suites.iter().any(|known| known == suite))?;
        Some(source.uri.trim_end_matches('/').to_owned())
    };
    let main = with(suite)?;
    let security = with(&format!("{suite}-security")).unwrap_or_else(|| DebianArchive::at(&main).security);
    Some(DebianArchive { main, security })
}

#[cfg(test)]
mod tests {
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
        assert_eq!(choose(&one, "trixie").as_ref(), Some(&expected));
        assert_eq!(choose(&new, "trixie").as_ref(), Some(&expected));
        assert_eq!(choose(&new, "bookworm"), None);
    }

    #[test]
    fn only_debian_uses_debians_archive() {
        assert_eq!(own_suite("ID=debian\nVERSION_CODENAME=trixie\n").as_deref(), Some("trixie"));
        assert_eq!(own_suite("ID=ubuntu\nVERSION_CODENAME=noble\n"), None);
    }

    #[test]
    fn a_release_includes_its_updates_and_security_updates() {
        insta::assert_snapshot!(DebianArchive::at("http://a.example/debian/").sources_list("trixie"), @r"
        deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://a.example/debian trixie main
        deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://a.example/debian trixie-updates main
        deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://a.example/debian-security trixie-security main
        ");
    }
}
