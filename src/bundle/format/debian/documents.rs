//! The documents that Debian requires of each package (debian-policy, sections 12.5 and 12.7), and the faults that lintian
//! finds in it on purpose. Pure.

use std::collections::BTreeMap;
use std::io;

use jiff::Timestamp;

use crate::bundle::SOURCE_DATE_EPOCH;
use crate::bundle::format::copyright::copyright;
use crate::bundle::format::gzip::gzip;
use crate::bundle::format::{MAINTAINER, PackageBuild};

/// Path → content.
///
/// # Errors
/// When there is no memory.
pub(super) fn documents(build: &PackageBuild<'_>) -> io::Result<BTreeMap<String, Vec<u8>>> {
    let name = &build.package.name;
    let directory = format!("/usr/share/doc/{name}");
    Ok(BTreeMap::from([
        (format!("{directory}/changelog.gz"), gzip(changelog(build).as_bytes())?),
        (format!("{directory}/copyright"), copyright(build.component).into_bytes()),
        (format!("/usr/share/lintian/overrides/{name}"), overrides(build).into_bytes()),
    ]))
}

/// One entry (deb-changelog(5)): each bundle has one version, and upstream has the changes.
fn changelog(build: &PackageBuild<'_>) -> String {
    let PackageBuild { component, package, .. } = build;
    let epoch = i64::try_from(SOURCE_DATE_EPOCH).ok().and_then(|epoch| Timestamp::from_second(epoch).ok());
    let date = epoch.unwrap_or_default().strftime("%a, %d %b %Y %H:%M:%S +0000");
    format!(
        "{} ({}) stable; urgency=medium\n\n  * {} {}.\n\n -- {MAINTAINER}  {date}\n",
        package.name, component.version, component.name, component.version
    )
}

/// Each with its reason.
fn overrides(build: &PackageBuild<'_>) -> String {
    let PackageBuild { package, libraries, .. } = build;
    let name = &package.name;
    let mut text = String::new();
    if libraries.is_empty() {
        text.push_str(&format!(
            "# Go links statically: the package is the same for every release of Debian.\n{name}: statically-linked-binary\n"
        ));
    }
    if package.files.keys().any(|path| path.starts_with("/opt/")) {
        text.push_str(&format!(
            "# Where container runtimes and upstream's own package have the plugins.\n{name}: dir-or-file-in-opt\n"
        ));
    }
    text
}
