//! Why a private key cannot be held in memory.

/// A text is not a private key that can be used without a file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HeldKeyError {
    /// It has a passphrase.
    #[error("the private key is encrypted; store it without a passphrase (ssh-keygen -p -N '')")]
    Encrypted,
    /// It is a public key, or that of a hardware token.
    #[error("this is no private key")]
    NotPrivate,
    /// It cannot be parsed.
    #[error("this is no private key: {0}")]
    Invalid(String),
}
