//! What a manifest names: blobs of an image, or manifests of an index. Pure.
//!
//! Formats: OCI image-spec v1.1 (`manifest.md`, `image-index.md`), and Docker's image manifest v2 schema 2 and manifest
//! list, which have the same fields.

use serde::Deserialize;

use super::error::ManifestError;
use crate::bundle::digest::Sha256;

/// Of an image (image-spec).
pub(super) const IMAGE: &str = "application/vnd.oci.image.manifest.v1+json";
/// Of an index (image-spec).
pub(super) const INDEX: &str = "application/vnd.oci.image.index.v1+json";
/// Every type that is read.
pub(super) const TYPES: [&str; 4] = [
    IMAGE,
    INDEX,
    "application/vnd.docker.distribution.manifest.v2+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
];
/// Largest manifest, in bytes: what registries must accept (distribution-spec, "Pushing Manifests").
pub const LIMIT: u64 = 4 << 20;

/// Something that a manifest names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) digest: Sha256,
    /// In bytes.
    pub(super) size: u64,
    pub(super) media_type: String,
}

/// What a manifest names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Named {
    /// Configuration and layers of one image.
    Blobs(Vec<Part>),
    /// The manifests of an index.
    Manifests(Vec<Part>),
}

/// A manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Manifest {
    pub(super) media_type: String,
    pub(super) named: Named,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    media_type: Option<String>,
    config: Option<Descriptor>,
    layers: Option<Vec<Descriptor>>,
    manifests: Option<Vec<Descriptor>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Descriptor {
    media_type: String,
    digest: String,
    size: u64,
}

impl Part {
    /// As registries name it.
    pub(super) fn name(&self) -> String {
        format!("sha256:{}", self.digest)
    }
}

impl Manifest {
    pub(super) fn parse(body: &[u8]) -> Result<Self, ManifestError> {
        let document: Document = serde_json::from_slice(body)?;
        let parts = |list: Vec<Descriptor>| list.into_iter().map(part).collect::<Result<Vec<_>, _>>();
        let (named, usual) = match document {
            Document { manifests: Some(manifests), .. } => (Named::Manifests(parts(manifests)?), INDEX),
            Document { config: Some(config), layers: Some(layers), .. } => {
                (Named::Blobs(parts(std::iter::once(config).chain(layers).collect())?), IMAGE)
            }
            _ => return Err(ManifestError::Neither),
        };
        Ok(Self { media_type: document.media_type.unwrap_or_else(|| usual.to_owned()), named })
    }

    /// The manifests that it names.
    pub(super) fn manifests(&self) -> &[Part] {
        match &self.named {
            Named::Manifests(manifests) => manifests,
            Named::Blobs(_) => &[],
        }
    }
}

fn part(Descriptor { media_type, digest, size }: Descriptor) -> Result<Part, ManifestError> {
    match sha256(&digest) {
        Some(digest) => Ok(Part { digest, size, media_type }),
        None => Err(ManifestError::Digest(digest)),
    }
}

/// The digits of `sha256:...`.
pub(super) fn sha256(digest: &str) -> Option<Sha256> {
    digest.strip_prefix("sha256:")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn descriptor(character: &str) -> String {
        format!(r#"{{"mediaType": "x", "digest": "sha256:{}", "size": 3}}"#, character.repeat(64))
    }

    fn part(character: &str) -> Part {
        Part { digest: character.repeat(64).parse().unwrap(), size: 3, media_type: "x".to_owned() }
    }

    #[test]
    fn a_manifest_names_blobs_or_manifests() {
        let (a, b) = (descriptor("a"), descriptor("b"));
        let image = format!(r#"{{"schemaVersion": 2, "config": {a}, "layers": [{b}]}}"#);
        let found = Manifest::parse(image.as_bytes()).unwrap();
        let named = Named::Blobs(vec![part("a"), part("b")]);
        assert_eq!(found, Manifest { media_type: IMAGE.to_owned(), named });
        let index = format!(r#"{{"mediaType": "list", "manifests": [{b}]}}"#);
        let found = Manifest::parse(index.as_bytes()).unwrap();
        let named = Named::Manifests(vec![part("b")]);
        assert_eq!(found, Manifest { media_type: "list".to_owned(), named });
        for wrong in [
            "",
            "{}",
            "[]",
            r#"{"layers": []}"#,
            r#"{"manifests": [{"mediaType": "x", "digest": "sha512:aa", "size": 1}]}"#,
            r#"{"manifests": [{"mediaType": "x", "digest": "sha256:../../x", "size": 1}]}"#,
        ] {
            assert!(Manifest::parse(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }
}
