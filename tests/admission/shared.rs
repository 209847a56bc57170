//! The one API server of all tests.

use std::io::Write;
use std::sync::OnceLock;

use kube::api::{Api, ApiResource, DynamicObject};
use kube::core::GroupVersionKind;
use kube::{Client, Error};
use serde_json::Value;
use tokio::runtime::Runtime;

use crate::api_server::ApiServer;
use crate::foreign_definition;

pub const NAMESPACE: &str = "kube-system";

static SHARED: OnceLock<Option<Shared>> = OnceLock::new();

pub struct Shared {
    pub api: ApiServer,
    /// Of an installation beside the definition of another product, before this one.
    pub beside_another: String,
}

/// None where there is no API server, which is printed: tests capture only what macros print.
pub fn shared() -> Option<&'static Shared> {
    let start = || Runtime::new().unwrap().block_on(start());
    // A test has a runtime of its own, which cannot wait for another one.
    SHARED.get_or_init(|| std::thread::spawn(start).join().unwrap()).as_ref()
}

async fn start() -> Option<Shared> {
    let api = match ApiServer::start().await {
        Ok(api) => api,
        Err(reason) => {
            assert!(std::env::var_os("METALFORM_REQUIRE_KUBE_APISERVER").is_none(), "{reason}");
            let _ = writeln!(std::io::stderr(), "skipped, every test of admission: {reason}");
            return None;
        }
    };
    let beside_another = foreign_definition::install(&api).await;
    api.install().await.unwrap();
    Some(Shared { api, beside_another })
}

/// Objects of a kind of ours: `cluster.k8s.io/v1alpha1`, `Machine`.
pub fn objects(client: &Client, api_version: &str, kind: &str) -> Api<DynamicObject> {
    let (group, version) = api_version.split_once('/').unwrap();
    let gvk = GroupVersionKind::gvk(group, version, kind);
    let resource = ApiResource::from_gvk_with_plural(&gvk, &format!("{}s", kind.to_lowercase()));
    match kind {
        "Host" => Api::all_with(client.clone(), &resource),
        _ => Api::namespaced_with(client.clone(), NAMESPACE, &resource),
    }
}

/// The message of the API server for what it refused.
pub fn refusal<T>(answer: Result<T, Error>) -> String {
    match answer {
        Ok(_) => "allowed".to_owned(),
        Err(Error::Api(status)) => status.message.clone(),
        Err(error) => panic!("{error}"),
    }
}

pub fn dynamic(object: &Value) -> DynamicObject {
    serde_json::from_value(object.clone()).unwrap()
}
