//! The indices of the Debian repository in a bundle. They are not signed here: the node that serves them
//! signs them with the cluster's own key.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use flate2::{Compression, GzBuilder};
use tokio::process::Command;

use super::component::Architecture;
use super::digest::Sha256;
use super::entry::EntryPackage;
use super::manifest::BundledPackage;
use super::program::{self, ProgramError};
use super::stanza;

/// Why the packages below a directory were not described.
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    /// apt-ftparchive is not there, or failed.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// A package lacks what every package has.
    #[error("a package in {directory} has no {field}")]
    Field {
        /// Where it lies.
        directory: String,
        /// The missing field.
        field: &'static str,
    },
}

/// Describes every package below `apt/pool`, for the systems with these codenames.
///
/// # Errors
/// When apt-ftparchive fails, or a package is not one.
pub(super) async fn scan(apt: &Path, systems: &[String]) -> Result<Vec<EntryPackage>, IndexError> {
    let mut command = Command::new("apt-ftparchive");
    for digest in ["MD5", "SHA1", "SHA512"] {
        command.args(["-o", &format!("APT::FTPArchive::{digest}=false")]);
    }
    let (text, _) = program::run(command.args(["packages", "pool"]).current_dir(apt)).await?;
    let text = String::from_utf8_lossy(&text);
    let mut packages = Vec::new();
    for control in text.split("\n\n").filter(|control| !control.trim().is_empty()) {
        let fields = stanza::parse(control).pop().unwrap_or_default();
        let field = |name: &'static str| {
            let missing = || IndexError::Field { directory: apt.display().to_string(), field: name };
            fields.get(name).cloned().ok_or_else(missing)
        };
        let package = BundledPackage {
            name: field("Package")?,
            systems: systems.to_vec(),
            version: field("Version")?,
            architecture: field("Architecture")?,
            path: format!("apt/{}", field("Filename")?),
        };
        packages.push(EntryPackage { package, control: format!("{}\n", control.trim_end()) });
    }
    packages.sort_by(|a, b| a.package.cmp(&b.package));
    Ok(packages)
}

/// Path in the bundle of a system's package index.
pub(super) fn packages_path(codename: &str, architecture: Architecture) -> String {
    format!("apt/dists/{codename}/main/binary-{}/Packages", architecture.as_str())
}

/// Writes `Packages`, `Packages.gz` and `Release` of one system below `bundle`. `date` must not go back
/// from one bundle to the next: apt keeps the newer.
///
/// # Errors
/// What the system said.
pub(super) fn write_indices(
    bundle: &Path,
    (codename, architecture): (&str, Architecture),
    packages: &[EntryPackage],
    date: jiff::Timestamp,
) -> io::Result<()> {
    let served =
        packages.iter().filter(|entry| entry.package.systems.iter().any(|system| system == codename));
    let text = served.map(|entry| entry.control.as_str()).collect::<Vec<_>>().join("\n");
    let mut compressed = GzBuilder::new().mtime(0).write(Vec::new(), Compression::default());
    compressed.write_all(text.as_bytes())?;
    let compressed = compressed.finish()?;
    let dists = bundle.join("apt/dists").join(codename);
    let name = format!("main/binary-{}/Packages", architecture.as_str());
    let indices = [(name.clone(), text.into_bytes()), (format!("{name}.gz"), compressed)];
    fs::create_dir_all(dists.join(&name).parent().unwrap_or(&dists))?;
    for (name, content) in &indices {
        fs::write(dists.join(name), content)?;
    }
    fs::write(dists.join("Release"), release(codename, architecture, &indices, date))
}

/// deb-repository format, wiki.debian.org/DebianRepository/Format.
fn release(
    codename: &str,
    architecture: Architecture,
    indices: &[(String, Vec<u8>)],
    date: jiff::Timestamp,
) -> String {
    let architecture = architecture.as_str();
    let date = date.strftime("%a, %d %b %Y %H:%M:%S UTC");
    let mut text = format!(
        "Origin: metalform\nLabel: metalform\nSuite: {codename}\nCodename: {codename}\nDate: {date}\n\
         Architectures: {architecture}\nComponents: main\nDescription: metalform bundle\nSHA256:\n"
    );
    for (name, content) in indices {
        text.push_str(&format!(" {} {} {name}\n", Sha256::of(content), content.len()));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_system_sees_its_own_packages_and_the_shared_ones() {
        let directory = tempfile::tempdir().unwrap();
        let entry = |name: &str, systems: &[&str]| EntryPackage {
            package: BundledPackage {
                name: name.to_owned(),
                systems: systems.iter().map(|&system| system.to_owned()).collect(),
                version: "1".to_owned(),
                architecture: "amd64".to_owned(),
                path: format!("apt/pool/{name}.deb"),
            },
            control: format!("Package: {name}\nVersion: 1\n"),
        };
        let packages = [entry("both", &["trixie", "bookworm"]), entry("old", &["bookworm"])];
        let date = jiff::Timestamp::from_second(1_767_225_600).unwrap();
        for codename in ["trixie", "bookworm"] {
            write_indices(directory.path(), (codename, Architecture::Amd64), &packages, date).unwrap();
        }
        let read = |name: &str| fs::read_to_string(directory.path().join("apt/dists").join(name)).unwrap();
        assert_eq!(read("trixie/main/binary-amd64/Packages"), "Package: both\nVersion: 1\n");
        assert_eq!(stanza::parse(&read("bookworm/main/binary-amd64/Packages")).len(), 2);
        insta::assert_snapshot!(read("trixie/Release").split("SHA256:").next().unwrap(), @r"
        Origin: metalform
        Label: metalform
        Suite: trixie
        Codename: trixie
        Date: Thu, 01 Jan 2026 00:00:00 UTC
        Architectures: amd64
        Components: main
        Description: metalform bundle
        ");
    }
}
