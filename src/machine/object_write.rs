//! Writes to the API as values: decided from what was observed, carried out by the controllers.

use std::fmt;

use k8s_openapi::api::core::v1::Node;
use kube::{Resource, ResourceExt};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::api::host::HostObject;
use super::api::machine::Machine;
use super::api::machine_deployment::MachineDeployment;
use super::api::machine_set::MachineSet;

/// One write of an object. All but a creation, and the deletion of a Node, apply to the version that was observed, and
/// conflict with any other.
#[derive(Debug, Clone, PartialEq)]
pub enum ObjectWrite<K> {
    /// Its name is set, so that creating it twice conflicts.
    Create(Box<K>),
    /// A merge patch (RFC 7386) that contains the UID and the resource version.
    Patch {
        /// `metadata.name`.
        name: String,
        /// What changes.
        patch: Value,
    },
    /// The same for the subresource `status`.
    PatchStatus {
        /// `metadata.name`.
        name: String,
        /// What changes.
        patch: Value,
    },
    /// A deletion whose finalizers decide what happens first.
    Delete {
        /// `metadata.name`.
        name: String,
        /// `metadata.uid`, a precondition.
        uid: Option<String>,
        /// `metadata.resourceVersion`, a precondition; `None` for a Node, which its kubelet may have changed.
        version: Option<String>,
    },
}

/// A write of one of the kinds. Displays as `create machineset/NAME`.
#[derive(Debug, Clone, PartialEq)]
pub enum MachineWrite {
    /// Of a MachineDeployment.
    Deployment(ObjectWrite<MachineDeployment>),
    /// Of a MachineSet.
    Set(ObjectWrite<MachineSet>),
    /// Of a Machine.
    Machine(ObjectWrite<Machine>),
    /// Of a Host.
    Host(ObjectWrite<HostObject>),
    /// Of a Node.
    Node(ObjectWrite<Node>),
}

impl<K: Resource<DynamicType = ()>> ObjectWrite<K> {
    /// Adds `metadata` (without UID and version) and other fields to the object as it was observed.
    pub fn patch(object: &K, metadata: Map<String, Value>, mut fields: Map<String, Value>) -> Self {
        let mut all = identity(object);
        all.extend(metadata);
        fields.insert("metadata".to_owned(), Value::Object(all));
        Self::Patch { name: object.name_any(), patch: Value::Object(fields) }
    }

    /// Replaces a status, if the new one differs. Fields that the new one does not have are removed.
    pub fn status<S: Serialize>(object: &K, old: Option<&S>, new: &S) -> Option<Self> {
        let fields = |status: &S| match serde_json::to_value(status) {
            Ok(Value::Object(fields)) => fields,
            _ => Map::new(),
        };
        let (old, mut new) = (old.map(fields), fields(new));
        if old.as_ref() == Some(&new) {
            return None;
        }
        for key in old.into_iter().flat_map(|old| old.into_iter().map(|(key, _)| key)) {
            new.entry(key).or_insert(Value::Null);
        }
        let patch = json!({ "metadata": identity(object), "status": new });
        Some(Self::PatchStatus { name: object.name_any(), patch })
    }

    /// Deletes the object as it was observed.
    pub fn delete(object: &K) -> Self {
        Self::Delete { name: object.name_any(), uid: object.uid(), version: object.resource_version() }
    }

    /// `create`, `patch`, `delete`.
    pub fn verb(&self) -> &'static str {
        match self {
            Self::Create(_) => "create",
            Self::Patch { .. } => "patch",
            Self::PatchStatus { .. } => "patch status of",
            Self::Delete { .. } => "delete",
        }
    }

    /// `machineset/NAME`.
    pub fn object(&self) -> String {
        let name = match self {
            Self::Create(object) => object.name_any(),
            Self::Patch { name, .. } | Self::PatchStatus { name, .. } | Self::Delete { name, .. } => {
                name.clone()
            }
        };
        format!("{}/{name}", K::kind(&()).to_lowercase())
    }
}

/// What makes a patch one of this object in this version.
fn identity<K: Resource<DynamicType = ()>>(object: &K) -> Map<String, Value> {
    let identity = [("uid", object.uid()), ("resourceVersion", object.resource_version())];
    identity.into_iter().map(|(key, value)| (key.to_owned(), json!(value))).collect()
}

impl fmt::Display for MachineWrite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (verb, object) = match self {
            Self::Deployment(write) => (write.verb(), write.object()),
            Self::Set(write) => (write.verb(), write.object()),
            Self::Machine(write) => (write.verb(), write.object()),
            Self::Host(write) => (write.verb(), write.object()),
            Self::Node(write) => (write.verb(), write.object()),
        };
        write!(f, "{verb} {object}")
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

    use super::*;
    use crate::machine::api::machine_set::{MachineSetError, MachineSetSpec, MachineSetStatus};

    fn set() -> MachineSet {
        let spec: MachineSetSpec = serde_json::from_value(json!({
            "selector": {}, "template": { "metadata": {}, "spec": {
                "providerSpec": { "value": {} }, "versions": { "kubelet": "1.35.4" } } },
        }))
        .unwrap();
        let metadata = ObjectMeta {
            name: Some("s".to_owned()),
            uid: Some("u".to_owned()),
            resource_version: Some("7".to_owned()),
            ..ObjectMeta::default()
        };
        MachineSet { metadata, spec, status: None }
    }

    #[test]
    fn a_status_is_written_if_it_differs() {
        let empty = MachineSetStatus::default();
        let failed = MachineSetStatus {
            error_reason: Some(MachineSetError::InvalidConfiguration),
            replicas: 2,
            ..empty.clone()
        };
        assert_eq!(ObjectWrite::status(&set(), Some(&failed), &failed), None);
        let Some(ObjectWrite::PatchStatus { name, patch }) =
            ObjectWrite::status(&set(), Some(&failed), &empty)
        else {
            panic!("it differs");
        };
        assert_eq!(name, "s");
        assert_eq!(patch["metadata"], json!({ "uid": "u", "resourceVersion": "7" }));
        assert_eq!(patch["status"]["replicas"], json!(0));
        assert_eq!(patch["status"].get("errorReason"), Some(&Value::Null), "it is removed");
        assert!(ObjectWrite::status(&set(), None, &empty).is_some(), "an object without a status gets one");
    }

    #[test]
    fn writes_are_displayed_with_their_object() {
        let write = MachineWrite::Set(ObjectWrite::delete(&set()));
        assert_eq!(write.to_string(), "delete machineset/s");
        let expected = ObjectWrite::Delete {
            name: "s".to_owned(),
            uid: Some("u".to_owned()),
            version: Some("7".to_owned()),
        };
        assert_eq!(write, MachineWrite::Set(expected));
    }
}
