//! SHA-256, the only digest in bundles.

use std::fmt;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::Digest;

/// 64 lowercase hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Sha256(String);

/// A string is not a digest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a SHA-256 digest: expected 64 hexadecimal digits")]
pub struct NotADigest(pub String);

/// The end of a copy that failed.
#[derive(Debug)]
pub(super) enum CopyError {
    /// Of the source.
    Read(io::Error),
    /// Of the target.
    Write(io::Error),
}

impl Sha256 {
    /// The digits, in lowercase.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The digest of bytes in memory.
    pub fn of(bytes: &[u8]) -> Self {
        Self(hex::encode(sha2::Sha256::digest(bytes)))
    }

    /// The digest and size of a file, read in constant memory.
    ///
    /// # Errors
    /// When it cannot be opened or read.
    pub fn of_file(path: &Path) -> io::Result<(Self, u64)> {
        match Self::of_copy(&mut File::open(path)?, &mut io::sink()) {
            Ok(found) => Ok(found),
            Err(CopyError::Read(error) | CopyError::Write(error)) => Err(error),
        }
    }

    /// The digest of everything that is read, in constant memory.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn of_reader(from: &mut impl Read) -> io::Result<Self> {
        match Self::of_copy(from, &mut io::sink()) {
            Ok((digest, _)) => Ok(digest),
            Err(CopyError::Read(error) | CopyError::Write(error)) => Err(error),
        }
    }

    /// The digest and size of everything that is read, which is written on the way, in constant memory.
    ///
    /// # Errors
    /// When it cannot be read, or not be written.
    pub(super) fn of_copy(from: &mut impl Read, to: &mut impl Write) -> Result<(Self, u64), CopyError> {
        let mut hasher = sha2::Sha256::new();
        let mut buffer = vec![0; 256 * 1024];
        let mut size = 0;
        loop {
            match from.read(&mut buffer).map_err(CopyError::Read)? {
                0 => return Ok((Self(hex::encode(hasher.finalize())), size)),
                read => {
                    hasher.update(&buffer[..read]);
                    to.write_all(&buffer[..read]).map_err(CopyError::Write)?;
                    size += read as u64;
                }
            }
        }
    }
}

impl FromStr for Sha256 {
    type Err = NotADigest;

    fn from_str(text: &str) -> Result<Self, NotADigest> {
        if text.len() == 64 && text.bytes().all(|b| b.is_ascii_hexdigit()) {
            Ok(Self(text.to_ascii_lowercase()))
        } else {
            Err(NotADigest(text.to_owned()))
        }
    }
}

impl TryFrom<String> for Sha256 {
    type Error = NotADigest;

    fn try_from(text: String) -> Result<Self, NotADigest> {
        text.parse()
    }
}

impl From<Sha256> for String {
    fn from(digest: Sha256) -> Self {
        digest.0
    }
}

impl fmt::Display for Sha256 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
