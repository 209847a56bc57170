//! Who controls an object, and how far its deletion is (Kubernetes, `ControllerRefManager` and garbage collector).

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::{Resource, ResourceExt};
use serde_json::{Map, Value, json};

use super::api::label_selector::LabelSelector;
use super::object_write::ObjectWrite;
use crate::model::api_contract::FOREGROUND_DELETION;

/// The relation of an object to a controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ownership {
    /// It is controlled by it, whatever its labels: a Machine holds a host until it is gone.
    Own,
    /// No object controls it, its labels match, and it is not being deleted: it is to be adopted.
    Orphan,
    /// It is none of its objects.
    Foreign,
}

/// How far the deletion of a controller is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lifecycle {
    /// It is not being deleted; it has the finalizer that lets its objects go first, or not yet.
    Living {
        /// The finalizer.
        protected: bool,
    },
    /// It is being deleted after its objects.
    Foreground,
    /// It is being deleted without regard to its objects, which are orphaned or left to the garbage collector.
    Leaving,
}

/// A reference by which `owner` controls an object, and which delays its foreground deletion. `None` for an owner that
/// has no name or UID, which the API never returns.
pub fn controller_reference(owner: &impl Resource<DynamicType = ()>) -> Option<OwnerReference> {
    let reference = owner.controller_owner_ref(&())?;
    Some(OwnerReference { block_owner_deletion: Some(true), ..reference })
}

/// The relation of `object` to the controller with this UID. An empty selector matches nothing.
pub fn ownership(object: &impl ResourceExt, owner_uid: &str, selector: &LabelSelector) -> Ownership {
    let mut controllers = object.owner_references().iter().filter(|one| one.controller == Some(true));
    match controllers.next() {
        Some(controller) if controller.uid == owner_uid => Ownership::Own,
        Some(_) => Ownership::Foreign,
        None if object.meta().deletion_timestamp.is_some() => Ownership::Foreign,
        None if !selector.is_empty() && selector.matches(object.labels()) => Ownership::Orphan,
        None => Ownership::Foreign,
    }
}

/// Makes `owner` the controller of an orphan, in the version that was observed.
pub fn adopt<K: Resource<DynamicType = ()>>(
    orphan: &K,
    owner: &impl Resource<DynamicType = ()>,
) -> Option<ObjectWrite<K>> {
    let reference = controller_reference(owner)?;
    let others = orphan.owner_references().iter().filter(|one| one.uid != reference.uid).cloned();
    let references: Vec<OwnerReference> = others.chain([reference.clone()]).collect();
    Some(ObjectWrite::patch(orphan, fields("ownerReferences", json!(references)), Map::new()))
}

/// How far the deletion of `object` is.
pub fn lifecycle(object: &impl ResourceExt) -> Lifecycle {
    let protected = object.finalizers().iter().any(|one| one == FOREGROUND_DELETION);
    match (&object.meta().deletion_timestamp, protected) {
        (None, protected) => Lifecycle::Living { protected },
        (Some(_), true) => Lifecycle::Foreground,
        (Some(_), false) => Lifecycle::Leaving,
    }
}

/// Adds the finalizer that lets the objects of `object` go first.
pub fn protect<K: Resource<DynamicType = ()>>(object: &K) -> ObjectWrite<K> {
    let finalizers = object.finalizers().iter().map(String::as_str).chain([FOREGROUND_DELETION]);
    let finalizers: Vec<&str> = finalizers.collect();
    ObjectWrite::patch(object, fields("finalizers", json!(finalizers)), Map::new())
}

/// Removes that finalizer. The garbage collector does the same: which of them comes first makes no difference.
pub fn release<K: Resource<DynamicType = ()>>(object: &K) -> ObjectWrite<K> {
    let finalizers: Vec<&String> =
        object.finalizers().iter().filter(|one| *one != FOREGROUND_DELETION).collect();
    ObjectWrite::patch(object, fields("finalizers", json!(finalizers)), Map::new())
}

fn fields(key: &str, value: Value) -> Map<String, Value> {
    Map::from_iter([(key.to_owned(), value)])
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use k8s_openapi::jiff::Timestamp;
    use serde_json::from_value;

    use super::*;

    fn object(metadata: Value) -> ConfigMap {
        from_value(json!({ "metadata": metadata })).unwrap()
    }

    fn controlled(uid: &str, controller: bool) -> Value {
        json!([{ "apiVersion": "v1", "kind": "A", "name": "a", "uid": uid, "controller": controller }])
    }

    #[test]
    fn an_object_has_one_controller_and_orphans_must_match() {
        let (labels, deleted) = (json!({ "group": "a" }), json!("2026-01-01T00:00:00Z"));
        let selector = crate::machine::api::label_selector::tests::expressions("group=a");
        for (metadata, expected) in [
            (json!({ "labels": labels, "ownerReferences": controlled("u", true) }), Ownership::Own),
            // A label that was removed frees no host.
            (json!({ "ownerReferences": controlled("u", true) }), Ownership::Own),
            (
                json!({ "ownerReferences": controlled("u", true), "deletionTimestamp": deleted }),
                Ownership::Own,
            ),
            // An earlier owner of the same name.
            (json!({ "labels": labels, "ownerReferences": controlled("v", true) }), Ownership::Foreign),
            (json!({ "labels": labels, "ownerReferences": controlled("v", false) }), Ownership::Orphan),
            (json!({ "labels": labels }), Ownership::Orphan),
            (json!({ "labels": labels, "deletionTimestamp": deleted }), Ownership::Foreign),
            (json!({ "labels": { "group": "b" } }), Ownership::Foreign),
        ] {
            assert_eq!(ownership(&object(metadata.clone()), "u", &selector), expected, "{metadata}");
        }
        let all = LabelSelector::default();
        assert_eq!(ownership(&object(json!({ "labels": labels })), "u", &all), Ownership::Foreign);
    }

    #[test]
    fn an_orphan_keeps_its_other_owners() {
        let owner = object(json!({ "name": "o", "uid": "u" }));
        let metadata = json!({
            "name": "a", "uid": "x", "resourceVersion": "3", "ownerReferences": controlled("v", false),
        });
        let Some(ObjectWrite::Patch { name, patch }) = adopt(&object(metadata), &owner) else { panic!() };
        assert_eq!((name.as_str(), &patch["metadata"]["resourceVersion"]), ("a", &json!("3")));
        let references = patch["metadata"]["ownerReferences"].as_array().unwrap();
        assert_eq!((&references[0]["uid"], &references[1]["uid"]), (&json!("v"), &json!("u")));
        assert_eq!(
            (&references[1]["controller"], &references[1]["kind"]),
            (&json!(true), &json!("ConfigMap"))
        );
        assert_eq!(references[1]["blockOwnerDeletion"], json!(true));
    }

    #[test]
    fn only_a_foreground_deletion_is_carried_out() {
        let of = |finalizers: &[&str], deleted: bool| {
            let deleted = deleted.then_some(Timestamp::UNIX_EPOCH.to_string());
            lifecycle(&object(json!({ "finalizers": finalizers, "deletionTimestamp": deleted })))
        };
        assert_eq!(of(&[], false), Lifecycle::Living { protected: false });
        assert_eq!(of(&["a", FOREGROUND_DELETION], false), Lifecycle::Living { protected: true });
        assert_eq!(of(&[FOREGROUND_DELETION], true), Lifecycle::Foreground);
        // `kubectl delete --cascade=orphan`.
        assert_eq!(of(&["orphan"], true), Lifecycle::Leaving);
    }

    #[test]
    fn other_finalizers_stay() {
        let finalizers = |write: ObjectWrite<ConfigMap>| match write {
            ObjectWrite::Patch { patch, .. } => patch["metadata"]["finalizers"].clone(),
            other => panic!("{other:?}"),
        };
        let own = object(json!({ "name": "a", "finalizers": ["x"] }));
        assert_eq!(finalizers(protect(&own)), json!(["x", FOREGROUND_DELETION]));
        let own = object(json!({ "name": "a", "finalizers": ["x", FOREGROUND_DELETION] }));
        assert_eq!(finalizers(release(&own)), json!(["x"]));
    }
}
