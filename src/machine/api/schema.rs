//! Parts of the schemas that types do not express: bounds. Without them the API server takes the cost of a rule to be
//! that of the largest request, and refuses the definition.

use schemars::{Schema, SchemaGenerator, json_schema};

use super::rules;

/// A label value (Kubernetes, `IsValidLabelValue`).
const LABEL_VALUE: &str = "^(([A-Za-z0-9][A-Za-z0-9._-]*)?[A-Za-z0-9])?$";
/// Labels, annotations, label requirements and their values that one object may have.
pub(super) const MOST_ENTRIES: usize = 64;
/// Taints that a Machine may have.
const MOST_TAINTS: usize = 32;
/// The length of a key with its prefix: 253 characters, a slash and 63.
pub(super) const LONGEST_KEY: usize = 317;

/// Labels of a Machine or a selector.
pub(super) fn labels(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "maxProperties": MOST_ENTRIES,
        "additionalProperties": { "type": "string", "maxLength": 63, "pattern": LABEL_VALUE },
    })
}

/// Labels that the Node will have.
pub(super) fn node_labels(generator: &mut SchemaGenerator) -> Schema {
    let mut schema = labels(generator);
    schema.insert(rules::KEY.to_owned(), rules::node_keys("labels"));
    schema
}

/// Annotations, whose values the API server bounds together.
pub(super) fn annotations(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "maxProperties": MOST_ENTRIES,
        "additionalProperties": { "type": "string" },
    })
}

/// Annotations that the Node will have.
pub(super) fn node_annotations(generator: &mut SchemaGenerator) -> Schema {
    let mut schema = annotations(generator);
    schema.insert(rules::KEY.to_owned(), rules::node_keys("annotations"));
    schema
}

/// Taints that the Node will have, at most one for each key and effect.
pub(super) fn taints(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "maxItems": MOST_TAINTS,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["key", "effect"],
        "items": {
            "type": "object",
            "required": ["key", "effect"],
            "properties": {
                "key": { "type": "string", "minLength": 1, "maxLength": LONGEST_KEY },
                "value": { "type": "string", "maxLength": 63, "pattern": LABEL_VALUE },
                "effect": { "type": "string", "enum": ["NoSchedule", "PreferNoSchedule", "NoExecute"] },
            },
        },
        rules::KEY: rules::taints(),
    })
}

/// Parameters of a program.
pub(super) fn parameters(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "maxProperties": MOST_ENTRIES,
        "additionalProperties": { "type": "string", "maxLength": 1024 },
    })
}

/// Values of a label requirement.
pub(super) fn label_values(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "maxItems": MOST_ENTRIES,
        "items": { "type": "string", "maxLength": 63, "pattern": LABEL_VALUE },
    })
}

/// What a clean host does not have.
pub(super) fn residue(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "array", "maxItems": MOST_ENTRIES, "items": { "type": "string", "maxLength": 1024 } })
}

/// Conditions (apimachinery, `metav1.Condition`), one of each type.
pub(super) fn conditions(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "maxItems": 32,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
        "items": {
            "type": "object",
            "required": ["type", "status", "reason", "message", "lastTransitionTime"],
            "properties": {
                "type": { "type": "string", "minLength": 1, "maxLength": 316 },
                "status": { "type": "string", "enum": ["True", "False", "Unknown"] },
                "reason": { "type": "string", "minLength": 1, "maxLength": 1024 },
                "message": { "type": "string", "maxLength": 32768 },
                "lastTransitionTime": { "type": "string", "format": "date-time" },
                "observedGeneration": { "type": "integer", "format": "int64" },
            },
        },
    })
}

/// Addresses of a Node (core/v1, `NodeAddress`).
pub(super) fn node_addresses(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "maxItems": 32,
        "items": {
            "type": "object",
            "required": ["type", "address"],
            "properties": { "type": { "type": "string" }, "address": { "type": "string" } },
        },
    })
}

/// An object of the cluster (core/v1, `ObjectReference`).
pub(super) fn object_reference(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "properties": {
            "apiVersion": { "type": "string" },
            "kind": { "type": "string" },
            "namespace": { "type": "string" },
            "name": { "type": "string" },
            "uid": { "type": "string" },
        },
    })
}

/// Resources by name: quantities from 0.
pub(super) fn capacity(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "maxProperties": 32,
        "additionalProperties": {
            "x-kubernetes-int-or-string": true,
            "pattern": "^[0-9]+([.][0-9]+)?([KMGTPE]i|[mkMGTPE])?$",
        },
    })
}

/// A time.
pub(super) fn time(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "format": "date-time" })
}

/// A time, or `null` as in a template that the API printed.
pub(super) fn nullable_time(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "format": "date-time", "nullable": true })
}

/// A number, or a percentage such as `25%`.
pub(super) fn int_or_string(_: &mut SchemaGenerator) -> Schema {
    // Explicitly: kube makes it nullable otherwise, and null would not be replaced by the default.
    json_schema!({ "x-kubernetes-int-or-string": true, "nullable": false })
}
