//! Which template a rollback restores, and how it is written.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::revision_hash::RevisionHash;
use crate::model::api_contract::MACHINE_TEMPLATE_HASH;

/// The template of a MachineSet.
#[derive(Debug, Clone, PartialEq)]
pub struct TemplateRevision {
    /// Annotation `machinedeployment.clusters.k8s.io/revision`; 0 without one.
    pub revision: u64,
    /// `spec.template`.
    pub template: Value,
}

/// What a rollback does.
#[derive(Debug, Clone, PartialEq)]
pub enum Rollback {
    /// The template is that of this revision already.
    Unchanged(u64),
    /// A merge patch (RFC 7386) of the template makes it that of the revision.
    Patch {
        /// Restored.
        revision: u64,
        /// Of `spec.template`.
        patch: Value,
    },
}

/// Why there is nothing to restore.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RollbackError {
    /// No MachineSet has this revision.
    #[error("revision {revision} is not kept; those that are kept: {}", list(kept))]
    Unknown {
        /// Requested.
        revision: u64,
        /// Of the MachineSets.
        kept: BTreeSet<u64>,
    },
    /// There is no other template.
    #[error("no earlier revision is kept")]
    NoEarlier,
}

fn list(revisions: &BTreeSet<u64>) -> String {
    match revisions.iter().map(ToString::to_string).collect::<Vec<_>>() {
        none if none.is_empty() => "none".to_owned(),
        some => some.join(", "),
    }
}

/// The template of revision `to`, or of the latest one with another template (as in Kubernetes, `rollout undo`).
///
/// # Errors
/// When no MachineSet has it.
pub fn rollback(
    template: &Value,
    sets: &[TemplateRevision],
    to: Option<u64>,
) -> Result<Rollback, RollbackError> {
    let present = RevisionHash::of_template(template);
    let numbered = || sets.iter().filter(|set| set.revision > 0);
    let set = match to {
        Some(revision) => numbered().find(|set| set.revision == revision).ok_or_else(|| {
            RollbackError::Unknown { revision, kept: numbered().map(|set| set.revision).collect() }
        })?,
        None => numbered()
            .filter(|set| RevisionHash::of_template(&set.template) != present)
            .max_by_key(|set| set.revision)
            .ok_or(RollbackError::NoEarlier)?,
    };
    if RevisionHash::of_template(&set.template) == present {
        return Ok(Rollback::Unchanged(set.revision));
    }
    let mut restored = set.template.clone();
    if let Some(labels) = restored.pointer_mut("/metadata/labels").and_then(Value::as_object_mut) {
        labels.remove(MACHINE_TEMPLATE_HASH);
    }
    Ok(Rollback::Patch { revision: set.revision, patch: merge_patch(template, &restored) })
}

/// The patch that makes `from` into `to`: what only `from` has is null in it, lists are replaced.
fn merge_patch(from: &Value, to: &Value) -> Value {
    let (Value::Object(from), Value::Object(to)) = (from, to) else { return to.clone() };
    let removed = from.keys().filter(|key| !to.contains_key(*key)).map(|key| (key.clone(), Value::Null));
    let changed = to.iter().filter(|(key, value)| from.get(*key) != Some(value)).map(|(key, value)| {
        let before = from.get(key).cloned().unwrap_or_else(|| Value::Object(Map::new()));
        (key.clone(), merge_patch(&before, value))
    });
    Value::Object(removed.chain(changed).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn template(kubelet: &str, labels: Value) -> Value {
        json!({ "metadata": { "labels": labels }, "spec": { "versions": { "kubelet": kubelet } } })
    }

    /// Templates whose kubelet is `1.35.REVISION`, as MachineSets have them.
    fn sets(revisions: &[u64]) -> Vec<TemplateRevision> {
        let set = |revision: &u64| TemplateRevision {
            revision: *revision,
            template: template(&format!("1.35.{revision}"), json!({ "a": "b", MACHINE_TEMPLATE_HASH: "0" })),
        };
        revisions.iter().map(set).collect()
    }

    #[test]
    fn the_latest_other_template_is_restored() {
        for (present, kept, to, expected) in [
            ("1.35.3", &[1, 2, 3][..], None, "2"),
            ("1.35.3", &[3, 1, 2], None, "2"),
            // A rollback that the controllers have not seen yet is undone by the next one.
            ("1.35.2", &[1, 2, 3], None, "3"),
            // No MachineSet has the present template yet.
            ("1.35.9", &[1, 2, 3], None, "3"),
            ("1.35.3", &[3], None, "no earlier revision is kept"),
            ("1.35.3", &[], None, "no earlier revision is kept"),
            ("1.35.3", &[0, 3], None, "no earlier revision is kept"),
            ("1.35.3", &[1, 2, 3], Some(1), "1"),
            ("1.35.3", &[1, 2, 3], Some(3), "3 unchanged"),
            ("v1.35.3", &[1, 2, 3], Some(3), "3 unchanged"),
            ("1.35.3", &[1, 3], Some(2), "revision 2 is not kept; those that are kept: 1, 3"),
            ("1.35.3", &[], Some(2), "revision 2 is not kept; those that are kept: none"),
            ("1.35.3", &[0], Some(0), "revision 0 is not kept; those that are kept: none"),
        ] {
            let found = match rollback(&template(present, json!({ "a": "b" })), &sets(kept), to) {
                Ok(Rollback::Patch { revision, patch }) => {
                    let expected =
                        json!({ "spec": { "versions": { "kubelet": format!("1.35.{revision}") } } });
                    assert_eq!(patch, expected, "without the hash");
                    revision.to_string()
                }
                Ok(Rollback::Unchanged(revision)) => format!("{revision} unchanged"),
                Err(error) => error.to_string(),
            };
            assert_eq!(found, expected, "{present} {kept:?} {to:?}");
        }
    }

    #[test]
    fn a_patch_removes_what_the_restored_template_does_not_have() {
        for (from, to, expected) in [
            (json!({}), json!({}), json!({})),
            (json!({ "a": 1, "b": 2 }), json!({ "a": 1 }), json!({ "b": null })),
            (
                json!({ "a": { "x": 1, "y": 2 } }),
                json!({ "a": { "x": 3 } }),
                json!({ "a": { "x": 3, "y": null } }),
            ),
            (json!({ "a": { "x": 1 } }), json!({ "a": 1 }), json!({ "a": 1 })),
            (json!({ "a": 1 }), json!({ "a": { "x": 1 } }), json!({ "a": { "x": 1 } })),
            (json!({ "a": [1, 2] }), json!({ "a": [2] }), json!({ "a": [2] })),
            (json!({}), json!({ "a": { "x": { "y": 1 } } }), json!({ "a": { "x": { "y": 1 } } })),
        ] {
            assert_eq!(merge_patch(&from, &to), expected, "{from} {to}");
        }
    }
}
