//! JSON schemas (draft 7, which every editor supports) of the files in `states/`, generated from the tables that check
//! them.

use serde_json::{Map, Value as Json, json};

use super::field;
use super::shared_key::{FILE_KEYS, SHARED_KEYS};
use super::top::ROLES;
use crate::resource::KindSpec;
use crate::resource::fields::field_spec::{FieldSpec, FieldType};

/// The dialect of both.
const DRAFT: &str = "http://json-schema.org/draft-07/schema#";
/// A value that is exactly one expression keeps its type.
const WHOLE: &str = r"^\s*\{\{.*\}\}\s*$";
const STATE_NAME: &str = "^[a-z0-9-]+(/[a-z0-9-]+)*$";
const ID: &str = "^[^:]+:.+$";

/// Of a state file. A schema cannot tell which key of a resource is the first: it accepts a resource of any kind.
pub fn state(kinds: &[KindSpec]) -> Json {
    let resources: Vec<Json> = kinds.iter().map(resource).collect();
    json!({
        "$schema": DRAFT,
        "title": "A state of metalform",
        "type": "object",
        "additionalProperties": false,
        "required": FILE_KEYS.iter().filter(|key| **key != "requires").collect::<Vec<_>>(),
        "properties": {
            "about": {
                "description": "One sentence on the purpose of the state.",
                "type": "string",
                "pattern": r"^[^\n]+\n?$",
            },
            "requires": {
                "description": "States that run before this one.",
                "type": "array",
                "items": { "type": "string", "pattern": STATE_NAME },
            },
            "resources": {
                "description": "The resources of the host, in the order to run.",
                "type": "array",
                "items": { "type": "object", "anyOf": resources },
            },
        },
    })
}

/// Of `states/top.yaml`.
pub fn top() -> Json {
    let role = json!({
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "extends": { "description": "A role whose states run first.", "enum": ROLES },
            "states": {
                "description": "In the order to run.",
                "type": "array",
                "items": { "type": "string", "pattern": STATE_NAME },
            },
        },
    });
    let roles: Map<String, Json> = ROLES.iter().map(|name| ((*name).to_owned(), role.clone())).collect();
    json!({
        "$schema": DRAFT,
        "title": "The states of each role",
        "type": "object",
        "additionalProperties": false,
        "properties": roles,
    })
}

fn resource(kind: &KindSpec) -> Json {
    let mut properties = Map::new();
    for key in &SHARED_KEYS {
        properties.insert(key.name.to_owned(), shared(key.name, key.about));
    }
    for spec in field::all(kind.fields) {
        properties.insert(spec.name.to_owned(), value(spec));
    }
    let name = json!({ "description": kind.about, "type": "string", "minLength": 1 });
    properties.insert(kind.kind.name().to_owned(), name);
    let mut schema = json!({
        "title": kind.kind.name(),
        "required": [kind.kind.name()],
        "properties": properties,
        "additionalProperties": false,
    });
    let required: Vec<Json> = kind.fields.iter().filter(|spec| spec.required).map(self::required).collect();
    if !required.is_empty() {
        // With `ensure: absent` required fields may be left out.
        let absent = json!({ "properties": { "ensure": { "const": "absent" } }, "required": ["ensure"] });
        schema["anyOf"] = json!([absent, { "allOf": required }]);
    }
    schema
}

/// Requires a field, or a template for it.
fn required(spec: &FieldSpec) -> Json {
    let plain = json!({ "required": [spec.name] });
    if spec.name == field::CONTENT {
        return json!({ "anyOf": [plain, { "required": [field::SOURCE] }] });
    }
    plain
}

fn shared(name: &str, about: &str) -> Json {
    let ids = json!({ "type": "array", "items": { "type": "string", "pattern": ID } });
    let mut schema = match name {
        "ensure" => json!({ "enum": ["present", "absent"] }),
        "when" => json!({ "type": "string", "not": { "pattern": r"\{\{" } }),
        "each" => json!({ "anyOf": [
            { "type": "array" },
            { "type": "string", "not": { "pattern": r"\{\{" } },
        ] }),
        "only_if_changed" => json!({ "type": "array", "items": ids["items"], "minItems": 1 }),
        "sensitive" => json!({ "type": "boolean" }),
        _ => ids,
    };
    schema["description"] = about.into();
    schema
}

fn value(spec: &FieldSpec) -> Json {
    let or_expression = |schema: Json| json!({ "anyOf": [schema, { "type": "string", "pattern": WHOLE }] });
    let mut schema = match spec.takes {
        FieldType::String => json!({ "type": "string" }),
        FieldType::Mode => json!({ "type": "string", "pattern": r"^[0-7]{3,4}$|\{\{" }),
        FieldType::Integer => or_expression(json!({ "type": "integer" })),
        FieldType::Boolean => or_expression(json!({ "type": "boolean" })),
        FieldType::StringList => or_expression(json!({ "type": "array", "items": { "type": "string" } })),
        FieldType::StringMap => {
            or_expression(json!({ "type": "object", "additionalProperties": { "type": "string" } }))
        }
        FieldType::Any => json!({}),
    };
    schema["description"] = spec.about.into();
    schema
}
