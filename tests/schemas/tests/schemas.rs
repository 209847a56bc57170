//! The JSON schemas accept every valid file, and refuse most of the invalid ones.
//!
//! `METALFORM` names the binary whose schemas these are; `make unit` sets it.

use std::path::{Path, PathBuf};
use std::process::Command;

use jsonschema::Validator;
use serde_json::Value;

fn metalform(arguments: &[&str]) -> String {
    let binary = std::env::var_os("METALFORM").expect("METALFORM names the binary");
    let output = Command::new(binary).args(arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn validator(of: &str) -> Validator {
    let schema = serde_json::from_str(&metalform(&["docs", "schema", of])).unwrap();
    jsonschema::draft7::new(&schema).unwrap()
}

fn top(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

/// YAML as editors read it; `None` where it does not parse.
fn read(bytes: &[u8]) -> Option<Value> {
    let text = std::str::from_utf8(bytes).ok()?;
    serde_saphyr::from_str_with_options(text, serde_saphyr::options! { strict_booleans: true }).ok()
}

/// Every file below a directory whose name has this end.
fn files(folder: &str, ends: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![top(folder)];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.to_string_lossy().ends_with(ends) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

fn assert_valid(validator: &Validator, name: &str, file: &Value) {
    let faults: Vec<String> = validator.iter_errors(file).map(|error| error.to_string()).collect();
    assert_eq!(faults, Vec::<String>::new(), "{name}");
}

#[test]
fn shipped_and_documented_files_are_valid() {
    let (state, roles) = (validator("state"), validator("top"));
    for path in [files("states", ".yaml"), files("benches/engines/metalform/states", ".yaml")].concat() {
        let validator = if path.ends_with("top.yaml") { &roles } else { &state };
        assert_valid(validator, &path.display().to_string(), &read(&std::fs::read(&path).unwrap()).unwrap());
    }
    // The first example of the reference is a state, the others are resources.
    let page = metalform(&["docs", "kinds"]);
    let examples: Vec<&str> = page
        .split("```yaml\n")
        .skip(1)
        .filter_map(|part| part.split_once("```"))
        .map(|(yaml, _)| yaml)
        .collect();
    assert!(examples.len() > 16, "{}", examples.len());
    for example in examples {
        let text = if example.starts_with("- ") {
            let resource: String = example.lines().map(|line| format!("  {line}\n")).collect();
            format!("about: An example.\nresources:\n{resource}")
        } else {
            example.to_owned()
        };
        assert_valid(&state, &text, &read(text.as_bytes()).unwrap());
    }
    for (of, paths) in
        [("roster", files("roster", ".yaml")), ("configuration", files("tests/config/good", ".yaml"))]
    {
        let validator = validator(of);
        for path in paths {
            assert_valid(
                &validator,
                &path.display().to_string(),
                &read(&std::fs::read(&path).unwrap()).unwrap(),
            );
        }
    }
    let readme = std::fs::read_to_string(top("README.md")).unwrap();
    let mut shown = readme.split("```yaml\n").skip(1).filter_map(|part| Some(part.split_once("```")?.0));
    let configuration = shown.find(|text| text.contains("BootstrapConfiguration")).unwrap();
    assert_valid(&validator("configuration"), "README.md", &read(configuration.as_bytes()).unwrap());
}

/// `not-seen` lists the invalid files that the schemas accept: wrong names, addresses, networks, expressions, references
/// and templates. A schema that accepts more changes the list.
#[test]
fn most_invalid_files_are_refused() {
    let mut taken = Vec::new();
    let mut refused = 0;
    for (of, folder) in [("state", "state"), ("roster", "roster"), ("configuration", "configuration")] {
        let validators = [validator(of), validator("top")];
        for path in files(&format!("tests/bad/{folder}"), ".yaml") {
            let Some(file) = read(&std::fs::read(&path).unwrap()) else { continue };
            let validator = &validators[usize::from(path.ends_with("top.yaml"))];
            if validator.is_valid(&file) {
                taken.push(path.strip_prefix(top("tests/bad")).unwrap().display().to_string());
            } else {
                refused += 1;
            }
        }
    }
    let shown = taken.iter().map(|path| format!("{path}\n")).collect::<String>();
    let expected = top("tests/schemas/not-seen");
    if std::env::var_os("UPDATE_EXPECTED").is_some() {
        std::fs::write(&expected, &shown).unwrap();
    }
    assert!(refused >= 90, "{refused}");
    assert_eq!(shown, std::fs::read_to_string(expected).unwrap_or_default());
}
