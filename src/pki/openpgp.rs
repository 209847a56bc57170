//! The signing keys of package repositories and of packages, and their signatures.
//!
//! A version 4 key with the legacy EdDSA algorithm identifier over Ed25519: the one form that both Debian
//! 12's gpgv (GnuPG 2.2) and Debian 13's sqv accept. Signatures use SHA-512.

use jiff::Timestamp;
use pgp::composed::{
    ArmorOptions, CleartextSignedMessage, Deserializable, DetachedSignature, SignedKeyDetails,
    SignedSecretKey,
};
use pgp::crypto::hash::HashAlgorithm;
use pgp::crypto::public_key::PublicKeyAlgorithm;
use pgp::crypto::{ed25519, eddsa_legacy};
use pgp::packet::{
    KeyFlags, PubKeyInner, PublicKey, SecretKey, SignatureConfig, SignatureType, Subpacket, SubpacketData,
    UserId,
};
use pgp::ser::Serialize as _;
use pgp::types::{
    KeyDetails, KeyVersion, PacketHeaderVersion, Password, PlainSecretParams, PublicParams, SecretParams, Tag,
};
use rand::CryptoRng;

use super::validity::CLOCK_SKEW;

/// An OpenPGP key that signs repository indexes, or packages. It does not expire: an expired key would stop every package
/// installation of the cluster.
#[derive(Clone, PartialEq, Eq)]
pub struct RepositoryKey(SignedSecretKey);

impl std::fmt::Debug for RepositoryKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RepositoryKey({})", self.fingerprint())
    }
}

/// Why a key or a signature could not be made, read or verified.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OpenPgpError {
    /// Not an armored secret key.
    #[error("cannot read the OpenPGP key: {reason}")]
    Unreadable {
        /// The library's message.
        reason: String,
    },
    /// The clock is before 1970 or after 2106, which OpenPGP's 32 bits cannot express.
    #[error("{now} cannot be written in an OpenPGP signature")]
    Clock { now: Timestamp },
    /// A text is not signed with this key, or another text is.
    #[error("not signed with the repository's key: {reason}")]
    NotSigned {
        /// What does not match.
        reason: String,
    },
    /// The library could not make a key or a signature.
    #[error("cannot sign with the OpenPGP key: {reason}")]
    Signing {
        /// The library's message.
        reason: String,
    },
}

impl RepositoryKey {
    /// Generates a key that certifies itself. `owner` is its user ID: `metalform repository (cluster)`.
    ///
    /// # Errors
    /// When the clock cannot be expressed.
    pub fn create(owner: &str, now: Timestamp, rng: &mut impl CryptoRng) -> Result<Self, OpenPgpError> {
        let mut seed = [0; 32];
        rng.fill_bytes(&mut seed);
        self_signed(owner, moment(now)?, seed).map(Self).map_err(signing)
    }

    /// Reads the output of [`RepositoryKey::to_armor`].
    ///
    /// # Errors
    /// When it is not an armored secret key, or its self-signature is wrong.
    pub fn from_armor(text: &str) -> Result<Self, OpenPgpError> {
        let unreadable = |error: pgp::errors::Error| OpenPgpError::Unreadable { reason: error.to_string() };
        let (key, _) = SignedSecretKey::from_string(text).map_err(unreadable)?;
        key.verify_bindings().map_err(unreadable)?;
        Ok(Self(key))
    }

    /// The secret key in ASCII armor, without a passphrase. A secret.
    ///
    /// # Errors
    /// When the library cannot encode it.
    pub fn to_armor(&self) -> Result<String, OpenPgpError> {
        self.0.to_armored_string(ArmorOptions::default()).map_err(signing)
    }

    /// The public key in ASCII armor, for `signed-by=` of APT and `gpgkey=` of dnf.
    ///
    /// # Errors
    /// When the library cannot encode it.
    pub fn public_armor(&self) -> Result<String, OpenPgpError> {
        self.0.to_public_key().to_armored_string(ArmorOptions::default()).map_err(signing)
    }

    /// 40 uppercase hexadecimal digits.
    pub fn fingerprint(&self) -> String {
        hex::encode_upper(self.0.fingerprint().as_bytes())
    }

    /// Whether it is an RSA key, which the places of signatures depend on in RPM packages.
    pub fn is_rsa(&self) -> bool {
        self.0.algorithm() == PublicKeyAlgorithm::RSA
    }

    /// Signs a text in place (RFC 9580 section 7), which is the form of an `InRelease`. That form does not sign
    /// white space at the ends of lines, so it is removed; line ends become a line feed.
    ///
    /// # Errors
    /// When the clock cannot be expressed.
    pub fn clear_sign(&self, text: &str, now: Timestamp) -> Result<String, OpenPgpError> {
        let config = config(&self.0.primary_key, SignatureType::Text, moment(now)?).map_err(signing)?;
        // The line end before the signature's armor belongs to the armor, so the text has none.
        CleartextSignedMessage::new(
            &signed_lines(text).join("\n"),
            config,
            &self.0.primary_key,
            &Password::empty(),
        )
        .and_then(|message| message.to_armored_string(ArmorOptions::default()))
        .map_err(signing)
    }

    /// Verifies that `signed` is `text`, clear-signed with this key.
    ///
    /// # Errors
    /// [`OpenPgpError::NotSigned`].
    pub fn verify(&self, signed: &str, text: &str) -> Result<(), OpenPgpError> {
        let not_signed = |reason: String| OpenPgpError::NotSigned { reason };
        let (message, _) =
            CleartextSignedMessage::from_string(signed).map_err(|error| not_signed(error.to_string()))?;
        message.verify(&self.0.to_public_key()).map_err(|error| not_signed(error.to_string()))?;
        if signed_lines(&message.signed_text()) != signed_lines(text) {
            return Err(not_signed("the signed text differs".to_owned()));
        }
        Ok(())
    }

    /// Signs the bytes of a text and returns the signature alone in ASCII armor, which is the form of a
    /// `repomd.xml.asc`.
    ///
    /// # Errors
    /// When the clock cannot be expressed.
    pub fn sign_detached(&self, text: &str, now: Timestamp) -> Result<String, OpenPgpError> {
        let key = &self.0.primary_key;
        config(key, SignatureType::Binary, moment(now)?)
            .and_then(|config| config.sign(key, &Password::empty(), text.as_bytes()))
            .and_then(|made| DetachedSignature::new(made).to_armored_string(ArmorOptions::default()))
            .map_err(signing)
    }

    /// Signs bytes and returns the signature packet, which is the form that an RPM package has. The signature is as old as the
    /// key, so that the same bytes have the same signature.
    ///
    /// # Errors
    /// When the library cannot sign.
    pub fn sign_packet(&self, bytes: &[u8]) -> Result<Vec<u8>, OpenPgpError> {
        let key = &self.0.primary_key;
        config(key, SignatureType::Binary, key.created_at())
            .and_then(|config| config.sign(key, &Password::empty(), bytes))
            .and_then(|made| DetachedSignature::new(made).to_bytes())
            .map_err(signing)
    }

    /// Verifies that `signature` is one of `text` with this key.
    ///
    /// # Errors
    /// [`OpenPgpError::NotSigned`].
    pub fn verify_detached(&self, signature: &str, text: &str) -> Result<(), OpenPgpError> {
        let not_signed = |error: pgp::errors::Error| OpenPgpError::NotSigned { reason: error.to_string() };
        let (signature, _) = DetachedSignature::from_string(signature).map_err(not_signed)?;
        signature.verify(&self.0.to_public_key(), text.as_bytes()).map_err(not_signed)
    }
}

/// The lines of a text as a clear signature covers them: without white space at their ends.
fn signed_lines(text: &str) -> Vec<&str> {
    text.lines().map(|line| line.trim_end_matches([' ', '\t', '\r'])).collect()
}

fn self_signed(
    owner: &str,
    at: pgp::types::Timestamp,
    seed: [u8; 32],
) -> pgp::errors::Result<SignedSecretKey> {
    let secret = ed25519::SecretKey::try_from_bytes(seed, ed25519::Mode::EdDSALegacy)?;
    let public = PublicKey::from_inner(PubKeyInner::new(
        KeyVersion::V4,
        PublicKeyAlgorithm::EdDSALegacy,
        at,
        None,
        PublicParams::EdDSALegacy((&secret).into()),
    )?)?;
    let secret = PlainSecretParams::EdDSALegacy(eddsa_legacy::SecretKey::Ed25519(secret));
    let key = SecretKey::new(public, SecretParams::Plain(secret))?;

    let mut flags = KeyFlags::default();
    flags.set_certify(true);
    flags.set_sign(true);
    let mut config = config(&key, SignatureType::CertPositive, at)?;
    config.hashed_subpackets.push(Subpacket::regular(SubpacketData::KeyFlags(flags))?);
    config.hashed_subpackets.push(Subpacket::regular(SubpacketData::IsPrimary(true))?);

    let user = UserId::from_str(PacketHeaderVersion::New, owner)?;
    let certification =
        config.sign_certification(&key, key.public_key(), &Password::empty(), Tag::UserId, &user)?;
    let details = SignedKeyDetails::new(vec![], vec![], vec![user.into_signed(certification)], vec![]);
    Ok(SignedSecretKey::new(key, details, vec![], vec![]))
}

fn config(
    key: &SecretKey,
    kind: SignatureType,
    at: pgp::types::Timestamp,
) -> pgp::errors::Result<SignatureConfig> {
    let mut config = SignatureConfig::v4(kind, key.algorithm(), HashAlgorithm::Sha512);
    config.hashed_subpackets = vec![
        Subpacket::regular(SubpacketData::SignatureCreationTime(at))?,
        Subpacket::regular(SubpacketData::IssuerFingerprint(key.fingerprint()))?,
    ];
    config.unhashed_subpackets = vec![Subpacket::regular(SubpacketData::IssuerKeyId(key.legacy_key_id()))?];
    Ok(config)
}

/// [`CLOCK_SKEW`] in the past: a host whose clock is behind rejects signatures of the future.
fn moment(now: Timestamp) -> Result<pgp::types::Timestamp, OpenPgpError> {
    let clock = |_| OpenPgpError::Clock { now };
    let second = now.as_second() - CLOCK_SKEW.as_secs();
    u32::try_from(second).map(pgp::types::Timestamp::from_secs).map_err(clock)
}

fn signing(error: pgp::errors::Error) -> OpenPgpError {
    OpenPgpError::Signing { reason: error.to_string() }
}

#[cfg(test)]
#[path = "openpgp_tests.rs"]
mod tests;
