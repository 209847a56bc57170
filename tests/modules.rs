//! Files of one module import each other in one direction, and a public type's name is used once.

#![expect(clippy::unwrap_used, reason = "all of it is test code; clippy knows only test functions")]

#[path = "support/sources.rs"]
mod sources;

use std::collections::{BTreeMap, BTreeSet};

use sources::{files, read};

/// A module's path (`a::b`) to its source, without comments and test modules.
type Sources = BTreeMap<String, String>;

fn sources() -> Sources {
    let mut found = Sources::new();
    for path in files("src", "rs") {
        let relative = path.strip_prefix("src").unwrap().with_extension("");
        let name = relative.display().to_string().replace('/', "::");
        let name = name.strip_suffix("::mod").unwrap_or(&name).to_owned();
        let is_test = name.rsplit("::").next().is_some_and(|last| last.ends_with("tests"));
        if !is_test {
            found.insert(name, code(&read(&path)));
        }
    }
    found
}

/// Without line comments, and without what follows `#[cfg(test)]`, which is the end of each file.
fn code(text: &str) -> String {
    let lines = text.lines().take_while(|line| line.trim() != "#[cfg(test)]");
    lines.map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

/// Every path that the text names after `prefix`: `{a, b::{c, d}}` is `a`, `b::c` and `b::d`.
fn paths_after(text: &str, prefix: &str) -> Vec<String> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let starts = text.match_indices(prefix).filter(|(at, _)| {
        !text[..*at].chars().next_back().is_some_and(|before| is_word(before) || before == ':')
    });
    starts.flat_map(|(at, _)| tree(&text[at + prefix.len()..]).0).collect()
}

/// The paths of one use tree, and how much of the text it is.
fn tree(text: &str) -> (Vec<String>, usize) {
    let trimmed = text.trim_start();
    let skipped = text.len() - trimmed.len();
    if let Some(list) = trimmed.strip_prefix('{') {
        let (mut paths, mut at) = (Vec::new(), 0);
        while at < list.len() && !list[at..].trim_start().starts_with('}') {
            let (inner, length) = tree(&list[at..]);
            paths.extend(inner);
            at += length;
            let rest = &list[at..];
            let comma = rest.len() - rest.trim_start().len();
            match rest.trim_start().chars().next() {
                Some(',') => at += comma + 1,
                Some('}') => {}
                _ => break,
            }
        }
        let end = list[at..].find('}').map_or(list.len(), |brace| at + brace + 1);
        return (paths, skipped + 1 + end);
    }
    let name: String = trimmed.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    let after = &trimmed[name.len()..];
    if let Some(rest) = after.strip_prefix("::").filter(|_| !name.is_empty()) {
        let (inner, length) = tree(rest);
        let paths = match inner.is_empty() {
            true => vec![name.clone()],
            false => inner.iter().map(|path| format!("{name}::{path}")).collect(),
        };
        return (paths, skipped + name.len() + 2 + length);
    }
    (vec![name.clone()], skipped + name.len())
}

/// The file that a path is in: the longest part of it that is one.
fn file_of(path: &str, sources: &Sources) -> Option<String> {
    let mut path = path.to_owned();
    loop {
        if sources.contains_key(&path) {
            return Some(path);
        }
        path.truncate(path.rfind("::")?);
    }
}

fn parent(module: &str) -> &str {
    module.rfind("::").map_or("", |at| &module[..at])
}

/// What each file imports of the files of its own module. A file may use the items of the modules around it,
/// as Rust's privacy has it: those are not counted.
fn imports(sources: &Sources) -> BTreeMap<&str, BTreeSet<String>> {
    let top = |module: &str| module.split("::").next().unwrap_or_default().to_owned();
    let mut all = BTreeMap::new();
    for (module, text) in sources {
        let mut named: Vec<String> = paths_after(text, "crate::");
        let own = |path: String| format!("{module}::{path}");
        named.extend(paths_after(text, "self::").into_iter().map(own));
        let mut ancestor = parent(module);
        let mut prefix = "super::".to_owned();
        while !ancestor.is_empty() {
            named.extend(paths_after(text, &prefix).into_iter().map(|path| format!("{ancestor}::{path}")));
            ancestor = parent(ancestor);
            prefix.push_str("super::");
        }
        let files = named.iter().filter_map(|path| file_of(path, sources));
        let counted = files.filter(|file| {
            top(file) == top(module) && file != module && !module.starts_with(&format!("{file}::"))
        });
        all.insert(module.as_str(), counted.collect());
    }
    all
}

/// The files of one cycle, in order.
fn cycle<'a>(
    at: &'a str,
    imports: &'a BTreeMap<&str, BTreeSet<String>>,
    path: &mut Vec<&'a str>,
    done: &mut BTreeSet<&'a str>,
) -> Option<Vec<&'a str>> {
    if let Some(start) = path.iter().position(|seen| *seen == at) {
        return Some(path[start..].to_vec());
    }
    if done.contains(at) {
        return None;
    }
    path.push(at);
    for next in imports.get(at).into_iter().flatten() {
        if let Some(found) = cycle(next, imports, path, done) {
            return Some(found);
        }
    }
    path.pop();
    done.insert(at);
    None
}

#[test]
fn no_files_of_a_module_import_each_other_in_a_cycle() {
    let sources = sources();
    let imports = imports(&sources);
    let edges: usize = imports.values().map(BTreeSet::len).sum();
    assert!(edges > 300, "the imports were not read: {edges}");
    let mut done = BTreeSet::new();
    let mut found = Vec::new();
    for module in sources.keys() {
        if let Some(files) = cycle(module, &imports, &mut Vec::new(), &mut done) {
            done.extend(files.iter().copied());
            found.push(files.join(" -> "));
        }
    }
    assert!(found.is_empty(), "import cycles:\n{}", found.join("\n"));
}

#[test]
fn no_two_public_types_have_one_name() {
    let mut places: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (module, text) in sources() {
        for line in text.lines() {
            let Some(rest) = line.strip_prefix("pub ") else { continue };
            let mut words = rest.split(|c: char| !(c.is_alphanumeric() || c == '_'));
            if matches!(words.next(), Some("struct" | "enum" | "trait" | "type" | "union")) {
                let name = words.next().unwrap_or_default().to_owned();
                places.entry(name).or_default().insert(module.clone());
            }
        }
    }
    assert!(places.len() > 300, "the types were not read: {}", places.len());
    let shared: Vec<String> = places
        .iter()
        .filter(|(_, modules)| modules.len() > 1)
        .map(|(name, modules)| format!("{name}: {}", modules.iter().cloned().collect::<Vec<_>>().join(", ")))
        .collect();
    assert!(shared.is_empty(), "names of more than one type:\n{}", shared.join("\n"));
}

#[test]
fn paths_are_read_from_every_form_of_use() {
    let text = "use crate::a::{b::{C, d}, e};\nuse crate::f;\nfn g(h: crate::i::J) {}\nnot_crate::k";
    assert_eq!(paths_after(text, "crate::"), ["a::b::C", "a::b::d", "a::e", "f", "i::J"]);
    assert_eq!(paths_after("use super::super::a;", "super::super::"), ["a"]);
    assert_eq!(paths_after("use super::super::a;", "super::"), ["super::a"]);
}
