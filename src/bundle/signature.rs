//! The file with the signature of a bundle's manifest. The manifest has the digest of every other file.

use std::fs;
use std::io;
use std::path::Path;

use crate::model::bundle_key::BundleKey;
use crate::pki::bundle_signature::{self, BundleSignatureError, BundleSigningKey};

/// The file name in the bundle's directory.
pub const FILE_NAME: &str = "bundle.yaml.minisig";

/// Why a bundle is not trusted, or not signed.
#[derive(Debug, thiserror::Error)]
pub enum SignatureFileError {
    /// There is no signature.
    #[error("{path} does not exist: the bundle is not signed")]
    Unsigned {
        /// Of the signature.
        path: String,
    },
    /// A file cannot be read or written.
    #[error("cannot access {path}")]
    Access {
        /// Of the file.
        path: String,
        /// From the operating system.
        source: io::Error,
    },
    /// The signature.
    #[error("{path}: {error}")]
    Signature {
        /// Of the signature.
        path: String,
        /// What is wrong.
        error: BundleSignatureError,
    },
}

/// The signature of the bundle in `directory`; `None` where there is none.
///
/// # Errors
/// When it cannot be read.
pub fn read(directory: &Path) -> Result<Option<String>, SignatureFileError> {
    let file = directory.join(FILE_NAME);
    match fs::read_to_string(&file) {
        Ok(signature) => Ok(Some(signature)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(SignatureFileError::Access { path: file.display().to_string(), source }),
    }
}

/// Checks that the text of a manifest is signed with this key. `path` is that of the signature, in messages.
///
/// # Errors
/// When it is not.
pub fn check(
    path: &str,
    (manifest, signature): (&str, Option<&str>),
    key: &BundleKey,
) -> Result<(), SignatureFileError> {
    let path = path.to_owned();
    match signature {
        None => Err(SignatureFileError::Unsigned { path }),
        Some(signature) => bundle_signature::verify(key, manifest.as_bytes(), signature)
            .map_err(|error| SignatureFileError::Signature { path, error }),
    }
}

/// Signs the manifest at this path, in place of an earlier signature beside it.
///
/// # Errors
/// When a file cannot be read or written.
pub fn sign(manifest: &Path, key: &BundleSigningKey, comment: &str) -> Result<(), SignatureFileError> {
    let access = |path: &Path| {
        let path = path.display().to_string();
        move |source| SignatureFileError::Access { path, source }
    };
    let file = manifest.with_file_name(FILE_NAME);
    let content = fs::read(manifest).map_err(access(manifest))?;
    let failed = |error| SignatureFileError::Signature { path: file.display().to_string(), error };
    let signature = key.sign(&content, comment).map_err(failed)?;
    fs::write(&file, signature).map_err(access(&file))
}
