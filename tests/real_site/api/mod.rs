//! A Kubernetes API that exists only here: a tower service beneath [`kube::Client`], over objects in memory.

pub mod cluster;
mod discovery;
pub mod merge;
mod request;
pub mod resource;
mod reviews;
pub mod rules;
mod scale;
pub mod store;
mod watching;

#[cfg(test)]
mod tests;

use std::future::pending;
use std::sync::{Arc, Mutex, MutexGuard};

use axum::body::Body;
use axum::http::{HeaderValue, Method, Request, Response, StatusCode};
use kube::Client;
use kube::client::Body as Asking;
use serde_json::{Value, json};

use self::request::{Asked, selects};
use self::resource::{Address, Target};
use self::reviews::Reviews;
use self::rules::{Fate, Rules};
use self::store::{PatchType, Refused, Store, invalid};

/// Annotation of a pod that may not be evicted: by its budget, or as [`TWO_BUDGETS`] or an HTTP status.
pub const BUDGET: &str = "budget";
/// Two budgets forbid it: a failure that is sent with the status of a success.
pub const TWO_BUDGETS: &str = "two";
/// Refused with 500, but allowed in a dry run.
pub const NOT_IN_EARNEST: &str = "not in earnest";

/// What happens by itself before each request is answered; an error is why no API server answers.
pub type Passing = Box<dyn FnMut(&mut Store) -> Result<(), String> + Send>;

/// The API server.
pub struct ApiServer {
    pub store: Store,
    pub rules: Rules,
    /// Who has which token, and who may read which path.
    pub reviews: Reviews,
    /// Titles of all requests that changed something or tried to: `patch nodes/n1`.
    pub changes: Vec<String>,
    /// How many requests there were.
    pub requests: usize,
    passing: Passing,
}

/// One API server that many clients share.
#[derive(Clone)]
pub struct ScriptedApi(Arc<Mutex<ApiServer>>);

impl ScriptedApi {
    /// Always there; nothing happens by itself.
    pub fn new() -> Self {
        Self::with(Box::new(|_| Ok(())))
    }

    pub fn with(passing: Passing) -> Self {
        let (store, rules, reviews) = (Store::default(), Rules::default(), Reviews::default());
        let (changes, requests) = (Vec::new(), 0);
        Self(Arc::new(Mutex::new(ApiServer { store, rules, reviews, changes, requests, passing })))
    }

    pub fn lock(&self) -> MutexGuard<'_, ApiServer> {
        self.0.lock().unwrap()
    }

    /// A client of it. Needs a tokio runtime.
    pub fn client(&self) -> Client {
        let api = self.clone();
        let service = tower::service_fn(move |request: Request<Asking>| {
            let api = api.clone();
            async move { api.answer(request).await }
        });
        Client::new(service, "default")
    }

    async fn answer(&self, request: Request<Asking>) -> Result<Response<Body>, tower::BoxError> {
        let (head, body) = request.into_parts();
        let body = body.collect_bytes().await?;
        let asked = Asked::new(&head.method, head.uri.path(), head.uri.query().unwrap_or_default());
        let header = |name| head.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        self.lock().requests += 1;
        let fate = self.lock().rules.fate(&asked.title);
        match fate {
            Some(Fate::Refused) => return Err("tcp connect error: Connection refused (os error 111)".into()),
            Some(Fate::Silent) => pending().await,
            Some(Fate::Slow(time)) => tokio::time::sleep(time).await,
            Some(Fate::Status(code)) => return Ok(failure(&by_rule(code, &asked.title))),
            Some(Fate::AnswerLost) | None => {}
        };
        if asked.verb == "watch" {
            return Ok(watching::respond(self, &asked));
        }
        if let Some(reviewed) = self.lock().reviews.answer(&asked.title, &body) {
            return Ok(success(&reviewed));
        }
        let answered = {
            let mut server = self.lock();
            let ApiServer { store, passing, .. } = &mut *server;
            passing(store)?;
            if head.method != Method::GET {
                server.changes.push(asked.title.clone());
            }
            server.store.serve(&asked, header("content-type"), &body)
        };
        if fate == Some(Fate::AnswerLost) {
            return Err("connection closed before message completed".into());
        }
        Ok(match answered {
            Ok(Value::String(text)) => Response::new(Body::from(text.into_bytes())),
            Ok(object) if header("accept").contains("as=PartialObjectMetadata") => {
                success(&metadata_of(&object))
            }
            Ok(object) => success(&object),
            Err(refused) => failure(&refused),
        })
    }
}

impl Store {
    fn serve(&mut self, asked: &Asked, content_type: &str, body: &[u8]) -> Result<Value, Refused> {
        let address = match &asked.target {
            None => {
                let message = "the server could not find the requested resource".to_owned();
                return Err(Refused { code: 404, reason: "NotFound", message });
            }
            Some(Target::Health) => return Ok(json!("ok")),
            Some(Target::Version) => {
                return Ok(json!({
                    "major": "1", "minor": "35", "gitVersion": "v1.35.4", "gitCommit": "", "gitTreeState": "",
                    "buildDate": "", "goVersion": "", "compiler": "", "platform": "linux/amd64",
                }));
            }
            Some(Target::Groups) => return Ok(discovery::groups()),
            Some(Target::Discovery { group, version }) => return discovery::resources(group, version),
            Some(Target::Object(address)) => address,
        };
        let dry = asked.query.contains_key("dryRun");
        let object = || -> Result<Value, Refused> {
            serde_json::from_slice(body).map_err(|error| invalid(&error.to_string()))
        };
        if address.subresource.as_deref() == Some("scale") {
            let body = if body.is_empty() { Value::Null } else { object()? };
            return self.scale(asked, address, content_type, &body);
        }
        match asked.verb {
            "get" => self.read(address).cloned(),
            "list" => {
                let selected = |object: &&&Value| {
                    ["fieldSelector", "labelSelector"]
                        .iter()
                        .filter_map(|kind| Some((*kind, asked.query.get(*kind)?)))
                        .all(|(kind, selector)| selects(kind, selector, object))
                };
                let items: Vec<Value> =
                    self.list(address).iter().filter(selected).map(|one| (*one).clone()).collect();
                Ok(json!({
                    "apiVersion": address.kind.api_version(),
                    "kind": format!("{}List", address.kind.kind),
                    "metadata": { "resourceVersion": self.version().to_string() },
                    "items": items,
                }))
            }
            "create" if address.subresource.as_deref() == Some("eviction") => {
                match self.read(address)?["metadata"]["annotations"][BUDGET].as_str() {
                    None => {}
                    Some(NOT_IN_EARNEST) if dry => {}
                    Some(TWO_BUDGETS) => {
                        let message = "two budgets forbid it";
                        return Ok(
                            json!({ "kind": "Status", "status": "Failure", "message": message, "code": 500 }),
                        );
                    }
                    Some(NOT_IN_EARNEST) => {
                        let message = "a webhook forbids it".to_owned();
                        return Err(Refused { code: 500, reason: "InternalError", message });
                    }
                    Some("403") => {
                        let message = "a webhook forbids it".to_owned();
                        return Err(Refused { code: 403, reason: "Forbidden", message });
                    }
                    Some(_) => {
                        let message = "its budget forbids it".to_owned();
                        return Err(Refused { code: 429, reason: "TooManyRequests", message });
                    }
                }
                self.delete(&Address { subresource: None, ..address.clone() }, &Value::Null, dry)?;
                Ok(json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success" }))
            }
            "create" => self.create(address, object()?, dry),
            "update" => self.replace(address, object()?, dry),
            "delete" if body.is_empty() => self.delete(address, &Value::Null, dry),
            "delete" => self.delete(address, &object()?["preconditions"], dry),
            "patch" => {
                let manager = asked.query.get("fieldManager").cloned();
                let how = match (content_type, manager) {
                    ("application/merge-patch+json", _) => PatchType::Merge,
                    ("application/apply-patch+yaml", Some(manager)) => {
                        let force = asked.query.get("force").is_some_and(|force| force == "true");
                        PatchType::Apply(manager, force)
                    }
                    (other, _) => {
                        let message = format!("unsupported patch {other}, or no field manager");
                        return Err(Refused { code: 415, reason: "UnsupportedMediaType", message });
                    }
                };
                self.patch(address, &object()?, &how, dry)
            }
            other => Err(Refused { code: 405, reason: "MethodNotAllowed", message: other.to_owned() }),
        }
    }
}

/// What is left of an object, or of a list of objects, for a client that reads metadata only.
fn metadata_of(object: &Value) -> Value {
    let kind = if object["items"].is_array() { "PartialObjectMetadataList" } else { "PartialObjectMetadata" };
    let mut left = json!({ "apiVersion": "meta.k8s.io/v1", "kind": kind, "metadata": object["metadata"] });
    if let Some(items) = object["items"].as_array() {
        left["items"] = items.iter().map(metadata_of).collect();
    }
    left
}

fn by_rule(code: u16, title: &str) -> Refused {
    let (reason, message) = match code {
        403 => ("Forbidden", format!("forbidden: cannot {title}")),
        409 => ("Conflict", "the object has been modified".to_owned()),
        429 => ("TooManyRequests", "too many requests".to_owned()),
        _ => ("InternalError", "etcdserver: request timed out".to_owned()),
    };
    Refused { code, reason, message }
}

fn success(object: &Value) -> Response<Body> {
    let mut response = Response::new(Body::from(object.to_string().into_bytes()));
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert("content-type", json);
    response
}

fn failure(refused: &Refused) -> Response<Body> {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": refused.message, "reason": refused.reason, "code": refused.code,
    });
    let mut response = success(&status);
    *response.status_mut() = StatusCode::from_u16(refused.code).unwrap();
    response
}
