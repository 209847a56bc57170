//! Watches: what changes after a version is written to the response as it happens.

use std::collections::VecDeque;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderValue, Response};
use futures::stream;
use serde_json::json;

use super::ScriptedApi;
use super::request::Asked;
use super::resource::{Address, Target};

/// Between two looks at the store.
const PACE: Duration = Duration::from_millis(20);

struct Watch {
    api: ScriptedApi,
    address: Address,
    version: u64,
    lines: VecDeque<Vec<u8>>,
}

/// A response that ends when its reader is dropped.
pub fn respond(api: &ScriptedApi, asked: &Asked) -> Response<Body> {
    let Some(Target::Object(address)) = &asked.target else { panic!("{} cannot be watched", asked.title) };
    let version = asked.query.get("resourceVersion").and_then(|version| version.parse().ok()).unwrap_or(0);
    let watch = Watch { api: api.clone(), address: address.clone(), version, lines: VecDeque::new() };
    let lines = stream::unfold(watch, |mut watch| async move {
        let line = watch.next().await;
        Some((Ok::<_, std::io::Error>(line), watch))
    });
    let mut response = Response::new(Body::from_stream(lines));
    response.headers_mut().insert("content-type", HeaderValue::from_static("application/json"));
    response
}

impl Watch {
    async fn next(&mut self) -> Vec<u8> {
        loop {
            if let Some(line) = self.lines.pop_front() {
                return line;
            }
            for (version, kind, object) in self.api.lock().store.changes_after(&self.address, self.version) {
                self.version = self.version.max(version);
                self.lines.push_back(format!("{}\n", json!({ "type": kind, "object": object })).into_bytes());
            }
            if self.lines.is_empty() {
                tokio::time::sleep(PACE).await;
            }
        }
    }
}
