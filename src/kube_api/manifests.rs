//! Server-side apply of YAML documents, of any number and kind.

use std::collections::BTreeMap;
use std::time::Duration;

use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::discovery::{Scope, pinned_kind};
use serde_json::Value;

use super::FIELD_MANAGER;
use super::client::ApiError;
use super::definition_owner::{ForeignDefinition, foreign};
use crate::engine::wait::{WaitError, WaitStatus, wait_for};
use crate::model::api_contract::{EDITS, EDITS_KEPT, MANAGED_BY};

/// How long the API may take to serve a kind that the same text defines.
const KIND_LIMIT: Duration = Duration::from_secs(30);

/// Why a text was not applied, or not completely.
#[derive(Debug, thiserror::Error)]
pub enum ManifestApplyError {
    /// It is not YAML.
    #[error("cannot parse the manifest")]
    NotYaml { source: Box<serde_saphyr::Error> },
    /// A document is not a Kubernetes object.
    #[error("document {number} of the manifest has no {field}")]
    Incomplete {
        /// From 1; empty documents do not count.
        number: usize,
        /// `kind`, `apiVersion`, `metadata.name`.
        field: &'static str,
    },
    /// The API does not serve this kind, or not in time.
    #[error(transparent)]
    NotServed(#[from] WaitError),
    /// Another product has defined a kind already. Nothing was applied.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Foreign(Vec<ForeignDefinition>),
    /// The API refused an object.
    #[error(transparent)]
    Api(#[from] ApiError),
}

/// One object.
#[derive(Debug, Clone, PartialEq)]
pub struct Manifest {
    kind: GroupVersionKind,
    name: String,
    namespace: Option<String>,
    value: Value,
}

/// The result for one object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppliedObject {
    /// `DaemonSet kube-system/kube-proxy`.
    pub object: String,
    pub outcome: ApplyOutcome,
}

/// The effect of applying an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApplyOutcome {
    /// It did not exist.
    Created,
    /// Its resourceVersion changed.
    Changed,
    /// Its resourceVersion is the same.
    Unchanged,
    /// Another client has changed it, and [`EDITS`] keeps that.
    Kept,
}

/// How objects of the API compare with manifests: titles.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Comparison {
    /// Applying would create or change these.
    pub differing: Vec<String>,
    /// Another client has changed these, and [`EDITS`] keeps that.
    pub kept: Vec<String>,
}

impl Manifest {
    fn title(&self) -> String {
        match &self.namespace {
            Some(namespace) => format!("{} {namespace}/{}", self.kind.kind, self.name),
            None => format!("{} {}", self.kind.kind, self.name),
        }
    }

    fn keeps_edits(&self) -> bool {
        let annotations = self.value.pointer("/metadata/annotations");
        annotations.and_then(|all| all.get(EDITS)).is_some_and(|value| value == EDITS_KEPT)
    }

    /// Whether it defines a kind that is metalform's.
    fn is_own_definition(&self) -> bool {
        let labels = self.value.pointer("/metadata/labels");
        let own = labels.and_then(|all| all.get(MANAGED_BY)).is_some_and(|value| value == FIELD_MANAGER);
        own && self.kind.kind == "CustomResourceDefinition"
    }

    /// Without force, a field that another manager has set to another value is a conflict
    /// (kubernetes.io/docs/reference/using-api/server-side-apply, "Conflicts").
    fn parameters(&self) -> PatchParams {
        let parameters = PatchParams::apply(FIELD_MANAGER);
        if self.keeps_edits() { parameters } else { parameters.force() }
    }
}

/// Parses a text. Empty documents are skipped.
///
/// # Errors
/// When it is not YAML, or a document has no kind or name.
pub fn parse(text: &str) -> Result<Vec<Manifest>, ManifestApplyError> {
    // Booleans as in YAML 1.2: a node named `n` or `on` is not `false` or `true`.
    let options = serde_saphyr::options! { strict_booleans: true };
    let documents: Vec<Value> = serde_saphyr::from_multiple_with_options(text, options)
        .map_err(|source| ManifestApplyError::NotYaml { source: Box::new(source) })?;
    let mut manifests = Vec::new();
    for (position, value) in documents.into_iter().enumerate() {
        let field = |pointer: &str, field: &'static str| {
            let text = value.pointer(pointer).and_then(Value::as_str).filter(|text| !text.is_empty());
            text.map(str::to_owned).ok_or(ManifestApplyError::Incomplete { number: position + 1, field })
        };
        let api_version = field("/apiVersion", "apiVersion")?;
        let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
        let kind = GroupVersionKind::gvk(group, version, &field("/kind", "kind")?);
        let name = field("/metadata/name", "metadata.name")?;
        let namespace = field("/metadata/namespace", "metadata.namespace").ok();
        manifests.push(Manifest { kind, name, namespace, value });
    }
    Ok(manifests)
}

/// Which objects applying would create or change, by a dry run of the API.
///
/// # Errors
/// At the first object that the API would refuse; else when definitions are another product's.
pub async fn compare(client: &Client, manifests: &[Manifest]) -> Result<Comparison, ManifestApplyError> {
    let mut kinds = Kinds::default();
    let mut comparison = Comparison::default();
    let mut foreigners = Vec::new();
    for manifest in manifests {
        let api = kinds.api(client, manifest).await?;
        let before = api.get_opt(&manifest.name).await;
        let before = before.map_err(|error| ApiError::new("get", manifest.title(), error))?;
        let Some(before) = before else {
            comparison.differing.push(manifest.title());
            continue;
        };
        if let Some(foreign) = foreign(&before.metadata).filter(|_| manifest.is_own_definition()) {
            foreigners.push(foreign);
            continue;
        }
        let parameters = manifest.parameters().dry_run();
        let after = api.patch(&manifest.name, &parameters, &Patch::Apply(&manifest.value)).await;
        match after.map_err(|error| ApiError::new("apply", manifest.title(), error)) {
            Ok(after) => {
                comparison.differing.extend((content(before) != content(after)).then(|| manifest.title()));
            }
            Err(ApiError::Conflict { .. }) if manifest.keeps_edits() => {
                comparison.kept.push(manifest.title())
            }
            Err(error) => return Err(error.into()),
        }
    }
    if foreigners.is_empty() { Ok(comparison) } else { Err(ManifestApplyError::Foreign(foreigners)) }
}

/// Without field owners and versions.
fn content(mut object: DynamicObject) -> DynamicObject {
    object.metadata.managed_fields = None;
    object.metadata.resource_version = None;
    object.metadata.generation = None;
    object
}

/// Applies objects in their order, as owner of every field that they contain, also of those with another owner, unless
/// [`EDITS`] keeps what that owner wrote: such an object is then not applied at all.
///
/// Waits for a kind that is not served yet, so that one text may contain a definition and objects of its kind.
///
/// # Errors
/// When definitions are another product's: then nothing is applied. Else at the first object that the API refuses; those
/// before it are applied.
pub async fn apply(
    client: &Client,
    manifests: &[Manifest],
) -> Result<Vec<AppliedObject>, ManifestApplyError> {
    let mut kinds = Kinds::default();
    let mut foreigners = Vec::new();
    for definition in manifests.iter().filter(|manifest| manifest.is_own_definition()) {
        let before = kinds.api(client, definition).await?.get_metadata_opt(&definition.name).await;
        let before = before.map_err(|error| ApiError::new("get", definition.title(), error))?;
        foreigners.extend(before.and_then(|before| foreign(&before.metadata)));
    }
    if !foreigners.is_empty() {
        return Err(ManifestApplyError::Foreign(foreigners));
    }
    let mut applied = Vec::new();
    for manifest in manifests {
        let outcome = apply_one(&kinds.api(client, manifest).await?, manifest).await?;
        applied.push(AppliedObject { object: manifest.title(), outcome });
    }
    Ok(applied)
}

/// How the API serves the kinds seen so far: each is discovered once.
#[derive(Default)]
struct Kinds(BTreeMap<String, (ApiResource, Scope)>);

impl Kinds {
    async fn api(
        &mut self,
        client: &Client,
        manifest: &Manifest,
    ) -> Result<Api<DynamicObject>, ManifestApplyError> {
        let key = format!("{}/{}", manifest.value["apiVersion"], manifest.kind.kind);
        let (resource, scope) = match self.0.get(&key) {
            Some(found) => found.clone(),
            None => self.0.entry(key).or_insert(kind(client, &manifest.kind).await?).clone(),
        };
        Ok(match (scope, manifest.namespace.as_deref()) {
            (Scope::Cluster, _) => Api::all_with(client.clone(), &resource),
            (Scope::Namespaced, Some(namespace)) => {
                Api::namespaced_with(client.clone(), namespace, &resource)
            }
            (Scope::Namespaced, None) => Api::default_namespaced_with(client.clone(), &resource),
        })
    }
}

async fn apply_one(api: &Api<DynamicObject>, manifest: &Manifest) -> Result<ApplyOutcome, ApiError> {
    let before = api.get_metadata_opt(&manifest.name).await;
    let before = before.map_err(|error| ApiError::new("get", manifest.title(), error))?;
    let after = api.patch(&manifest.name, &manifest.parameters(), &Patch::Apply(&manifest.value)).await;
    let after = match after.map_err(|error| ApiError::new("apply", manifest.title(), error)) {
        Err(ApiError::Conflict { .. }) if manifest.keeps_edits() => return Ok(ApplyOutcome::Kept),
        answer => answer?,
    };
    Ok(match before {
        None => ApplyOutcome::Created,
        Some(before) if before.metadata.resource_version != after.metadata.resource_version => {
            ApplyOutcome::Changed
        }
        Some(_) => ApplyOutcome::Unchanged,
    })
}

/// How the API serves a kind.
async fn kind(client: &Client, kind: &GroupVersionKind) -> Result<(ApiResource, Scope), WaitError> {
    let condition = format!("the API to serve {} of {}", kind.kind, kind.api_version());
    wait_for(condition, KIND_LIMIT, || async {
        match pinned_kind(client, kind).await {
            Ok((resource, capabilities)) => WaitStatus::Holds((resource, capabilities.scope)),
            Err(kube::Error::Discovery(error)) => WaitStatus::NotYet(error.to_string()),
            Err(error) => match ApiError::new("discover", &kind.kind, error) {
                ApiError::NotFound { .. } => {
                    WaitStatus::NotYet("this group and version is not served".to_owned())
                }
                error => error.into(),
            },
        }
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_parsed_into_objects() {
        let text = "\
---
# nothing but a comment
---
apiVersion: v1
kind: Namespace
metadata: {name: calico}
---
apiVersion: apps/v1
kind: DaemonSet
metadata:
  name: calico-node
  namespace: calico
spec:
  minReadySeconds: 5
";
        let manifests = parse(text).unwrap();
        let titles: Vec<String> = manifests.iter().map(Manifest::title).collect();
        assert_eq!(titles, ["Namespace calico", "DaemonSet calico/calico-node"]);
        assert_eq!(manifests[0].kind, GroupVersionKind::gvk("", "v1", "Namespace"));
        assert_eq!(manifests[1].kind, GroupVersionKind::gvk("apps", "v1", "DaemonSet"));
        assert_eq!(manifests[1].value["spec"]["minReadySeconds"], 5);
    }

    #[test]
    fn a_document_that_is_not_an_object_is_refused_by_its_number() {
        for (text, message) in [
            ("kind: A\nmetadata: {name: n}", "document 1 of the manifest has no apiVersion"),
            ("apiVersion: v1\nmetadata: {name: n}", "document 1 of the manifest has no kind"),
            (
                "apiVersion: v1\nkind: A\nmetadata: {name: n}\n---\napiVersion: v1\nkind: A",
                "document 2 of the manifest has no metadata.name",
            ),
            ("a: [", "cannot parse the manifest"),
        ] {
            assert_eq!(parse(text).unwrap_err().to_string(), message);
        }
    }
}
