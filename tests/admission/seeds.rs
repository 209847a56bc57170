//! The manifests of the seeds, with nothing changed but the provider block.

use axum::http::Request;
use serde_json::Value;

use crate::definition::Definition;
use crate::shared::{objects, shared};
use crate::sources::{files, read};

/// As `kubectl apply` creates an object: an unknown field is refused.
#[tokio::test]
async fn the_server_accepts_each_and_fills_in_the_defaults() {
    let Some(shared) = shared() else { return };
    let client = shared.api.admin().await;
    let files = files("tests/machines/seeds", "yaml");
    assert_eq!(files.len(), 3, "{files:?}");
    for path in files {
        let mut object: Value = serde_saphyr::from_str(&read(&path)).unwrap();
        // Seed 002 is an object as it is read. No API server creates one that has a version.
        object["metadata"].as_object_mut().unwrap().remove("resourceVersion");
        let field = |name: &str| object[name].as_str().unwrap();
        let api = objects(&client, field("apiVersion"), field("kind"));
        let path = format!("{}?fieldValidation=Strict", api.resource_url());
        let body = object.to_string().into_bytes();
        let request = Request::post(&path).header("Content-Type", "application/json").body(body).unwrap();
        let created: Result<Value, _> = client.request(request).await;
        let mut found = created.unwrap_or_else(|error| panic!("{path}: {error}"));
        let mut expected = Definition::of(&object).defaulted(&object);
        for stored in [&mut expected, &mut found] {
            stored.as_object_mut().unwrap().remove("metadata");
        }
        assert_eq!(found, expected, "{path}");
    }
}
