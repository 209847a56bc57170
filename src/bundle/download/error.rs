//! Why a download failed.

use std::error::Error;
use std::io;
use std::iter::successors;

use jiff::Timestamp;
use rustls::CertificateError;

use crate::bundle::digest::Sha256;
use crate::model::error_chain::root_cause;

/// Why an artefact was refused.
#[derive(Debug, thiserror::Error)]
pub enum DownloadError {
    /// The TLS client could not be set up.
    #[error("cannot set up a TLS client")]
    Client(#[source] Box<dyn Error + Send + Sync>),
    /// No connection.
    #[error("cannot reach {url}: {reason}")]
    Unreachable {
        /// Of the request.
        url: String,
        /// The innermost cause.
        reason: String,
    },
    /// The connection ended, or was silent for too long, before the end of the response.
    #[error("{url}: interrupted: {reason}")]
    Interrupted {
        /// Of the request.
        url: String,
        /// The innermost cause.
        reason: String,
    },
    /// The server cannot be authenticated.
    #[error("{url}: the certificate of {host} expired on {}", .expiry.strftime("%Y-%m-%d"))]
    CertificateExpired {
        /// Of the request.
        url: String,
        /// The server, which is another one after a redirect.
        host: String,
        /// The end of the certificate's validity.
        expiry: Timestamp,
    },
    /// A response without the artefact.
    #[error("{url}: HTTP status {status}")]
    Status {
        /// Of the request.
        url: String,
        /// HTTP status code.
        status: u16,
    },
    /// A digest file without a digest of the artefact.
    #[error("{url} has no SHA-256 of {name}")]
    DigestMissing {
        /// Of the digest file.
        url: String,
        /// File name of the artefact.
        name: String,
    },
    /// A file that should be short.
    #[error("{url} has more than {limit} bytes")]
    TooLarge {
        /// Of the request.
        url: String,
        /// In bytes.
        limit: u64,
    },
    /// A file that should be text.
    #[error("{url} is not UTF-8")]
    NotText {
        /// Of the request.
        url: String,
    },
    /// Other content than was published.
    #[error("{url} has SHA-256 {found}, expected {expected}")]
    Altered {
        /// Of the artefact.
        url: String,
        /// Of the content.
        found: Sha256,
        /// Pinned or published.
        expected: Sha256,
    },
    /// The file could not be written.
    #[error("cannot write {path}")]
    Write {
        /// Of the file.
        path: String,
        /// From the operating system.
        source: io::Error,
    },
}

impl DownloadError {
    /// Whether the artefact is unavailable, so that another source may be used. An artefact with a wrong digest is an
    /// error in any case.
    pub fn is_absence(&self) -> bool {
        match self {
            Self::Unreachable { .. }
            | Self::Interrupted { .. }
            | Self::CertificateExpired { .. }
            | Self::Status { .. } => true,
            Self::Client(_)
            | Self::DigestMissing { .. }
            | Self::TooLarge { .. }
            | Self::NotText { .. }
            | Self::Altered { .. }
            | Self::Write { .. } => false,
        }
    }

    /// Whether a source is at fault, and not this machine.
    pub fn is_of_source(&self) -> bool {
        !matches!(self, Self::Client(_) | Self::Write { .. })
    }

    pub(super) fn of_request(url: &str, error: &reqwest::Error) -> Self {
        let (url, reason) = (url.to_owned(), root_cause(error).to_string());
        if let Some(expiry) = expiry(error) {
            let host = error.url().and_then(|url| url.host_str()).unwrap_or_default().to_owned();
            return Self::CertificateExpired { url, host, expiry };
        }
        // A redirect that is refused is no accident of the connection.
        if error.is_connect() || error.is_redirect() || error.is_builder() {
            return Self::Unreachable { url, reason };
        }
        Self::Interrupted { url, reason }
    }
}

/// The end of validity of the expired certificate that is the cause of an error.
fn expiry(error: &(dyn Error + 'static)) -> Option<Timestamp> {
    let tls = successors(Some(error), |&error| cause(error)).find_map(|error| error.downcast_ref());
    match tls? {
        rustls::Error::InvalidCertificate(CertificateError::ExpiredContext { not_after, .. }) => {
            Timestamp::from_second(i64::try_from(not_after.as_secs()).ok()?).ok()
        }
        _ => None,
    }
}

/// The source of an [`io::Error`] is that of the error in it.
fn cause<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
    match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
        Some(inner) => Some(inner),
        None => error.source(),
    }
}
