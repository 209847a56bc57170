//! An image's reference in its two parts.

use oci_spec::distribution::Reference;

/// Name and tag: `registry.k8s.io/pause:3.10.1` is `registry.k8s.io/pause` and `3.10.1`. What is no reference has no tag.
pub(super) fn name_and_tag(reference: &str) -> (String, String) {
    match reference.parse::<Reference>() {
        Ok(parsed) => {
            let name = format!("{}/{}", parsed.registry(), parsed.repository());
            (name, parsed.tag().unwrap_or_default().to_owned())
        }
        Err(_) => (reference.to_owned(), String::new()),
    }
}
