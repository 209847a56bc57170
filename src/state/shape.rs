//! The fields of values, as far as they are the same on every host.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde_json::Value as Json;

use crate::model::facts::Facts;
use crate::model::near::Near;

/// The JSON schemas of the known roots. Of other roots every field is accepted.
#[derive(Debug, Clone, Default)]
pub struct Shapes(BTreeMap<&'static str, Json>);

impl Shapes {
    /// `facts` alone is known: the `vars` of a roster have any fields.
    pub fn of_any_host() -> Self {
        Self::default().with::<Facts>("facts")
    }

    /// Adds a root.
    #[must_use]
    pub fn with<T: JsonSchema>(mut self, root: &'static str) -> Self {
        self.0.insert(root, schemars::schema_for!(T).to_value());
        self
    }

    /// Whether the fields of a root are known.
    pub fn has(&self, root: &str) -> bool {
        self.0.contains_key(root)
    }

    /// The path up to the first field that does not exist, and the field that may have been meant.
    pub(super) fn unknown(&self, path: &str) -> Option<(String, Near)> {
        let mut words = path.split('.');
        let root = words.next()?;
        let document = self.0.get(root)?;
        let mut schema = document;
        let mut known = root.to_owned();
        for word in words {
            schema = resolved(document, schema);
            if let Some(fields) = schema.get("properties").and_then(Json::as_object) {
                let Some(field) = fields.get(word) else {
                    let near = Near::to(word, fields.keys().map(String::as_str));
                    return Some((format!("{known}.{word}"), near));
                };
                schema = field;
            } else {
                schema = schema.get("additionalProperties")?;
            }
            known = format!("{known}.{word}");
        }
        None
    }
}

/// The schema that a reference, or a choice with null, resolves to.
fn resolved<'a>(document: &'a Json, schema: &'a Json) -> &'a Json {
    let choices = schema.get("anyOf").and_then(Json::as_array);
    let schema =
        choices.and_then(|choices| choices.iter().find(|one| one.get("$ref").is_some())).unwrap_or(schema);
    let name = schema.get("$ref").and_then(Json::as_str).and_then(|path| path.strip_prefix("#/$defs/"));
    name.and_then(|name| document.get("$defs")?.get(name)).unwrap_or(schema)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_that_facts_do_not_have_is_unknown() {
        let shapes = Shapes::of_any_host();
        for known in [
            "facts",
            "facts.os.family",
            "facts.addresses.eth0",
            "facts.hostname.upper",
            "cluster.anything.at.all",
        ] {
            assert_eq!(shapes.unknown(known), None, "{known}");
        }
        let message = |path| shapes.unknown(path).map(|(value, near)| format!("{value}{near}"));
        assert_eq!(message("facts.os.famly.x").as_deref(), Some("facts.os.famly; did you mean \"family\"?"));
        assert_eq!(message("facts.virtual").as_deref(), Some("facts.virtual"));
    }
}
