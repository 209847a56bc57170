//! The hash of a machine template: the label `machine-template-hash`, and the end of a machine set's name.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::model::api_contract::MACHINE_TEMPLATE_HASH;

/// Bytes of SHA-256 that are kept: ten hexadecimal digits.
const BYTES: usize = 5;

/// Identifies a template. Displays as ten hexadecimal digits, or as the label of an existing set has it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct RevisionHash(String);

impl RevisionHash {
    /// From the label of a machine set.
    pub fn from_label(label: &str) -> Self {
        Self(label.to_owned())
    }

    /// Of `spec.template` of a MachineDeployment: of all of it, so that every change rolls, as `v1alpha1` documents.
    ///
    /// Equal are templates that mean the same to the API: the order of keys does not count, nor does a field that is
    /// null, an empty object or an empty list. `v1.30.3` is the version `1.30.3`. The label [`MACHINE_TEMPLATE_HASH`] is ignored.
    pub fn of_template(template: &Value) -> Self {
        let mut canonical = canonical(template).unwrap_or(Value::Null);
        if let Some(labels) = canonical.pointer_mut("/metadata/labels").and_then(Value::as_object_mut) {
            labels.remove(MACHINE_TEMPLATE_HASH);
        }
        for version in ["/spec/versions/kubelet", "/spec/versions/controlPlane"] {
            if let Some(Value::String(text)) = canonical.pointer_mut(version) {
                *text = normal_version(text).to_owned();
            }
        }
        // What the label leaves behind.
        let canonical = self::canonical(&canonical).unwrap_or(Value::Null);
        let mut text = String::new();
        write(&canonical, &mut text);
        let digest = Sha256::digest(text.as_bytes());
        Self(hex::encode(&digest[..BYTES]))
    }

    /// The value of the label.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RevisionHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Without the leading `v` of a version.
fn normal_version(text: &str) -> &str {
    let digits = text.strip_prefix('v').filter(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    digits.unwrap_or(text)
}

/// Without null, empty objects and empty lists in objects; `None` for one of these.
fn canonical(value: &Value) -> Option<Value> {
    match value {
        Value::Null => None,
        Value::Object(fields) => {
            let fields = fields.iter().filter_map(|(key, value)| Some((key.clone(), canonical(value)?)));
            let fields: serde_json::Map<String, Value> = fields.collect();
            (!fields.is_empty()).then_some(Value::Object(fields))
        }
        // The places in a list count.
        Value::Array(items) => {
            let items: Vec<Value> = items.iter().map(|item| canonical(item).unwrap_or(Value::Null)).collect();
            (!items.is_empty()).then_some(Value::Array(items))
        }
        other => Some(other.clone()),
    }
}

/// JSON without white space, keys in order: `serde_json` keeps the order of insertion if any dependency requests it.
fn write(value: &Value, text: &mut String) {
    match value {
        Value::Object(fields) => {
            text.push('{');
            for (key, value) in fields.iter().collect::<BTreeMap<_, _>>() {
                text.push_str(&Value::from(key.as_str()).to_string());
                text.push(':');
                write(value, text);
                text.push(',');
            }
            text.push('}');
        }
        Value::Array(items) => {
            text.push('[');
            for item in items {
                write(item, text);
                text.push(',');
            }
            text.push(']');
        }
        other => text.push_str(&other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn template() -> Value {
        json!({
            "metadata": { "labels": { "machine": "md-1" } },
            "spec": {
                "metadata": { "labels": { "group": "nodes" } },
                "taints": [{ "key": "a", "value": "1", "effect": "NoSchedule" }],
                "providerSpec": { "value": {
                    "cloudProvider": "metalform",
                    "cloudProviderSpec": { "hostSelector": { "matchLabels": { "rack": "a" } } },
                    "operatingSystem": "ubuntu",
                    "operatingSystemSpec": { "distUpgradeOnBoot": false },
                    "sshPublicKeys": ["ssh-ed25519 AAAA a", "ssh-ed25519 AAAA b"],
                } },
                "versions": { "kubelet": "1.30.3" },
            },
        })
    }

    fn with(pointer: &str, value: Value) -> RevisionHash {
        let mut template = template();
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        template.pointer_mut(parent).unwrap().as_object_mut().unwrap().insert(key.to_owned(), value);
        RevisionHash::of_template(&template)
    }

    #[test]
    fn the_hash_never_changes() {
        // Another value rolls every node of every cluster.
        assert_eq!(RevisionHash::of_template(&template()).as_str(), "c51711069d");
    }

    #[test]
    fn every_change_of_meaning_changes_the_hash() {
        let mut hashes = vec![RevisionHash::of_template(&template())];
        let taint = |value: &str| json!([{ "key": "a", "value": value, "effect": "NoSchedule" }]);
        for (pointer, value) in [
            ("/metadata/labels", json!({ "machine": "md-2" })),
            (
                "/metadata/annotations",
                json!({ "kubectl.kubernetes.io/restartedAt": "2026-11-23T10:00:00.000+0000" }),
            ),
            (
                "/metadata/annotations",
                json!({ "kubectl.kubernetes.io/restartedAt": "2026-11-23T10:00:01.000+0000" }),
            ),
            ("/spec/metadata", json!({ "labels": { "group": "others" } })),
            ("/spec/metadata", json!({ "labels": { "group": "" } })),
            ("/spec/metadata", json!({ "annotations": { "group": "nodes" } })),
            ("/spec/taints", taint("2")),
            ("/spec/taints", json!([])),
            ("/spec/versions/kubelet", json!("1.30.4")),
            ("/spec/versions/kubelet", json!("vv1.30.3")),
            ("/spec/providerSpec/value/operatingSystem", json!("flatcar")),
            ("/spec/providerSpec/value/operatingSystemSpec", json!({ "distUpgradeOnBoot": true })),
            ("/spec/providerSpec/value/operatingSystemSpec", json!({})),
            (
                "/spec/providerSpec/value/cloudProviderSpec",
                json!({ "hostSelector": { "matchLabels": { "rack": "b" } } }),
            ),
            // The order in a list counts.
            ("/spec/providerSpec/value/sshPublicKeys", json!(["ssh-ed25519 AAAA b", "ssh-ed25519 AAAA a"])),
            ("/spec/providerSpec/value/sshPublicKeys", json!(["ssh-ed25519 AAAA a"])),
        ] {
            let hash = with(pointer, value.clone());
            assert!(!hashes.contains(&hash), "{pointer} {value}");
            hashes.push(hash);
        }
    }

    #[test]
    fn what_means_the_same_is_equal() {
        let hash = RevisionHash::of_template(&template());
        for (pointer, value) in [
            ("/metadata/creationTimestamp", json!(null)),
            ("/metadata/annotations", json!({})),
            ("/metadata/labels", json!({ "machine-template-hash": "0123", "machine": "md-1" })),
            (
                "/spec/metadata",
                json!({ "creationTimestamp": null, "labels": { "group": "nodes" }, "annotations": {} }),
            ),
            ("/spec/versions/kubelet", json!("v1.30.3")),
            ("/spec/configSource", json!(null)),
            ("/spec/providerSpec/value/network", json!({ "dns": { "servers": [] } })),
        ] {
            assert_eq!(with(pointer, value.clone()), hash, "{pointer} {value}");
        }
        let text = r#"{"a":1,"b":{"d":"x","c":[true]}}"#;
        let other = r#"{ "b": { "c": [true], "d": "x" }, "a": 1 }"#;
        let of = |text: &str| RevisionHash::of_template(&serde_json::from_str(text).unwrap());
        assert_eq!(of(text), of(other));
    }

    #[test]
    fn a_label_with_nothing_else_is_no_label() {
        let labelled =
            json!({ "metadata": { "labels": { MACHINE_TEMPLATE_HASH: "0123" } }, "spec": { "a": 1 } });
        assert_eq!(
            RevisionHash::of_template(&labelled),
            RevisionHash::of_template(&json!({ "spec": { "a": 1 } }))
        );
    }
}
