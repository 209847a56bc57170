//! Digests that show whether two values are equal, and nothing else about them.

use std::io;

use ring::hmac;
use serde::{Deserialize, Serialize};

/// Bytes of a salt.
pub const SALT: usize = 32;

/// The HMAC key of one plan, derived from its salt. The salt is in the same file as the digests: it keeps
/// precomputed tables from being useful, and makes digests of two plans incomparable. It does not protect a short
/// secret from a reader of the file who guesses it.
pub struct Key(hmac::Key);

/// HMAC-SHA-256 (RFC 2104) of a value, in hexadecimal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Digest(String);

impl Key {
    /// The key for a plan's salt.
    pub fn new(salt: &[u8; SALT]) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, salt))
    }

    /// The digest of a value's JSON. The JSON of a value is always the same bytes, because all maps are ordered
    /// by key, and it distinguishes any two values of one type: strings are quoted and lists are bracketed.
    /// A value that JSON cannot express (a map whose keys are not strings) has the digest of the error message;
    /// the types that plans consist of have none.
    pub fn digest(&self, value: &(impl Serialize + ?Sized)) -> Digest {
        let mut sink = Sink(hmac::Context::with_key(&self.0));
        if let Err(error) = serde_json::to_writer(&mut sink, value) {
            sink.0.update(error.to_string().as_bytes());
        }
        Digest(hex::encode(sink.0.sign()))
    }
}

struct Sink(hmac::Context);

impl io::Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::resource::contract::step::Step;

    fn key() -> Key {
        Key::new(&[1; SALT])
    }

    #[test]
    fn only_equal_values_under_the_same_salt_have_equal_digests() {
        let other = Key::new(&[2; SALT]);
        assert_eq!(key().digest(&("ab", "c")), key().digest(&("ab", "c")));
        assert_ne!(key().digest(&("ab", "c")), key().digest(&("a", "bc")));
        assert_ne!(key().digest(&("a\",\"b", "c")), key().digest(&("a", "b\",\"c")));
        assert_ne!(key().digest("a"), other.digest("a"));
        assert_eq!(key().digest("a").0.len(), 64);
    }

    /// serde_json's feature `preserve_order` would make digests depend on the order of keys in a state file.
    #[test]
    fn the_order_in_which_keys_are_written_does_not_matter() {
        let parse = |text: &str| serde_json::from_str::<Value>(text).unwrap();
        assert_eq!(
            key().digest(&parse(r#"{"a": 1, "b": {"c": 2, "d": 3}}"#)),
            key().digest(&parse(r#"{"b": {"d": 3, "c": 2}, "a": 1}"#))
        );
    }

    /// Pins the format: a digest does not depend on how Rust lays out or hashes a value.
    #[test]
    fn a_digest_is_the_hmac_of_the_json() {
        let step = Step::Run { script: "true".to_owned() };
        let json = br#"{"Run":{"script":"true"}}"#;
        let expected = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &[1; SALT]), json);
        assert_eq!(key().digest(&step).0, hex::encode(expected));
    }
}
