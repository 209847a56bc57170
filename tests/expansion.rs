//! What operations do, as scripts: `expansion/<name>.txt` has hosts, then commands that an operator could
//! have typed and things that happen to machines, each followed by what comes of it. `UPDATE_EXPECTED=1` rewrites them.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "all of it is test code; clippy knows only test functions"
)]

#[path = "expansion/script.rs"]
mod script;
#[expect(dead_code, reason = "tests/simulation.rs uses the rest")]
mod support;

use std::path::{Path, PathBuf};

fn scripts() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/expansion");
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "txt"));
    paths.sort();
    paths
}

#[test]
fn every_script_goes_as_it_is_written() {
    let mut differing = Vec::new();
    let scripts = scripts();
    assert!(scripts.len() > 10, "the scripts were not found");
    for path in scripts {
        let written = std::fs::read_to_string(&path).unwrap();
        let happened = script::play(&written);
        if written == happened {
            continue;
        }
        if std::env::var_os("UPDATE_EXPECTED").is_some() {
            std::fs::write(&path, happened).unwrap();
        } else {
            let name = path.file_name().unwrap().display().to_string();
            let difference = similar::TextDiff::from_lines(&written, &happened);
            differing.push(format!("{name}\n{}", difference.unified_diff().header("written", "happened")));
        }
    }
    assert!(differing.is_empty(), "{}", differing.join("\n"));
}
