//! Downloads a URL to a file, and accepts it only with the expected digest.

use std::path::Path;
use std::time::Duration;

use futures::StreamExt;
use tokio::io::AsyncWriteExt;

use super::digest::Sha256;
use crate::model::error_chain::root_cause;
use crate::pki::tls_provider::tls_provider;

/// Limit of the time between two reads.
const SILENCE: Duration = Duration::from_secs(30);
/// Limit of the time to connect.
const CONNECT: Duration = Duration::from_secs(10);
/// Limit of the size of a published digest file, in bytes.
const DIGEST_FILE_LIMIT: usize = 1 << 20;

/// Limit of redirects; GitHub's release URLs have two.
const REDIRECTS: usize = 5;

/// Why an artefact was refused.
#[derive(Debug, thiserror::Error)]
pub enum DownloadError {
    /// The TLS client could not be set up.
    #[error("cannot set up a TLS client")]
    Client(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// No connection, or an interrupted one.
    #[error("cannot reach {url}: {reason}")]
    Unreachable {
        /// Of the request.
        url: String,
        /// The innermost cause.
        reason: String,
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
        source: std::io::Error,
    },
}

impl DownloadError {
    /// Whether the artefact is unavailable, so that another source may be used. An artefact with a wrong digest is an
    /// error in any case.
    pub fn is_absence(&self) -> bool {
        matches!(self, Self::Unreachable { .. } | Self::Status { .. })
    }
}

/// Downloads over HTTPS with the system's certificate authorities and the proxy variables of the environment.
pub(super) struct Downloader {
    client: reqwest::Client,
}

impl Downloader {
    /// # Errors
    /// [`DownloadError::Client`].
    pub(super) fn new() -> Result<Self, DownloadError> {
        let mut roots = rustls::RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        let tls = rustls::ClientConfig::builder_with_provider(tls_provider())
            .with_safe_default_protocol_versions()
            .map_err(|error| DownloadError::Client(error.into()))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let client = reqwest::Client::builder()
            .tls_backend_preconfigured(tls)
            .redirect(reqwest::redirect::Policy::custom(follow))
            .connect_timeout(CONNECT)
            .read_timeout(SILENCE)
            .build()
            .map_err(|error| DownloadError::Client(error.into()))?;
        Ok(Self { client })
    }

    /// The digest at `digest_url` of the artefact named `name`.
    ///
    /// # Errors
    /// When it is unavailable, or does not contain the artefact.
    pub(super) async fn published_digest(
        &self,
        digest_url: &str,
        name: &str,
    ) -> Result<Sha256, DownloadError> {
        let mut body = self.get(digest_url).await?.bytes_stream();
        let mut text = Vec::new();
        while let Some(chunk) = body.next().await {
            text.extend_from_slice(&chunk.map_err(|error| unreachable(digest_url, &error))?);
            if text.len() > DIGEST_FILE_LIMIT {
                break;
            }
        }
        find_digest(&String::from_utf8_lossy(&text), name)
            .ok_or_else(|| DownloadError::DigestMissing { url: digest_url.to_owned(), name: name.to_owned() })
    }

    /// Writes the artefact to `path`. After an error, the file does not exist.
    ///
    /// # Errors
    /// When it is unavailable, has another digest, or cannot be written.
    pub(super) async fn fetch(&self, url: &str, expected: &Sha256, path: &Path) -> Result<(), DownloadError> {
        let outcome = self.fetch_into(url, expected, path).await;
        if outcome.is_err() {
            // The file may not exist; the first error is the relevant one.
            let _ = tokio::fs::remove_file(path).await;
        }
        outcome
    }

    async fn fetch_into(&self, url: &str, expected: &Sha256, path: &Path) -> Result<(), DownloadError> {
        let write = |source| DownloadError::Write { path: path.display().to_string(), source };
        let mut body = self.get(url).await?.bytes_stream();
        let mut file = tokio::fs::File::create(path).await.map_err(write)?;
        while let Some(chunk) = body.next().await {
            let chunk = chunk.map_err(|error| unreachable(url, &error))?;
            file.write_all(&chunk).await.map_err(write)?;
        }
        file.flush().await.map_err(write)?;
        let (found, _) = Sha256::of_file(path).map_err(write)?;
        if found == *expected {
            return Ok(());
        }
        Err(DownloadError::Altered { url: url.to_owned(), found, expected: expected.clone() })
    }

    async fn get(&self, url: &str) -> Result<reqwest::Response, DownloadError> {
        let response = self.client.get(url).send().await.map_err(|error| unreachable(url, &error))?;
        if response.status().is_success() {
            return Ok(response);
        }
        Err(DownloadError::Status { url: url.to_owned(), status: response.status().as_u16() })
    }
}

/// A redirect from HTTPS to HTTP would remove the protection of a published digest.
fn follow(attempt: reqwest::redirect::Attempt<'_>) -> reqwest::redirect::Action {
    let was_secure = attempt.previous().last().is_some_and(|url| url.scheme() == "https");
    if was_secure && attempt.url().scheme() != "https" {
        return attempt.error("redirected from https to plain http");
    }
    if attempt.previous().len() > REDIRECTS { attempt.error("too many redirects") } else { attempt.follow() }
}

fn unreachable(url: &str, error: &reqwest::Error) -> DownloadError {
    DownloadError::Unreachable { url: url.to_owned(), reason: root_cause(error).to_string() }
}

/// Parses one bare digest, or lines of sha256sum(1): digest, space, space or `*`, path.
fn find_digest(text: &str, name: &str) -> Option<Sha256> {
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    let named = lines.clone().find_map(|line| {
        let (digest, path) = line.split_once(char::is_whitespace)?;
        let path = path.trim_start().trim_start_matches('*').trim_end();
        (path.rsplit('/').next() == Some(name)).then(|| digest.parse().ok())?
    });
    named.or_else(|| match (lines.next(), lines.next()) {
        (Some(only), None) => only.trim().parse().ok(),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_found_in_each_published_form() {
        let (a, b) = ("a".repeat(64), "b".repeat(64));
        let cases = [
            (format!("{a}\n"), Some(&a)),
            (a.clone(), Some(&a)),
            (format!("{b}  other.tgz\n{a}  tool.tgz\n"), Some(&a)),
            (format!("{a} *./dist/tool.tgz\n"), Some(&a)),
            (format!("{a}  other.tgz\n"), None),
            (format!("{a}\n{b}\n"), None),
            ("<html>not here</html>".to_owned(), None),
        ];
        for (text, expected) in cases {
            let found = find_digest(&text, "tool.tgz");
            assert_eq!(found.as_ref().map(Sha256::as_str), expected.map(String::as_str), "{text}");
        }
    }
}
