//! Requests to the API, counted by what they are.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use axum::http::{Method, Request, Uri};
use kube::Client;
use kube::client::Body;

/// `patch machines/status`, and whether it was accepted, to how many.
pub type Counts = BTreeMap<(String, bool), u64>;

#[derive(Clone, Default)]
pub struct ApiRequests(Arc<Mutex<Recorded>>);

#[derive(Default)]
struct Recorded {
    counts: Counts,
    /// Writes, each with its answer.
    refused: Vec<String>,
}

impl ApiRequests {
    /// The client, and what it is going to send.
    pub fn counted(client: &Client) -> (Client, Self) {
        let counted = Self::default();
        let (recorder, inner) = (counted.clone(), client.clone());
        let service = tower::service_fn(move |request: Request<Body>| {
            let (recorder, inner) = (recorder.clone(), inner.clone());
            let title = title(request.method(), request.uri());
            async move {
                let path = request.uri().path().to_owned();
                let answer = inner.send(request).await;
                let accepted = answer.as_ref().is_ok_and(|answer| answer.status().is_success());
                let mut recorded = recorder.0.lock().unwrap();
                if let Ok(answer) = &answer
                    && !accepted
                    && is_write(&title)
                {
                    recorded.refused.push(format!("{title}: {} of {path}", answer.status()));
                }
                *recorded.counts.entry((title, accepted)).or_default() += 1;
                answer.map_err(tower::BoxError::from)
            }
        });
        (Client::new(service, "default"), counted)
    }

    pub fn counts(&self) -> Counts {
        self.0.lock().unwrap().counts.clone()
    }

    pub fn refused(&self) -> Vec<String> {
        self.0.lock().unwrap().refused.clone()
    }

    /// All but reads.
    pub fn writes(&self) -> u64 {
        self.counts().iter().filter(|((title, _), _)| is_write(title)).map(|(_, count)| count).sum()
    }
}

pub fn is_write(title: &str) -> bool {
    !["get ", "list ", "watch "].iter().any(|read| title.starts_with(read))
}

/// `/apis/GROUP/VERSION/namespaces/NAMESPACE/RESOURCE/NAME/SUBRESOURCE`.
fn title(method: &Method, uri: &Uri) -> String {
    let mut path: Vec<&str> = uri.path().trim_matches('/').split('/').collect();
    path.drain(..if path.first() == Some(&"apis") { 3 } else { 2 }.min(path.len()));
    if path.first() == Some(&"namespaces") && path.len() > 2 {
        path.drain(..2);
    }
    let resource = path.first().copied().unwrap_or("version");
    let subresource = path.get(2).map(|name| format!("/{name}")).unwrap_or_default();
    let verb = match (method.as_str(), path.len()) {
        ("GET", _) if uri.query().is_some_and(|query| query.contains("watch=true")) => "watch",
        ("GET", 1) => "list",
        ("GET", _) => "get",
        ("POST", _) => "create",
        ("PATCH", _) => "patch",
        ("PUT", _) => "update",
        _ => "delete",
    };
    format!("{verb} {resource}{subresource}")
}
