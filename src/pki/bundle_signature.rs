//! Signatures of bundles, in the format of minisign: anyone can make and check them with its own programs.

use std::io::Cursor;

use minisign::{KeyPair, PublicKey, SecretKeyBox, SignatureBox};

use crate::model::bundle_key::BundleKey;

/// The key that signs bundles. It has no `Debug`: nothing shows it.
pub struct BundleSigningKey {
    secret: minisign::SecretKey,
    public: PublicKey,
}

/// Why a text is not signed, or cannot be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BundleSignatureError {
    /// The signing key cannot be read.
    #[error("not a secret key of minisign without a password: {reason}")]
    SecretKey {
        /// The library's message.
        reason: String,
    },
    /// The public key cannot be used.
    #[error("the public key {key} cannot be used: {reason}")]
    PublicKey {
        /// In base64.
        key: BundleKey,
        /// The library's message.
        reason: String,
    },
    /// Not a signature.
    #[error("not a signature of minisign: {reason}")]
    Syntax {
        /// The library's message.
        reason: String,
    },
    /// Signed by someone else.
    #[error("signed with the key {found}, expected {expected}")]
    OtherKey {
        /// ID of the key.
        found: String,
        /// ID of the key.
        expected: String,
    },
    /// Another text was signed.
    #[error("the signature is of another content")]
    Altered,
    /// The library could not sign.
    #[error("cannot sign: {reason}")]
    Signing {
        /// The library's message.
        reason: String,
    },
}

impl BundleSigningKey {
    /// Generates a key.
    ///
    /// # Errors
    /// When the system has no randomness.
    pub fn generate() -> Result<Self, BundleSignatureError> {
        let KeyPair { pk, sk } = KeyPair::generate_unencrypted_keypair().map_err(signing)?;
        Ok(Self { secret: sk, public: pk })
    }

    /// Reads the text of a secret key that is not encrypted.
    ///
    /// # Errors
    /// [`BundleSignatureError::SecretKey`].
    pub fn parse(text: &str) -> Result<Self, BundleSignatureError> {
        let failed = |error: minisign::PError| BundleSignatureError::SecretKey { reason: error.to_string() };
        let secret = SecretKeyBox::from_string(text).map_err(failed)?;
        let secret = secret.into_unencrypted_secret_key().map_err(failed)?;
        let public = PublicKey::from_secret_key(&secret).map_err(failed)?;
        Ok(Self { secret, public })
    }

    /// The text of the secret key, to be kept in a file of mode 0600.
    ///
    /// # Errors
    /// When the library cannot write it.
    pub fn to_text(&self) -> Result<String, BundleSignatureError> {
        Ok(self.secret.to_box(Some("metalform: key that signs bundles")).map_err(signing)?.into_string())
    }

    /// The text of the file with the public key.
    ///
    /// # Errors
    /// When the library cannot write it.
    pub fn public_text(&self) -> Result<String, BundleSignatureError> {
        Ok(self.public.to_box().map_err(signing)?.into_string())
    }

    /// The text of the signature of `content`, with a comment that is signed as well.
    ///
    /// # Errors
    /// When the library cannot sign.
    pub fn sign(&self, content: &[u8], comment: &str) -> Result<String, BundleSignatureError> {
        let signed = minisign::sign(Some(&self.public), &self.secret, content, Some(comment), None);
        Ok(signed.map_err(signing)?.into_string())
    }
}

/// Checks that `signature` is the text of a signature of `content` by this key.
///
/// # Errors
/// What it is instead.
pub fn verify(key: &BundleKey, content: &[u8], signature: &str) -> Result<(), BundleSignatureError> {
    let public = PublicKey::from_base64(key.as_str())
        .map_err(|error| BundleSignatureError::PublicKey { key: key.clone(), reason: error.to_string() })?;
    let signature = SignatureBox::from_string(signature)
        .map_err(|error| BundleSignatureError::Syntax { reason: error.to_string() })?;
    if signature.keynum() != public.keynum() {
        let (found, expected) = (id(signature.keynum()), id(public.keynum()));
        return Err(BundleSignatureError::OtherKey { found, expected });
    }
    minisign::verify(&public, &signature, Cursor::new(content), true, false, false)
        .map_err(|_| BundleSignatureError::Altered)
}

fn signing(error: minisign::PError) -> BundleSignatureError {
    BundleSignatureError::Signing { reason: error.to_string() }
}

/// As minisign writes it: the octets are a little-endian number.
fn id(octets: &[u8]) -> String {
    octets.iter().rev().map(|octet| format!("{octet:02X}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn public(key: &BundleSigningKey) -> BundleKey {
        key.public_text().unwrap().parse().unwrap()
    }

    #[test]
    fn a_key_survives_its_file_and_verifies_what_it_signed() {
        let key = BundleSigningKey::parse(&BundleSigningKey::generate().unwrap().to_text().unwrap()).unwrap();
        let signature = key.sign(b"content", "Kubernetes 1.35.4").unwrap();
        verify(&public(&key), b"content", &signature).unwrap();
        assert_eq!(verify(&public(&key), b"other", &signature), Err(BundleSignatureError::Altered));
        // The comment is signed too.
        let altered = signature.replace("1.35.4", "1.35.5");
        assert_eq!(verify(&public(&key), b"content", &altered), Err(BundleSignatureError::Altered));
    }

    #[test]
    fn another_key_and_what_is_no_signature_are_named() {
        let (key, other) = (BundleSigningKey::generate().unwrap(), BundleSigningKey::generate().unwrap());
        let signature = other.sign(b"content", "").unwrap();
        let error = verify(&public(&key), b"content", &signature).unwrap_err();
        assert!(matches!(error, BundleSignatureError::OtherKey { .. }), "{error}");
        for text in ["", "untrusted comment: x\nRWQ\n", "\n\n\n\n"] {
            let error = verify(&public(&key), b"content", text).unwrap_err();
            assert!(matches!(error, BundleSignatureError::Syntax { .. }), "{text}: {error}");
        }
        assert!(matches!(BundleSigningKey::parse("nonsense"), Err(BundleSignatureError::SecretKey { .. })));
    }

    /// From minisign's own documentation: what it signs is accepted here.
    #[test]
    fn a_signature_of_the_reference_implementation_is_accepted() {
        let key: BundleKey = "RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3".parse().unwrap();
        let signature = "untrusted comment: signature from minisign secret key\n\
            RUQf6LRCGA9i559r3g7V1qNyJDApGip8MfqcadIgT9CuhV3EMhHoN1mGTkUidF/z7SrlQgXdy8ofjb7bNJJylDOocrCo8KLzZwo=\n\
            trusted comment: timestamp:1556193335\tfile:test\n\
            y/rUw2y8/hOUYjZU71eHp/Wo1KZ40fGy2VJEDl34XMJM+TX48Ss/17u3IvIfbVR1FkZZSNCisQbuQY+bHwhEBg==";
        verify(&key, b"test", signature).unwrap();
    }
}
