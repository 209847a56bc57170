//! Where the parts of an image are read.
//!
//! # Guarantee
//! A stream that ends without an error has delivered the bytes of its digest.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::{self, Stream, TryStreamExt};
use sha2::Digest;
use tokio::task::spawn_blocking;

use super::error::SourceError;
use super::manifest::{LIMIT, Part};
use crate::bundle::digest::Sha256;
use crate::bundle::oci_layout;

/// Bytes that are read at a time.
const CHUNK: u64 = 256 * 1024;

/// The content of a blob.
pub(super) type BlobStream = Pin<Box<dyn Stream<Item = io::Result<Bytes>> + Send>>;

/// Has the parts of images.
#[async_trait]
pub(super) trait ImageSource: Send + Sync {
    /// A manifest, whole and verified.
    async fn manifest(&self, part: &Part) -> Result<Bytes, SourceError>;

    /// A blob, verified while it is read.
    async fn blob(&self, part: &Part) -> Result<BlobStream, SourceError>;
}

/// The images of a bundle in this directory.
pub(super) struct BundleSource(pub(super) PathBuf);

#[async_trait]
impl ImageSource for BundleSource {
    async fn manifest(&self, part: &Part) -> Result<Bytes, SourceError> {
        whole(self.blob(part).await?, &part.digest).await
    }

    async fn blob(&self, part: &Part) -> Result<BlobStream, SourceError> {
        let file = File::open(oci_layout::blob(&self.0, &part.digest))?;
        let size = file.metadata()?.len();
        Ok(verified(section(Arc::new(file), 0, size), part.digest.clone()))
    }
}

/// A manifest from the stream of it.
pub(super) async fn whole(mut stream: BlobStream, digest: &Sha256) -> Result<Bytes, SourceError> {
    let mut body = Vec::new();
    while let Some(chunk) = stream.try_next().await? {
        body.extend_from_slice(&chunk);
        if body.len() as u64 > LIMIT {
            return Err(SourceError::TooLarge { limit: LIMIT });
        }
    }
    checked(body.into(), digest)
}

/// Bytes that have this digest.
pub(super) fn checked(body: Bytes, digest: &Sha256) -> Result<Bytes, SourceError> {
    match Sha256::of(&body) {
        found if found == *digest => Ok(body),
        found => Err(SourceError::Altered { found: format!("sha256:{found}") }),
    }
}

/// A part of a file, in constant memory.
pub(super) fn section(file: Arc<File>, offset: u64, size: u64) -> BlobStream {
    Box::pin(stream::try_unfold((file, offset, size), |(file, offset, left)| async move {
        if left == 0 {
            return Ok(None);
        }
        let length = left.min(CHUNK);
        let read = spawn_blocking(move || {
            let mut chunk = vec![0; usize::try_from(length).map_err(io::Error::other)?];
            file.read_exact_at(&mut chunk, offset)?;
            Ok::<_, io::Error>((Bytes::from(chunk), file))
        });
        let (chunk, file) = read.await.map_err(io::Error::other)??;
        Ok(Some((chunk, (file, offset + length, left - length))))
    }))
}

/// The stream, with an error at its end if the digest is another one.
pub(super) fn verified(stream: BlobStream, expected: Sha256) -> BlobStream {
    let state = (stream, sha2::Sha256::new(), expected);
    Box::pin(stream::try_unfold(state, |(mut stream, mut hasher, expected)| async move {
        match stream.try_next().await? {
            Some(chunk) => {
                hasher.update(&chunk);
                Ok(Some((chunk, (stream, hasher, expected))))
            }
            None => match hex::encode(hasher.finalize()) {
                found if found == expected.as_str() => Ok(None),
                found => Err(io::Error::other(SourceError::Altered { found: format!("sha256:{found}") })),
            },
        }
    }))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    async fn read(mut stream: BlobStream) -> io::Result<Vec<u8>> {
        let mut all = Vec::new();
        while let Some(chunk) = stream.try_next().await? {
            all.extend_from_slice(&chunk);
        }
        Ok(all)
    }

    #[tokio::test]
    async fn a_section_is_read_in_chunks_and_verified_at_its_end() {
        let mut file = tempfile::tempfile().unwrap();
        let content: Vec<u8> = (0..600_000_u32).flat_map(u32::to_be_bytes).collect();
        file.write_all(&content).unwrap();
        let file = Arc::new(file);
        let part = &content[5..2_000_005];
        let of = |digest| verified(section(file.clone(), 5, 2_000_000), digest);
        assert!(read(of(Sha256::of(part))).await.unwrap() == part);
        let error = read(of(Sha256::of(b"another"))).await.unwrap_err().to_string();
        assert!(error.starts_with("its content has the digest sha256:"), "{error}");
        assert!(read(section(file, 2_400_000 - 5, 6)).await.is_err(), "a file that ends early");
    }
}
