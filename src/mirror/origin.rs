//! A client of a server of packages and images.

use std::time::Duration;

use reqwest::header::HeaderMap;
use reqwest::{Client, Method, Response, StatusCode};

use super::contents::{self, MirrorContents};
use crate::pki::https_client::{authorities_in, https_client};

/// Limit of the time to connect.
const CONNECT: Duration = Duration::from_secs(5);
/// Limit of the time between two reads.
const SILENCE: Duration = Duration::from_secs(30);
/// Limit of the size of an answer that is kept in memory, in bytes.
const LIMIT: u64 = 64 << 20;

/// Why a server did not answer.
#[derive(Debug, thiserror::Error)]
pub enum OriginError {
    /// No certificate in the file of the authority.
    #[error("no certificate in PEM")]
    Authority,
    /// No TLS.
    #[error("no client for HTTPS")]
    Tls(#[from] rustls::Error),
    /// No response, or a part of one.
    #[error("{url}: no response")]
    Request {
        /// What was asked for.
        url: String,
        /// From the client.
        source: reqwest::Error,
    },
    /// Another status than that of a success.
    #[error("{url}: status {status}")]
    Status {
        /// What was asked for.
        url: String,
        /// The answer.
        status: StatusCode,
    },
    /// Larger than what is kept in memory.
    #[error("{url}: more than {LIMIT} bytes")]
    TooLarge {
        /// What was asked for.
        url: String,
    },
    /// Not the contents of a server.
    #[error("{url}: not the contents of a server of packages and images")]
    Contents {
        /// What was asked for.
        url: String,
        /// What is wrong with it.
        source: serde_json::Error,
    },
}

/// A server of packages and images.
pub struct Origin {
    client: Client,
    url: String,
}

impl Origin {
    /// The server at this URL, verified by this certificate authority alone, PEM. Nothing is connected yet.
    ///
    /// # Errors
    /// When no client can be made.
    pub fn new(url: &str, authority: &[u8]) -> Result<Self, OriginError> {
        let roots = authorities_in(authority).ok_or(OriginError::Authority)?;
        let url = url.trim_end_matches('/').to_owned();
        let client = https_client(roots)?.no_proxy().connect_timeout(CONNECT).read_timeout(SILENCE).build();
        match client {
            Ok(client) => Ok(Self { client, url }),
            Err(source) => Err(OriginError::Request { url, source }),
        }
    }

    /// The URL of a path on the server.
    pub fn url(&self, path: &str) -> String {
        format!("{}/{}", self.url, path.trim_start_matches('/'))
    }

    /// What the server has.
    ///
    /// # Errors
    /// When it does not answer, or with something else.
    pub async fn contents(&self) -> Result<MirrorContents, OriginError> {
        let body = self.get(contents::PATH).await?;
        serde_json::from_slice(&body)
            .map_err(|source| OriginError::Contents { url: self.url(contents::PATH), source })
    }

    /// Its response to this request, without following anything; the body has not been read. The target is a path with its
    /// query.
    ///
    /// # Errors
    /// When it does not answer.
    pub async fn ask(
        &self,
        method: Method,
        target: &str,
        headers: HeaderMap,
    ) -> Result<Response, OriginError> {
        let url = self.url(target);
        let request = self.client.request(method, &url).headers(headers);
        request.send().await.map_err(|source| OriginError::Request { url, source })
    }

    /// A short file, whole.
    ///
    /// # Errors
    /// When the server does not have it, or it is not short.
    pub async fn get(&self, path: &str) -> Result<Vec<u8>, OriginError> {
        let url = self.url(path);
        let failed = |source| OriginError::Request { url: url.clone(), source };
        let mut response = self.client.get(&url).send().await.map_err(failed)?;
        if !response.status().is_success() {
            return Err(OriginError::Status { status: response.status(), url });
        }
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(failed)? {
            if (body.len() + chunk.len()) as u64 > LIMIT {
                return Err(OriginError::TooLarge { url });
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body)
    }
}
