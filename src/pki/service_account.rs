//! The key pair that service account tokens are signed with.

use rand::CryptoRng;
use rcgen::KeyPair;

use super::ecdsa;

/// An ECDSA P-256 key pair: `sa.key` in PKCS #8, which client-go's `keyutil.ParsePrivateKeyPEM` reads, and
/// `sa.pub` as SubjectPublicKeyInfo.
#[derive(Clone, PartialEq, Eq)]
pub struct ServiceAccountKey {
    private: String,
    public: String,
}

/// The key cannot be generated or read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot use the service account key as PKCS #8 PEM: {reason}")]
pub struct ServiceAccountKeyError {
    /// rcgen's message.
    pub reason: String,
}

impl ServiceAccountKey {
    /// Generates a key pair.
    ///
    /// # Errors
    /// When it cannot be encoded.
    pub fn create(rng: &mut impl CryptoRng) -> Result<Self, ServiceAccountKeyError> {
        ecdsa::generate(rng).map(|pair| Self::of(&pair, pair.serialize_pem())).map_err(unusable)
    }

    /// Reads the private key in PKCS #8; RSA too, as in clusters that another tool created.
    ///
    /// # Errors
    /// When it is not a private key in PKCS #8 PEM.
    pub fn from_pem(private: &str) -> Result<Self, ServiceAccountKeyError> {
        KeyPair::from_pem(private).map(|pair| Self::of(&pair, private.to_owned())).map_err(unusable)
    }

    /// PEM. A secret.
    pub fn private(&self) -> &str {
        &self.private
    }

    /// PEM.
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
    use rand::SeedableRng;
    use rand::rngs::StdRng;

    use super::*;

    #[test]
    fn the_public_half_follows_from_the_private_one() {
        let made = ServiceAccountKey::create(&mut StdRng::seed_from_u64(1)).unwrap();
        assert!(made.private().starts_with("-----BEGIN PRIVATE KEY-----"));
        assert!(made.public().starts_with("-----BEGIN PUBLIC KEY-----"));
        assert_eq!(ServiceAccountKey::from_pem(made.private()).unwrap().public(), made.public());
        assert!(ServiceAccountKey::from_pem(made.public()).is_err());
    }
}
