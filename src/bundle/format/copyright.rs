//! The copyright file of a package (dep-team.pages.debian.net/deps/dep5). Pure.

use std::fmt::Write as _;

use crate::bundle::component::Component;

/// The license of most components, and of metalform. Debian systems have its text; others get it with the package.
pub(super) const APACHE: (&str, &str) = ("Apache-2.0", include_str!("../../../LICENSE"));

/// Who has the rights in a component, and under which license it may be copied.
pub(super) fn copyright(component: &Component) -> String {
    let Component { name, version, .. } = component;
    let mut text = format!(
        "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\nUpstream-Name: {name}\n"
    );
    if let Some(homepage) = &component.homepage {
        let _ = writeln!(text, "Source: {homepage}");
    }
    let holder = component.copyright.clone().unwrap_or_else(|| format!("The authors of {name} {version}"));
    let license = component.license.as_deref().unwrap_or("unspecified");
    let _ = writeln!(text, "\nFiles: *\nCopyright: {holder}\nLicense: {license}");
    if license == APACHE.0 {
        text.push_str(
            " On Debian systems, the text of the Apache License, Version 2.0, is in\n \
             /usr/share/common-licenses/Apache-2.0.\n",
        );
    } else if component.license.is_some() {
        let _ = writeln!(text, " The texts of licenses are at https://spdx.org/licenses.");
    } else {
        let _ = writeln!(text, " The component list of the bundle names no license.");
    }
    text
}
