//! New ECDSA P-256 keys.

use p256::SecretKey;
use p256::pkcs8::{EncodePrivateKey, LineEnding};
use rand::CryptoRng;
use rcgen::KeyPair;
use zeroize::Zeroizing;

/// Generates a key. Unlike `rcgen::KeyPair::generate` it takes its randomness from the argument.
///
/// # Errors
/// When the key cannot be encoded as PKCS #8, or rcgen rejects it.
pub(super) fn generate(rng: &mut impl CryptoRng) -> Result<KeyPair, rcgen::Error> {
    let mut scalar = Zeroizing::new([0; 32]);
    let key = loop {
        rng.fill_bytes(scalar.as_mut_slice());
        // Zero and the numbers from the group's order on are not private keys (one in 2^32).
        if let Ok(key) = SecretKey::from_slice(scalar.as_slice()) {
            break key;
        }
    };
    let pem = key.to_pkcs8_pem(LineEnding::LF).map_err(|_| rcgen::Error::CouldNotParseKeyPair)?;
    KeyPair::from_pem(&pem)
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand::rngs::StdRng;

    use super::*;

    #[test]
    fn a_key_depends_on_the_generator_alone() {
        let key = |seed| generate(&mut StdRng::seed_from_u64(seed)).unwrap().serialize_pem();
        assert_eq!(key(1), key(1));
        assert_ne!(key(1), key(2));
        assert!(key(1).starts_with("-----BEGIN PRIVATE KEY-----"));
    }
}
