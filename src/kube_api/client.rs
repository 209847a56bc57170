//! A client of the API, and errors that contain the request that failed.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::model::error_chain::error_chain;
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, Config};
use tokio::time::timeout;

use crate::engine::wait::WaitStatus;
use crate::pki::tls_provider::install_tls_provider;

/// Deadline of one TCP and TLS connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a command waits for what it reads before it begins anything, retries included: while API servers restart one
/// after the other, one of them answers in this time.
const PATIENCE: Duration = Duration::from_secs(60);

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    /// The kubeconfig does not exist or is not valid.
    #[error("kubeconfig {}", path.display())]
    Kubeconfig { path: PathBuf, source: KubeconfigError },
    /// The kubeconfig is valid, but its credentials or addresses cannot be used.
    #[error("kubeconfig {}", path.display())]
    Unusable { path: PathBuf, source: kube::Error },
    /// No API server answered.
    #[error("cannot {call}: the API server does not answer: {reason}")]
    Unreachable {
        call: ApiCall,
        /// With its causes.
        reason: String,
    },
    /// The credentials do not permit it.
    #[error("cannot {call}: forbidden: {message}")]
    Forbidden {
        call: ApiCall,
        /// From the API server.
        message: String,
    },
    /// The object does not exist.
    #[error("cannot {call}: not found")]
    NotFound { call: ApiCall },
    /// The object changed since it was read, or exists already: read it again.
    #[error("cannot {call}: conflict: {message}")]
    Conflict {
        call: ApiCall,
        /// From the API server.
        message: String,
    },
    /// 429 or 5xx.
    #[error("cannot {call}: the API server is not ready: {message}")]
    NotReady {
        call: ApiCall,
        /// From the API server.
        message: String,
    },
    /// Any other refusal: the object is not valid.
    #[error("cannot {call}: {message}")]
    Refused {
        call: ApiCall,
        /// From the API server.
        message: String,
    },
}

/// A request: `apply node/n1`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiCall {
    /// `get`, `list`, `apply`.
    pub verb: &'static str,
    /// `node/n1`, `secret/kube-system/bootstrap-token-abcdef`.
    pub object: String,
}

impl fmt::Display for ApiCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.verb, self.object)
    }
}

impl ApiError {
    /// Whether the same request may succeed later.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Unreachable { .. } | Self::Conflict { .. } | Self::NotReady { .. })
    }

    /// For a request without an answer before the deadline of its caller.
    pub(crate) fn silent(verb: &'static str, object: impl Into<String>) -> Self {
        let reason = "no answer in time".to_owned();
        Self::Unreachable { call: ApiCall { verb, object: object.into() }, reason }
    }

    /// Classifies an error by what the caller can do about it.
    pub(crate) fn new(verb: &'static str, object: impl Into<String>, error: kube::Error) -> Self {
        let call = ApiCall { verb, object: object.into() };
        match error {
            kube::Error::Api(status) => {
                let message = status.message.clone();
                match status.code {
                    401 | 403 => Self::Forbidden { call, message },
                    404 => Self::NotFound { call },
                    409 => Self::Conflict { call, message },
                    429 | 500..=599 => Self::NotReady { call, message },
                    _ => Self::Refused { call, message },
                }
            }
            kube::Error::SerdeError(error) => Self::Refused { call, message: error.to_string() },
            kube::Error::BuildRequest(error) => Self::Refused { call, message: error.to_string() },
            other => Self::Unreachable { call, reason: error_chain(&other) },
        }
    }
}

/// What a command reads before it begins anything.
///
/// # Errors
/// That of the request; that there was no answer in a minute.
pub async fn in_time<T>(
    (verb, object): (&'static str, &str),
    request: impl Future<Output = Result<T, ApiError>>,
) -> Result<T, ApiError> {
    timeout(PATIENCE, request).await.unwrap_or_else(|_| Err(ApiError::silent(verb, object)))
}

/// As [`connect`], for a caller that decides itself when to ask again: the client retries no answer with 429, 503 or 504.
///
/// # Errors
/// As [`connect`].
pub async fn connect_without_retry(kubeconfig: &Path) -> Result<Client, ApiError> {
    connect_with(kubeconfig, |config| config.default_retry = false).await
}

/// A client for the current context of a kubeconfig. Sends nothing yet.
///
/// Proxies from the environment are not used: the bootstrap node reaches its cluster directly.
///
/// # Errors
/// When the file cannot be read or used.
pub async fn connect(kubeconfig: &Path) -> Result<Client, ApiError> {
    connect_with(kubeconfig, |_| {}).await
}

async fn connect_with(kubeconfig: &Path, change: impl FnOnce(&mut Config)) -> Result<Client, ApiError> {
    install_tls_provider();
    let path = || kubeconfig.to_owned();
    let parsed =
        Kubeconfig::read_from(kubeconfig).map_err(|source| ApiError::Kubeconfig { path: path(), source })?;
    let mut config = Config::from_custom_kubeconfig(parsed, &KubeConfigOptions::default())
        .await
        .map_err(|source| ApiError::Kubeconfig { path: path(), source })?;
    config.proxy_url = None;
    config.connect_timeout = Some(CONNECT_TIMEOUT);
    change(&mut config);
    Client::try_from(config).map_err(|source| ApiError::Unusable { path: path(), source })
}

impl<T> From<ApiError> for WaitStatus<T> {
    fn from(error: ApiError) -> Self {
        if error.is_transient() { Self::NotYet(error.to_string()) } else { Self::Never(error.to_string()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube::core::Status;

    #[tokio::test(start_paused = true)]
    async fn an_api_that_hangs_does_not_hold_a_command_up_for_ever() {
        let began = tokio::time::Instant::now();
        let error = in_time(("list", "nodes"), std::future::pending::<Result<(), _>>()).await.unwrap_err();
        assert_eq!(error.to_string(), "cannot list nodes: the API server does not answer: no answer in time");
        assert_eq!(began.elapsed(), PATIENCE);
        assert!(in_time(("list", "nodes"), async { Ok(()) }).await.is_ok());
    }

    #[test]
    fn errors_are_classified_by_status_code() {
        let classify = |code| {
            let status = Status { code, ..Status::failure("detail", "Reason") };
            ApiError::new("apply", "node/n1", kube::Error::Api(status.boxed()))
        };
        let lines: Vec<String> = [401, 403, 404, 409, 422, 429, 503]
            .map(classify)
            .map(|error| format!("{error} ({})", if error.is_transient() { "again" } else { "stop" }))
            .into();
        insta::assert_snapshot!(lines.join("\n"), @"
        cannot apply node/n1: forbidden: detail (stop)
        cannot apply node/n1: forbidden: detail (stop)
        cannot apply node/n1: not found (stop)
        cannot apply node/n1: conflict: detail (again)
        cannot apply node/n1: detail (stop)
        cannot apply node/n1: the API server is not ready: detail (again)
        cannot apply node/n1: the API server is not ready: detail (again)
        ");
    }

    #[tokio::test]
    async fn an_unreachable_api_server_is_reported_with_the_request() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("admin.conf");
        // Nothing listens on port 1.
        let text = "{apiVersion: v1, kind: Config, current-context: c, clusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'}}], contexts: [{name: c, context: {cluster: c, user: u}}], users: [{name: u, user: {}}]}";
        std::fs::write(&path, text).unwrap();
        let client = connect(&path).await.unwrap();
        let error = crate::kube_api::nodes::list(&client).await.unwrap_err();
        assert!(error.is_transient());
        assert!(
            error.to_string().starts_with("cannot list nodes: the API server does not answer"),
            "{error}"
        );
        assert!(error.to_string().contains("Connection refused"), "{error}");
    }
}
