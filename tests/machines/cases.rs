//! The cases of `admission/`, as `admission/README.md` describes them.

use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cases {
    pub base: Value,
    pub cases: Vec<Case>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    pub name: String,
    pub object: Value,
    pub stored: Option<Value>,
    pub expected: String,
    /// Refused by the schema, which is not played here.
    #[serde(default)]
    pub schema: bool,
    /// Allowed because the invalid value is the stored one, which is not played here.
    #[serde(default)]
    pub ratcheted: bool,
    /// A field that is not in the schema, and is stored.
    pub kept: Option<String>,
}

/// A JSON merge patch (RFC 7386).
pub fn patched(base: &Value, patch: &Value) -> Value {
    let Value::Object(fields) = patch else { return patch.clone() };
    let mut object = base.as_object().cloned().unwrap_or_default();
    for (name, value) in fields {
        match value {
            Value::Null => object.remove(name),
            value => {
                let before = object.get(name).cloned().unwrap_or_default();
                object.insert(name.clone(), patched(&before, value))
            }
        };
    }
    object.into()
}
