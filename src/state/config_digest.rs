//! The digest of what a pod reads, in its manifest.
//!
//! The kubelet restarts a static pod when its manifest changes, and only then. A manifest therefore contains
//! [`PLACEHOLDER`], usually as an annotation, and the digest takes its place.
//!
//! # Guarantees
//! - The digest changes with the manifest itself and with the desired state of every resource that it names: their
//!   contents as rendered, not what is on the host. What a host generates (private keys) has no part in it.
//! - It is one SHA-256 of everything together. Whoever can read pods can read it, and could verify a guess of a secret
//!   in it; keys (128 bits and more) cannot be guessed.

use sha2::{Digest, Sha256};

use super::compiled::Compiled;
use super::field::CONTENT;

/// In the content, where the digest belongs.
pub const PLACEHOLDER: &str = "<config-digest>";

/// Replaces the placeholder. `named` are the resources that the digest covers. Returns whether there was one.
pub(super) fn fill<'a>(resource: &mut Compiled, named: impl Iterator<Item = &'a Compiled>) -> bool {
    let Some(content) = resource.fields.get(CONTENT).and_then(|content| content.as_str()) else {
        return false;
    };
    if !content.contains(PLACEHOLDER) {
        return false;
    }
    let mut digest = Sha256::new();
    let mut add = |part: &str| {
        // The length keeps apart what would be the same text together.
        digest.update((part.len() as u64).to_be_bytes());
        digest.update(part);
    };
    add(content);
    for Compiled { id, fields, ensure, .. } in named {
        add(&id.to_string());
        add(&format!("{ensure:?}"));
        for (name, value) in fields {
            add(name);
            add(&value.to_string());
        }
    }
    // With a prefix, so that YAML never reads a number.
    let digest = format!("sha256:{}", hex::encode(digest.finalize()));
    let content = content.replace(PLACEHOLDER, &digest);
    resource.fields.insert(CONTENT.to_owned(), content.into());
    true
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;
    use crate::resource::contract::ensure::Ensure;
    use crate::state::Location;

    fn compiled(id: &str, fields: serde_json::Value) -> Compiled {
        Compiled {
            id: id.parse().unwrap(),
            fields: fields.as_object().unwrap().clone(),
            ensure: Ensure::Present,
            sensitive: false,
            only_if_changed: Vec::new(),
            after: Vec::new(),
            source: Location::of_file("states/a.yaml"),
            places: BTreeMap::new(),
            state: "a".parse().unwrap(),
        }
    }

    fn manifest(manifest: &str, named: &[Compiled]) -> String {
        let mut pod = compiled("static_pod:kube-apiserver", json!({ "content": manifest }));
        assert!(fill(&mut pod, named.iter()));
        pod.fields["content"].as_str().unwrap().to_owned()
    }

    #[test]
    fn a_manifest_changes_with_each_file_that_the_pod_reads() {
        let file = |content: &str| compiled("template:/etc/a", json!({ "content": content, "mode": "0600" }));
        let other = |content: &str| compiled("file:/etc/b", json!({ "content": content }));
        let pod = "digest: <config-digest>\n";
        let first = manifest(pod, &[file("x"), other("y")]);
        assert_eq!(first, manifest(pod, &[file("x"), other("y")]));
        assert!(
            first.starts_with("digest: sha256:") && first.len() == "digest: sha256:\n".len() + 64,
            "{first}"
        );
        let digest = |manifest: &str| manifest[8..].to_owned();
        let all = [
            digest(&first),
            digest(&manifest(pod, &[file("x2"), other("y")])),
            digest(&manifest(pod, &[file("x"), other("y2")])),
            digest(&manifest(pod, &[file("x")])),
            digest(&manifest(pod, &[])),
            digest(&manifest(&format!("{pod}flag: 1\n"), &[file("x"), other("y")])),
            // What is moved from one to the other is a change.
            digest(&manifest(pod, &[file("xy"), other("")])),
        ];
        let different: std::collections::BTreeSet<&String> = all.iter().collect();
        assert_eq!(different.len(), all.len());
    }

    #[test]
    fn a_manifest_without_a_place_for_the_digest_stays_as_it_is() {
        let mut pod = compiled("static_pod:etcd", json!({ "content": "kind: Pod\n" }));
        assert!(!fill(&mut pod, std::iter::empty()));
        assert_eq!(pod.fields["content"], "kind: Pod\n");
    }
}
