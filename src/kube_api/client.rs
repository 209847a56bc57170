//! Reaching the API, and saying what went wrong with what was tried.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::engine::wait::Seen;
use crate::model::error_chain::error_chain;
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, Config};

/// For one TCP and TLS connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Why something was not done through the API.
#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    /// The kubeconfig is missing or wrong.
    #[error("kubeconfig {}", path.display())]
    Kubeconfig {
        /// Its path.
        path: PathBuf,
        /// What is wrong with it.
        source: KubeconfigError,
    },
    /// The kubeconfig could be read, but no client can be made of it.
    #[error("kubeconfig {}", path.display())]
    Unusable {
        /// Its path.
        path: PathBuf,
        /// What is wrong with it.
        source: kube::Error,
    },
    /// No API server answered.
    #[error("cannot {attempt}: the API server does not answer: {reason}")]
    Unreachable {
        /// What was tried.
        attempt: Attempt,
        /// What came back, causes included.
        reason: String,
    },
    /// We are not who may do this.
    #[error("cannot {attempt}: not allowed: {said}")]
    Forbidden {
        /// What was tried.
        attempt: Attempt,
        /// What the API server said.
        said: String,
    },
    /// It is not there.
    #[error("cannot {attempt}: not found")]
    NotFound {
        /// What was tried.
        attempt: Attempt,
    },
    /// It changed since it was read, or exists already: read it again.
    #[error("cannot {attempt}: it was changed meanwhile: {said}")]
    Conflict {
        /// What was tried.
        attempt: Attempt,
        /// What the API server said.
        said: String,
    },
    /// The API server is there and has trouble of its own (429, 5xx).
    #[error("cannot {attempt}: the API server is not ready: {said}")]
    NotReady {
        /// What was tried.
        attempt: Attempt,
        /// What it said.
        said: String,
    },
    /// Any other refusal: the object is not acceptable.
    #[error("cannot {attempt}: {said}")]
    Refused {
        /// What was tried.
        attempt: Attempt,
        /// What the API server said.
        said: String,
    },
}

/// What was tried: `apply node/n1`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// `get`, `list`, `apply`.
    pub verb: &'static str,
    /// `node/n1`, `secret/kube-system/bootstrap-token-abcdef`.
    pub object: String,
}

impl fmt::Display for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.verb, self.object)
    }
}

impl ApiError {
    /// Whether trying again without a person's help may succeed.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Unreachable { .. } | Self::Conflict { .. } | Self::NotReady { .. })
    }

    /// Nothing came back in the time that the caller had.
    pub(crate) fn silent(verb: &'static str, object: impl Into<String>) -> Self {
        let reason = "there was no answer in time".to_owned();
        Self::Unreachable { attempt: Attempt { verb, object: object.into() }, reason }
    }

    /// Sorts what the client says by what the caller can do about it.
    pub(crate) fn new(verb: &'static str, object: impl Into<String>, error: kube::Error) -> Self {
        let attempt = Attempt { verb, object: object.into() };
        match error {
            kube::Error::Api(status) => {
                let said = status.message.clone();
                match status.code {
                    401 | 403 => Self::Forbidden { attempt, said },
                    404 => Self::NotFound { attempt },
                    409 => Self::Conflict { attempt, said },
                    429 | 500..=599 => Self::NotReady { attempt, said },
                    _ => Self::Refused { attempt, said },
                }
            }
            kube::Error::SerdeError(error) => Self::Refused { attempt, said: error.to_string() },
            kube::Error::BuildRequest(error) => Self::Refused { attempt, said: error.to_string() },
            other => Self::Unreachable { attempt, reason: error_chain(&other) },
        }
    }
}

/// Makes a client of a kubeconfig's current context. Nothing is sent yet.
///
/// A proxy from the environment is not used: who grows a cluster reaches it directly.
///
/// # Errors
/// When the file cannot be read, or says nothing that a client can be made of.
pub async fn connect(kubeconfig: &Path) -> Result<Client, ApiError> {
    install_crypto();
    let path = || kubeconfig.to_owned();
    let parsed =
        Kubeconfig::read_from(kubeconfig).map_err(|source| ApiError::Kubeconfig { path: path(), source })?;
    let mut config = Config::from_custom_kubeconfig(parsed, &KubeConfigOptions::default())
        .await
        .map_err(|source| ApiError::Kubeconfig { path: path(), source })?;
    config.proxy_url = None;
    config.connect_timeout = Some(CONNECT_TIMEOUT);
    Client::try_from(config).map_err(|source| ApiError::Unusable { path: path(), source })
}

/// rustls takes its cryptography from the process. Whoever came first has installed the same one.
fn install_crypto() {
    let _already_installed = tokio_rustls::rustls::crypto::ring::default_provider().install_default();
}

impl<T> From<ApiError> for Seen<T> {
    fn from(error: ApiError) -> Self {
        if error.is_transient() { Self::NotYet(error.to_string()) } else { Self::Never(error.to_string()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube::core::Status;

    #[test]
    fn refusals_are_sorted_by_what_can_be_done_about_them() {
        let sort = |code| {
            let status = Status { code, ..Status::failure("said", "Reason") };
            ApiError::new("apply", "node/n1", kube::Error::Api(status.boxed()))
        };
        let lines: Vec<String> = [401, 403, 404, 409, 422, 429, 503]
            .map(sort)
            .map(|error| format!("{error} ({})", if error.is_transient() { "again" } else { "stop" }))
            .into();
        insta::assert_snapshot!(lines.join("\n"), @"
        cannot apply node/n1: not allowed: said (stop)
        cannot apply node/n1: not allowed: said (stop)
        cannot apply node/n1: not found (stop)
        cannot apply node/n1: it was changed meanwhile: said (again)
        cannot apply node/n1: said (stop)
        cannot apply node/n1: the API server is not ready: said (again)
        cannot apply node/n1: the API server is not ready: said (again)
        ");
    }

    #[tokio::test]
    async fn a_silent_api_server_is_named_with_what_was_tried() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("admin.conf");
        // Port 1 of the loopback address is refused by every kernel that has nobody there.
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
