//! A system's own packages with their whole closure, from its own archive.
//!
//! apt does the work in a root of its own with an empty package database, and verifies the archive's
//! signatures. Packages that a host is likely to have (libc6) come too: the host's may be older.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use tokio::process::Command;

use super::apt_repository::{self, IndexError};
use super::component::{Architecture, OperatingSystem};
use super::debian_archive::{Archive, ArchiveError};
use super::digest::Sha256;
use super::entry::{Draft, Entry, EntryError};
use super::program::{self, ProgramError};

/// The keys of Debian's releases (package debian-archive-keyring).
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// Why a system's packages were not bundled.
#[derive(Debug, thiserror::Error)]
pub enum OsPackagesError {
    /// As it says.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// apt-get is not there, or refused: an unknown package, a wrong signature, no archive.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// As it says.
    #[error(transparent)]
    Index(#[from] IndexError),
    /// As it says.
    #[error(transparent)]
    Entry(#[from] EntryError),
    /// apt's private root cannot be written, or a package cannot be moved.
    #[error("the packages of {codename} cannot be collected")]
    Collect {
        /// Of the system.
        codename: String,
        /// What the system said.
        source: io::Error,
    },
}

/// # Errors
/// The first thing that apt refuses, or that cannot be written.
pub(super) async fn collect(
    system: &OperatingSystem,
    architecture: Architecture,
    archive: Option<&str>,
    draft: Draft,
) -> Result<Entry, OsPackagesError> {
    let archive = match archive {
        Some(uri) => Archive::at(uri),
        None => Archive::locate(&system.codename).await?,
    };
    let collect = |source| OsPackagesError::Collect { codename: system.codename.clone(), source };
    let root = draft.scratch("apt")?;
    lay_out(&root, &archive.sources_list(&system.codename, KEYRING)).map_err(collect)?;
    program::run(apt_get(&root, architecture).args(["-o", "APT::Update::Error-Mode=any", "update"])).await?;
    let mut install = apt_get(&root, architecture);
    program::run(install.args(["--yes", "--download-only", "install"]).args(&system.packages)).await?;
    let pool = draft.content(&format!("apt/pool/{}", system.codename))?;
    move_packages(&root.join("cache/archives"), &pool).map_err(collect)?;
    let packages =
        apt_repository::scan(&draft.content("apt")?, std::slice::from_ref(&system.codename)).await?;
    let provenance = format!("archive: {} {}", without_credentials(&archive.main), system.codename);
    Ok(draft.keep(provenance, BTreeMap::new(), packages)?)
}

/// The key of a system's entry. The archive moves on and the key does not: a build that is to take newer
/// packages says so.
pub(super) fn inputs(system: &OperatingSystem, architecture: Architecture, archive: Option<&str>) -> Sha256 {
    let text = serde_json::to_vec(&(super::BUILDER, system, architecture, archive))
        .expect("serialises, because a system is plain data with text keys");
    Sha256::of(&text)
}

fn lay_out(root: &Path, sources_list: &str) -> io::Result<()> {
    for directory in ["state/lists/partial", "cache/archives/partial"] {
        fs::create_dir_all(root.join(directory))?;
    }
    fs::write(root.join("status"), "")?;
    fs::write(root.join("sources.list"), sources_list)
}

/// The machine's own apt.conf holds (proxies), its sources, preferences and packages do not.
fn apt_get(root: &Path, architecture: Architecture) -> Command {
    let mut command = Command::new("apt-get");
    let at = |name: &str| root.join(name).display().to_string();
    let architecture = architecture.as_str();
    let options = [
        ("Dir::State", at("state")),
        ("Dir::State::status", at("status")),
        ("Dir::Cache", at("cache")),
        ("Dir::Etc::SourceList", at("sources.list")),
        ("Dir::Etc::SourceParts", "/dev/null".to_owned()),
        ("Dir::Etc::Preferences", "/dev/null".to_owned()),
        ("Dir::Etc::PreferencesParts", "/dev/null".to_owned()),
        ("APT::Architecture", architecture.to_owned()),
        ("APT::Architectures", architecture.to_owned()),
        ("APT::Install-Recommends", "false".to_owned()),
        ("APT::Default-Release", String::new()),
        // The private root is readable by its owner only.
        ("APT::Sandbox::User", String::new()),
        ("Acquire::Languages", "none".to_owned()),
    ];
    command.arg("--quiet").env("LC_ALL", "C").env("DEBIAN_FRONTEND", "noninteractive");
    for (key, value) in options {
        command.args(["-o", &format!("{key}={value}")]);
    }
    command
}

/// Debian's pool leaves the epoch out of file names, as `%3a` in a URL is easily read as `:`.
fn move_packages(from: &Path, to: &Path) -> io::Result<()> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.ends_with(".deb") {
            fs::rename(entry.path(), to.join(without_epoch(&name)))?;
        }
    }
    Ok(())
}

fn without_epoch(name: &str) -> String {
    match name.split_once('_').and_then(|(package, rest)| Some((package, rest.split_once("%3a")?.1))) {
        Some((package, rest)) => format!("{package}_{rest}"),
        None => name.to_owned(),
    }
}

fn without_credentials(uri: &str) -> String {
    match uri.split_once("://").and_then(|(scheme, rest)| Some((scheme, rest.split_once('@')?.1))) {
        Some((scheme, rest)) => format!("{scheme}://{rest}"),
        None => uri.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_lose_their_epoch_and_uris_their_password() {
        assert_eq!(without_epoch("conntrack_1%3a1.4.7-1_amd64.deb"), "conntrack_1.4.7-1_amd64.deb");
        assert_eq!(without_epoch("runc_1.1.15+ds1-2_amd64.deb"), "runc_1.1.15+ds1-2_amd64.deb");
        assert_eq!(without_credentials("http://me:secret@a.example/debian"), "http://a.example/debian");
        assert_eq!(without_credentials("http://a.example/debian"), "http://a.example/debian");
    }
}
