//! What a server of packages and images has.

use std::collections::BTreeMap;
use std::fmt;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::bundle::digest::Sha256;

/// Where a server answers with its [`MirrorContents`], as JSON.
pub const PATH: &str = "/mirror/contents";

/// Everything that hosts may ask of a server, by digest.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MirrorContents {
    /// Version of Kubernetes → digest of the manifest of its bundle, which has those of all other files.
    pub bundles: BTreeMap<String, Sha256>,
    /// Path on the server → digest, of the package indexes that the cluster has signed.
    pub indexes: BTreeMap<String, Sha256>,
    /// Image → digest of its manifest: `registry.k8s.io/pause:3.10.1`.
    pub images: BTreeMap<String, Sha256>,
    /// Images of a mirror that its origin does not have, and since when. After [`KEPT`] they are removed.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub surplus: BTreeMap<String, Timestamp>,
    /// When it was last compared with the origin; absent for the origin itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub synced: Option<Timestamp>,
}

/// How long an image stays on a mirror that its origin does not have any more: the registry there may have been lost, with
/// images of users that are nowhere else.
pub const KEPT: SignedDuration = SignedDuration::from_hours(24);

/// Displays as `bundle 1.35.4`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum MirrorItem {
    /// The version of Kubernetes of a bundle.
    Bundle(String),
    /// The path of an index.
    Index(String),
    /// An image.
    Image(String),
}

impl fmt::Display for MirrorItem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bundle(version) => write!(f, "bundle {version}"),
            Self::Index(path) => write!(f, "index {path}"),
            Self::Image(name) => write!(f, "image {name}"),
        }
    }
}

impl MirrorContents {
    /// The images that the origin does not have, and since when, as far as this mirror had noted it before.
    pub fn surplus_to(&self, origin: &Self, now: Timestamp) -> BTreeMap<String, Timestamp> {
        let surplus = self.images.keys().filter(|name| !origin.images.contains_key(*name));
        surplus.map(|name| (name.clone(), self.surplus.get(name).copied().unwrap_or(now))).collect()
    }

    /// What the other one has, and this one has not, or with another digest; in order.
    pub fn lacks_of(&self, other: &Self) -> Vec<MirrorItem> {
        let bundles = lacking(&self.bundles, &other.bundles).map(MirrorItem::Bundle);
        let indexes = lacking(&self.indexes, &other.indexes).map(MirrorItem::Index);
        let images = lacking(&self.images, &other.images).map(MirrorItem::Image);
        bundles.chain(indexes).chain(images).collect()
    }
}

fn lacking(
    present: &BTreeMap<String, Sha256>,
    wanted: &BTreeMap<String, Sha256>,
) -> impl Iterator<Item = String> {
    wanted.iter().filter(|(name, digest)| present.get(*name) != Some(digest)).map(|(name, _)| name.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(items: &[(&str, &str)]) -> BTreeMap<String, Sha256> {
        items.iter().map(|(name, content)| ((*name).to_owned(), Sha256::of(content.as_bytes()))).collect()
    }

    #[test]
    fn what_is_absent_or_has_another_digest_is_lacking_and_nothing_else() {
        let origin = MirrorContents {
            bundles: named(&[("1.34.4", "a"), ("1.35.4", "b")]),
            indexes: named(&[("bundles/1.35.4/apt/dists/debian-13/InRelease", "c")]),
            images: named(&[("docker.io/library/app:1", "d")]),
            ..MirrorContents::default()
        };
        let lacking = |mirror: &MirrorContents| -> Vec<String> {
            mirror.lacks_of(&origin).iter().map(ToString::to_string).collect()
        };
        let everything = [
            "bundle 1.34.4",
            "bundle 1.35.4",
            "index bundles/1.35.4/apt/dists/debian-13/InRelease",
            "image docker.io/library/app:1",
        ];
        assert_eq!(lacking(&MirrorContents::default()), everything);
        let mut mirror = MirrorContents { synced: Some(Timestamp::UNIX_EPOCH), ..origin.clone() };
        mirror.images.extend(named(&[("docker.io/library/removed:1", "e")]));
        assert_eq!(lacking(&mirror), [""; 0]);
        mirror.images.extend(named(&[("docker.io/library/app:1", "earlier")]));
        assert_eq!(lacking(&mirror), ["image docker.io/library/app:1"]);
    }

    #[test]
    fn an_image_that_comes_back_is_new_when_it_goes_again() {
        let hours = |hours: i64| Timestamp::from_second(hours * 3600).unwrap();
        let origin = |names: &[&str]| {
            let images: Vec<_> = names.iter().map(|name| (*name, "x")).collect();
            MirrorContents { images: named(&images), ..MirrorContents::default() }
        };
        let mut mirror = origin(&["a", "b"]);
        for (there, now, expected) in [
            (vec!["a", "b"], 0, vec![]),
            (vec!["b"], 1, vec![("a", 1)]),
            (vec![], 2, vec![("a", 1), ("b", 2)]),
            (vec!["a"], 3, vec![("b", 2)]),
            (vec!["b"], 4, vec![("a", 4)]),
        ] {
            mirror.surplus = mirror.surplus_to(&origin(&there), hours(now));
            let expected = expected.into_iter().map(|(name, at)| (name.to_owned(), hours(at)));
            assert_eq!(mirror.surplus, expected.collect(), "at {now}");
        }
    }

    #[test]
    fn it_is_read_as_it_was_written_by_a_later_version_too() {
        let contents = MirrorContents { bundles: named(&[("1.35.4", "b")]), ..MirrorContents::default() };
        let mut written = serde_json::to_value(&contents).unwrap();
        written["later"] = 1.into();
        assert_eq!(serde_json::from_value::<MirrorContents>(written).unwrap(), contents);
    }
}
