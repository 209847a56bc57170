//! One plain HTTP request, as a Kubernetes `httpGet` probe makes it.

use std::net::SocketAddr;
use std::time::Duration;

use axum::body::Body;
use axum::http::{Request, StatusCode, header};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use tokio::time::timeout;

use crate::model::error_chain::root_cause;

/// Why there is no status.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProbeError {
    /// The path is not valid in a URL.
    #[error("{path:?} is not a valid path")]
    Path { path: String },
    /// The connection failed, or the response is not HTTP.
    #[error("http://{address}: {reason}")]
    Failed {
        address: SocketAddr,
        /// The innermost cause: `Connection refused (os error 111)`.
        reason: String,
    },
    /// The deadline passed.
    #[error("http://{address}: no response in {} ms", deadline.as_millis())]
    TimedOut {
        address: SocketAddr,
        /// Of connecting and responding.
        deadline: Duration,
    },
}

/// Requests `http://ADDRESS/path` on a new connection; redirects are not followed, and proxies are not used.
///
/// # Errors
/// When no status is received before the deadline.
pub async fn get(address: SocketAddr, path: &str, deadline: Duration) -> Result<StatusCode, ProbeError> {
    let request = Request::get(format!("http://{address}{path}"))
        .header(header::CONNECTION, "close")
        .body(Body::empty())
        .map_err(|_| ProbeError::Path { path: path.to_owned() })?;
    let client = Client::builder(TokioExecutor::new()).build::<_, Body>(HttpConnector::new());
    match timeout(deadline, client.request(request)).await {
        Ok(Ok(response)) => Ok(response.status()),
        Ok(Err(error)) => Err(ProbeError::Failed { address, reason: root_cause(&error).to_string() }),
        Err(_) => Err(ProbeError::TimedOut { address, deadline }),
    }
}

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::routing::get as route;
    use tokio::net::TcpListener;

    use super::*;

    const SOON: Duration = Duration::from_secs(5);

    #[tokio::test]
    async fn the_status_is_returned_whatever_the_body_contains() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = Router::new()
            .route("/health", route(|| async { "OK" }))
            .route("/ready", route(|| async { (StatusCode::SERVICE_UNAVAILABLE, "not 200 OK") }));
        tokio::spawn(async move { axum::serve(listener, router).await });
        assert_eq!(get(address, "/health", SOON).await, Ok(StatusCode::OK));
        assert_eq!(get(address, "/ready", SOON).await, Ok(StatusCode::SERVICE_UNAVAILABLE));
        assert!(matches!(get(address, "/ ", SOON).await, Err(ProbeError::Path { .. })));
    }

    #[tokio::test]
    async fn a_refused_connection_and_a_silent_server_are_told_apart() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let error = get(address, "/", Duration::from_millis(50)).await.unwrap_err();
        assert_eq!(error.to_string(), format!("http://{address}: no response in 50 ms"));
        drop(listener);
        let error = get(address, "/", SOON).await.unwrap_err();
        assert_eq!(error.to_string(), format!("http://{address}: Connection refused (os error 111)"));
    }
}
