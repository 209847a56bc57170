//! The key that encrypts secrets at rest.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rand::CryptoRng;

/// 32 random octets in base64: a `secret` of an `EncryptionConfiguration` for secretbox or AES-256
/// (kubernetes.io/docs/tasks/administer-cluster/encrypt-data).
pub fn encryption_key(rng: &mut impl CryptoRng) -> String {
    let mut bytes = [0; 32];
    rng.fill_bytes(&mut bytes);
    STANDARD.encode(bytes)
}

/// Whether `key` is such a key.
pub fn is_encryption_key(key: &str) -> bool {
    STANDARD.decode(key).is_ok_and(|bytes| bytes.len() == 32)
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand::rngs::StdRng;

    use super::*;

    #[test]
    fn a_key_is_32_octets_and_never_the_same_twice() {
        let mut rng = StdRng::seed_from_u64(1);
        let (first, second) = (encryption_key(&mut rng), encryption_key(&mut rng));
        assert_eq!(STANDARD.decode(&first).unwrap().len(), 32);
        assert_ne!(first, second);
        assert!(is_encryption_key(&first));
        assert!(!is_encryption_key("") && !is_encryption_key(&first[1..]));
    }
}
