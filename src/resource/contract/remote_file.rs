//! What a host downloads by itself.

/// A URL and the digest of its content.
#[derive(Debug, Clone, PartialEq, Eq, Hash, serde::Serialize)]
pub struct RemoteFile {
    /// http or https. It may contain a password, so it is neither shown nor an argument of a process.
    pub url: String,
    /// SHA-256 of the content, lowercase hex.
    pub sha256: String,
    /// Path on the host of the CA certificate that verifies https; `None` is the system's store.
    pub ca: Option<String>,
}
