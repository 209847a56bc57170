//! The assignments of os-release(5), read by its rules and not by a shell.

use std::collections::BTreeMap;

use crate::model::facts::Os;

/// The operating system, or `None` when the text has no `ID`.
pub(super) fn parse(text: &str) -> Option<Os> {
    let fields: BTreeMap<&str, String> = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split_once('='))
        .map(|(key, value)| (key, unquote(value)))
        .collect();
    let field = |key: &str| fields.get(key).cloned().unwrap_or_default();
    let id = fields.get("ID")?.clone();
    let family = family(&id, &field("ID_LIKE"));
    Some(Os { family, id, version: field("VERSION_ID"), codename: field("VERSION_CODENAME") })
}

fn family(id: &str, like: &str) -> String {
    let relatives: Vec<&str> = std::iter::once(id).chain(like.split_whitespace()).collect();
    let related = |names: &[&str]| relatives.iter().any(|relative| names.contains(relative));
    if related(&["debian", "ubuntu"]) {
        "debian".to_owned()
    } else if related(&["rhel", "fedora", "centos"]) {
        "redhat".to_owned()
    } else {
        id.to_owned()
    }
}

/// Single quotes keep all as it is; elsewhere a backslash takes the next character literally.
fn unquote(value: &str) -> String {
    if let Some(inner) = value.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\'')) {
        return inner.to_owned();
    }
    let inner = value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(value);
    let mut plain = String::new();
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => plain.extend(chars.next()),
            other => plain.push(other),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn os(id: &str, family: &str, version: &str, codename: &str) -> Os {
        Os { id: id.into(), family: family.into(), version: version.into(), codename: codename.into() }
    }

    #[test]
    fn distributions_are_recognised_by_their_relatives() {
        let cases = [
            (
                "ID=debian\nVERSION_ID=\"13\"\nVERSION_CODENAME=trixie\n",
                os("debian", "debian", "13", "trixie"),
            ),
            ("ID=linuxmint\nID_LIKE='ubuntu debian'\nVERSION_ID=22\n", os("linuxmint", "debian", "22", "")),
            (
                "ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\nVERSION_ID=\"9.4\"",
                os("rocky", "redhat", "9.4", ""),
            ),
            ("ID=arch\nBUILD_ID=rolling\n", os("arch", "arch", "", "")),
            ("# ID=no\nID=\"a\\$b\\\"c\"\n", os("a$b\"c", "a$b\"c", "", "")),
        ];
        for (text, expected) in cases {
            assert_eq!(parse(text), Some(expected), "{text}");
        }
        assert_eq!(parse("NAME=x\n"), None);
    }
}
