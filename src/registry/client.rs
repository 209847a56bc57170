//! The registry of this node, on a Unix socket where it accepts writes, else on loopback: OCI distribution-spec v1.1.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use axum::http::{Method, StatusCode, header};
use bytes::Bytes;
use reqwest::{Body, Client, RequestBuilder, Response, Url};
use serde::Deserialize;

use super::error::{RegistryError, RequestError};
use super::image_source::BlobStream;
use super::manifest::{self, Part};
use crate::bundle::digest::Sha256;
use crate::pki::tls_provider::install_tls_provider;

/// The host in URLs, which a Unix socket does not need.
const HOST: &str = "http://registry";
/// Digest of the manifest in a response, of the distribution-spec.
const CONTENT_DIGEST: &str = "docker-content-digest";
/// Names in one response of the catalog.
const PAGE: usize = 100;
/// How often an upload that failed is cancelled, and how long after the time before.
const CANCELS: u32 = 5;
const CANCEL_PAUSE: Duration = Duration::from_millis(100);

/// A client of the registry.
pub struct RegistryClient {
    client: Client,
    /// Its socket or address, for messages.
    place: String,
    /// `http://` and the host in URLs.
    host: String,
}

#[derive(Deserialize)]
struct Catalog {
    repositories: Vec<String>,
}

#[derive(Deserialize)]
struct Tags {
    tags: Option<Vec<String>>,
}

#[derive(Deserialize)]
struct Errors {
    errors: Vec<ErrorEntry>,
}

#[derive(Deserialize)]
struct ErrorEntry {
    code: String,
}

impl RegistryClient {
    /// Of the registry at this socket. Nothing is connected yet.
    ///
    /// # Errors
    /// When no client can be made.
    pub fn at(socket: &Path) -> Result<Self, RegistryError> {
        // The client is built with TLS even though it uses plain HTTP here.
        install_tls_provider();
        let client = Client::builder().unix_socket(socket).no_proxy().build();
        Self::new(client, socket.display().to_string(), HOST.to_owned())
    }

    /// Of the registry at this address, which refuses writes. Nothing is connected yet.
    ///
    /// # Errors
    /// When no client can be made.
    pub fn read_only(address: SocketAddr) -> Result<Self, RegistryError> {
        install_tls_provider();
        let client = Client::builder().no_proxy().build();
        Self::new(client, address.to_string(), format!("http://{address}"))
    }

    fn new(client: reqwest::Result<Client>, place: String, host: String) -> Result<Self, RegistryError> {
        match client {
            Ok(client) => Ok(Self { client, place, host }),
            Err(source) => Err(RegistryError::Client { place, source }),
        }
    }

    pub(super) fn place(&self) -> &str {
        &self.place
    }

    fn manifest_url(&self, repository: &str, name: &str) -> String {
        format!("{}/v2/{repository}/manifests/{name}", self.host)
    }

    pub(super) fn failed(&self, source: RequestError) -> RegistryError {
        RegistryError::Request { place: self.place.clone(), source: Box::new(source) }
    }

    /// The digest of a tag, or `None` when there is no such tag.
    pub(super) async fn digest(&self, repository: &str, tag: &str) -> Result<Option<Sha256>, RequestError> {
        let request = self.client.head(self.manifest_url(repository, tag));
        let response = found(accepting(request)).await?;
        Ok(response.as_ref().and_then(content_digest))
    }

    /// A manifest by its tag or its digest.
    pub(super) async fn manifest(&self, repository: &str, name: &str) -> Result<Option<Bytes>, RequestError> {
        let request = self.client.get(self.manifest_url(repository, name));
        match found(accepting(request)).await? {
            Some(response) => Ok(Some(response.bytes().await?)),
            None => Ok(None),
        }
    }

    pub(super) async fn put_manifest(
        &self,
        (repository, name): (&str, &str),
        media_type: &str,
        body: Bytes,
    ) -> Result<(), RequestError> {
        let request = self.client.put(self.manifest_url(repository, name));
        answered(request.header(header::CONTENT_TYPE, media_type).body(body)).await.map(drop)
    }

    /// Removes a tag, or a manifest by its digest with all its tags. Returns whether there was one.
    pub(super) async fn delete_manifest(&self, repository: &str, name: &str) -> Result<bool, RequestError> {
        Ok(found(self.client.delete(self.manifest_url(repository, name))).await?.is_some())
    }

    pub(super) async fn has_blob(&self, repository: &str, blob: &Part) -> Result<bool, RequestError> {
        let request = self.client.head(format!("{}/v2/{repository}/blobs/{}", self.host, blob.name()));
        Ok(found(request).await?.is_some())
    }

    /// Uploads a blob in one request. The registry verifies its digest. After a failure nothing of it takes up space there.
    pub(super) async fn upload(
        &self,
        repository: &str,
        blob: &Part,
        content: BlobStream,
    ) -> Result<(), RequestError> {
        let url = format!("{}/v2/{repository}/blobs/uploads/", self.host);
        let begun = answered(self.client.post(&url)).await?;
        let upload = location(&begun).ok_or(RequestError::Location { url })?;
        let mut whole = upload.clone();
        whole.query_pairs_mut().append_pair("digest", &blob.name());
        let request = self.client.put(whole).header(header::CONTENT_TYPE, "application/octet-stream");
        let request = request.header(header::CONTENT_LENGTH, blob.size);
        let uploaded = answered(request.body(Body::wrap_stream(content))).await;
        if uploaded.is_err() {
            self.cancel(upload).await;
        }
        uploaded.map(drop)
    }

    /// Removes what was received of an upload, as far as that succeeds. The registry deletes only at the location that it
    /// returns for the bytes that it has, and right after the failure it may still be writing some.
    async fn cancel(&self, mut upload: Url) {
        upload.set_query(None);
        for _ in 0..CANCELS {
            let Ok(Some(state)) = found(self.client.get(upload.clone())).await else { return };
            let Some(current) = location(&state) else { return };
            if answered(self.client.delete(current)).await.is_ok() {
                return;
            }
            tokio::time::sleep(CANCEL_PAUSE).await;
        }
    }

    /// Every repository, in order.
    pub(super) async fn repositories(&self) -> Result<Vec<String>, RequestError> {
        let mut repositories: Vec<String> = Vec::new();
        loop {
            let url = format!("{}/v2/_catalog?n={PAGE}", self.host);
            let url = match repositories.last() {
                Some(last) => format!("{url}&last={last}"),
                None => url,
            };
            let page: Catalog = json(answered(self.client.get(url)).await?).await?;
            let more = page.repositories.len() == PAGE;
            repositories.extend(page.repositories);
            if !more {
                return Ok(repositories);
            }
        }
    }

    /// The tags of a repository; none of one that does not exist.
    pub(super) async fn tags(&self, repository: &str) -> Result<Vec<String>, RequestError> {
        match found(self.client.get(format!("{}/v2/{repository}/tags/list", self.host))).await? {
            Some(response) => Ok(json::<Tags>(response).await?.tags.unwrap_or_default()),
            None => Ok(Vec::new()),
        }
    }
}

fn accepting(request: RequestBuilder) -> RequestBuilder {
    manifest::TYPES.iter().fold(request, |request, name| request.header(header::ACCEPT, *name))
}

fn content_digest(response: &Response) -> Option<Sha256> {
    manifest::sha256(response.headers().get(CONTENT_DIGEST)?.to_str().ok()?)
}

async fn json<T: for<'a> Deserialize<'a>>(response: Response) -> Result<T, RequestError> {
    let url = response.url().path().to_owned();
    let body = response.bytes().await?;
    serde_json::from_slice(&body).map_err(|error| RequestError::Response { url, reason: error.to_string() })
}

/// The response of a success, or `None` when the registry does not have it.
async fn found(request: RequestBuilder) -> Result<Option<Response>, RequestError> {
    match answered(request).await {
        Ok(response) => Ok(Some(response)),
        Err(RequestError::Status { status: StatusCode::NOT_FOUND, .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The response of a success.
async fn answered(request: RequestBuilder) -> Result<Response, RequestError> {
    let (client, request) = request.build_split();
    let request = request?;
    let (method, url) = (request.method().clone(), request.url().path().to_owned());
    let response = client.execute(request).await?;
    match response.status() {
        status if status.is_success() => Ok(response),
        status => Err(RequestError::Status { detail: codes(&method, response).await, method, url, status }),
    }
}

/// What the registry reports, where it reports something.
async fn codes(method: &Method, response: Response) -> Vec<String> {
    let body = if method == Method::HEAD { Bytes::new() } else { response.bytes().await.unwrap_or_default() };
    let errors = serde_json::from_slice::<Errors>(&body).map(|errors| errors.errors).unwrap_or_default();
    errors.into_iter().map(|error| error.code).collect()
}

/// Absolute, or relative to the request.
fn location(response: &Response) -> Option<Url> {
    let location = response.headers().get(header::LOCATION)?.to_str().ok()?;
    response.url().join(location).ok()
}
