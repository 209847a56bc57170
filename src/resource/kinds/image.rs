//! `image`: a container image in containerd's `k8s.io` namespace, where the kubelet looks.

use crate::resource::contract::change::{Change, Verdict};
use crate::resource::contract::ensure::Ensure;
use crate::resource::contract::probe::{Observed, Probe};
use crate::resource::contract::refusal::Refusal;
use crate::resource::contract::step::Step;
use crate::resource::fields::field::FieldSpec;
use crate::resource::fields::given::{FieldError, Given};
use crate::resource::fields::shell;

/// It has none.
pub const FIELDS: &[FieldSpec] = &[];

/// An image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    reference: String,
    ensure: Ensure,
}

impl Image {
    pub(in crate::resource) fn parse(name: &str, given: &Given) -> Result<Self, FieldError> {
        match fault(name) {
            None => Ok(Self { reference: name.to_owned(), ensure: given.ensure }),
            Some(reason) => Err(FieldError::Name { kind: "image", name: name.to_owned(), reason }),
        }
    }

    pub(in crate::resource) fn probes(&self) -> Vec<Probe> {
        vec![Probe::Image { reference: self.reference.clone() }]
    }

    pub(in crate::resource) fn diff(&self, observed: &Observed) -> Result<Verdict, Refusal> {
        let here = observed.holds(Probe::Image { reference: self.reference.clone() })?;
        let mut change = Change::default();
        match (self.ensure, here) {
            (Ensure::Present, false) => {
                change.field("image", None, Some(&self.reference));
                change.steps.push(Step::PullImage(self.reference.clone()));
            }
            (Ensure::Absent, true) => {
                change.field("image", Some(&self.reference), None);
                let script = format!("ctr -n k8s.io images rm {}", shell::word(&self.reference));
                change.steps.push(Step::Run { script });
            }
            _ => {}
        }
        Ok(change.or(if here { "is present" } else { "is absent" }))
    }
}

/// A full reference has a registry and a tag or digest: containerd, unlike docker, adds neither.
fn fault(reference: &str) -> Option<&'static str> {
    let (registry, rest) = reference.split_once('/').unwrap_or(("", reference));
    let allowed = |c: char| c.is_ascii_alphanumeric() || "./-_:@[]".contains(c);
    if !reference.chars().all(allowed) {
        Some("it holds a character that no reference holds")
    } else if registry.starts_with('-') || !(registry.contains(['.', ':']) || registry == "localhost") {
        Some("it must begin with a registry, as registry.k8s.io/pause:3.10")
    } else if !rest.contains('@') && !rest.rsplit('/').next().is_some_and(|last| last.contains(':')) {
        Some("it must end with a tag or digest, as registry.k8s.io/pause:3.10")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_full_references_are_taken() {
        let digest = format!("localhost/a@sha256:{}", "0".repeat(64));
        for good in ["registry.k8s.io/pause:3.10", "10.0.0.1:5000/a/b:v1", "localhost/a:b", &digest] {
            assert_eq!(fault(good), None, "{good}");
        }
        for bad in
            ["pause", "pause:3.10", "library/pause:3.10", "registry.k8s.io/pause", "a.b/c d:1", "-a.b/c:1"]
        {
            assert!(fault(bad).is_some(), "{bad}");
        }
    }
}
