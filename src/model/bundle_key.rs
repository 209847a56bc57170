//! The public key that bundles must be signed with.

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// Octets of a key: the algorithm, the key's ID, the Ed25519 key.
const LENGTH: usize = 2 + 8 + 32;
const ALGORITHM: &[u8] = b"Ed";

/// A public key of minisign (<https://jedisct1.github.io/minisign/>): the second line of its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BundleKey(String);

/// A text that is no public key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not a public key of minisign: expected the second line of the .pub file, which begins with RW"
)]
pub struct BundleKeyError(String);

impl BundleKey {
    /// In base64.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for BundleKey {
    type Err = BundleKeyError;

    /// The key alone, or the whole file.
    fn from_str(text: &str) -> Result<Self, BundleKeyError> {
        let last = text.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or_default();
        match STANDARD.decode(last) {
            Ok(octets) if octets.len() == LENGTH && octets.starts_with(ALGORITHM) => {
                Ok(Self(last.to_owned()))
            }
            _ => Err(BundleKeyError(last.to_owned())),
        }
    }
}

impl fmt::Display for BundleKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_alone_or_in_its_file() {
        let key = "RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3";
        for text in [key.to_owned(), format!("untrusted comment: minisign public key 1\n{key}\n")] {
            assert_eq!(text.parse::<BundleKey>().unwrap().as_str(), key);
        }
        for text in
            ["", "RWQ", "not base64!", &key[..52], "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"]
        {
            assert!(text.parse::<BundleKey>().is_err(), "{text}");
        }
    }
}
