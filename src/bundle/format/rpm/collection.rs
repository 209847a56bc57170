//! The packages of a distribution's archive, with their dependency closure.
//!
//! dnf resolves them in a root of its own without packages, and verifies each package with the keys that this machine
//! trusts for RPM packages. Packages that a host is likely to have (glibc) are included: those of the host may be older.

use std::fs;
use std::path::{Path, PathBuf};

use tokio::process::Command;

use super::package::architecture;
use super::{DIRECTORY, RpmError, pool};
use crate::bundle::entry::Draft;
use crate::bundle::format::CollectionRequest;
use crate::bundle::program;

/// Where distributions and administrators put the keys of package archives.
const KEYS: &str = "/etc/pki/rpm-gpg";

/// Returns the provenance.
///
/// # Errors
/// Without an archive or keys, and the first failure of dnf or of a write.
pub(super) async fn collect(request: &CollectionRequest<'_>, draft: &Draft) -> Result<String, RpmError> {
    let root = draft.scratch(DIRECTORY)?;
    let pool = draft.content(&format!("{DIRECTORY}/{}", pool(&request.platform.to_string())))?;
    download(request, Path::new(KEYS), (&root, &pool)).await
}

/// Downloads into `pool`; `root` is an empty directory.
async fn download(
    request: &CollectionRequest<'_>,
    keys: &Path,
    (root, pool): (&Path, &Path),
) -> Result<String, RpmError> {
    let CollectionRequest { system, platform, archive } = *request;
    let no_archive = || RpmError::NoArchive { platform: platform.clone() };
    let archive = archive.ok_or_else(no_archive)?.trim_end_matches('/');
    let keys = key_files(keys)?;
    let configuration = root.join("dnf.conf");
    let text = configuration_text(root, &repositories(archive, &system.suite), &keys);
    fs::write(&configuration, text).map_err(RpmError::write(&configuration))?;
    let mut command = Command::new("dnf");
    command.env("LC_ALL", "C").args(["--quiet", "--assumeyes", "--noplugins"]);
    command.arg("--config").arg(&configuration).arg("--installroot").arg(root);
    command.args(["--releasever", system.release.as_str()]);
    command.args(["--forcearch", architecture(platform.architecture)]);
    command.args(["--downloadonly", "--downloaddir"]).arg(pool).arg("install").args(&system.packages);
    program::run(&mut command).await?;
    Ok(format!("archive: {archive} {}", system.suite))
}

/// The repositories of a release: its suite is their paths below the archive, separated by white space.
fn repositories(archive: &str, suite: &str) -> Vec<String> {
    suite.split_whitespace().map(|path| format!("{archive}/{path}")).collect()
}

/// The keys in a directory, in the order of their names.
fn key_files(directory: &Path) -> Result<Vec<PathBuf>, RpmError> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(|path| path.is_file()).collect();
    files.sort();
    if files.is_empty() {
        Err(RpmError::NoKeys { directory: directory.display().to_string() })
    } else {
        Ok(files)
    }
}

/// dnf.conf(5). Nothing of this machine's configuration applies, but for the proxy in its environment.
fn configuration_text(root: &Path, repositories: &[String], keys: &[PathBuf]) -> String {
    let root = root.display();
    let mut text = format!(
        "[main]\nreposdir=/dev/null\ncachedir={root}/cache\nlogdir={root}/log\npersistdir={root}/state\n\
         gpgcheck=1\ninstall_weak_deps=0\ntsflags=nodocs\nbest=1\n"
    );
    let keys: Vec<String> = keys.iter().map(|key| format!("file://{}", key.display())).collect();
    for (number, repository) in repositories.iter().enumerate() {
        text.push_str(&format!(
            "[archive-{number}]\nname=archive-{number}\nbaseurl={repository}\ngpgkey={}\n",
            keys.join(" ")
        ));
    }
    text
}
