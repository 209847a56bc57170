//! The cases of `tests/machines/admission/`, played by the API server.
//!
//! `sentences.txt` has every refusal as a user reads it; `UPDATE_EXPECTED=1` rewrites it.

use std::fmt::Write as _;

use futures::future::join_all;
use kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::Status;
use kube::{Client, Error};
use serde_json::{Value, json};

use crate::api_server::ApiServer;
use crate::machine_cases::{Case, Cases, patched};
use crate::shared::{NAMESPACE, dynamic, objects, shared};
use crate::sources::{files, read, root};

const SENTENCES: &str = "tests/admission/sentences.txt";

/// Plays cases of one kind, each with an object of its own.
struct Stage<'a> {
    server: &'a ApiServer,
    objects: Api<DynamicObject>,
    base: &'a Value,
}

#[tokio::test]
async fn the_server_allows_and_refuses_what_the_cases_expect() {
    let Some(shared) = shared() else { return };
    let client = shared.api.admin().await;
    let files = files("tests/machines/admission", "yaml");
    let client = &client;
    let played = join_all(files.iter().map(|path| async move {
        let cases: Cases = serde_saphyr::from_str(&read(path)).unwrap();
        play(&shared.api, client, &cases).await
    }));
    let (mut sentences, mut wrong) = (String::new(), Vec::new());
    for (path, (refused, unexpected)) in files.iter().zip(played.await) {
        let file = path.file_stem().unwrap().to_str().unwrap();
        write!(sentences, "# {file}\n{refused}").unwrap();
        wrong.extend(unexpected.into_iter().map(|one| format!("{file}: {one}")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    if std::env::var_os("UPDATE_EXPECTED").is_some() {
        std::fs::write(root().join(SENTENCES), &sentences).unwrap();
    }
    assert_eq!(sentences, read(SENTENCES), "UPDATE_EXPECTED=1 rewrites {SENTENCES}");
}

/// The refusals, and what is not as expected.
async fn play(server: &ApiServer, client: &Client, cases: &Cases) -> (String, Vec<String>) {
    let base = &cases.base;
    let kind = |field: &str| base[field].as_str().unwrap();
    let stage = Stage { server, objects: objects(client, kind("apiVersion"), kind("kind")), base };
    let (mut sentences, mut wrong) = (String::new(), Vec::new());
    for (index, case) in cases.cases.iter().enumerate() {
        let name = format!("case-{index}");
        let answer = stage.write(case, &name).await;
        let fault = match &answer {
            Ok(stored) => fault_of_stored(case, stored),
            Err(Error::Api(status)) => {
                let message = status.message.replace(&name, "NAME");
                writeln!(sentences, "{}: {message}", case.name).unwrap();
                (!is_expected(case, status)).then_some(message)
            }
            Err(error) => Some(error.to_string()),
        };
        wrong.extend(
            fault.map(|found| format!("{}:\n  expected {}\n  found {found}", case.name, case.expected)),
        );
    }
    (sentences, wrong)
}

fn fault_of_stored(case: &Case, stored: &Value) -> Option<String> {
    let is_kept = |field: &String| stored.pointer(&format!("/{}", field.replace('.', "/"))).is_some();
    match &case.kept {
        _ if case.expected != "allowed" => Some("allowed".to_owned()),
        Some(field) if !is_kept(field) => Some(format!("{field} is not stored")),
        _ => None,
    }
}

/// A rule refuses alone, with its field and its message; a schema among others.
fn is_expected(case: &Case, status: &Status) -> bool {
    let Some((field, message)) = case.expected.split_once(": ") else { return false };
    let causes = status.details.iter().flat_map(|details| &details.causes);
    let mut causes = causes.map(|cause| (cause.field.as_str(), cause.message.as_str()));
    if case.schema {
        return causes.any(|(at, said)| at == field && said.contains(message));
    }
    let all: Vec<_> = causes.collect();
    matches!(all[..], [(at, said)] if at == field && said.ends_with(&format!(": {message}")))
}

impl Stage<'_> {
    /// The object as it is stored at the end.
    async fn write(&self, case: &Case, name: &str) -> Result<Value, Error> {
        let named = |patch: &Value| {
            let mut object = patched(self.base, patch);
            object["metadata"]["name"] = name.into();
            object
        };
        let object = named(&case.object);
        let Some(stored) = case.stored.as_ref().map(named) else {
            return self.objects.create(&PostParams::default(), &dynamic(&object)).await.map(json_of);
        };
        let version = self.store(case, &stored, name).await;
        let mut next = dynamic(&object);
        next.metadata.resource_version = Some(version);
        let written = if object.get("status").is_some() {
            self.objects.replace_status(name, &PostParams::default(), &next).await
        } else {
            self.objects.replace(name, &PostParams::default(), &next).await
        };
        written.map(json_of)
    }

    /// Its version.
    async fn store(&self, case: &Case, stored: &Value, name: &str) -> String {
        if case.ratcheted {
            // No API server of this version would: it is the object of an earlier one.
            let mut first = self.base.clone();
            first["metadata"]["name"] = name.into();
            let created = self.objects.create(&PostParams::default(), &dynamic(&first)).await.unwrap();
            self.overwrite(&created, stored).await;
            return self.objects.get(name).await.unwrap().metadata.resource_version.unwrap();
        }
        let created = self.objects.create(&PostParams::default(), &dynamic(stored)).await;
        let created = created.unwrap_or_else(|error| panic!("{}: {error}", case.name));
        let Some(status) = stored.get("status") else { return created.metadata.resource_version.unwrap() };
        let patch = Patch::Merge(json!({ "status": status }));
        let patched = self.objects.patch_status(name, &PatchParams::default(), &patch).await;
        patched.unwrap_or_else(|error| panic!("{}: {error}", case.name)).metadata.resource_version.unwrap()
    }

    /// In etcd, which has custom resources as JSON.
    async fn overwrite(&self, created: &DynamicObject, stored: &Value) {
        let types = created.types.as_ref().unwrap();
        let group = types.api_version.split_once('/').unwrap().0;
        let plural = format!("{}s", types.kind.to_lowercase());
        let name = created.metadata.name.as_deref().unwrap();
        let key = format!("/registry/{group}/{plural}/{NAMESPACE}/{name}");
        let mut etcd = self.server.etcd().await;
        let found = etcd.get(key.as_str(), None).await.unwrap();
        let mut object: Value = serde_json::from_slice(found.kvs()[0].value()).unwrap();
        object["spec"] = stored["spec"].clone();
        if let Some(finalizers) = stored["metadata"].get("finalizers") {
            object["metadata"]["finalizers"] = finalizers.clone();
        }
        etcd.put(key.as_str(), object.to_string(), None).await.unwrap();
    }
}

fn json_of(object: DynamicObject) -> Value {
    serde_json::to_value(object).unwrap()
}
