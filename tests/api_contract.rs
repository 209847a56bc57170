//! Keys and versions of the API contract are defined in `src/model/api_contract.rs` and nowhere else in `src`.

#![expect(clippy::unwrap_used, reason = "all of it is test code; clippy knows only test functions")]

#[path = "support/sources.rs"]
mod sources;

use sources::{files, read};

/// The file with the definitions.
const CONTRACT: &str = "src/model/api_contract.rs";

/// Strings that begin with one of these are part of the contract.
const PREFIXES: [&str; 9] = [
    "metalform.dev/",
    "metalk8s.scality.com/",
    "node-role.kubernetes.io/",
    "node.kubernetes.io/",
    "node.cloudprovider.kubernetes.io/",
    "cluster.k8s.io/",
    "machinedeployment.clusters.k8s.io/",
    "machine-controller/",
    "capacity.cluster-autoscaler.kubernetes.io/",
];

/// Whether a file contains nothing but tests.
fn is_test(path: &str) -> bool {
    path.ends_with("tests.rs") || path.contains("/damage/") || path.ends_with("cases.rs")
}

/// String literals of the contract, outside comments and test modules.
fn literals(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("#[cfg(test)]") {
            break;
        }
        let code = line.trim_start();
        if code.starts_with("//") {
            continue;
        }
        for (at, _) in code.match_indices('"') {
            let literal = &code[at + 1..];
            if PREFIXES.iter().any(|prefix| literal.starts_with(prefix)) {
                found.push((index + 1, literal.split('"').next().unwrap_or_default().to_owned()));
            }
        }
    }
    found
}

#[test]
fn keys_and_versions_are_defined_once() {
    let paths = files("src", "rs");
    assert!(paths.len() > 100, "the sources were not found");
    let mut stray = Vec::new();
    for path in paths {
        let name = path.display().to_string();
        if name == CONTRACT || is_test(&name) {
            continue;
        }
        stray.extend(
            literals(&read(&path)).into_iter().map(|(line, literal)| format!("{name}:{line}: {literal:?}")),
        );
    }
    assert_eq!(stray, Vec::<String>::new(), "define these in {CONTRACT}");
}

#[test]
fn a_stray_literal_is_found() {
    let text = "/// \"metalform.dev/a\"\nlet key = \"metalform.dev/b\";\n#[cfg(test)]\nlet key = \"metalform.dev/c\";\n";
    assert_eq!(literals(text), [(2, "metalform.dev/b".to_owned())]);
}
