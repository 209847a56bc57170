//! Which images bundles have brought to the registry. It only allows to remove images: where it is lost, the images of
//! earlier bundles stay until `metalform image remove` removes them, and none of a user is ever removed by it.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::atomic_file::{self, FileError};
use super::layout::Layout;
use super::trust_file::PUBLIC;
use crate::bundle::digest::Sha256;

/// Image → the digests that bundles have had under this name.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct BundleImageRecord {
    images: BTreeMap<String, BTreeSet<Sha256>>,
}

impl BundleImageRecord {
    /// The record of this machine; empty where there is none, or none that can be parsed.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn read(layout: &Layout) -> Result<Self, FileError> {
        let path = layout.bundle_image_record();
        let Some(text) = atomic_file::read(&path)? else { return Ok(Self::default()) };
        Ok(serde_json::from_str(&text).unwrap_or_else(|error| {
            tracing::warn!("{}: {error}; images of earlier bundles stay in the registry", path.display());
            Self::default()
        }))
    }

    /// Writes it.
    ///
    /// # Errors
    /// When it cannot be written; the former one is then unchanged.
    pub fn write(&self, layout: &Layout) -> Result<(), FileError> {
        let path = layout.bundle_image_record();
        let failed = |error: serde_json::Error| FileError { path: path.clone(), reason: error.into() };
        let text = serde_json::to_vec_pretty(self).map_err(failed)?;
        atomic_file::write(&path, &text, PUBLIC)
    }

    /// With these images too.
    #[must_use]
    pub fn with<'a>(mut self, images: impl IntoIterator<Item = (&'a String, &'a Sha256)>) -> Self {
        for (reference, digest) in images {
            self.images.entry(reference.clone()).or_default().insert(digest.clone());
        }
        self
    }

    /// Without images of this name: they are a user's from now on.
    #[must_use]
    pub fn forgetting(mut self, reference: &str) -> Self {
        self.images.remove(reference);
        self
    }

    /// Those that another record does not have.
    pub fn without(&self, other: &Self) -> BTreeSet<(String, Sha256)> {
        let pairs =
            self.images.iter().flat_map(|(name, digests)| digests.iter().map(move |digest| (name, digest)));
        let absent =
            pairs.filter(|(name, digest)| other.images.get(*name).is_none_or(|has| !has.contains(*digest)));
        absent.map(|(name, digest)| (name.clone(), digest.clone())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(images: &[(&str, &str)]) -> BundleImageRecord {
        let images: Vec<_> = images
            .iter()
            .map(|(name, content)| ((*name).to_owned(), Sha256::of(content.as_bytes())))
            .collect();
        BundleImageRecord::default().with(images.iter().map(|(name, digest)| (name, digest)))
    }

    #[test]
    fn what_no_bundle_has_any_more_is_known_by_name_and_digest() {
        let earlier = record(&[("a:1", "a"), ("b:1", "b"), ("b:1", "rebuilt")]);
        let now = record(&[("b:1", "rebuilt"), ("c:1", "c")]);
        let expected = [("a:1", "a"), ("b:1", "b")];
        let expected = expected.map(|(name, content)| (name.to_owned(), Sha256::of(content.as_bytes())));
        assert_eq!(earlier.without(&now), expected.into());
        assert_eq!(now.without(&now), [].into());
        assert_eq!(earlier.forgetting("b:1").without(&now).len(), 1);
    }

    #[test]
    fn a_record_that_is_lost_or_damaged_is_empty() {
        let root = tempfile::tempdir().unwrap();
        let layout = Layout::below(root.path());
        assert_eq!(BundleImageRecord::read(&layout).unwrap(), BundleImageRecord::default());
        let written = record(&[("a:1", "a")]);
        written.write(&layout).unwrap();
        assert_eq!(BundleImageRecord::read(&layout).unwrap(), written);
        std::fs::write(layout.bundle_image_record(), "{\"images\": {\"a:1\": [\"../x\"]}}").unwrap();
        assert_eq!(BundleImageRecord::read(&layout).unwrap(), BundleImageRecord::default());
    }
}
