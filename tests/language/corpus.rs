//! `tests/bad/`: files with typical mistakes, each with the expected output of `metalform check` beside it.
//!
//! `UPDATE_EXPECTED=1 cargo test` rewrites the expectations; read the diff before you keep it. Those of `tests/bad/state`
//! are checked by `src/state/cases.rs`, with kinds that do not change.

use std::path::{Path, PathBuf};
use std::process::Command;

fn bad(of: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bad").join(of)
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

/// Standard error of `metalform check PATH`, run in a directory.
fn said(directory: &Path, path: &str) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_metalform"))
        .args(["check", path])
        .current_dir(directory)
        .env_clear()
        .output()
        .unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(1), &b""[..]), "{path}: {stderr}");
    stderr
}

/// Each line is an error with file, line and column, or a hint after all errors.
fn assert_form(path: &str, stderr: &str) {
    let errors: Vec<&str> = stderr.lines().map_while(|line| line.strip_prefix("error: ")).collect();
    let hints = stderr.lines().filter(|line| line.starts_with("hint: ")).count();
    assert!(!errors.is_empty() && errors.len() + hints == stderr.lines().count(), "{path}: {stderr}");
    for error in errors {
        let mut parts = error.splitn(4, ':');
        let file = parts.next().unwrap();
        let numbers: Vec<u64> = parts.by_ref().take(2).filter_map(|part| part.parse().ok()).collect();
        // A file that is missing or unused has no lines.
        let of_file = error.ends_with("this file is missing")
            || error.contains("no role has this state")
            || error.contains("this is not a state file");
        assert!(!file.is_empty() && (of_file || numbers.len() == 2), "{path}: {error}");
        assert!(numbers.iter().all(|number| *number > 0), "{path}: {error}");
        assert!(error.len() < 400, "{path}: {error}");
    }
}

#[test]
fn bad_rosters_and_configurations_are_refused_as_expected() {
    let mut wrong = Vec::new();
    for of in ["roster", "configuration"] {
        for path in entries(&bad(of)).iter().filter(|path| path.extension().is_some_and(|end| end == "yaml"))
        {
            let name = path.file_name().unwrap().to_str().unwrap();
            let stderr = said(&bad(of), name);
            assert_form(name, &stderr);
            let expected = path.with_extension("expected");
            if std::env::var_os("UPDATE_EXPECTED").is_some() {
                std::fs::write(&expected, &stderr).unwrap();
            }
            let expected = std::fs::read_to_string(expected).unwrap_or_default();
            if stderr != expected {
                wrong.push(format!("{name}\nexpected:\n{expected}actual:\n{stderr}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The trees of `tests/bad/state`, as directories.
#[test]
fn bad_states_and_templates_are_refused_in_lines_with_a_location() {
    for folder in entries(&bad("state")) {
        // The others are wrong only with the values of a host.
        if folder.join("values.json").exists() {
            continue;
        }
        let tree = tempfile::tempdir().unwrap();
        let mut names = Vec::new();
        for path in entries(&folder) {
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            let below = match path.extension().and_then(|end| end.to_str()) {
                None => continue,
                Some("j2") => "templates",
                Some(_) => "states",
            };
            std::fs::create_dir_all(tree.path().join(below)).unwrap();
            std::fs::copy(&path, tree.path().join(below).join(&name)).unwrap();
            names.extend(name.strip_suffix(".yaml").filter(|_| below == "states").map(str::to_owned));
        }
        if !names.contains(&"top".to_owned()) {
            let top = format!("node: {{ states: [{}] }}\n", names.join(", "));
            std::fs::write(tree.path().join("states/top.yaml"), top).unwrap();
        }
        let name = folder.display().to_string();
        assert_form(&name, &said(tree.path(), "states/"));
    }
}

#[test]
fn absurdly_large_files_are_refused_at_once() {
    let tree = tempfile::tempdir().unwrap();
    let states = tree.path().join("states");
    std::fs::create_dir(&states).unwrap();
    std::fs::write(states.join("top.yaml"), "node: {states: [a]}\n").unwrap();
    let deep = format!("about: x\nresources: {}\n", "[".repeat(200_000));
    let wide = format!("about: x\nresources:\n{}", "  - package: a\n    version: 1\n".repeat(400_000));
    let line = format!("about: {}\nresources: []\n", "x".repeat(3 << 20));
    for (name, text, expected) in [
        ("wide", wide, "states/a.yaml:1:1: this file is 11 MiB large; the limit is 4 MiB"),
        ("deep", deep, "states/a.yaml:2:"),
        ("line", line, ""),
    ] {
        std::fs::write(states.join("a.yaml"), text).unwrap();
        let began = std::time::Instant::now();
        if expected.is_empty() {
            let run = Command::new(env!("CARGO_BIN_EXE_metalform"))
                .args(["check", "."])
                .current_dir(tree.path())
                .output()
                .unwrap();
            assert!(run.status.success(), "{name}: {run:?}");
        } else {
            let stderr = said(tree.path(), ".");
            assert_form(name, &stderr);
            assert!(stderr.starts_with(&format!("error: {expected}")), "{name}: {stderr}");
        }
        assert!(began.elapsed().as_secs() < 20, "{name} took {:?}", began.elapsed());
    }
}

#[test]
fn the_corpus_is_large() {
    let states = entries(&bad("state")).iter().filter(|folder| folder.join("expected").exists()).count();
    let files = ["roster", "configuration"].map(|of| {
        entries(&bad(of)).iter().filter(|path| path.extension().is_some_and(|end| end == "expected")).count()
    });
    let all = states + files.iter().sum::<usize>();
    assert!(all >= 250, "{states} states and templates, {files:?} rosters and configurations: {all}");
}
