//! Building RPM packages of binaries: the same inputs give the same bytes.
//!
//! As Debian's, they have no scripts: metalform enables and restarts the services of hosts, and systemd's own package
//! reloads units on RPM systems (its file triggers). A signature covers the header, which has the digest of the files (RPM
//! version 4).

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use rpm::{BuildConfig, CompressionWithLevel, Dependency, FileOptions, PackageBuilder, Timestamp};

use super::{RpmError, relation, signature};
use crate::bundle::SOURCE_DATE_EPOCH;
use crate::bundle::format::copyright::{APACHE, copyright};
use crate::bundle::format::{MAINTAINER, PackageBuild};
use crate::bundle::worker_thread::on_worker_thread;
use crate::model::platform::Architecture;
use crate::pki::openpgp::RepositoryKey;

/// Each version is packaged once: what changes a package changes the bundle's version of it.
const RELEASE: &str = "1";

/// Directories that the distribution's packages own (`filesystem` and `systemd` of Enterprise Linux 9). A package owns
/// every other directory of its files, so that it is removed with the last of them.
const SHARED: [&str; 20] = [
    "/",
    "/etc",
    "/etc/systemd",
    "/etc/systemd/system",
    "/opt",
    "/usr",
    "/usr/bin",
    "/usr/lib",
    "/usr/lib/systemd",
    "/usr/lib/systemd/system",
    "/usr/libexec",
    "/usr/sbin",
    "/usr/share",
    "/usr/share/doc",
    "/usr/share/bash-completion",
    "/usr/share/bash-completion/completions",
    "/usr/share/licenses",
    "/usr/share/man",
    "/usr/share/man/man1",
    "/var/lib",
];

/// Builds the package in the directory `into`.
///
/// # Errors
/// When a binary cannot be read, a field is not allowed in a package, or the package cannot be written.
pub(super) async fn build(build: &PackageBuild<'_>, into: &Path) -> Result<(), RpmError> {
    let name = &build.package.name;
    let failed = |source| RpmError::Build { package: name.clone(), source };
    let mut builder = described(build)?;
    add_files(&mut builder, build).map_err(failed)?;
    fs::create_dir_all(into).map_err(RpmError::write(into))?;
    let into = into.to_owned();
    // Compression takes seconds.
    let package = on_worker_thread(move || builder.build()).await.map_err(failed)?;
    let path = package.write_to(into).map_err(failed)?;
    match build.key {
        Some(key) => sign(name, &package.header_bytes().map_err(failed)?, (key, &path)),
        None => Ok(()),
    }
}

/// Adds the signature of its header to the package at `path`.
fn sign(name: &str, header: &[u8], (key, path): (&RepositoryKey, &Path)) -> Result<(), RpmError> {
    let tag = if key.is_rsa() { signature::RSA } else { signature::DSA };
    let made = key.sign_packet(header);
    let made = made.map_err(|source| RpmError::Sign { package: name.to_owned(), source })?;
    let section = |source| RpmError::Section { package: name.to_owned(), source };
    let package = fs::read(path).map_err(RpmError::write(path))?;
    let signed = signature::with_signature(&package, (tag, made)).map_err(section)?;
    fs::write(path, signed).map_err(RpmError::write(path))
}

/// The version of a package: what precedes a release (`1.0-rc.1`) is written with `~`, and orders before it.
pub(super) fn version(upstream: &str) -> String {
    upstream.replace('-', "~")
}

/// The name of an architecture in packages and repositories.
pub(super) fn architecture(architecture: Architecture) -> &'static str {
    match architecture {
        Architecture::Amd64 => "x86_64",
        Architecture::Arm64 => "aarch64",
    }
}

fn described(build: &PackageBuild<'_>) -> Result<PackageBuilder, RpmError> {
    let PackageBuild { component, package, architecture: of, .. } = *build;
    let version = version(&component.version);
    let evr = format!("{version}-{RELEASE}");
    let license = component.license.as_deref().unwrap_or("LicenseRef-Unspecified");
    let mut builder =
        PackageBuilder::new(&package.name, &version, license, architecture(of), &package.description);
    let config = BuildConfig::v4()
        .source_date(epoch())
        .compression(CompressionWithLevel::Zstd(3))
        // For signatures that are added later.
        .reserved_space(None);
    builder.using_config(config).release(RELEASE).vendor("metalform").packager(MAINTAINER);
    // The build machine is part of no package; rpmlint requires a host and a group.
    builder.build_host("reproducible").group("System Environment/Base");
    builder.description(package.paragraph());
    builder.add_changelog_entry(
        format!("{MAINTAINER} - {evr}"),
        format!("- {} {}", component.name, component.version),
        epoch(),
    );
    if let Some(homepage) = &component.homepage {
        builder.url(homepage);
    }
    for relation in &package.depends {
        builder.requires(relation::required(relation)?);
    }
    for library in libraries(build) {
        builder.requires(library);
    }
    for relation in &package.provides {
        builder.provides(relation::provided(relation, &evr)?);
    }
    for relation in &package.conflicts {
        builder.conflicts(relation::one(relation)?);
    }
    for relation in &package.replaces {
        builder.obsoletes(relation::replaced(relation, &evr)?);
    }
    Ok(builder)
}

/// The shared libraries, as rpmbuild finds them on 64-bit architectures: `libc.so.6(GLIBC_2.34)(64bit)`.
fn libraries(build: &PackageBuild<'_>) -> Vec<Dependency> {
    let of_library = |(name, versions): (&String, &BTreeSet<String>)| {
        let versions = versions.iter().map(|version| format!("{name}({version})(64bit)"));
        let names = std::iter::once(format!("{name}()(64bit)")).chain(versions);
        names.map(Dependency::any).collect::<Vec<_>>()
    };
    build.libraries.iter().flat_map(of_library).collect()
}

fn add_files(builder: &mut PackageBuilder, build: &PackageBuild<'_>) -> Result<(), rpm::Error> {
    let mut directories = BTreeSet::new();
    let mut file = |path: &str, mode: u16| {
        let path = merged(path);
        directories.extend(owned(&path));
        FileOptions::new(path).permissions(mode).modified_at(epoch())
    };
    for (path, binary) in &build.package.files {
        builder.with_file(build.binaries.join(binary), file(path, 0o755))?;
    }
    for (path, text) in build.texts()? {
        let options = file(&path, 0o644);
        let options = match &path {
            path if path.starts_with("/etc/") => options.config().noreplace(),
            path if path.starts_with("/usr/share/man/") => options.doc(),
            _ => options,
        };
        builder.with_file_contents(text, options)?;
    }
    for (path, text) in licenses(build) {
        builder.with_file_contents(text.as_bytes(), file(&path, 0o644).license())?;
    }
    for directory in directories {
        let options = FileOptions::dir(directory).permissions(0o755).modified_at(epoch());
        builder.with_dir_entry(options)?;
    }
    Ok(())
}

/// Path → content.
fn licenses(build: &PackageBuild<'_>) -> Vec<(String, String)> {
    let directory = format!("/usr/share/licenses/{}", build.package.name);
    let mut texts = vec![(format!("{directory}/copyright"), copyright(build.component))];
    let (identifier, text) = APACHE;
    if build.component.license.as_deref() == Some(identifier) {
        texts.push((format!("{directory}/LICENSE"), text.to_owned()));
    }
    texts
}

/// The path below `/usr` of what Debian's packages have in `/lib`, which is a link on every host.
fn merged(path: &str) -> String {
    let moved = ["/bin/", "/lib/", "/lib64/", "/sbin/"].iter().any(|start| path.starts_with(start));
    if moved { format!("/usr{path}") } else { path.to_owned() }
}

/// The directories of a file that its package owns.
fn owned(path: &str) -> Vec<String> {
    let directories = Path::new(path).ancestors().skip(1).map(|directory| directory.display().to_string());
    directories.filter(|directory| !SHARED.contains(&directory.as_str())).collect()
}

fn epoch() -> Timestamp {
    // Fits until 2106; the constant is of 2026.
    Timestamp(u32::try_from(SOURCE_DATE_EPOCH).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::bundle::component::Component;

    const TOOL: &str = r#"
name: project
version: 1.2.3-rc.1
license: Apache-2.0
homepage: https://example.org
sources: {}
packages:
  - name: tool
    description: A tool
    depends: [conntrack, mta | exim]
    provides: [oldtool]
    conflicts: [oldtool]
    replaces: [oldtool]
    files: { /opt/tool/bin/tool: tool }
    texts: { /lib/systemd/system/tool.service: "[Unit]\n", /etc/tool.conf: "a=1\n" }
"#;

    async fn built(into: &Path, binary: &str) -> rpm::Package {
        let binaries = tempfile::tempdir().unwrap();
        fs::write(binaries.path().join("tool"), binary).unwrap();
        let component: Component = serde_saphyr::from_str(TOOL).unwrap();
        let request = PackageBuild {
            component: &component,
            package: &component.packages[0],
            architecture: Architecture::Arm64,
            binaries: binaries.path(),
            libraries: &BTreeMap::from([("libc.so.6".to_owned(), BTreeSet::from(["GLIBC_2.34".to_owned()]))]),
            documents: &BTreeMap::from([(
                "/usr/share/man/man1/tool.1".to_owned(),
                ".TH tool 1\n".to_owned(),
            )]),
            key: None,
        };
        build(&request, into).await.unwrap();
        rpm::Package::open(into.join("tool-1.2.3~rc.1-1.aarch64.rpm")).unwrap()
    }

    #[tokio::test]
    async fn a_package_has_its_fields_files_and_relations() {
        let directory = tempfile::tempdir().unwrap();
        let package = built(directory.path(), "binary").await;
        package.verify_digests().unwrap();
        let metadata = &package.metadata;
        let files = metadata.get_file_entries().unwrap();
        let file = |file: &rpm::FileEntry<'_>| {
            format!("{} {:o} {}:{}", file.path().display(), file.mode().raw_mode(), file.user(), file.group())
        };
        assert_eq!(
            files.iter().map(file).collect::<Vec<_>>(),
            [
                "/etc/tool.conf 100644 root:root",
                "/opt/tool 40755 root:root",
                "/opt/tool/bin 40755 root:root",
                "/opt/tool/bin/tool 100755 root:root",
                "/usr/lib/systemd/system/tool.service 100644 root:root",
                "/usr/share/licenses/tool 40755 root:root",
                "/usr/share/licenses/tool/LICENSE 100644 root:root",
                "/usr/share/licenses/tool/copyright 100644 root:root",
                "/usr/share/man/man1/tool.1.gz 100644 root:root",
            ]
        );
        assert!(files.iter().all(|file| u64::from(u32::from(file.modified_at())) == SOURCE_DATE_EPOCH));
        let texts = |relations: Result<Vec<rpm::Dependency>, rpm::Error>| {
            let texts = relations.unwrap().iter().map(ToString::to_string).collect::<Vec<_>>();
            texts.into_iter().filter(|text| !text.starts_with("rpmlib(")).collect::<Vec<_>>()
        };
        assert_eq!(
            texts(metadata.get_requires()),
            [
                "(mta or exim)",
                "config(tool) = 1.2.3~rc.1-1",
                "conntrack-tools",
                "libc.so.6()(64bit)",
                "libc.so.6(GLIBC_2.34)(64bit)"
            ]
        );
        assert_eq!(texts(metadata.get_conflicts()), ["oldtool"]);
        assert_eq!(texts(metadata.get_obsoletes()), ["oldtool < 1.2.3~rc.1-1"]);
        assert_eq!(metadata.get_build_host().unwrap(), "reproducible");
        assert_eq!(metadata.get_license().unwrap(), "Apache-2.0");
        assert_eq!(metadata.get_url().unwrap(), "https://example.org");
    }

    #[tokio::test]
    async fn the_same_inputs_give_the_same_bytes() {
        let mut made = Vec::new();
        for binary in ["binary", "binary", "another"] {
            let directory = tempfile::tempdir().unwrap();
            let mut bytes = Vec::new();
            built(directory.path(), binary).await.write(&mut bytes).unwrap();
            made.push(bytes);
        }
        assert_eq!(made[0], made[1]);
        assert_ne!(made[0], made[2]);
    }
}
