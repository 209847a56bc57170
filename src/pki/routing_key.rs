//! The key that authenticates routing messages between nodes.

use rand::CryptoRng;

/// Octets of a key: as many as HMAC-SHA256 has of output, the length that RFC 8967, section 3.1, recommends.
const OCTETS: usize = 32;

/// 32 random octets in hexadecimal digits.
pub fn routing_key(rng: &mut impl CryptoRng) -> String {
    let mut bytes = [0; OCTETS];
    rng.fill_bytes(&mut bytes);
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Whether `key` is such a key. No character of it has a meaning in a configuration file.
pub fn is_routing_key(key: &str) -> bool {
    let digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    key.len() == 2 * OCTETS && key.bytes().all(digit)
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand::rngs::StdRng;

    use super::*;

    #[test]
    fn a_key_is_64_hexadecimal_digits_and_never_the_same_twice() {
        let mut rng = StdRng::seed_from_u64(1);
        let (first, second) = (routing_key(&mut rng), routing_key(&mut rng));
        assert_ne!(first, second);
        assert!(is_routing_key(&first) && is_routing_key(&second));
        assert!(!is_routing_key("") && !is_routing_key(&first[1..]));
        assert!(!is_routing_key(&format!("\"{}", &first[1..])));
    }
}
