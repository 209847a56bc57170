//! Pushes the images of a bundle to a registry that listens on a Unix socket, which only root can connect to.
//!
//! Protocol: OCI distribution-spec v1.1, "Push": blobs in one piece each, then the manifest.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use axum::http::{Method, StatusCode, header};
use oci_spec::distribution::Reference;
use oci_spec::image::{Descriptor, MediaType};
use reqwest::{Client, RequestBuilder, Response, Url};

use super::digest::Sha256;
use super::manifest::Bundle;
use super::oci_layout;
use crate::pki::tls_provider::install_tls_provider;

/// The host in URLs, which a Unix socket does not need.
const HOST: &str = "http://registry";
/// Digest of the manifest in a response, of the distribution-spec.
const CONTENT_DIGEST: &str = "docker-content-digest";

/// Why an image was not pushed.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// No client for the socket.
    #[error("cannot use the registry's socket {}", socket.display())]
    Client {
        /// The socket.
        socket: PathBuf,
        /// From the client.
        source: reqwest::Error,
    },
    /// The reference is not a valid repository name.
    #[error("image {0} is not a valid repository name")]
    Name(String),
    /// A blob of the bundle could not be read.
    #[error("image {reference}: cannot read {path}")]
    Read {
        /// The image.
        reference: String,
        /// Path of the blob.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// An invalid manifest in the bundle.
    #[error("image {reference}: invalid manifest")]
    Manifest {
        /// The image.
        reference: String,
        /// Why.
        source: oci_spec::OciSpecError,
    },
    /// A blob with another digest than SHA-256.
    #[error("image {reference}: {digest} is not a SHA-256")]
    Digest {
        /// The image.
        reference: String,
        /// As the manifest has it.
        digest: String,
    },
    /// The registry is unreachable, or refused the image.
    #[error("image {reference}: push to the registry at {} failed", socket.display())]
    Push {
        /// The image.
        reference: String,
        /// Socket of the registry.
        socket: PathBuf,
        /// The request that failed.
        source: RequestError,
    },
}

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// No response.
    #[error(transparent)]
    Transport(#[from] reqwest::Error),
    /// Not the status of a success.
    #[error("{method} {url}: status {status}")]
    Status {
        /// Of the request.
        method: Method,
        /// Of the request.
        url: String,
        /// Of the response.
        status: StatusCode,
    },
    /// An upload was begun, but not where to send the blob.
    #[error("POST {url}: the response has no valid location")]
    Location {
        /// Of the request.
        url: String,
    },
}

/// The result for an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loaded {
    /// The registry has the tag with the same digest.
    AlreadyThere,
    /// The tag was missing, or had another digest.
    Pushed,
}

/// The images whose tag is missing in the registry, or has another digest.
///
/// # Errors
/// An invalid name. An unreachable registry lacks all images.
pub async fn missing(bundle: &Bundle, socket: &Path) -> Result<BTreeSet<String>, RegistryError> {
    let registry = Registry::at(socket)?;
    let mut missing = BTreeSet::new();
    for (reference, digest) in &bundle.images {
        if !registry.has(&Image::parse(reference)?, digest).await {
            missing.insert(reference.clone());
        }
    }
    Ok(missing)
}

/// Pushes the [`missing`] images and reports each image to `progress`. Returns the number of pushed images. The repository
/// of an image is its full upstream name with the host: `registry.k8s.io/kube-apiserver`.
///
/// # Errors
/// The first image that is refused; those before it were pushed.
pub async fn load(
    directory: &Path,
    bundle: &Bundle,
    socket: &Path,
    progress: &(dyn Fn(&str, Loaded) + Send + Sync),
) -> Result<usize, RegistryError> {
    let registry = Registry::at(socket)?;
    let mut pushed = 0;
    for (reference, digest) in &bundle.images {
        let image = Image::parse(reference)?;
        let loaded = if registry.has(&image, digest).await {
            Loaded::AlreadyThere
        } else {
            registry.push(directory, &image, digest).await?;
            Loaded::Pushed
        };
        pushed += usize::from(loaded == Loaded::Pushed);
        progress(reference, loaded);
    }
    Ok(pushed)
}

/// An image and where it is in the registry.
struct Image<'a> {
    reference: &'a str,
    /// URL of its repository.
    repository: String,
    tag: String,
}

impl<'a> Image<'a> {
    fn parse(reference: &'a str) -> Result<Self, RegistryError> {
        let invalid = || RegistryError::Name(reference.to_owned());
        let parsed: Reference = reference.parse().map_err(|_| invalid())?;
        // A name without a host would be completed.
        if parsed.whole() != reference {
            return Err(invalid());
        }
        Ok(Self {
            reference,
            repository: format!("{HOST}/v2/{}/{}", parsed.registry(), parsed.repository()),
            tag: parsed.tag().ok_or_else(invalid)?.to_owned(),
        })
    }

    /// URL of a manifest, by its tag or digest.
    fn manifest(&self, name: &str) -> String {
        format!("{}/manifests/{name}", self.repository)
    }
}

struct Registry {
    client: Client,
    socket: PathBuf,
}

impl Registry {
    fn at(socket: &Path) -> Result<Self, RegistryError> {
        // The client is built with TLS even though it uses plain HTTP here.
        install_tls_provider();
        let client = Client::builder().unix_socket(socket).no_proxy().build();
        let client = client.map_err(|source| RegistryError::Client { socket: socket.to_owned(), source })?;
        Ok(Self { client, socket: socket.to_owned() })
    }

    /// Whether the tag of the image has this digest.
    async fn has(&self, image: &Image<'_>, digest: &Sha256) -> bool {
        let accepted =
            [MediaType::ImageManifest, MediaType::ImageIndex].map(|each| each.to_string()).join(", ");
        let request = self.client.head(image.manifest(&image.tag)).header(header::ACCEPT, accepted);
        let Ok(response) = answered(request).await else { return false };
        let found = response.headers().get(CONTENT_DIGEST).and_then(|value| value.to_str().ok());
        found.is_some_and(|found| found == format!("sha256:{digest}"))
    }

    /// An image: its manifest, or its image index with the manifest of each platform.
    async fn push(&self, bundle: &Path, image: &Image<'_>, digest: &Sha256) -> Result<(), RegistryError> {
        let (body, parts) = read_manifest(bundle, image, digest)?;
        let manifests = parts.iter().filter(|(part, _)| *part == oci_layout::MANIFEST);
        let manifests: Vec<&Descriptor> = manifests.map(|(_, manifest)| manifest).collect();
        if manifests.is_empty() {
            return self.push_manifest(bundle, image, (body, &parts), &image.tag).await;
        }
        // A registry refuses an index whose manifests it does not have.
        for manifest in manifests {
            let (body, parts) = read_manifest(bundle, image, &sha256(image, manifest)?)?;
            self.push_manifest(bundle, image, (body, &parts), manifest.digest().as_ref()).await?;
        }
        self.put(image, (body, MediaType::ImageIndex), &image.tag).await
    }

    async fn push_manifest(
        &self,
        bundle: &Path,
        image: &Image<'_>,
        (body, parts): (Vec<u8>, &[(&str, Descriptor)]),
        name: &str,
    ) -> Result<(), RegistryError> {
        // A registry refuses a manifest whose blobs it does not have.
        for (_, blob) in parts {
            self.push_blob(bundle, image, blob).await?;
        }
        self.put(image, (body, MediaType::ImageManifest), name).await
    }

    async fn put(
        &self,
        image: &Image<'_>,
        (body, media_type): (Vec<u8>, MediaType),
        name: &str,
    ) -> Result<(), RegistryError> {
        let request = self.client.put(image.manifest(name));
        let request = request.header(header::CONTENT_TYPE, media_type.to_string()).body(body);
        answered(request).await.map(drop).map_err(|source| self.refused(image, source))
    }

    async fn push_blob(
        &self,
        bundle: &Path,
        image: &Image<'_>,
        blob: &Descriptor,
    ) -> Result<(), RegistryError> {
        let name = blob.digest().to_string();
        let known = self.client.head(format!("{}/blobs/{name}", image.repository));
        match answered(known).await {
            Ok(_) => return Ok(()),
            Err(RequestError::Status { status: StatusCode::NOT_FOUND, .. }) => {}
            Err(source) => return Err(self.refused(image, source)),
        }
        let content = read(bundle, image, &sha256(image, blob)?)?;
        self.upload(image, &name, content).await.map_err(|source| self.refused(image, source))
    }

    async fn upload(&self, image: &Image<'_>, digest: &str, content: Vec<u8>) -> Result<(), RequestError> {
        let url = format!("{}/blobs/uploads/", image.repository);
        let begun = answered(self.client.post(&url)).await?;
        let mut upload = location(&begun).ok_or(RequestError::Location { url })?;
        upload.query_pairs_mut().append_pair("digest", digest);
        let content_type = (header::CONTENT_TYPE, "application/octet-stream");
        answered(self.client.put(upload).header(content_type.0, content_type.1).body(content)).await?;
        Ok(())
    }

    fn refused(&self, image: &Image<'_>, source: RequestError) -> RegistryError {
        RegistryError::Push { reference: image.reference.to_owned(), socket: self.socket.clone(), source }
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
        status => Err(RequestError::Status { method, url, status }),
    }
}

/// Absolute, or relative to the request.
fn location(response: &Response) -> Option<Url> {
    let location = response.headers().get(header::LOCATION)?.to_str().ok()?;
    response.url().join(location).ok()
}

fn sha256(image: &Image<'_>, blob: &Descriptor) -> Result<Sha256, RegistryError> {
    oci_layout::sha256(blob).ok_or_else(|| RegistryError::Digest {
        reference: image.reference.to_owned(),
        digest: blob.digest().to_string(),
    })
}

/// A manifest or image index, and what it refers to.
type Manifest = (Vec<u8>, Vec<(&'static str, Descriptor)>);

fn read_manifest(bundle: &Path, image: &Image<'_>, digest: &Sha256) -> Result<Manifest, RegistryError> {
    let body = read(bundle, image, digest)?;
    let parts = oci_layout::parts(&body)
        .map_err(|source| RegistryError::Manifest { reference: image.reference.to_owned(), source })?;
    Ok((body, parts))
}

fn read(bundle: &Path, image: &Image<'_>, digest: &Sha256) -> Result<Vec<u8>, RegistryError> {
    let path = oci_layout::blob(bundle, digest);
    fs::read(&path).map_err(|source| RegistryError::Read {
        reference: image.reference.to_owned(),
        path: path.display().to_string(),
        source,
    })
}
