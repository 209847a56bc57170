//! ECDSA keys on NIST P-256 whose private scalar starts with a zero byte: one of 256.
//!
//! OpenSSH writes the scalar as an `mpint`, without leading zero bytes (RFC 4251, section 5), and the `ssh-key` crate refuses
//! one of fewer than 32 bytes, up to 0.7.0-rc.12. Such a key is decoded here.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use russh::keys::ssh_key::cipher::Tag;
use russh::keys::ssh_key::encoding::{Decode, Reader};
use russh::keys::ssh_key::private::{EcdsaKeypair, EcdsaPrivateKey, KeypairData};
use russh::keys::ssh_key::{Cipher, Error, Kdf, public};
use russh::keys::{Error as KeyError, PrivateKey, decode_secret_key};
use zeroize::Zeroizing;

const MAGIC: &[u8] = b"openssh-key-v1\0";
const SIZE: usize = 32;

/// A private key in any format, as [`decode_secret_key`], and one whose scalar is short.
pub(super) fn decode(text: &str, passphrase: Option<&str>) -> Result<PrivateKey, KeyError> {
    decode_secret_key(text, passphrase).or_else(|error| match error {
        KeyError::SshKey(Error::Encoding(_)) => decode_short(text, passphrase).ok_or(error),
        _ => Err(error),
    })
}

/// `None` when it is not such a key, which the error of [`decode_secret_key`] then says better.
fn decode_short(text: &str, passphrase: Option<&str>) -> Option<PrivateKey> {
    let lines = text.lines().filter(|line| !line.starts_with("-----")).map(str::trim);
    let base64 = Zeroizing::new(lines.collect::<String>());
    let file = Zeroizing::new(BASE64_STANDARD.decode(&*base64).ok()?);
    let mut reader = file.strip_prefix(MAGIC)?;
    let cipher = Cipher::decode(&mut reader).ok()?;
    let kdf = Kdf::decode(&mut reader).ok()?;
    let one_key = u32::decode(&mut reader).ok()? == 1;
    let public = reader.read_prefixed(public::KeyData::decode).ok().filter(|_| one_key)?;
    let mut section = Zeroizing::new(Vec::decode(&mut reader).ok()?);
    if cipher.is_some() {
        let (key, iv) = kdf.derive_key_and_iv(cipher, passphrase?).ok()?;
        let mut tag = Tag::default();
        if cipher.has_tag() {
            reader.read(&mut tag).ok()?;
        }
        cipher.decrypt(&key, &iv, &mut section, cipher.has_tag().then_some(tag)).ok()?;
    }
    from_section(&section, &public)
}

/// The private section of PROTOCOL.key of OpenSSH: two equal numbers, the key, and a comment.
fn from_section(section: &[u8], public: &public::KeyData) -> Option<PrivateKey> {
    let mut reader = section;
    let decrypted = u32::decode(&mut reader).ok()? == u32::decode(&mut reader).ok()?;
    let named = public::KeyData::decode(&mut reader).ok().filter(|named| decrypted && named == public)?;
    let scalar =
        Zeroizing::new(Vec::decode(&mut reader).ok().filter(|scalar: &Vec<u8>| scalar.len() < SIZE)?);
    let mut bytes = [0; SIZE];
    bytes[SIZE - scalar.len()..].copy_from_slice(&scalar);
    let public::KeyData::Ecdsa(public::EcdsaPublicKey::NistP256(point)) = named else {
        return None;
    };
    let pair = EcdsaKeypair::NistP256 { public: point, private: EcdsaPrivateKey::from(bytes) };
    PrivateKey::new(KeypairData::Ecdsa(pair), "").ok()
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::path::Path;
    use std::process::Command;

    use russh::keys::ssh_key::rand_core::{TryCryptoRng, TryRng};
    use russh::keys::ssh_key::{EcdsaCurve, LineEnding};

    use super::*;

    /// Not random at all.
    struct Short;

    impl TryRng for Short {
        type Error = Infallible;

        fn try_next_u32(&mut self) -> Result<u32, Infallible> {
            Ok(7)
        }

        fn try_next_u64(&mut self) -> Result<u64, Infallible> {
            Ok(7)
        }

        fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
            bytes.fill(7);
            // A scalar's bytes are taken from the least one on.
            bytes.last_mut().into_iter().for_each(|byte| *byte = 0);
            Ok(())
        }
    }

    impl TryCryptoRng for Short {}

    fn short_key() -> PrivateKey {
        let pair = EcdsaKeypair::random(&mut Short, EcdsaCurve::NistP256).unwrap();
        assert!(matches!(pair.private_key_bytes(), [0, 7, ..]), "{:?}", pair.private_key_bytes());
        PrivateKey::new(KeypairData::Ecdsa(pair), "ops").unwrap()
    }

    /// As OpenSSH writes it, with that passphrase.
    fn written_by_openssh(path: &Path, passphrase: &str, more: &[&str]) -> String {
        let arguments = ["-q", "-p", "-P", "", "-N", passphrase, "-f"];
        let written = Command::new("ssh-keygen").args(more).args(arguments).arg(path).output().unwrap();
        assert!(written.status.success(), "{written:?}");
        std::fs::read_to_string(path).unwrap()
    }

    #[test]
    fn a_key_with_a_short_scalar_is_read_with_and_without_a_passphrase() {
        let directory = tempfile::tempdir().unwrap();
        let key = short_key();
        for (passphrase, more) in
            [("", &[][..]), ("secret", &[]), ("secret", &["-Z", "chacha20-poly1305@openssh.com"])]
        {
            let path = directory.path().join("id");
            key.write_openssh_file(&path, LineEnding::LF).unwrap();
            let text = written_by_openssh(&path, passphrase, more);
            assert!(
                decode_secret_key(&text, Some("secret")).is_err(),
                "the crate reads it now: delete this file"
            );
            let read = decode(&text, Some(passphrase)).unwrap();
            assert_eq!(read.key_data().ecdsa().unwrap(), key.key_data().ecdsa().unwrap());
            if !passphrase.is_empty() {
                assert!(matches!(decode(&text, None), Err(KeyError::KeyIsEncrypted)));
                assert!(decode(&text, Some("wrong")).is_err());
            }
        }
    }

    #[test]
    fn what_is_no_such_key_has_the_error_of_the_crate() {
        for text in
            ["", "no key", "-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n-----END OPENSSH PRIVATE KEY-----\n"]
        {
            let ours = decode(text, None).unwrap_err().to_string();
            assert_eq!(ours, decode_secret_key(text, None).unwrap_err().to_string());
        }
    }
}
