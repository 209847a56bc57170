//! Fetches a URL into a file, and accepts it only with the digest that it must have.

use std::path::Path;
use std::time::Duration;

use futures::StreamExt;
use tokio::io::AsyncWriteExt;

use super::digest::Sha256;
use crate::pki::tls_provider::tls_provider;

/// How long a server may stay silent.
const SILENCE: Duration = Duration::from_secs(30);
/// How long a connection may take.
const CONNECT: Duration = Duration::from_secs(10);
/// A published digest file is small; more than this is something else (bytes).
const DIGEST_FILE_LIMIT: usize = 1 << 20;

/// GitHub's release URLs need two.
const REDIRECTS: usize = 5;

/// Why an artefact was not accepted.
#[derive(Debug, thiserror::Error)]
pub enum DownloadError {
    /// The TLS client cannot be set up.
    #[error("no TLS client")]
    Client(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// No connection, or it broke.
    #[error("{url} cannot be reached: {reason}")]
    Unreachable {
        /// What was asked for.
        url: String,
        /// The innermost cause.
        reason: String,
    },
    /// The server answered, but not with the artefact.
    #[error("{url}: the server answered {status}")]
    Status {
        /// What was asked for.
        url: String,
        /// HTTP status code.
        status: u16,
    },
    /// The digest file says nothing of the artefact.
    #[error("{url} has no SHA-256 of {name}")]
    DigestMissing {
        /// The digest file.
        url: String,
        /// File name of the artefact.
        name: String,
    },
    /// The bytes are not those that were published.
    #[error("{url} has SHA-256 {found}, but {expected} is expected")]
    Altered {
        /// The artefact.
        url: String,
        /// Of what came.
        found: Sha256,
        /// Pinned or published.
        expected: Sha256,
    },
    /// The file cannot be written.
    #[error("{path} cannot be written")]
    Write {
        /// The file.
        path: String,
        /// What the system said.
        source: std::io::Error,
    },
}

impl DownloadError {
    /// Whether another source may be used instead: the artefact is not there to be had. An artefact with
    /// a wrong digest is never passed over in silence.
    pub fn is_absence(&self) -> bool {
        matches!(self, Self::Unreachable { .. } | Self::Status { .. })
    }
}

/// Downloads over HTTPS with the system's certificate authorities; the proxy variables of the environment hold.
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

    /// The digest that `digest_url` publishes for the artefact named `name`.
    ///
    /// # Errors
    /// When it cannot be had, or does not name the artefact.
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

    /// Writes the artefact to `path`, which is whole and right when this returns well, and absent otherwise.
    ///
    /// # Errors
    /// When it cannot be had, has another digest, or cannot be written.
    pub(super) async fn fetch(&self, url: &str, expected: &Sha256, path: &Path) -> Result<(), DownloadError> {
        let outcome = self.fetch_into(url, expected, path).await;
        if outcome.is_err() {
            // What is left of it may be missing already; the first error is the one to tell.
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

/// A redirect from HTTPS to plain HTTP would make a published digest worthless.
fn follow(attempt: reqwest::redirect::Attempt<'_>) -> reqwest::redirect::Action {
    let was_secure = attempt.previous().last().is_some_and(|url| url.scheme() == "https");
    if was_secure && attempt.url().scheme() != "https" {
        return attempt.error("redirected from https to plain http");
    }
    if attempt.previous().len() > REDIRECTS { attempt.error("too many redirects") } else { attempt.follow() }
}

fn unreachable(url: &str, error: &reqwest::Error) -> DownloadError {
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    DownloadError::Unreachable { url: url.to_owned(), reason: cause.to_string() }
}

/// Either one bare digest, or lines of sha256sum(1): digest, blank, blank or `*`, path.
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
