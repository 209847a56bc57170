//! What an Event reports.

use k8s_openapi::api::core::v1::ObjectReference;
use kube::Resource;

/// An Event about one object, without its times.
#[derive(Debug, Clone, PartialEq)]
pub struct ObjectEvent {
    /// With its UID, if the API server has given it one.
    pub object: ObjectReference,
    /// Its type is `Warning`, else `Normal`.
    pub warning: bool,
    /// `CamelCase`.
    pub reason: String,
    /// For people.
    pub message: String,
}

impl ObjectEvent {
    /// With type `Normal`.
    pub(super) fn normal<K: Resource<DynamicType = ()>>(
        object: &K,
        reason: impl Into<String>,
        message: String,
    ) -> Self {
        Self { object: object.object_ref(&()), warning: false, reason: reason.into(), message }
    }

    /// With type `Warning`.
    pub(super) fn warning<K: Resource<DynamicType = ()>>(
        object: &K,
        reason: impl Into<String>,
        message: String,
    ) -> Self {
        Self { warning: true, ..Self::normal(object, reason, message) }
    }
}
