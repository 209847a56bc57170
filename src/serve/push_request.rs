//! Which requests a push consists of (OCI distribution-spec v1.1, "Push"), and which images may be pushed. Pure.
//!
//! # Guarantees
//! - What is not recognized is refused: a path with `..`, empty parts, escapes or other characters than the names of the
//!   distribution-spec have, and every method that a push does not need, `DELETE` of images among them.
//! - No tag of a bundle is ever written.

use std::collections::BTreeMap;

use axum::http::{Method, StatusCode};

use crate::registry::image_name::is_host;

/// Longest path; a repository has at most 255 characters.
const PATH: usize = 1024;

/// A request that belongs to a push.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PushRequest {
    /// Whether this is a registry, and the credential is accepted.
    Version,
    /// Reads something.
    Read,
    /// Begins an upload, or ends it without a blob.
    Upload,
    /// Sends a part of a blob, or the last one.
    Blob,
    /// Writes a manifest.
    Manifest,
}

/// Why a request is refused, in the terms of the distribution-spec.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) status: StatusCode,
    /// `DENIED`
    pub(super) code: &'static str,
    pub(super) message: String,
}

impl Refusal {
    pub(super) fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into() }
    }
}

/// Recognizes a request. `images` are those of bundles, with the version of Kubernetes of each.
pub(super) fn parse(
    method: &Method,
    path: &str,
    images: &BTreeMap<String, String>,
) -> Result<PushRequest, Refusal> {
    let unsupported =
        || Refusal::new(StatusCode::METHOD_NOT_ALLOWED, "UNSUPPORTED", "not a request of a push");
    let invalid = |reason: &str| Refusal::new(StatusCode::BAD_REQUEST, "NAME_INVALID", reason);
    let reads = [Method::GET, Method::HEAD].contains(method);
    let Some(rest) = path.strip_prefix("/v2/") else {
        return Err(Refusal::new(
            StatusCode::NOT_FOUND,
            "UNSUPPORTED",
            "this server accepts pushes of images below /v2/",
        ));
    };
    if rest.is_empty() {
        return if reads { Ok(PushRequest::Version) } else { Err(unsupported()) };
    }
    let parts: Vec<&str> = rest.split('/').collect();
    let begins_upload = parts.ends_with(&["blobs", "uploads", ""]);
    let named = if begins_upload { &parts[..parts.len() - 1] } else { &parts[..] };
    if path.len() > PATH || !named.iter().copied().all(is_part) {
        return Err(invalid("the path has a part that no name of an image has"));
    }
    let (repository, request) = match named {
        [repository @ .., "blobs", "uploads"] if begins_upload && *method == Method::POST => {
            (repository, PushRequest::Upload)
        }
        [repository @ .., "blobs", "uploads", _] => match *method {
            Method::PATCH | Method::PUT => (repository, PushRequest::Blob),
            Method::DELETE => (repository, PushRequest::Upload),
            _ if reads => (repository, PushRequest::Read),
            _ => return Err(unsupported()),
        },
        [repository @ .., "manifests", _] if *method == Method::PUT => (repository, PushRequest::Manifest),
        [repository @ .., "manifests" | "blobs", _] | [repository @ .., "tags", "list"] if reads => {
            (repository, PushRequest::Read)
        }
        _ => return Err(unsupported()),
    };
    match repository {
        [host, _, ..] if is_host(host) && host.contains('.') => {}
        _ => {
            return Err(invalid(
                "the name of an image begins with its registry here: SERVER:PORT/docker.io/library/app:1 for docker.io/library/app:1",
            ));
        }
    }
    if request == PushRequest::Manifest {
        let image = format!("{}:{}", repository.join("/"), parts[parts.len() - 1]);
        if let Some(kubernetes) = images.get(&image) {
            let message = format!("image {image} is in the bundle of Kubernetes {kubernetes}");
            return Err(Refusal::new(StatusCode::FORBIDDEN, "DENIED", message));
        }
    }
    Ok(request)
}

/// A part of a path: of a repository's name, a tag, a digest, or the id of an upload.
fn is_part(part: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-:+=".contains(&byte);
    !part.is_empty() && part.bytes().all(plain) && !part.bytes().all(|byte| byte == b'.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_requests_of_a_push_are_recognized() {
        let images = [("registry.k8s.io/pause:3.10".to_owned(), "1.35.4".to_owned())].into();
        let cases: [(&str, &str, Result<PushRequest, &str>); 33] = [
            ("GET", "/v2/", Ok(PushRequest::Version)),
            ("HEAD", "/v2/", Ok(PushRequest::Version)),
            ("POST", "/v2/", Err("UNSUPPORTED")),
            ("GET", "/", Err("UNSUPPORTED")),
            ("GET", "/metrics", Err("UNSUPPORTED")),
            ("GET", "/v2", Err("UNSUPPORTED")),
            ("POST", "/v2/example.org/a/blobs/uploads/", Ok(PushRequest::Upload)),
            ("POST", "/v2/example.org/a/blobs/uploads", Err("UNSUPPORTED")),
            ("PATCH", "/v2/example.org/a/blobs/uploads/3f-_=", Ok(PushRequest::Blob)),
            ("PUT", "/v2/example.org/a/blobs/uploads/3f", Ok(PushRequest::Blob)),
            ("GET", "/v2/example.org/a/blobs/uploads/3f", Ok(PushRequest::Read)),
            ("DELETE", "/v2/example.org/a/blobs/uploads/3f", Ok(PushRequest::Upload)),
            ("POST", "/v2/example.org/a/blobs/uploads/3f", Err("UNSUPPORTED")),
            ("HEAD", "/v2/example.org/a/b/blobs/sha256:00", Ok(PushRequest::Read)),
            ("DELETE", "/v2/example.org/a/blobs/sha256:00", Err("UNSUPPORTED")),
            ("GET", "/v2/example.org/a/tags/list", Ok(PushRequest::Read)),
            ("GET", "/v2/example.org/a/manifests/1", Ok(PushRequest::Read)),
            ("PUT", "/v2/example.org/a/manifests/1", Ok(PushRequest::Manifest)),
            ("PUT", "/v2/registry.k8s.io/pause/manifests/mine", Ok(PushRequest::Manifest)),
            ("PUT", "/v2/registry.k8s.io/pause/manifests/3.10", Err("DENIED")),
            ("GET", "/v2/registry.k8s.io/pause/manifests/3.10", Ok(PushRequest::Read)),
            ("DELETE", "/v2/example.org/a/manifests/1", Err("UNSUPPORTED")),
            ("GET", "/v2/_catalog", Err("UNSUPPORTED")),
            ("GET", "/v2/../etc/passwd", Err("NAME_INVALID")),
            ("PUT", "/v2/example.org/../registry.k8s.io/pause/manifests/3.10", Err("NAME_INVALID")),
            ("PUT", "/v2/registry.k8s.io//pause/manifests/3.10", Err("NAME_INVALID")),
            ("PUT", "/v2/registry.k8s.io/./pause/manifests/3.10", Err("NAME_INVALID")),
            ("PUT", "/v2/registry.k8s.io/pause/manifests/3%2e10", Err("NAME_INVALID")),
            ("PUT", "/v2/example.org/a%2f..%2fb/manifests/1", Err("NAME_INVALID")),
            ("PUT", "/v2/example.org/a/manifests/", Err("NAME_INVALID")),
            ("PUT", "/v2/team/app/manifests/1", Err("NAME_INVALID")),
            ("PUT", "/v2/app/manifests/1", Err("NAME_INVALID")),
            ("PUT", "/v2/example.org/manifests/1", Err("NAME_INVALID")),
        ];
        for (method, path, expected) in cases {
            let found = parse(&method.parse().unwrap(), path, &images).map_err(|refusal| refusal.code);
            assert_eq!(found, expected, "{method} {path}");
        }
        let long = format!("/v2/example.org/{}/manifests/1", "a".repeat(2_000));
        assert!(parse(&Method::PUT, &long, &images).is_err());
    }
}
