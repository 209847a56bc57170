//! Server-side apply of YAML text with any number of objects of any kind.

use std::collections::BTreeMap;
use std::time::Duration;

use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::discovery::{Scope, pinned_kind};
use serde_json::Value;

use super::FIELD_MANAGER;
use super::client::ApiError;
use crate::engine::wait::{WaitError, WaitStatus, wait_for};

/// How long a kind that the same text defined may take to be served.
const KIND_LIMIT: Duration = Duration::from_secs(30);

/// Why a text was not applied, or not to its end.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    /// It is not YAML.
    #[error("the manifest cannot be read")]
    NotYaml {
        /// Where, and why.
        source: Box<serde_saphyr::Error>,
    },
    /// A document is not an object of Kubernetes.
    #[error("document {number} of the manifest has no {field}")]
    Incomplete {
        /// From 1; documents with nothing in them do not count.
        number: usize,
        /// `kind`, `apiVersion`, `metadata.name`.
        field: &'static str,
    },
    /// The API does not serve this kind, or not in time.
    #[error(transparent)]
    NotServed(#[from] WaitError),
    /// The API did not take an object.
    #[error(transparent)]
    Api(#[from] ApiError),
}

/// One object of a text.
#[derive(Debug, Clone, PartialEq)]
pub struct Manifest {
    kind: GroupVersionKind,
    name: String,
    namespace: Option<String>,
    value: Value,
}

/// What became of one object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    /// `DaemonSet kube-system/kube-proxy`.
    pub object: String,
    /// What was done.
    pub outcome: Outcome,
}

/// What applying an object did to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It was not there.
    Created,
    /// It is another than before.
    Changed,
    /// It was like this already: its resourceVersion is the same.
    Unchanged,
}

impl Manifest {
    fn title(&self) -> String {
        match &self.namespace {
            Some(namespace) => format!("{} {namespace}/{}", self.kind.kind, self.name),
            None => format!("{} {}", self.kind.kind, self.name),
        }
    }
}

/// Reads a text. Empty documents are left out.
///
/// # Errors
/// When it is not YAML, or a document lacks what names an object.
pub fn parse(text: &str) -> Result<Vec<Manifest>, ManifestError> {
    // Booleans as in YAML 1.2: a node named `n` or `on` is not `false` or `true`.
    let options = serde_saphyr::options! { strict_booleans: true };
    let documents: Vec<Value> = serde_saphyr::from_multiple_with_options(text, options)
        .map_err(|source| ManifestError::NotYaml { source: Box::new(source) })?;
    let mut manifests = Vec::new();
    for (position, value) in documents.into_iter().enumerate() {
        let field = |pointer: &str, field: &'static str| {
            let text = value.pointer(pointer).and_then(Value::as_str).filter(|text| !text.is_empty());
            text.map(str::to_owned).ok_or(ManifestError::Incomplete { number: position + 1, field })
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

/// Titles of the objects that applying would create or change. Nothing is changed: the API is asked for a dry run.
///
/// # Errors
/// At the first object that the API would not take.
pub async fn differing(client: &Client, manifests: &[Manifest]) -> Result<Vec<String>, ManifestError> {
    let mut kinds = Kinds::default();
    let mut differing = Vec::new();
    for manifest in manifests {
        let api = kinds.api(client, manifest).await?;
        let before = api.get_opt(&manifest.name).await;
        let before = before.map_err(|error| ApiError::new("get", manifest.title(), error))?;
        let Some(before) = before else {
            differing.push(manifest.title());
            continue;
        };
        let parameters = PatchParams::apply(FIELD_MANAGER).force().dry_run();
        let after = api.patch(&manifest.name, &parameters, &Patch::Apply(&manifest.value)).await;
        let after = after.map_err(|error| ApiError::new("apply", manifest.title(), error))?;
        if content(before) != content(after) {
            differing.push(manifest.title());
        }
    }
    Ok(differing)
}

/// What a person would compare: who manages which field, and when it was written, are not part of it.
fn content(mut object: DynamicObject) -> DynamicObject {
    object.metadata.managed_fields = None;
    object.metadata.resource_version = None;
    object.metadata.generation = None;
    object
}

/// Applies objects in their order, as owner of every field that they name, whoever owned it before.
///
/// A kind that is not served yet is waited for, so that a definition and objects of its kind may be in one text.
///
/// # Errors
/// At the first object that the API does not take; those before it are applied.
pub async fn apply(client: &Client, manifests: &[Manifest]) -> Result<Vec<Applied>, ManifestError> {
    let mut kinds = Kinds::default();
    let mut applied = Vec::new();
    for manifest in manifests {
        let outcome = apply_one(&kinds.api(client, manifest).await?, manifest).await?;
        applied.push(Applied { object: manifest.title(), outcome });
    }
    Ok(applied)
}

/// How the API serves the kinds that were met: each is asked for once.
#[derive(Default)]
struct Kinds(BTreeMap<String, (ApiResource, Scope)>);

impl Kinds {
    async fn api(
        &mut self,
        client: &Client,
        manifest: &Manifest,
    ) -> Result<Api<DynamicObject>, ManifestError> {
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

async fn apply_one(api: &Api<DynamicObject>, manifest: &Manifest) -> Result<Outcome, ApiError> {
    let before = api.get_metadata_opt(&manifest.name).await;
    let before = before.map_err(|error| ApiError::new("get", manifest.title(), error))?;
    let parameters = PatchParams::apply(FIELD_MANAGER).force();
    let after = api.patch(&manifest.name, &parameters, &Patch::Apply(&manifest.value)).await;
    let after = after.map_err(|error| ApiError::new("apply", manifest.title(), error))?;
    Ok(match before {
        None => Outcome::Created,
        Some(before) if before.metadata.resource_version != after.metadata.resource_version => {
            Outcome::Changed
        }
        Some(_) => Outcome::Unchanged,
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
                    WaitStatus::NotYet("it does not serve this group and version".to_owned())
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
    fn a_text_is_read_as_objects() {
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
    fn what_is_not_an_object_is_refused_by_its_number() {
        for (text, said) in [
            ("kind: A\nmetadata: {name: n}", "document 1 of the manifest has no apiVersion"),
            ("apiVersion: v1\nmetadata: {name: n}", "document 1 of the manifest has no kind"),
            (
                "apiVersion: v1\nkind: A\nmetadata: {name: n}\n---\napiVersion: v1\nkind: A",
                "document 2 of the manifest has no metadata.name",
            ),
            ("a: [", "the manifest cannot be read"),
        ] {
            assert_eq!(parse(text).unwrap_err().to_string(), said);
        }
    }
}
