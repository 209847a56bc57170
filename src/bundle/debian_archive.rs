//! Where Debian's archive is, as seen from the build machine.

use std::fs;
use std::path::Path;

use tokio::process::Command;

use super::program::{self, ProgramError};
use super::stanza::{self, Stanza};

/// The two trees of the archive: releases and their updates, and security updates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Archive {
    /// URI of the tree with `CODENAME` and `CODENAME-updates`.
    pub main: String,
    /// URI of the tree with `CODENAME-security`.
    pub security: String,
}

/// Why no archive is known.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// This machine is not Debian, and mmdebstrap is not there.
    #[error("this machine's package sources name no Debian archive, and mmdebstrap cannot be asked")]
    NoMmdebstrap(#[source] ProgramError),
    /// Neither knows one.
    #[error("neither this machine's package sources nor mmdebstrap name an archive of {codename}")]
    Unknown {
        /// Of the release asked for.
        codename: String,
    },
}

/// One line or paragraph of a package source list.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Source {
    uri: String,
    suites: Vec<String>,
}

impl Archive {
    /// `uri` as the operator gave it; the security tree lies beside it, as on Debian's own servers and on
    /// their mirrors.
    pub fn at(uri: &str) -> Self {
        let main = uri.trim_end_matches('/').to_owned();
        Self { security: format!("{main}-security"), main }
    }

    /// The archive that this machine's own apt uses when it is Debian, else the one that mmdebstrap would
    /// use for `codename`.
    ///
    /// # Errors
    /// When neither names one.
    pub async fn locate(codename: &str) -> Result<Self, ArchiveError> {
        let release = fs::read_to_string("/etc/os-release").unwrap_or_default();
        if let Some(found) = own_codename(&release).and_then(|own| choose(&machine_sources(), &own)) {
            return Ok(found);
        }
        // The hook shows the sources that mmdebstrap settled on, and stops it there.
        let mut command = Command::new("mmdebstrap");
        command.args(["--quiet", "--variant=custom", "--format=null"]);
        command.args(["--setup-hook=cat \"$1\"/etc/apt/sources.list >&2; false", codename, "-"]);
        let output = program::finish(&mut command).await.map_err(ArchiveError::NoMmdebstrap)?;
        let sources = one_line(&String::from_utf8_lossy(&output.stderr));
        choose(&sources, codename).ok_or_else(|| ArchiveError::Unknown { codename: codename.to_owned() })
    }

    /// The lines of a sources.list(5) for one release, updates and security updates included.
    pub(super) fn sources_list(&self, codename: &str, keyring: &str) -> String {
        let suites = [
            (&self.main, codename.to_owned()),
            (&self.main, format!("{codename}-updates")),
            (&self.security, format!("{codename}-security")),
        ];
        let line = |(uri, suite)| format!("deb [signed-by={keyring}] {uri} {suite} main\n");
        suites.map(line).concat()
    }
}

/// `VERSION_CODENAME`, if the machine is Debian itself.
fn own_codename(os_release: &str) -> Option<String> {
    let value = |key: &str| {
        let line = os_release.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
        line.map(|value| value.trim_matches('"').to_owned())
    };
    (value("ID")? == "debian").then(|| value("VERSION_CODENAME"))?
}

/// A source list that cannot be read names nothing.
fn machine_sources() -> Vec<Source> {
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

fn one_line(text: &str) -> Vec<Source> {
    let source = |line: &str| {
        let rest = line.trim().strip_prefix("deb ")?.trim_start();
        let rest = match rest.strip_prefix('[') {
            Some(options) => options.split_once(']')?.1,
            None => rest,
        };
        let mut words = rest.split_whitespace();
        Some(Source { uri: words.next()?.to_owned(), suites: vec![words.next()?.to_owned()] })
    };
    text.lines().filter_map(source).collect()
}

fn deb822(text: &str) -> Vec<Source> {
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
        uris.into_iter().map(move |uri| Source { uri, suites: suites.clone() })
    };
    stanza::parse(text).into_iter().flat_map(sources).collect()
}

/// Sources of other projects have other suites, so suites tell which are the archive's.
fn choose(sources: &[Source], codename: &str) -> Option<Archive> {
    let with = |suite: &str| {
        let source = sources.iter().find(|source| source.suites.iter().any(|known| known == suite))?;
        Some(source.uri.trim_end_matches('/').to_owned())
    };
    let main = with(codename)?;
    let security = with(&format!("{codename}-security")).unwrap_or_else(|| Archive::at(&main).security);
    Some(Archive { main, security })
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
            Archive { main: "http://a.example/debian".into(), security: "http://s.example/sec".into() };
        assert_eq!(choose(&one, "trixie").as_ref(), Some(&expected));
        assert_eq!(choose(&new, "trixie").as_ref(), Some(&expected));
        assert_eq!(choose(&new, "bookworm"), None);
    }

    #[test]
    fn only_debian_itself_has_debians_archive() {
        assert_eq!(own_codename("ID=debian\nVERSION_CODENAME=trixie\n").as_deref(), Some("trixie"));
        assert_eq!(own_codename("ID=ubuntu\nVERSION_CODENAME=noble\n"), None);
    }

    #[test]
    fn a_release_is_taken_with_its_updates_and_security_updates() {
        insta::assert_snapshot!(Archive::at("http://a.example/debian/").sources_list("trixie", "/k.gpg"), @r"
        deb [signed-by=/k.gpg] http://a.example/debian trixie main
        deb [signed-by=/k.gpg] http://a.example/debian trixie-updates main
        deb [signed-by=/k.gpg] http://a.example/debian-security trixie-security main
        ");
    }
}
