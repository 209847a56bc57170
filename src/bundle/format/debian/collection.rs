//! The packages of a distribution's archive, with their dependency closure.
//!
//! apt resolves them in a root of its own with an empty package database, and verifies the archive's signatures. Packages
//! that a host is likely to have (libc6) are included: those of the host may be older.

use std::fs;
use std::io;
use std::path::Path;

use tokio::process::Command;

use super::archive::Archives;
use super::{DIRECTORY, DebianError};
use crate::bundle::entry::Draft;
use crate::bundle::format::CollectionRequest;
use crate::bundle::format::archive_uri::without_credentials;
use crate::bundle::program;
use crate::model::platform::Architecture;

/// Returns the provenance.
///
/// # Errors
/// The first failure of apt, or of a write.
pub(super) async fn collect(request: &CollectionRequest<'_>, draft: &Draft) -> Result<String, DebianError> {
    let CollectionRequest { system, platform, archive } = *request;
    let (suite, architecture) = (system.suite.as_str(), platform.architecture);
    let archives = Archives::of(&platform.distribution);
    let archive = match archive {
        Some(uri) => archives.at(uri),
        None => archives.locate(suite, architecture).await?,
    };
    let root = draft.scratch(DIRECTORY)?;
    lay_out(&root, &archives.sources_list(&archive, suite)?).map_err(DebianError::write(&root))?;
    program::run(apt_get(&root, architecture).args(["-o", "APT::Update::Error-Mode=any", "update"])).await?;
    let mut install = apt_get(&root, architecture);
    program::run(install.args(["--yes", "--download-only", "install"]).args(&system.packages)).await?;
    let pool = draft.content(&format!("{DIRECTORY}/pool/{}", super::suite(platform)))?;
    move_packages(&root.join("cache/archives"), &pool).map_err(DebianError::write(&pool))?;
    Ok(format!("archive: {} {suite}", without_credentials(&archive.main)))
}

fn lay_out(root: &Path, sources_list: &str) -> io::Result<()> {
    for directory in ["state/lists/partial", "cache/archives/partial"] {
        fs::create_dir_all(root.join(directory))?;
    }
    fs::write(root.join("status"), "")?;
    fs::write(root.join("sources.list"), sources_list)
}

/// Uses the machine's apt.conf (proxies), but not its sources, preferences and package database.
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

/// Removes the epoch from file names, as in Debian's pool: `%3a` in a URL may be decoded to `:`.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_have_no_epoch() {
        assert_eq!(without_epoch("conntrack_1%3a1.4.7-1_amd64.deb"), "conntrack_1.4.7-1_amd64.deb");
        assert_eq!(without_epoch("runc_1.1.15+ds1-2_amd64.deb"), "runc_1.1.15+ds1-2_amd64.deb");
    }
}
