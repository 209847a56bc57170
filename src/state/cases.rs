//! The cases of `tests/state/good` and `tests/bad/state`: each directory is a small flat tree (`*.yaml` are states, `*.j2`
//! templates), with the result in `expected`. Without `top.yaml` the role `node` has all states. With `values.json` the
//! tree is compiled for a node with these values, else only checked.
//!
//! `UPDATE_EXPECTED=1 cargo test --lib state` rewrites `expected`; read the diff before you keep it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use super::{Compiled, Ensure, Library, Shapes, StateError, Tree, check, compile};
use crate::render::{Value, values_of};
use crate::resource::KindSpec;
use crate::resource::contract::kind::Kind;
use crate::resource::fields::field_spec::{FieldSpec, FieldType};

const fn field(name: &'static str, takes: FieldType) -> FieldSpec {
    FieldSpec::optional(name, takes, "")
}

const fn required(name: &'static str, takes: FieldType) -> FieldSpec {
    FieldSpec::required(name, takes, "")
}

const fn kind(kind: Kind, fields: &'static [FieldSpec]) -> KindSpec {
    KindSpec { kind, about: "", fields }
}

/// Kinds with a field of every type. Their fields are not those of metalform, so that these cases do not change with
/// them.
const KINDS: &[KindSpec] = &[
    kind(Kind::Package, &[field("version", FieldType::String), field("hold", FieldType::Boolean)]),
    kind(Kind::File, &[required("content", FieldType::String), field("mode", FieldType::Mode)]),
    kind(Kind::Template, &[required("source", FieldType::String), field("mode", FieldType::Mode)]),
    kind(
        Kind::Service,
        &[
            field("enabled", FieldType::Boolean),
            field("restart_when_changed", FieldType::StringList),
            field("reload_when_changed", FieldType::StringList),
        ],
    ),
    kind(Kind::Command, &[field("unless", FieldType::String)]),
    kind(
        Kind::Certificate,
        &[
            required("issued_by", FieldType::String),
            field("sans", FieldType::StringList),
            field("days", FieldType::Integer),
        ],
    ),
    kind(
        Kind::StaticPod,
        &[
            required("source", FieldType::String),
            field("labels", FieldType::StringMap),
            field("restart_when_changed", FieldType::StringList),
        ],
    ),
    kind(Kind::Sysctl, &[required("value", FieldType::Any)]),
];

struct Case {
    folder: PathBuf,
    tree: Tree,
    values: Option<Value>,
}

impl Case {
    fn all(of: &str) -> Vec<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(of);
        let mut folders: Vec<_> =
            std::fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path()).collect();
        folders.sort();
        folders.into_iter().map(Self::read).collect()
    }

    fn read(folder: PathBuf) -> Self {
        let mut tree = Tree::default();
        let mut values = None;
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            let bytes = std::fs::read(&path).unwrap();
            match name.as_str() {
                "expected" => {}
                "values.json" => {
                    values = Some(values_of(&serde_json::from_slice::<serde_json::Value>(&bytes).unwrap()));
                }
                _ if name.ends_with(".j2") => tree.insert(&format!("templates/{name}"), bytes),
                _ => tree.insert(&format!("states/{name}"), bytes),
            }
        }
        if !tree.states.contains_key("top.yaml") {
            let names: Vec<_> = tree.states.keys().filter_map(|name| name.strip_suffix(".yaml")).collect();
            let top = format!("node: {{ states: [{}] }}\n", names.join(", "));
            tree.states.insert("top.yaml".to_owned(), top);
        }
        Self { folder, tree, values }
    }

    fn outcome(&self) -> Result<Vec<Compiled>, Vec<StateError>> {
        let errors = check(&self.tree, KINDS, &Shapes::of_any_host());
        match &self.values {
            Some(values) if errors.is_empty() => {
                let library = Library::read(&self.tree)?;
                compile(&library, &library.states_of(&["node"])?, KINDS, values)
            }
            _ if errors.is_empty() => Ok(Vec::new()),
            _ => Err(errors),
        }
    }

    /// What differs from `expected`.
    fn difference(&self, actual: &str) -> Option<String> {
        let path = self.folder.join("expected");
        if std::env::var_os("UPDATE_EXPECTED").is_some() {
            std::fs::write(path, actual).unwrap();
            return None;
        }
        let expected = std::fs::read_to_string(path).unwrap_or_default();
        (expected != actual)
            .then(|| format!("{}\nexpected:\n{expected}actual:\n{actual}", self.folder.display()))
    }
}

fn show(outcome: &Result<Vec<Compiled>, Vec<StateError>>) -> String {
    let mut text = String::new();
    match outcome {
        Ok(resources) => resources.iter().for_each(|resource| show_resource(&mut text, resource)),
        Err(errors) => {
            for error in errors {
                writeln!(text, "{error}").unwrap();
                error.hint().iter().for_each(|hint| writeln!(text, "  hint: {hint}").unwrap());
            }
        }
    }
    text
}

fn show_resource(text: &mut String, resource: &Compiled) {
    let Compiled { id, fields, ensure, sensitive, only_if_changed, after, source, state, places: _ } =
        resource;
    writeln!(text, "{id} of {state} at {source}").unwrap();
    for (name, value) in fields.iter().collect::<BTreeMap<_, _>>() {
        writeln!(text, "  {name}: {value}").unwrap();
    }
    let ids = |ids: &[super::ResourceId]| ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let shared = [
        ("only_if_changed", ids(only_if_changed)),
        ("after", ids(after)),
        ("absent", if *ensure == Ensure::Absent { "yes".to_owned() } else { String::new() }),
        ("sensitive", if *sensitive { "yes".to_owned() } else { String::new() }),
    ];
    for (name, value) in shared.iter().filter(|(_, value)| !value.is_empty()) {
        writeln!(text, "  {name} = {value}").unwrap();
    }
}

fn assert_all(of: &str, right: fn(&Result<Vec<Compiled>, Vec<StateError>>) -> bool) {
    let cases = Case::all(of);
    assert!(!cases.is_empty(), "there are no cases in tests/{of}");
    let differences: Vec<_> = cases
        .iter()
        .filter_map(|case| {
            let outcome = case.outcome();
            let shown = show(&outcome);
            assert!(right(&outcome), "{} does not belong in {of}:\n{shown}", case.folder.display());
            case.difference(&shown)
        })
        .collect();
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[test]
fn faults_are_reported_with_location_and_hint() {
    assert_all("bad/state", |outcome| outcome.is_err());
}

#[test]
fn valid_trees_compile_to_the_expected_resources() {
    assert_all("state/good", |outcome| outcome.is_ok());
}
