//! What a request asks for.

use std::collections::BTreeMap;

use axum::http::Method;
use serde_json::Value;

use super::resource::{Address, Target};

/// A request, without its body.
pub struct Asked {
    pub verb: &'static str,
    pub target: Option<Target>,
    pub query: BTreeMap<String, String>,
    /// `patch nodes/n1`.
    pub title: String,
}

impl Asked {
    pub fn new(method: &Method, path: &str, query: &str) -> Self {
        let target = Target::of(path);
        let named = matches!(&target, Some(Target::Object(Address { name: Some(_), .. })));
        let verb = match *method {
            Method::GET if query.split('&').any(|pair| pair == "watch=true") => "watch",
            Method::GET if matches!(target, Some(Target::Object(_))) && !named => "list",
            Method::GET => "get",
            Method::POST => "create",
            Method::PUT => "update",
            Method::PATCH => "patch",
            Method::DELETE => "delete",
            _ => "ask",
        };
        let title = match &target {
            Some(Target::Object(address)) => format!("{verb} {address}"),
            _ => format!("{verb} {path}"),
        };
        let query = query.split('&').filter_map(|pair| pair.split_once('='));
        let query = query.map(|(key, value)| (key.to_owned(), decoded(value))).collect();
        Self { verb, target, query, title }
    }
}

/// Percent-encoding (RFC 3986), and `+` for a space.
fn decoded(text: &str) -> String {
    let (mut bytes, mut rest) = (Vec::new(), text.bytes());
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let digits: String = rest.by_ref().take(2).map(char::from).collect();
                u8::from_str_radix(&digits, 16).unwrap_or(b'?')
            }
            other => other,
        });
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Whether an object is selected: `fieldSelector` with `spec.nodeName=n1`, `labelSelector` with `a=b,c!=d`.
pub fn selects(kind: &str, selector: &str, object: &Value) -> bool {
    selector.split(',').filter(|term| !term.is_empty()).all(|term| {
        let (path, value, equal) = match term.split_once("!=") {
            Some((path, value)) => (path, value, false),
            None => match term.split_once('=') {
                Some((path, value)) => (path, value.trim_start_matches('='), true),
                None => (term, "", false),
            },
        };
        let found = match kind {
            "labelSelector" => object["metadata"]["labels"].get(path),
            _ => object.pointer(&format!("/{}", path.replace('.', "/"))),
        };
        (found.and_then(Value::as_str).unwrap_or_default() == value) == equal
    })
}
