//! References of container images: `registry.k8s.io/etcd:3.6.5-0@sha256:...`. The digest selects the image, the tag
//! is for people.

/// A reference without its tag, when it has a digest too; as it is otherwise.
///
/// It is the name under which containerd stores the image: its CRI plugin resolves the image of a container by this
/// form (`ParseDockerRef` of github.com/distribution/reference), so that the kubelet finds an image that was pulled
/// before only by this name.
pub fn without_tag(reference: &str) -> String {
    let Some((named, digest)) = reference.split_once('@') else { return reference.to_owned() };
    let name = tag_start(named).map_or(named, |colon| &named[..colon]);
    format!("{name}@{digest}")
}

/// The tag of a reference: `3.6.5-0`.
pub fn tag(reference: &str) -> Option<&str> {
    let named = reference.split('@').next()?;
    tag_start(named).map(|colon| &named[colon + 1..])
}

/// Where the colon before the tag is. One before the last slash belongs to the port of the registry.
fn tag_start(named: &str) -> Option<usize> {
    let last = named.rfind('/').map_or(0, |slash| slash + 1);
    named[last..].find(':').map(|colon| last + colon)
}

/// The digest of a reference: `sha256:...`.
pub fn digest(reference: &str) -> Option<&str> {
    reference.split_once('@').map(|(_, digest)| digest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_with_a_digest_loses_its_tag() {
        for (reference, expected) in [
            ("registry.k8s.io/etcd:3.6.5-0@sha256:ab", "registry.k8s.io/etcd@sha256:ab"),
            ("registry.k8s.io/coredns/coredns:v1@sha256:ab", "registry.k8s.io/coredns/coredns@sha256:ab"),
            ("10.0.0.1:5000/a/b:v1@sha256:ab", "10.0.0.1:5000/a/b@sha256:ab"),
            ("10.0.0.1:5000/a/b@sha256:ab", "10.0.0.1:5000/a/b@sha256:ab"),
            ("registry.k8s.io/pause:3.10", "registry.k8s.io/pause:3.10"),
        ] {
            assert_eq!(without_tag(reference), expected);
        }
        assert_eq!(digest("a.b/c:1@sha256:ab"), Some("sha256:ab"));
        assert_eq!(digest("a.b/c:1"), None);
    }
}
