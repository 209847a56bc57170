//! Blobs of images, from the bundles where one has them; what else is asked for below `/v2/` is the registry's.
//!
//! The registry has copies of what the bundles have, and the digest in the request is that of the file: it is the same answer
//! without a second process that copies it. A blob belongs to no repository here: hosts can read all of them anyway.

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use axum::response::Response;

use super::cached_files::Files;
use super::registry_front::{self, Upstream};
use crate::bundle::digest::Sha256;

/// Digest of a blob in a response, of the distribution-spec.
const CONTENT_DIGEST: HeaderName = HeaderName::from_static("docker-content-digest");

/// The blobs of each bundle, as files whose name is their SHA-256.
#[derive(Clone)]
pub(super) struct ImageBlobs(Vec<Files>);

/// Responds with the blob of a bundle, or with what the registry answers.
pub(super) async fn respond(
    State((blobs, upstream)): State<(ImageBlobs, Upstream)>,
    request: Request,
) -> Response {
    let found = match digest(request.uri().path()) {
        Some(digest) => blobs.find(&digest, request.method().clone(), request.headers().clone()).await,
        None => None,
    };
    match found {
        Some(response) => response,
        None => registry_front::forward(State(upstream), request).await,
    }
}

impl ImageBlobs {
    pub(super) fn new(bundles: Vec<Files>) -> Self {
        Self(bundles)
    }

    async fn find(&self, digest: &Sha256, method: Method, headers: HeaderMap) -> Option<Response> {
        for files in &self.0 {
            let mut asked = Request::new(Body::empty());
            *asked.method_mut() = method.clone();
            *asked.uri_mut() = format!("/{digest}").parse().ok()?;
            *asked.headers_mut() = headers.clone();
            match files.clone().try_call(asked).await {
                Ok(mut response) if response.status() != StatusCode::NOT_FOUND => {
                    let value = HeaderValue::try_from(format!("sha256:{digest}")).ok()?;
                    response.headers_mut().insert(CONTENT_DIGEST, value);
                    return Some(response.map(Body::new));
                }
                // One that cannot be read is the registry's to answer too.
                _ => {}
            }
        }
        None
    }
}

/// Of `/v2/NAME/blobs/sha256:DIGEST`.
fn digest(path: &str) -> Option<Sha256> {
    let (name, digest) = path.rsplit_once("/blobs/sha256:")?;
    name.starts_with("/v2/").then(|| digest.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_blobs_have_a_digest() {
        let digits = "a".repeat(64);
        for (path, expected) in [
            (format!("/v2/registry.k8s.io/pause/blobs/sha256:{digits}"), true),
            (format!("/v2/pause/manifests/sha256:{digits}"), false),
            (format!("/v2/pause/blobs/sha256:{digits}/.."), false),
            (format!("/v2/pause/blobs/sha512:{digits}"), false),
            (format!("/v2/blobs/sha256:{digits}"), false),
            ("/v2/pause/blobs/sha256:..".to_owned(), false),
            ("/v2/pause/tags/list".to_owned(), false),
        ] {
            assert_eq!(digest(&path).is_some(), expected, "{path}");
        }
    }
}
