//! What the manifest of a static pod contains.

use std::collections::BTreeMap;

use crate::model::image_reference;

/// Its flags: the lines `- --name=value`.
pub(super) fn flags(manifest: &str) -> BTreeMap<String, String> {
    manifest
        .lines()
        .filter_map(|line| line.trim().strip_prefix("- --")?.split_once('='))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

/// The tag of its first image, without a leading `v`.
pub(super) fn image_version(manifest: &str) -> Option<String> {
    let reference = manifest.lines().find_map(|line| line.trim().strip_prefix("image: "))?;
    Some(image_reference::tag(reference)?.trim_start_matches('v').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_the_tag_of_the_image() {
        for (manifest, expected) in [
            ("      image: registry.k8s.io/kube-apiserver:v1.35.4@sha256:ab\n", Some("1.35.4")),
            ("image: registry.k8s.io/etcd:3.6.16-0\nimage: b:2", Some("3.6.16-0")),
            ("image: localhost:5000/etcd@sha256:ab", None),
            ("command: etcd", None),
        ] {
            assert_eq!(image_version(manifest).as_deref(), expected, "{manifest}");
        }
    }

    #[test]
    fn flags_are_read_from_a_static_pod() {
        let manifest = "command:\n  - etcd\n  - --name=a\n  - --initial-cluster=a=https://192.0.2.1:2380\n";
        assert_eq!(flags(manifest)["initial-cluster"], "a=https://192.0.2.1:2380");
        assert_eq!(flags(manifest).len(), 2);
    }
}
