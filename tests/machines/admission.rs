//! The cases of `admission/`, played with the rules of the definitions. See `admission/README.md`.

use serde_json::Value;

use crate::cases::{Case, Cases, patched};
use crate::definition::Definition;
use crate::sources::{files, read};

fn play(file: &str, base: &Value, case: &Case, wrong: &mut Vec<String>) {
    let object = patched(base, &case.object);
    let stored = case.stored.as_ref().map(|stored| patched(base, stored));
    let definition = Definition::of(base);
    let name = format!("{file}: {}", case.name);
    for unknown in
        [Some(&object), stored.as_ref()].into_iter().flatten().flat_map(|o| definition.unknown_fields(o))
    {
        wrong.push(format!("{name}: unknown field {unknown}"));
    }
    if let Some(kept) = &case.kept {
        let pointer = format!("/{}", kept.replace('.', "/"));
        assert!(object.pointer(&pointer).is_some(), "{name}: there is no field {kept}");
    }
    if case.schema || case.ratcheted {
        return;
    }
    if let Some(stored) = &stored {
        let refusals = definition.refusals(stored, None);
        if !refusals.is_empty() {
            wrong.push(format!("{name}: the stored object is refused: {refusals:?}"));
        }
    }
    let refusals = definition.refusals(&object, stored.as_ref());
    let found = if refusals.is_empty() { "allowed".to_owned() } else { refusals.join("; ") };
    if found != case.expected {
        wrong.push(format!("{name}:\n  expected {}\n  found    {found}", case.expected));
    }
}

#[test]
fn the_rules_allow_and_refuse_what_the_cases_expect() {
    let mut wrong = Vec::new();
    let mut played = 0;
    for path in files("tests/machines/admission", "yaml") {
        let file = path.file_name().unwrap().to_str().unwrap().to_owned();
        let cases: Cases = serde_saphyr::from_str(&read(&path)).unwrap();
        for case in &cases.cases {
            play(&file, &cases.base, case, &mut wrong);
            played += 1;
        }
    }
    assert!(played > 150, "the cases were not read: {played}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Without such a case, nothing shows that a rule is ever evaluated.
#[test]
fn every_rule_refuses_a_case() {
    let text: String = files("tests/machines/admission", "yaml").iter().map(read).collect();
    let definitions = serde_json::to_value(metalform::machine::api::definitions()).unwrap();
    let mut messages = Vec::new();
    collect_messages(&definitions, &mut messages);
    assert!(messages.len() > 40, "the rules were not read");
    let without: Vec<_> =
        messages.iter().filter(|message| !text.contains(&format!(": {message}\""))).collect();
    assert!(without.is_empty(), "{without:#?}");
}

fn collect_messages(schema: &Value, messages: &mut Vec<String>) {
    match schema {
        Value::Object(fields) => {
            for rule in fields.get("x-kubernetes-validations").and_then(Value::as_array).into_iter().flatten()
            {
                messages.push(rule["message"].as_str().unwrap().to_owned());
            }
            fields.values().for_each(|value| collect_messages(value, messages));
        }
        Value::Array(items) => items.iter().for_each(|item| collect_messages(item, messages)),
        _ => {}
    }
}
