//! Digests that say whether two values are the same, and nothing else.

use std::hash::{Hash, Hasher};

use ring::hmac;
use serde::{Deserialize, Serialize};

/// Bytes of a salt.
pub const SALT: usize = 32;

/// A secret of one plan. Without it, a digest of a short secret could be found by guessing; beside it in the
/// file it still makes sure that no table made beforehand helps, and that two plans have nothing in common.
pub struct Key(hmac::Key);

/// HMAC-SHA-256 (RFC 2104) of a value, in hexadecimal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Digest(String);

impl Key {
    /// Made of a plan's salt.
    pub fn new(salt: &[u8; SALT]) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, salt))
    }

    /// Of a value, as its `Hash` takes it apart: every field with its length, so that no two values look alike.
    /// Comparable only among digests of the same build of metalform.
    pub fn digest(&self, value: &(impl Hash + ?Sized)) -> Digest {
        let mut feed = Feed(hmac::Context::with_key(&self.0));
        value.hash(&mut feed);
        Digest(hex::encode(feed.0.sign()))
    }
}

struct Feed(hmac::Context);

impl Hasher for Feed {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Nobody asks: what is wanted does not fit 64 bits.
    fn finish(&self) -> u64 {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_value_with_the_same_salt_has_the_same_digest() {
        let (key, other) = (Key::new(&[1; SALT]), Key::new(&[2; SALT]));
        assert_eq!(key.digest(&("ab", "c")), key.digest(&("ab", "c")));
        assert_ne!(key.digest(&("ab", "c")), key.digest(&("a", "bc")));
        assert_ne!(key.digest("a"), other.digest("a"));
        assert_eq!(key.digest("a").0.len(), 64);
    }
}
