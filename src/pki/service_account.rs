//! The key pair that service account tokens are signed with.

use rcgen::KeyPair;

/// An ECDSA P-256 key pair: `sa.key` in PKCS #8, which client-go's `keyutil.ParsePrivateKeyPEM` reads, and
/// `sa.pub` as SubjectPublicKeyInfo.
#[derive(Clone, PartialEq, Eq)]
pub struct ServiceAccountKey {
    private: String,
    public: String,
}

/// Why there is no usable key pair.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the service account key cannot be used as PKCS #8 PEM: {reason}")]
pub struct ServiceAccountKeyError {
    /// What rcgen said.
    pub reason: String,
}

impl ServiceAccountKey {
    /// Makes a new one.
    ///
    /// # Errors
    /// When the system has no randomness to give.
    pub fn create() -> Result<Self, ServiceAccountKeyError> {
        KeyPair::generate().map(|pair| Self::of(&pair, pair.serialize_pem())).map_err(unusable)
    }

    /// Reads one in PKCS #8; RSA too, as clusters taken over from elsewhere have it.
    ///
    /// # Errors
    /// When it is not a private key in PKCS #8 PEM.
    pub fn from_pem(private: &str) -> Result<Self, ServiceAccountKeyError> {
        KeyPair::from_pem(private).map(|pair| Self::of(&pair, private.to_owned())).map_err(unusable)
    }

    /// The private key, PEM. A secret.
    pub fn private(&self) -> &str {
        &self.private
    }

    /// The public key, PEM.
    pub fn public(&self) -> &str {
        &self.public
    }

    fn of(pair: &KeyPair, private: String) -> Self {
        Self { private, public: pair.public_key_pem() }
    }
}

fn unusable(error: rcgen::Error) -> ServiceAccountKeyError {
    ServiceAccountKeyError { reason: error.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_public_half_follows_from_the_private_one() {
        let made = ServiceAccountKey::create().unwrap();
        assert!(made.private().starts_with("-----BEGIN PRIVATE KEY-----"));
        assert!(made.public().starts_with("-----BEGIN PUBLIC KEY-----"));
        assert_eq!(ServiceAccountKey::from_pem(made.private()).unwrap().public(), made.public());
        assert!(ServiceAccountKey::from_pem(made.public()).is_err());
    }
}
