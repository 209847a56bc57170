//! Building Debian packages of binaries: the same inputs give the same bytes.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use tokio::process::Command;

use super::documents::documents;
use super::{DebianError, file_name};
use crate::bundle::SOURCE_DATE_EPOCH;
use crate::bundle::format::{MAINTAINER, PackageBuild};
use crate::bundle::libraries::{Libraries, latest};
use crate::bundle::program;

/// Builds the package in the directory `into`; `work` is an empty directory.
///
/// # Errors
/// When its tree cannot be written, or dpkg-deb fails.
pub(super) async fn build(build: &PackageBuild<'_>, work: &Path, into: &Path) -> Result<(), DebianError> {
    let PackageBuild { component, package, architecture, .. } = *build;
    let version = component.version.as_str();
    let size = lay_out(build, work).map_err(DebianError::write(work))?;
    let control = control(build, size.div_ceil(1024));
    fs::create_dir(work.join("DEBIAN"))
        .and_then(|()| fs::write(work.join("DEBIAN/control"), control))
        .and_then(|()| write_conffiles(build, work))
        .and_then(|()| open_directories(work))
        .and_then(|()| fs::create_dir_all(into))
        .map_err(DebianError::write(work))?;
    let path = into.join(file_name(&package.name, version, architecture));
    let mut command = Command::new("dpkg-deb");
    command.env("SOURCE_DATE_EPOCH", SOURCE_DATE_EPOCH.to_string());
    command.args(["--root-owner-group", "-Zzstd", "-z3", "--build"]).arg(work).arg(path);
    program::run(&mut command).await?;
    Ok(())
}

/// Copies files, because hard links would share the modes of the cache. Returns their size in bytes.
fn lay_out(build: &PackageBuild<'_>, work: &Path) -> io::Result<u64> {
    let PackageBuild { package, binaries, .. } = build;
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
    for (path, text) in build.texts()?.into_iter().chain(documents(build)?) {
        let path = place(&path)?;
        size += text.len() as u64;
        fs::write(&path, text)?;
        fs::set_permissions(path, fs::Permissions::from_mode(0o644))?;
    }
    Ok(size)
}

/// What an operator may have changed (deb-conffiles(5)).
fn write_conffiles(build: &PackageBuild<'_>, work: &Path) -> io::Result<()> {
    let paths = build.package.texts.keys().filter(|path| path.starts_with("/etc/"));
    let text: String = paths.map(|path| format!("{path}\n")).collect();
    if text.is_empty() { Ok(()) } else { fs::write(work.join("DEBIAN/conffiles"), text) }
}

/// Makes the modes of directories independent of the umask.
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

/// The packages of the C library and of GCC's, which have no versioned names, in the versions that have the symbols. Those of
/// other libraries are named in the component list.
fn library_packages(libraries: &Libraries) -> Vec<String> {
    let of_c = |(name, versions): (&String, &BTreeSet<String>)| {
        let glibc = latest(versions, "GLIBC_").map(|version| ("libc6", version));
        let gcc = || latest(versions, "GCC_").map(|version| ("libgcc-s1", version));
        glibc.or_else(|| gcc().filter(|_| name.starts_with("libgcc_s.")))
    };
    let mut packages: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for (package, version) in libraries.iter().filter_map(of_c) {
        packages.entry(package).or_default().insert(version);
    }
    let relation = |(package, versions): (&str, BTreeSet<String>)| {
        latest(&versions, "").map(|version| format!("{package} (>= {version})"))
    };
    packages.into_iter().filter_map(relation).collect()
}

/// A control file (deb-control(5)); `kibibytes` is the installed size.
fn control(build: &PackageBuild<'_>, kibibytes: u64) -> String {
    let PackageBuild { component, package, architecture, .. } = build;
    let mut text = format!(
        "Package: {}\nVersion: {}\nArchitecture: {}\nMaintainer: {MAINTAINER}\n\
         Installed-Size: {kibibytes}\n",
        package.name,
        component.version,
        architecture.as_str()
    );
    let depends = package.depends.iter().cloned().chain(library_packages(build.libraries)).collect();
    let relations = [
        ("Depends", &depends),
        ("Provides", &package.provides),
        ("Conflicts", &package.conflicts),
        ("Replaces", &package.replaces),
    ];
    for (field, values) in relations {
        if !values.is_empty() {
            text.push_str(&format!("{field}: {}\n", values.join(", ")));
        }
    }
    if let Some(homepage) = &component.homepage {
        text.push_str(&format!("Homepage: {homepage}\n"));
    }
    text.push_str(&format!("Section: admin\nPriority: optional\nDescription: {}\n", package.description));
    for line in package.paragraph().lines() {
        // A line of its own with a point is an empty one.
        text.push_str(&format!(" {}\n", if line.is_empty() { "." } else { line }));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bundle::component::Component;
    use crate::model::platform::Architecture;

    #[tokio::test]
    async fn a_package_has_its_files_and_owners_and_is_reproducible() {
        let directory = tempfile::tempdir().unwrap();
        let binaries = directory.path().join("bin");
        fs::create_dir(&binaries).unwrap();
        fs::write(binaries.join("tool"), "#!/bin/true\n").unwrap();
        let component: Component = serde_saphyr::from_str(
            "{name: project, version: 1.2.3, sources: {}, packages: [{\
             name: tool, description: A tool, depends: [runc], files: {/opt/tool/bin/tool: tool},\
             texts: {/lib/systemd/system/tool.service: \"[Unit]\\n\"}}]}",
        )
        .unwrap();
        let mut made = Vec::new();
        for turn in ["one", "two"] {
            let (work, into) = (directory.path().join(turn), directory.path().join(format!("{turn}-out")));
            fs::create_dir(&work).unwrap();
            let request = PackageBuild {
                component: &component,
                package: &component.packages[0],
                architecture: Architecture::Amd64,
                binaries: &binaries,
                libraries: &Libraries::new(),
                documents: &BTreeMap::from([(
                    "/usr/share/man/man1/tool.1".to_owned(),
                    ".TH tool 1\n".to_owned(),
                )]),
                key: None,
            };
            build(&request, &work, &into).await.unwrap();
            made.push(fs::read(into.join("tool_1.2.3_amd64.deb")).unwrap());
        }
        assert_eq!(made[0], made[1]);
        let (listing, _) = program::run(
            Command::new("dpkg-deb").arg("-c").arg(directory.path().join("one-out/tool_1.2.3_amd64.deb")),
        )
        .await
        .unwrap();
        let listing = String::from_utf8(listing).unwrap();
        for line in [
            "-rwxr-xr-x root/root",
            "./opt/tool/bin/tool",
            "-rw-r--r-- root/root",
            "drwxr-xr-x root/root",
            "/man1/tool.1.gz",
        ] {
            assert!(listing.contains(line), "{listing}");
        }
    }

    #[test]
    fn a_package_depends_on_the_libraries_that_have_the_symbols() {
        let libraries = |text: &str| -> Libraries {
            let lines = text.split("; ").filter_map(|line| line.split_once(": "));
            let versions = |text: &str| text.split(' ').map(str::to_owned).collect();
            lines.map(|(name, text)| (name.to_owned(), versions(text))).collect()
        };
        let cases = [
            ("", ""),
            ("libc.so.6: GLIBC_2.4 GLIBC_2.34", "libc6 (>= 2.34)"),
            (
                "ld-linux-x86-64.so.2: GLIBC_2.3; libc.so.6: GLIBC_2.17; libgcc_s.so.1: GCC_3.0 GCC_4.2.0; libm.so.6: GLIBC_2.29",
                "libc6 (>= 2.29), libgcc-s1 (>= 4.2.0)",
            ),
            ("libother.so.1: OTHER_1.0 GCC_3.0", ""),
        ];
        for (text, expected) in cases {
            assert_eq!(library_packages(&libraries(text)).join(", "), expected, "{text}");
        }
    }
}
