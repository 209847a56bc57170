//! Whose a CustomResourceDefinition is, by its metadata: two products must not define the same kind.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::FIELD_MANAGER;
use crate::model::api_contract::MANAGED_BY;

/// Annotation that Helm sets on every object of a release.
const HELM_RELEASE: &str = "meta.helm.sh/release-name";

/// A CustomResourceDefinition of another product.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "CustomResourceDefinition {name} is not metalform's ({owner}), and no object was applied; uninstall that product \
     and run `kubectl delete crd {name}`, which deletes its objects too, or, if the definition is metalform's, run \
     `kubectl label crd {name} {MANAGED_BY}={FIELD_MANAGER}`"
)]
pub struct ForeignDefinition {
    /// `machines.cluster.k8s.io`.
    pub name: String,
    /// Who it belongs to, as far as its metadata show it: `app.kubernetes.io/managed-by: Helm`.
    pub owner: String,
}

/// The definition with these metadata, if it is not metalform's. The label [`MANAGED_BY`] alone decides, not the
/// schema or the field managers: another product may have the same kinds, and a backup restores no field managers.
pub fn foreign(metadata: &ObjectMeta) -> Option<ForeignDefinition> {
    let label = metadata.labels.as_ref().and_then(|labels| labels.get(MANAGED_BY));
    if label.is_some_and(|label| label == FIELD_MANAGER) {
        return None;
    }
    let release = metadata.annotations.as_ref().and_then(|annotations| annotations.get(HELM_RELEASE));
    let fields = metadata.managed_fields.iter().flatten().filter(|entry| entry.subresource.is_none());
    let manager = fields.filter_map(|entry| entry.manager.as_deref()).next();
    let owner = match (label, release, manager) {
        (Some(label), None, _) => format!("{MANAGED_BY}: {label}"),
        (_, Some(release), _) => format!("Helm release {release}"),
        (None, None, Some(manager)) => format!("field manager {manager}"),
        (None, None, None) => format!("no label {MANAGED_BY}"),
    };
    Some(ForeignDefinition { name: metadata.name.clone().unwrap_or_default(), owner })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_definition_is_metalforms_by_its_label_alone() {
        for (metadata, expected) in [
            ("{labels: {app.kubernetes.io/managed-by: metalform}}", None),
            (
                "{labels: {app.kubernetes.io/managed-by: metalform, a: b}, managedFields: [{manager: velero}]}",
                None,
            ),
            ("{}", Some("no label app.kubernetes.io/managed-by")),
            ("{labels: {app.kubernetes.io/managed-by: ''}}", Some("app.kubernetes.io/managed-by: ")),
            (
                "{labels: {app.kubernetes.io/managed-by: kubeone}}",
                Some("app.kubernetes.io/managed-by: kubeone"),
            ),
            // Another product's, whoever wrote it last.
            ("{managedFields: [{manager: metalform}]}", Some("field manager metalform")),
            (
                "{managedFields: [{manager: kube-apiserver, subresource: status}, {manager: kubectl}]}",
                Some("field manager kubectl"),
            ),
            (
                "{annotations: {controller-gen.kubebuilder.io/version: v0.14.0}}",
                Some("no label app.kubernetes.io/managed-by"),
            ),
            (
                "{labels: {app.kubernetes.io/managed-by: Helm}, annotations: {meta.helm.sh/release-name: machine-controller}}",
                Some("Helm release machine-controller"),
            ),
            (
                "{annotations: {api-approved.kubernetes.io: 'unapproved, legacy API'}}",
                Some("no label app.kubernetes.io/managed-by"),
            ),
        ] {
            let metadata: ObjectMeta = serde_saphyr::from_str(metadata).unwrap();
            let found = foreign(&metadata).map(|foreign| foreign.owner);
            assert_eq!(found.as_deref(), expected, "{metadata:?}");
        }
    }

    #[test]
    fn the_error_contains_what_to_do() {
        let foreign = ForeignDefinition {
            name: "machines.cluster.k8s.io".into(),
            owner: "field manager kubectl".into(),
        };
        insta::assert_snapshot!(foreign, @"CustomResourceDefinition machines.cluster.k8s.io is not metalform's (field manager kubectl), and no object was applied; uninstall that product and run `kubectl delete crd machines.cluster.k8s.io`, which deletes its objects too, or, if the definition is metalform's, run `kubectl label crd machines.cluster.k8s.io app.kubernetes.io/managed-by=metalform`");
    }
}
