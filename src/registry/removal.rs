//! What goes when images of a repository are removed. Pure.
//!
//! # Guarantees
//! - A tag goes only if it has the digest that is unwanted: one that was given to another image since stays.
//! - A manifest goes only if no tag that stays has it, or has an index that names it.

use std::collections::{BTreeMap, BTreeSet};

use crate::bundle::digest::Sha256;

/// The images of one repository.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RepositoryImages {
    /// Tag → digest.
    pub tags: BTreeMap<String, Sha256>,
    /// Digest of an index → the manifests that it names.
    pub named: BTreeMap<Sha256, BTreeSet<Sha256>>,
}

/// What to remove, in this order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ImageRemoval {
    /// Tags.
    pub tags: Vec<String>,
    /// Manifests that no tag leads to any more.
    pub manifests: Vec<Sha256>,
}

/// Decides it, for images that are not wanted under these tags.
pub fn removal(images: &RepositoryImages, unwanted: &BTreeSet<(String, Sha256)>) -> ImageRemoval {
    let is_unwanted = |(tag, digest): &(&String, &Sha256)| {
        unwanted.iter().any(|(other, unwanted)| other == *tag && unwanted == *digest)
    };
    let (gone, kept): (Vec<_>, Vec<_>) = images.tags.iter().partition(is_unwanted);
    let kept = tree(images, kept.into_iter().map(|(_, digest)| digest));
    let unwanted = tree(images, unwanted.iter().map(|(_, digest)| digest));
    ImageRemoval {
        tags: gone.into_iter().map(|(tag, _)| tag.clone()).collect(),
        manifests: unwanted.difference(&kept).cloned().collect(),
    }
}

/// These manifests, and all that they name.
fn tree<'a>(images: &RepositoryImages, roots: impl Iterator<Item = &'a Sha256>) -> BTreeSet<Sha256> {
    let mut found = BTreeSet::new();
    let mut next: Vec<Sha256> = roots.cloned().collect();
    while let Some(digest) = next.pop() {
        next.extend(images.named.get(&digest).into_iter().flatten().cloned());
        found.insert(digest.clone());
        next.retain(|digest| !found.contains(digest));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(name: &str) -> Sha256 {
        Sha256::of(name.as_bytes())
    }

    type Pairs<'a> = &'a [(&'a str, &'a str)];

    /// Tags with what they have, indexes with what they name, what is unwanted; the tags and manifests that go.
    type Case<'a> = (Pairs<'a>, &'a [(&'a str, &'a [&'a str])], Pairs<'a>, &'a [&'a str], &'a [&'a str]);

    #[test]
    fn only_what_nothing_else_needs_goes() {
        let cases: [Case<'_>; 9] = [
            (&[("1", "a")], &[], &[("1", "a")], &["1"], &["a"]),
            // Another image has the tag by now; the old one is left without any.
            (&[("1", "b")], &[], &[("1", "a")], &[], &["a"]),
            // The same image under a tag of a user.
            (&[("1", "a"), ("mine", "a")], &[], &[("1", "a")], &["1"], &[]),
            (&[("1", "a"), ("2", "b")], &[], &[("1", "a"), ("2", "b")], &["1", "2"], &["a", "b"]),
            // An index goes with what it names.
            (&[("1", "i")], &[("i", &["a", "b"])], &[("1", "i")], &["1"], &["i", "a", "b"]),
            // But for what another index names, or a tag has.
            (
                &[("1", "i"), ("2", "j"), ("3", "c")],
                &[("i", &["a", "b", "c"]), ("j", &["b"])],
                &[("1", "i")],
                &["1"],
                &["i", "a"],
            ),
            (&[("2", "j")], &[("j", &["a"])], &[("1", "a")], &[], &[]),
            // An index that names itself, which no digest allows, ends too.
            (&[("1", "i")], &[("i", &["i"])], &[("1", "i")], &["1"], &["i"]),
            (&[], &[], &[], &[], &[]),
        ];
        for case @ (tags, named, unwanted, gone, manifests) in cases {
            let pairs = |pairs: Pairs<'_>| -> Vec<(String, Sha256)> {
                pairs.iter().map(|(tag, name)| ((*tag).to_owned(), digest(name))).collect()
            };
            let of = |(index, named): &(&str, &[&str])| {
                (digest(index), named.iter().map(|name| digest(name)).collect::<BTreeSet<_>>())
            };
            let images = RepositoryImages {
                tags: pairs(tags).into_iter().collect(),
                named: named.iter().map(of).collect(),
            };
            let found = removal(&images, &pairs(unwanted).into_iter().collect());
            assert_eq!(found.tags, gone, "{case:?}");
            let expected: BTreeSet<Sha256> = manifests.iter().map(|name| digest(name)).collect();
            assert_eq!(found.manifests.into_iter().collect::<BTreeSet<_>>(), expected, "{case:?}");
        }
    }
}
