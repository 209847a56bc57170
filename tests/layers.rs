//! Modules use only what stands to their left in the map of `src/lib.rs`.

#![expect(clippy::unwrap_used, reason = "all of it is test code; clippy knows only test functions")]

#[path = "support/sources.rs"]
mod sources;

use std::collections::BTreeMap;

use sources::{files, read};

/// Module to its place in the map, read from the map itself so that the picture cannot lie.
fn places() -> BTreeMap<String, usize> {
    let text = read("src/lib.rs");
    let picture: String = text
        .lines()
        .skip_while(|line| !line.contains("```text"))
        .skip(1)
        .take_while(|line| !line.contains("```"))
        .map(|line| line.trim_start_matches("//!"))
        .collect();
    let groups = picture.split('→').enumerate();
    groups
        .flat_map(|(place, group)| {
            group
                .split([',', '{', '}'])
                .map(|name| name.trim().to_owned())
                .filter(|name| !name.is_empty())
                .map(move |name| (name, place))
                .collect::<Vec<_>>()
        })
        .collect()
}

/// The modules that a source names, each with its line: `crate::a::b` is a, `crate::{a, b::{c, d}}` is a and b.
/// Comments name what they like.
fn named(text: &str) -> Vec<(usize, String)> {
    let code: Vec<&str> = text.lines().map(|line| line.split("//").next().unwrap_or_default()).collect();
    let code = code.join("\n");
    let name = |text: &str| text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>();
    let mut names = Vec::new();
    for (at, path) in code.match_indices("crate::") {
        let line = code[..at].matches('\n').count() + 1;
        let after = &code[at + path.len()..];
        let Some(list) = after.strip_prefix('{') else {
            names.push((line, name(after)));
            continue;
        };
        let mut depth = 0;
        let list = list.split_inclusive(|c| {
            depth += match c {
                '{' => 1,
                '}' => -1,
                _ => 0,
            };
            depth < 0 || (depth == 0 && c == ',')
        });
        for item in list {
            names.push((line, name(item.trim_start())));
            if item.matches('}').count() > item.matches('{').count() {
                break;
            }
        }
    }
    names
}

#[test]
fn every_module_has_a_place_in_the_map() {
    let text = read("src/lib.rs");
    let modules: Vec<&str> =
        text.lines().filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';')).collect();
    let places = places();
    let strangers: Vec<_> = modules.iter().filter(|module| !places.contains_key(**module)).collect();
    assert!(strangers.is_empty(), "not in the map: {strangers:?}");
    assert_eq!(modules.len(), places.len(), "the map names a module that is not there: {places:?}");
}

#[test]
fn a_module_uses_only_what_stands_to_its_left() {
    let places = places();
    let mut violations = Vec::new();
    let mut edges = 0;
    for file in files("src", "rs") {
        let relative = file.strip_prefix("src").unwrap().display().to_string();
        let module = relative.split(['/', '.']).next().unwrap().to_owned();
        // lib.rs and main.rs stand outside.
        let Some(place) = places.get(&module) else { continue };
        let text = read(&file);
        for (line, name) in named(&text) {
            let Some(used) = places.get(&name) else { continue };
            edges += 1;
            if name != module && used >= place {
                violations.push(format!("src/{relative}:{line}: {module} uses {name}"));
            }
        }
    }
    assert!(edges > 100, "the sources were not read");
    assert!(violations.is_empty(), "{}", violations.join("\n"));
}

#[test]
fn names_are_read_from_every_form_of_use() {
    let text = "use crate::model::name::HostName;
use crate::{
    resource::{self, step::Step}, serve::http};
fn a(b: crate::etcd::member::Member, c: u8) -> crate::pki::Leaf {
//! as `crate::cli` does
";
    let named = named(text);
    let named: Vec<(usize, &str)> = named.iter().map(|(line, name)| (*line, name.as_str())).collect();
    assert_eq!(named, [(1, "model"), (2, "resource"), (2, "serve"), (4, "etcd"), (4, "pki")]);
}
