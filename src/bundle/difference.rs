//! What another bundle has that this one has not. Pure.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::digest::Sha256;
use super::image_name::name_and_tag;
use super::manifest::Bundle;

/// From one bundle to another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BundleDifference {
    /// By kind and name.
    pub changes: Vec<BundleChange>,
    /// Files of the second whose content the first has nowhere.
    pub new_files: usize,
    /// Their size in bytes: what has to be carried to who has the first.
    pub new_bytes: u64,
}

/// A platform, component, image or package that is not the same in both.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BundleChange {
    /// What it is.
    pub kind: BundleItem,
    /// An image without its tag; a package with its platform.
    pub name: String,
    /// Version, tag or digest in the first; `None` where it is new.
    pub before: Option<String>,
    /// The same in the second; `None` where it is gone.
    pub after: Option<String>,
}

/// What a bundle is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum BundleItem {
    /// An operating system on an architecture.
    Platform,
    /// An upstream project.
    Component,
    /// A container image.
    Image,
    /// A package for one platform.
    Package,
}

impl BundleItem {
    /// As in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Platform => "platform",
            Self::Component => "component",
            Self::Image => "image",
            Self::Package => "package",
        }
    }
}

type Items = BTreeMap<(BundleItem, String), Version>;

/// What tells two items of one name apart.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Version {
    text: String,
    digest: Option<String>,
}

/// The changes from `before` to `after`.
pub fn difference(before: &Bundle, after: &Bundle) -> BundleDifference {
    let (first, second) = (items(before), items(after));
    let names: BTreeSet<_> = first.keys().chain(second.keys()).collect();
    let change = |key: &&(BundleItem, String)| {
        let (before, after) = (first.get(*key), second.get(*key));
        let same_text = before.map(|version| &version.text) == after.map(|version| &version.text);
        let shown = |version: &Version| match &version.digest {
            Some(digest) if same_text => digest.clone(),
            _ => version.text.clone(),
        };
        let (kind, name) = (key.0, key.1.clone());
        (before != after).then(|| BundleChange {
            kind,
            name,
            before: before.map(shown),
            after: after.map(shown),
        })
    };
    let known: BTreeSet<&Sha256> = before.files.values().map(|record| &record.sha256).collect();
    let new: BTreeMap<&Sha256, u64> = after
        .files
        .values()
        .filter(|record| !known.contains(&record.sha256))
        .map(|record| (&record.sha256, record.size))
        .collect();
    let changes = names.iter().filter_map(change).collect();
    BundleDifference { changes, new_files: new.len(), new_bytes: new.values().sum() }
}

fn items(bundle: &Bundle) -> Items {
    let plain = |text: &str| Version { text: text.to_owned(), digest: None };
    let platforms =
        bundle.platforms.iter().map(|platform| (BundleItem::Platform, platform.to_string(), plain("")));
    let components =
        bundle.versions.iter().map(|(name, version)| (BundleItem::Component, name.clone(), plain(version)));
    let images = bundle.images.iter().map(|(reference, digest)| {
        let (name, tag) = name_and_tag(reference);
        (BundleItem::Image, name, Version { text: tag, digest: Some(format!("sha256:{digest}")) })
    });
    let packages = bundle.packages.iter().flat_map(|package| {
        let digest = bundle.files.get(&package.path).map(|record| format!("sha256:{}", record.sha256));
        let version = Version { text: package.version.clone(), digest };
        let name = |platform| format!("{} ({platform})", package.name);
        package.platforms.iter().map(move |platform| (BundleItem::Package, name(platform), version.clone()))
    });
    let all = platforms.chain(components).chain(images).chain(packages);
    all.map(|(kind, name, version)| ((kind, name), version)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: &str = r#"
apiVersion: metalform.dev/v1alpha1
kind: Bundle
inputs: "aa00000000000000000000000000000000000000000000000000000000000000"
architectures: [amd64]
platforms: [debian-12-amd64]
versions: { etcd: 3.6.0, kubernetes: 1.34.4 }
provenance: {}
images:
  registry.k8s.io/etcd:v3.6.0: "e000000000000000000000000000000000000000000000000000000000000000"
  registry.k8s.io/kube-apiserver:v1.34.4: "b100000000000000000000000000000000000000000000000000000000000000"
packages:
  - { name: kubelet, platforms: [debian-12-amd64], version: "1.34.4", architecture: amd64, path: apt/kubelet.deb }
files:
  apt/kubelet.deb: { sha256: "c100000000000000000000000000000000000000000000000000000000000000", size: 10 }
  images/etcd: { sha256: "e000000000000000000000000000000000000000000000000000000000000000", size: 20 }
"#;

    fn bundle(changes: &[(&str, &str)]) -> Bundle {
        let text = changes.iter().fold(FIRST.to_owned(), |text, (from, to)| {
            assert!(text.contains(from), "{from}");
            text.replace(from, to)
        });
        serde_saphyr::from_str(&text).unwrap()
    }

    fn lines(before: &Bundle, after: &Bundle) -> Vec<String> {
        let found = difference(before, after);
        let none = || "-".to_owned();
        let line = |change: &BundleChange| {
            let (before, after) = (change.before.clone(), change.after.clone());
            let (before, after) = (before.unwrap_or_else(none), after.unwrap_or_else(none));
            format!("{} {}: {before} -> {after}", change.kind.as_str(), change.name)
        };
        let mut lines: Vec<_> = found.changes.iter().map(line).collect();
        lines.push(format!("{} {}", found.new_files, found.new_bytes));
        lines
    }

    #[test]
    fn a_bundle_does_not_differ_from_itself() {
        assert_eq!(lines(&bundle(&[]), &bundle(&[])), ["0 0"]);
    }

    #[test]
    fn a_new_version_is_a_change_of_what_has_its_name() {
        let newer =
            bundle(&[("1.34.4", "1.35.0"), ("\"b1", "\"b2"), ("\"c1", "\"c2"), ("size: 10", "size: 11")]);
        let expected = [
            "component kubernetes: 1.34.4 -> 1.35.0",
            "image registry.k8s.io/kube-apiserver: v1.34.4 -> v1.35.0",
            "package kubelet (debian-12-amd64): 1.34.4 -> 1.35.0",
            "1 11",
        ];
        assert_eq!(lines(&bundle(&[]), &newer), expected);
    }

    #[test]
    fn another_content_of_one_version_is_told_by_its_digest() {
        let other = bundle(&[("\"b1", "\"b2"), ("\"c1", "\"c2")]);
        let digest = |start: &str| format!("sha256:{start}{}", "0".repeat(62));
        let (b1, b2, c1, c2) = (digest("b1"), digest("b2"), digest("c1"), digest("c2"));
        let expected = [
            format!("image registry.k8s.io/kube-apiserver: {b1} -> {b2}"),
            format!("package kubelet (debian-12-amd64): {c1} -> {c2}"),
            "1 10".to_owned(),
        ];
        assert_eq!(lines(&bundle(&[]), &other), expected);
    }

    #[test]
    fn what_one_of_them_has_alone_is_new_or_gone() {
        let larger = bundle(&[
            ("etcd: 3.6.0, ", ""),
            (
                "platforms: [debian-12-amd64]\nversions",
                "platforms: [debian-12-amd64, debian-13-amd64]\nversions",
            ),
        ]);
        let expected = ["platform debian-13-amd64: - -> ", "component etcd: 3.6.0 -> -", "0 0"];
        assert_eq!(lines(&bundle(&[]), &larger), expected);
    }
}
