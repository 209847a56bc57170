//! The package sources of the build machine (sources.list(5)).

use std::fs;
use std::path::Path;

use super::stanza::{self, Stanza};

/// One line or paragraph of a package source list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AptSource {
    pub(super) uri: String,
    pub(super) suites: Vec<String>,
}

/// Unreadable source lists are treated as empty.
pub(super) fn machine_sources() -> Vec<AptSource> {
    let read = |path: &Path| fs::read_to_string(path).unwrap_or_default();
    let mut sources = one_line(&read(Path::new("/etc/apt/sources.list")));
    let listed = fs::read_dir("/etc/apt/sources.list.d").into_iter().flatten().flatten();
    let mut paths: Vec<_> = listed.map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("list") => sources.extend(one_line(&read(&path))),
            Some("sources") => sources.extend(deb822(&read(&path))),
            _ => {}
        }
    }
    sources
}

pub(super) fn one_line(text: &str) -> Vec<AptSource> {
    let source = |line: &str| {
        let rest = line.trim().strip_prefix("deb ")?.trim_start();
        let rest = match rest.strip_prefix('[') {
            Some(options) => options.split_once(']')?.1,
            None => rest,
        };
        let mut words = rest.split_whitespace();
        Some(AptSource { uri: words.next()?.to_owned(), suites: vec![words.next()?.to_owned()] })
    };
    text.lines().filter_map(source).collect()
}

pub(super) fn deb822(text: &str) -> Vec<AptSource> {
    let words = |stanza: &Stanza, field: &str| -> Vec<String> {
        stanza
            .get(field)
            .map(|value| value.split_whitespace().map(str::to_owned).collect())
            .unwrap_or_default()
    };
    let sources = |stanza: Stanza| {
        let disabled = stanza.get("Enabled").is_some_and(|value| value == "no");
        let usable = !disabled && words(&stanza, "Types").iter().any(|word| word == "deb");
        let suites = words(&stanza, "Suites");
        let uris = if usable { words(&stanza, "URIs") } else { Vec::new() };
        uris.into_iter().map(move |uri| AptSource { uri, suites: suites.clone() })
    };
    stanza::parse(text).into_iter().flat_map(sources).collect()
}
