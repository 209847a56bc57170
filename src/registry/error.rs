//! Why an image was not read from the registry, or not written to it.

use std::io;

use axum::http::{Method, StatusCode};

use super::image_name::ImageNameError;
use crate::bundle::manifest::BundleManifestError;

/// Why the registry does not have an image, or still has it.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// No client for the socket or address.
    #[error("no client for the registry at {place}")]
    Client {
        /// Socket or address of the registry.
        place: String,
        /// From the client.
        source: reqwest::Error,
    },
    /// The reference is not a name that the registry can serve.
    #[error(transparent)]
    Name(#[from] ImageNameError),
    /// The bundle whose images are loaded.
    #[error("the bundle in {directory} cannot be used")]
    Bundle {
        /// The bundle.
        directory: String,
        /// Why.
        source: Box<BundleManifestError>,
    },
    /// A part of the image cannot be read.
    #[error("image {reference}: cannot read {part}")]
    Read {
        /// The image.
        reference: String,
        /// `sha256:...`, or the path of a file.
        part: String,
        /// Why.
        source: SourceError,
    },
    /// The image is not one.
    #[error("image {reference}: {part} is not a manifest of an image or of an index")]
    Manifest {
        /// The image.
        reference: String,
        /// `sha256:...`
        part: String,
        /// Why.
        source: ManifestError,
    },
    /// An image that consists of too many manifests.
    #[error("image {reference}: more than {limit} manifests")]
    TooMany {
        /// The image.
        reference: String,
        /// How many it may have.
        limit: usize,
    },
    /// The registry is unreachable, or refused the image.
    #[error("image {reference}: push to the registry at {place} failed")]
    Push {
        /// The image.
        reference: String,
        /// Socket or address of the registry.
        place: String,
        /// The request that failed.
        source: Box<RequestError>,
    },
    /// The registry is unreachable, or refused to list or to remove images.
    #[error("the registry at {place} failed")]
    Request {
        /// Socket or address of the registry.
        place: String,
        /// The request that failed.
        source: Box<RequestError>,
    },
}

/// Why a part of an image cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// The file, or the archive that contains it.
    #[error(transparent)]
    File(#[from] io::Error),
    /// The registry that has the image.
    #[error(transparent)]
    Remote(Box<oci_client::errors::OciDistributionError>),
    /// It is not there.
    #[error("missing")]
    Missing,
    /// A manifest that is larger than registries accept.
    #[error("more than {limit} bytes")]
    TooLarge {
        /// In bytes.
        limit: u64,
    },
    /// Another content than its digest.
    #[error("its content has the digest {found}")]
    Altered {
        /// `sha256:...`
        found: String,
    },
}

/// Why bytes are no manifest.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    /// Not the JSON of one.
    #[error(transparent)]
    Syntax(#[from] serde_json::Error),
    /// Neither layers nor manifests.
    #[error("neither layers nor manifests")]
    Neither,
    /// A digest of another algorithm.
    #[error("{0} is not a SHA-256 digest")]
    Digest(String),
}

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// No response.
    #[error(transparent)]
    Transport(#[from] reqwest::Error),
    /// Not the status of a success.
    #[error("{method} {url}: status {status}{}", Detail(detail))]
    Status {
        /// Of the request.
        method: Method,
        /// Of the request.
        url: String,
        /// Of the response.
        status: StatusCode,
        /// Codes of the response's errors, of the distribution-spec: `BLOB_UNKNOWN`.
        detail: Vec<String>,
    },
    /// An upload was begun, but not where to send the blob.
    #[error("POST {url}: the response has no valid location")]
    Location {
        /// Of the request.
        url: String,
    },
    /// A response of another form than the distribution-spec has.
    #[error("GET {url}: unexpected response: {reason}")]
    Response {
        /// Of the request.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
}

struct Detail<'a>(&'a [String]);

impl std::fmt::Display for Detail<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.0.is_empty() { Ok(()) } else { write!(f, " ({})", self.0.join(", ")) }
    }
}
