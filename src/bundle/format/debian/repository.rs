//! The indexes of the Debian repository in a bundle (wiki.debian.org/DebianRepository/Format). The bootstrap node
//! signs them with the cluster's key.

use std::fs;
use std::io;
use std::path::Path;

use jiff::Timestamp;
use tokio::process::Command;

use super::{DIRECTORY, DebianError, stanza};
use crate::bundle::content::BundledPackage;
use crate::bundle::digest::Sha256;
use crate::bundle::entry::EntryPackage;
use crate::bundle::format::gzip::gzip;
use crate::bundle::program;
use crate::model::platform::{Architecture, Platform};

/// Describes every package below `pool`, for these platforms.
///
/// # Errors
/// When apt-ftparchive fails, or a file is not a package.
pub(super) async fn describe(apt: &Path, platforms: &[Platform]) -> Result<Vec<EntryPackage>, DebianError> {
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
            let missing = || DebianError::Field { directory: apt.display().to_string(), field: name };
            fields.get(name).cloned().ok_or_else(missing)
        };
        let package = BundledPackage {
            name: field("Package")?,
            platforms: platforms.to_vec(),
            version: field("Version")?,
            architecture: field("Architecture")?,
            path: format!("{DIRECTORY}/{}", field("Filename")?),
        };
        packages.push(EntryPackage { package, index_entry: format!("{}\n", control.trim_end()) });
    }
    packages.sort_by(|a, b| a.package.cmp(&b.package));
    Ok(packages)
}

/// Path of a package index, relative to the repository.
pub(super) fn packages_path(suite: &str, architecture: Architecture) -> String {
    format!("dists/{suite}/{}", index_name(architecture))
}

fn index_name(architecture: Architecture) -> String {
    format!("main/binary-{architecture}/Packages")
}

/// Writes `Release`, and `Packages` and `Packages.gz` for each platform of a suite.
///
/// # Errors
/// From the operating system.
pub(super) fn write_suite(
    apt: &Path,
    (suite, platforms): (&str, &[&Platform]),
    packages: &[EntryPackage],
    date: Timestamp,
) -> io::Result<()> {
    let dists = apt.join("dists").join(suite);
    let mut indexes = Vec::new();
    for platform in platforms {
        let served = packages.iter().filter(|entry| entry.package.platforms.contains(platform));
        let text = served.map(|entry| entry.index_entry.as_str()).collect::<Vec<_>>().join("\n");
        let compressed = gzip(text.as_bytes())?;
        let name = index_name(platform.architecture);
        indexes.extend([(name.clone(), text.into_bytes()), (format!("{name}.gz"), compressed)]);
    }
    for (name, content) in &indexes {
        let path = dists.join(name);
        fs::create_dir_all(path.parent().unwrap_or(&dists))?;
        fs::write(path, content)?;
    }
    fs::write(dists.join("Release"), release(suite, platforms, &indexes, date))
}

fn release(suite: &str, platforms: &[&Platform], indexes: &[(String, Vec<u8>)], date: Timestamp) -> String {
    let architectures: Vec<&str> = platforms.iter().map(|platform| platform.architecture.as_str()).collect();
    let date = date.strftime("%a, %d %b %Y %H:%M:%S UTC");
    let mut text = format!(
        "Origin: metalform\nLabel: metalform\nSuite: {suite}\nCodename: {suite}\nDate: {date}\n\
         Architectures: {}\nComponents: main\nDescription: metalform bundle\nSHA256:\n",
        architectures.join(" ")
    );
    for (name, content) in indexes {
        text.push_str(&format!(" {} {} {name}\n", Sha256::of(content), content.len()));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_platform_has_its_own_packages_and_the_shared_ones() {
        let directory = tempfile::tempdir().unwrap();
        let platforms =
            |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect::<Vec<Platform>>();
        let entry = |name: &str, on: &[&str]| EntryPackage {
            package: BundledPackage {
                name: name.to_owned(),
                platforms: platforms(on),
                version: "1".to_owned(),
                architecture: "amd64".to_owned(),
                path: format!("apt/pool/{name}.deb"),
            },
            index_entry: format!("Package: {name}\nVersion: 1\n"),
        };
        let packages = [
            entry("both", &["debian-13-amd64", "debian-12-amd64", "debian-12-arm64"]),
            entry("old", &["debian-12-amd64"]),
        ];
        let date = jiff::Timestamp::from_second(1_767_225_600).unwrap();
        for (suite, on) in [
            ("debian-13", platforms(&["debian-13-amd64"])),
            ("debian-12", platforms(&["debian-12-amd64", "debian-12-arm64"])),
        ] {
            let on: Vec<&Platform> = on.iter().collect();
            write_suite(directory.path(), (suite, &on), &packages, date).unwrap();
        }
        let read = |name: &str| fs::read_to_string(directory.path().join("dists").join(name)).unwrap();
        assert_eq!(read("debian-13/main/binary-amd64/Packages"), "Package: both\nVersion: 1\n");
        assert_eq!(stanza::parse(&read("debian-12/main/binary-amd64/Packages")).len(), 2);
        assert_eq!(stanza::parse(&read("debian-12/main/binary-arm64/Packages")).len(), 1);
        assert!(read("debian-12/Release").contains("\nArchitectures: amd64 arm64\n"));
        insta::assert_snapshot!(read("debian-13/Release").split("SHA256:").next().unwrap(), @r"
        Origin: metalform
        Label: metalform
        Suite: debian-13
        Codename: debian-13
        Date: Thu, 01 Jan 2026 00:00:00 UTC
        Architectures: amd64
        Components: main
        Description: metalform bundle
        ");
    }
}
