//! Debian packages of static binaries: the same inputs give the same bytes.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use tokio::process::Command;

use super::SOURCE_DATE_EPOCH;
use super::component::{Architecture, Package};
use super::program::{self, ProgramError};

/// Why a package was not made.
#[derive(Debug, thiserror::Error)]
pub enum DebError {
    /// dpkg-deb is not there, or failed.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// Its tree cannot be laid out.
    #[error("package {package} cannot be laid out")]
    Tree {
        /// Its name.
        package: String,
        /// What the system said.
        source: io::Error,
    },
}

/// Makes the package at `path`; `work` is an empty directory.
///
/// # Errors
/// When its tree cannot be written, or dpkg-deb refuses it.
pub(super) async fn make(
    (package, version, architecture): (&Package, &str, Architecture),
    binaries: &Path,
    work: &Path,
    path: &Path,
) -> Result<(), DebError> {
    let tree = |source| DebError::Tree { package: package.name.clone(), source };
    let size = lay_out(package, binaries, work).map_err(tree)?;
    let control = control(package, version, architecture, size.div_ceil(1024));
    fs::create_dir(work.join("DEBIAN"))
        .and_then(|()| fs::write(work.join("DEBIAN/control"), control))
        .map_err(tree)?;
    open_directories(work).map_err(tree)?;
    let mut command = Command::new("dpkg-deb");
    command.env("SOURCE_DATE_EPOCH", SOURCE_DATE_EPOCH.to_string());
    command.args(["--root-owner-group", "-Zzstd", "-z3", "--build"]).arg(work).arg(path);
    program::run(&mut command).await?;
    Ok(())
}

/// Hard links would carry the cache's modes about, so files are copied. Returns bytes.
fn lay_out(package: &Package, binaries: &Path, work: &Path) -> io::Result<u64> {
    let mut size = 0;
    let place = |path: &str| -> io::Result<_> {
        let path = work.join(path.trim_start_matches('/'));
        path.parent().map_or(Ok(()), fs::create_dir_all)?;
        Ok(path)
    };
    for (path, binary) in &package.files {
        let path = place(path)?;
        size += fs::copy(binaries.join(binary), &path)?;
        fs::set_permissions(path, fs::Permissions::from_mode(0o755))?;
    }
    for (path, text) in &package.texts {
        let path = place(path)?;
        size += text.len() as u64;
        fs::write(&path, text)?;
        fs::set_permissions(path, fs::Permissions::from_mode(0o644))?;
    }
    Ok(size)
}

/// Whatever the umask is.
fn open_directories(directory: &Path) -> io::Result<()> {
    fs::set_permissions(directory, fs::Permissions::from_mode(0o755))?;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            open_directories(&entry.path())?;
        }
    }
    Ok(())
}

/// deb-control(5); `kibibytes` is the installed size.
fn control(package: &Package, version: &str, architecture: Architecture, kibibytes: u64) -> String {
    let mut text = format!(
        "Package: {}\nVersion: {version}\nArchitecture: {}\nMaintainer: metalform <packages@metalform.dev>\n\
         Installed-Size: {kibibytes}\n",
        package.name,
        architecture.as_str()
    );
    let relations = [
        ("Depends", &package.depends),
        ("Provides", &package.provides),
        ("Conflicts", &package.conflicts),
        ("Replaces", &package.replaces),
    ];
    for (field, values) in relations {
        if !values.is_empty() {
            text.push_str(&format!("{field}: {}\n", values.join(", ")));
        }
    }
    text.push_str(&format!("Section: admin\nPriority: optional\nDescription: {}\n", package.description));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_package_has_its_files_owners_and_fields_and_is_reproducible() {
        let directory = tempfile::tempdir().unwrap();
        let binaries = directory.path().join("bin");
        fs::create_dir(&binaries).unwrap();
        fs::write(binaries.join("tool"), "#!/bin/true\n").unwrap();
        let package: Package = serde_saphyr::from_str(
            "{name: tool, description: A tool, depends: [runc], files: {/opt/tool/bin/tool: tool},\
             texts: {/lib/systemd/system/tool.service: \"[Unit]\\n\"}}",
        )
        .unwrap();
        let mut made = Vec::new();
        for turn in ["one", "two"] {
            let (work, path) = (directory.path().join(turn), directory.path().join(format!("{turn}.deb")));
            fs::create_dir(&work).unwrap();
            make((&package, "1.2.3", Architecture::Amd64), &binaries, &work, &path).await.unwrap();
            made.push(fs::read(path).unwrap());
        }
        assert_eq!(made[0], made[1]);
        let (listing, _) =
            program::run(Command::new("dpkg-deb").arg("-c").arg(directory.path().join("one.deb")))
                .await
                .unwrap();
        let listing = String::from_utf8(listing).unwrap();
        for line in
            ["-rwxr-xr-x root/root", "./opt/tool/bin/tool", "-rw-r--r-- root/root", "drwxr-xr-x root/root"]
        {
            assert!(listing.contains(line), "{listing}");
        }
    }
}
