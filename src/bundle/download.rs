//! Downloads artefacts side by side, and accepts each only with the expected digest.
//!
//! # Guarantees
//! What was received remains in the cache until the artefact is complete, and is resumed after an interruption, by the
//! same build or by the next one. A file with another digest is removed.

use std::future::Future;
use std::num::NonZeroUsize;
use std::path::Path;
use std::pin::pin;
use std::time::Duration;

use futures::StreamExt;
use reqwest::header::{CONTENT_RANGE, ETAG, HeaderMap, IF_RANGE, LAST_MODIFIED, RANGE};
use reqwest::{RequestBuilder, Response, StatusCode};
use rustls::RootCertStore;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep};

use super::digest::Sha256;
use super::event::{BundleEvent, BundleEvents};
use super::worker_thread::on_worker_thread;
use crate::pki::https_client::https_client;

pub mod error;
pub(super) mod partial_file;
pub mod progress;
mod retry;

use error::DownloadError;
use partial_file::{PartialFile, Record};
use progress::{Counted, Meter};

/// Limit of the time to connect.
const CONNECT: Duration = Duration::from_secs(10);
/// Limit of the size of a published digest file, in bytes.
const DIGEST_FILE_LIMIT: u64 = 1 << 20;
/// Limit of redirects; GitHub's release URLs have two.
const REDIRECTS: usize = 5;
/// Between two reports of progress.
const REPORT: Duration = Duration::from_secs(1);

/// Limits of the downloads of a build.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DownloadLimits {
    /// Number of downloads side by side.
    pub side_by_side: NonZeroUsize,
    /// Limit of the time between two reads.
    pub silence: Duration,
    /// The pause after the first interruption of a download; doubles with each further one.
    pub pause: Duration,
}

impl DownloadLimits {
    /// For sources on the internet.
    pub fn new(side_by_side: NonZeroUsize) -> Self {
        Self { side_by_side, silence: Duration::from_secs(30), pause: Duration::from_secs(1) }
    }
}

/// The certificate authorities of this machine.
pub(super) fn system_authorities() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    roots
}

/// Downloads over HTTPS with the proxy variables of the environment.
pub(super) struct Downloader<'a> {
    client: reqwest::Client,
    /// The directory of partial files.
    cache: &'a Path,
    limits: DownloadLimits,
    slots: Semaphore,
    meter: Meter,
    events: BundleEvents<'a>,
}

/// One of the downloads that the limit allows.
pub(super) struct Download<'a> {
    downloader: &'a Downloader<'a>,
    counted: Counted<'a>,
    _slot: Option<SemaphorePermit<'a>>,
}

impl<'a> Downloader<'a> {
    /// # Errors
    /// [`DownloadError::Client`].
    pub(super) fn new(
        cache: &'a Path,
        limits: DownloadLimits,
        authorities: RootCertStore,
        events: BundleEvents<'a>,
    ) -> Result<Self, DownloadError> {
        let client = https_client(authorities)
            .map_err(|error| DownloadError::Client(error.into()))?
            .redirect(reqwest::redirect::Policy::custom(follow))
            .connect_timeout(CONNECT)
            .read_timeout(limits.silence)
            .build()
            .map_err(|error| DownloadError::Client(error.into()))?;
        let slots = Semaphore::new(limits.side_by_side.get());
        Ok(Self { client, cache, limits, slots, meter: Meter::default(), events })
    }

    /// Waits until the limit allows one more download, which is counted as pending meanwhile.
    pub(super) async fn begin(&'a self) -> Download<'a> {
        let counted = self.meter.count();
        // The semaphore is never closed.
        let slot = self.slots.acquire().await.ok();
        Download { downloader: self, counted, _slot: slot }
    }

    /// Reports the progress of the downloads while `work` runs.
    pub(super) async fn reporting<T>(&self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        let began = Instant::now();
        let mut ticks = interval_at(began + REPORT, REPORT);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                result = &mut work => return result,
                _ = ticks.tick() => if let Some(progress) = self.meter.progress(began.elapsed()) {
                    (self.events)(BundleEvent::Downloading(progress));
                },
            }
        }
    }

    /// A short file, whole.
    ///
    /// # Errors
    /// When it is unavailable, has more bytes than `limit`, or is not UTF-8.
    pub(super) async fn text(&self, url: &str, limit: u64) -> Result<String, DownloadError> {
        self.persist(async || self.short_file(url, limit).await).await
    }

    async fn short_file(&self, url: &str, limit: u64) -> Result<String, DownloadError> {
        let response = answered(url, self.client.get(url)).await?;
        accept(url, &response)?;
        let mut body = response.bytes_stream();
        let mut content = Vec::new();
        while let Some(chunk) = body.next().await {
            content.extend_from_slice(&chunk.map_err(|error| DownloadError::of_request(url, &error))?);
            if content.len() as u64 > limit {
                return Err(DownloadError::TooLarge { url: url.to_owned(), limit });
            }
        }
        String::from_utf8(content).map_err(|_| DownloadError::NotText { url: url.to_owned() })
    }

    /// Attempts until a success, a permanent error or the limit of attempts.
    async fn persist<T>(
        &self,
        mut attempt: impl AsyncFnMut() -> Result<T, DownloadError>,
    ) -> Result<T, DownloadError> {
        let mut failed = 0;
        loop {
            let error = match attempt().await {
                Err(error) => error,
                success => return success,
            };
            failed += 1;
            let Some(pause) = retry::pause(&error, failed, self.limits.pause) else { return Err(error) };
            let (reason, limit) = (error.to_string(), retry::ATTEMPTS);
            (self.events)(BundleEvent::Retrying { reason, attempt: failed + 1, limit, pause });
            sleep(pause).await;
        }
    }
}

impl Download<'_> {
    /// The digest at `digest_url` of the artefact named `name`.
    ///
    /// # Errors
    /// When it is unavailable, or does not contain the artefact.
    pub(super) async fn published_digest(
        &self,
        digest_url: &str,
        name: &str,
    ) -> Result<Sha256, DownloadError> {
        let text = self.downloader.text(digest_url, DIGEST_FILE_LIMIT).await?;
        find_digest(&text, name)
            .ok_or_else(|| DownloadError::DigestMissing { url: digest_url.to_owned(), name: name.to_owned() })
    }

    /// Downloads the artefact to `place`, which must be on the file system of the cache.
    ///
    /// # Errors
    /// When it is unavailable, has another digest, or cannot be written. `place` does not exist then.
    pub(super) async fn fetch(self, url: &str, expected: &Sha256, place: &Path) -> Result<(), DownloadError> {
        let write = |source| DownloadError::Write { path: place.display().to_string(), source };
        let mut partial = PartialFile::open(self.downloader.cache, url, expected).map_err(write)?;
        self.counted.begin(partial.length(), partial.size());
        let attempt = async || {
            self.receive(url, &mut partial).await?;
            verify(url, expected, &mut partial).await
        };
        self.downloader.persist(attempt).await?;
        partial.keep(place).map_err(write)?;
        self.counted.finish();
        Ok(())
    }

    /// Appends what is missing of the artefact, or all of it where the server cannot resume.
    async fn receive(&self, url: &str, partial: &mut PartialFile) -> Result<(), DownloadError> {
        if partial.is_whole() {
            return Ok(());
        }
        let mut request = self.downloader.client.get(url);
        if let Some((position, validator)) = partial.resumption() {
            request = request.header(RANGE, format!("bytes={position}-")).header(IF_RANGE, validator);
        }
        let path = partial.path().to_owned();
        let write = |source| DownloadError::Write { path: path.display().to_string(), source };
        let response = answered(url, request).await?;
        match response.status() {
            StatusCode::PARTIAL_CONTENT if resumes(response.headers(), partial) => partial.resume(),
            StatusCode::PARTIAL_CONTENT | StatusCode::RANGE_NOT_SATISFIABLE => {
                partial.restart(None).map_err(write)?;
                let reason = "the server sent another range than was requested".to_owned();
                return Err(DownloadError::Interrupted { url: url.to_owned(), reason });
            }
            _ => {
                accept(url, &response)?;
                partial.restart(record(&response)).map_err(write)?;
            }
        }
        let size = response.content_length().map(|rest| partial.length() + rest);
        self.counted.begin(partial.length(), size);
        let mut body = response.bytes_stream();
        while let Some(chunk) = body.next().await {
            let chunk = chunk.map_err(|error| DownloadError::of_request(url, &error))?;
            partial.append(&chunk).map_err(write)?;
            self.counted.add(chunk.len() as u64);
        }
        Ok(())
    }
}

/// Drops what has another digest. That of one response is what the source has; else two of its contents may be mixed.
async fn verify(url: &str, expected: &Sha256, partial: &mut PartialFile) -> Result<(), DownloadError> {
    let path = partial.path().to_owned();
    let write = |source| DownloadError::Write { path: path.display().to_string(), source };
    let file = path.clone();
    let (found, _) = on_worker_thread(move || Sha256::of_file(&file)).await.map_err(write)?;
    if found == *expected {
        return Ok(());
    }
    let url = url.to_owned();
    if partial.is_resumed() {
        partial.restart(None).map_err(write)?;
        return Err(DownloadError::Interrupted {
            url,
            reason: format!("the resumed file has SHA-256 {found}"),
        });
    }
    partial.remove().map_err(write)?;
    Err(DownloadError::Altered { url, found, expected: expected.clone() })
}

async fn answered(url: &str, request: RequestBuilder) -> Result<Response, DownloadError> {
    request.send().await.map_err(|error| DownloadError::of_request(url, &error))
}

fn accept(url: &str, response: &Response) -> Result<(), DownloadError> {
    match response.status() {
        status if status.is_success() => Ok(()),
        status => Err(DownloadError::Status { url: url.to_owned(), status: status.as_u16() }),
    }
}

/// What later requests are resumed with. Weak entity tags are not allowed in If-Range.
fn record(response: &Response) -> Option<Record> {
    let header = |name| response.headers().get(name).and_then(|value| value.to_str().ok());
    let tag = header(ETAG).filter(|tag| !tag.starts_with("W/"));
    let validator = tag.or_else(|| header(LAST_MODIFIED))?.to_owned();
    Some(Record { validator, size: response.content_length() })
}

/// Whether a partial response begins where the file ends: `Content-Range: bytes 100-999/1000`.
fn resumes(headers: &HeaderMap, partial: &PartialFile) -> bool {
    let range = headers.get(CONTENT_RANGE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let first = range.strip_prefix("bytes ").and_then(|range| range.split_once('-')).map(|(first, _)| first);
    first.and_then(|first| first.parse().ok()) == Some(partial.length())
}

/// A redirect from HTTPS to HTTP would remove the protection of a published digest.
fn follow(attempt: reqwest::redirect::Attempt<'_>) -> reqwest::redirect::Action {
    let was_secure = attempt.previous().last().is_some_and(|url| url.scheme() == "https");
    if was_secure && attempt.url().scheme() != "https" {
        return attempt.error("redirected from https to plain http");
    }
    if attempt.previous().len() > REDIRECTS { attempt.error("too many redirects") } else { attempt.follow() }
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
