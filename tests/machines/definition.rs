//! What the API server does with the definition of a kind, as far as it can be done without one.

use kube_cel::{Validator, apply_defaults};
use metalform::machine::api::definitions;
use serde_json::Value;

pub struct Definition {
    schema: Value,
}

impl Definition {
    /// Of the kind of an object.
    pub fn of(object: &Value) -> Self {
        let kind = object["kind"].as_str().unwrap();
        let definitions = definitions();
        let found = definitions.iter().find(|one| one.spec.names.kind == kind).unwrap();
        let version = &found.spec.versions[0];
        assert_eq!(object["apiVersion"], format!("{}/{}", found.spec.group, version.name).as_str());
        let schema = version.schema.as_ref().unwrap().open_api_v3_schema.as_ref().unwrap();
        Self { schema: serde_json::to_value(schema).unwrap() }
    }

    /// The object with the defaults of the schema.
    pub fn defaulted(&self, object: &Value) -> Value {
        apply_defaults(&self.schema, object)
    }

    /// The fields that the API server would remove, and kubectl refuses.
    pub fn unknown_fields(&self, object: &Value) -> Vec<String> {
        let mut found = Vec::new();
        let fields = object.as_object().unwrap().iter();
        for (name, value) in
            fields.filter(|(name, _)| !["apiVersion", "kind", "metadata"].contains(&name.as_str()))
        {
            unknown_fields(&self.schema["properties"][name], value, name, &mut found);
        }
        found
    }

    /// The rules that refuse an object, each as `FIELD: MESSAGE`. `stored` is `None` for an object that is created.
    pub fn refusals(&self, object: &Value, stored: Option<&Value>) -> Vec<String> {
        let (object, stored) = (self.defaulted(object), stored.map(|stored| self.defaulted(stored)));
        let result = Validator::new().validate(&self.schema, &object, stored.as_ref());
        let errors = result.err().map(|errors| errors.into_vec()).unwrap_or_default();
        // The API server writes `spec` for the field path `.spec` of a rule.
        errors.iter().map(|error| error.to_string().trim_start_matches('.').to_owned()).collect()
    }
}

fn unknown_fields(schema: &Value, value: &Value, path: &str, found: &mut Vec<String>) {
    if schema.is_null() {
        found.push(path.to_owned());
        return;
    }
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let path = format!("{path}.{name}");
                let of_map = &schema["additionalProperties"];
                match &schema["properties"][name] {
                    Value::Null if !of_map.is_null() => unknown_fields(of_map, value, &path, found),
                    Value::Null if schema["x-kubernetes-preserve-unknown-fields"] == true => {}
                    property => unknown_fields(property, value, &path, found),
                }
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                unknown_fields(&schema["items"], item, &format!("{path}[{index}]"), found);
            }
        }
        _ => {}
    }
}
