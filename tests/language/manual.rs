//! The reference of kinds: complete, up to date, with examples that are valid.

use std::collections::BTreeMap;
use std::path::Path;

use metalform::cli::docs;
use metalform::engine::states::HostStates;
use metalform::operation::values;
use metalform::resource::kinds;
use metalform::state::{Library, Tree, check, compile};

/// The YAML of a kind's page.
pub fn example(kind: &str) -> String {
    let page = docs::manual(kind);
    let yaml = page.split_once("```yaml\n").and_then(|(_, rest)| rest.split_once("```"));
    yaml.map(|(yaml, _)| yaml.to_owned()).unwrap_or_default()
}

/// A state with one resource.
pub fn state(resource: &str) -> String {
    let indented: String = resource.lines().map(|line| format!("  {line}\n")).collect();
    format!("about: An example.\nresources:\n{indented}")
}

#[test]
fn every_kind_has_a_page_with_an_example() {
    for kind in kinds() {
        let (name, page) = (kind.kind.name(), docs::manual(kind.kind.name()));
        assert!(example(name).starts_with(&format!("- {name}: ")), "src/cli/manual/{name}.md has no example");
        for part in ["\nAbsent: ", "\nRefused: "] {
            assert!(page.contains(part), "src/cli/manual/{name}.md has no section{part}");
        }
    }
}

#[test]
fn every_example_is_valid() {
    for kind in kinds() {
        let root = tempfile::tempdir().unwrap();
        let text = state(&example(kind.kind.name()));
        // There is no earlier resource that a service could react to.
        let text: String = text
            .lines()
            .filter(|line| !line.contains("_when_changed"))
            .map(|line| format!("{line}\n"))
            .collect();
        std::fs::create_dir_all(root.path().join("states")).unwrap();
        std::fs::create_dir_all(root.path().join("templates")).unwrap();
        std::fs::write(root.path().join("states/top.yaml"), "node: {states: [example]}\n").unwrap();
        std::fs::write(root.path().join("states/example.yaml"), &text).unwrap();
        if let Some(source) = text.lines().find_map(|line| line.trim().strip_prefix("source: ")) {
            std::fs::write(root.path().join("templates").join(source), "apiVersion: v1\nkind: Pod\n")
                .unwrap();
        }
        let tree = Tree::directory(root.path()).unwrap();
        let faults: Vec<String> =
            check(&tree, kinds(), &values::shapes()).iter().map(ToString::to_string).collect();
        assert_eq!(faults, Vec::<String>::new(), "{text}");
        let library = Library::read(&tree).unwrap();
        let values = metalform::render::values_of(&serde_json::json!({}));
        let compiled = compile(&library, &library.states_of(&["node"]).unwrap(), kinds(), &values).unwrap();
        HostStates::new(compiled, BTreeMap::new(), "2026-01-01T00:00:00Z".parse().unwrap())
            .unwrap_or_else(|faults| panic!("{}: {}\n{text}", kind.kind, faults[0]));
    }
}

/// `UPDATE_EXPECTED=1 cargo test --test language` regenerates it.
#[test]
fn the_committed_page_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/kinds.md");
    let page = docs::page(kinds());
    if std::env::var_os("UPDATE_EXPECTED").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(page == committed, "docs/kinds.md is out of date: UPDATE_EXPECTED=1 cargo test --test language");
}
