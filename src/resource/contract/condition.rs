//! What can be waited for on a host.

use std::fmt;

/// Something that is so or not, seen from the host.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
pub enum Condition {
    /// A TCP connection is accepted.
    Port {
        /// A name or an address, without brackets.
        host: String,
        /// 1 to 65535.
        port: u16,
    },
    /// A URL is answered, redirects not followed.
    Http {
        /// Of http or https.
        url: String,
        /// The status code that counts.
        status: u16,
        /// Path on the host of the authority that https is checked against; `None` is the system's.
        ca: Option<String>,
    },
    /// Something is at a path.
    File {
        /// Absolute path.
        path: String,
    },
}

impl Condition {
    /// `10.0.0.1:6443 to accept connections`: what follows "waits for".
    pub fn wish(&self) -> String {
        match self {
            Self::Port { .. } => format!("{} to accept connections", self.subject()),
            Self::Http { status, .. } => format!("{} to answer {status}", self.subject()),
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

impl fmt::Display for Condition {
    /// `10.0.0.1:6443 accepts connections`: what holds.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let subject = self.subject();
        match self {
            Self::Port { .. } => write!(f, "{subject} accepts connections"),
            Self::Http { status, .. } => write!(f, "{subject} answers {status}"),
            Self::File { .. } => write!(f, "{subject} exists"),
        }
    }
}
