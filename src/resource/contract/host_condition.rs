//! What a host can wait for.

use std::fmt;

/// Something that is true or false, as observed from the host.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
pub enum HostCondition {
    /// A TCP connection is accepted.
    Port {
        /// A name or an address, without brackets.
        host: String,
        /// 1 to 65535.
        port: u16,
    },
    /// A URL returns a status code; redirects are not followed.
    Http {
        /// http or https.
        url: String,
        /// The expected status code.
        status: u16,
        /// Path on the host of the CA certificate that verifies https; `None` is the system's store.
        ca: Option<String>,
    },
    /// Something exists at a path.
    File {
        /// Absolute path.
        path: String,
    },
}

impl HostCondition {
    /// `10.0.0.1:6443 to accept connections`: continues "waiting for".
    pub fn wish(&self) -> String {
        match self {
            Self::Port { .. } => format!("{} to accept connections", self.subject()),
            Self::Http { status, .. } => format!("{} to return {status}", self.subject()),
            Self::File { .. } => format!("{} to exist", self.subject()),
        }
    }

    fn subject(&self) -> String {
        match self {
            Self::Port { host, port } if host.contains(':') => format!("[{host}]:{port}"),
            Self::Port { host, port } => format!("{host}:{port}"),
            Self::Http { url, .. } => url.clone(),
            Self::File { path } => path.clone(),
        }
    }
}

impl fmt::Display for HostCondition {
    /// `10.0.0.1:6443 accepts connections`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let subject = self.subject();
        match self {
            Self::Port { .. } => write!(f, "{subject} accepts connections"),
            Self::Http { status, .. } => write!(f, "{subject} returns {status}"),
            Self::File { .. } => write!(f, "{subject} exists"),
        }
    }
}
