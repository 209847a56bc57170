//! `image`: a container image in containerd's `k8s.io` namespace, the one that the kubelet uses.

use crate::model::image_reference::without_tag;
use crate::model::shell_word::quote;
use crate::resource::contract::change::{Change, Verdict};
use crate::resource::contract::ensure::Ensure;
use crate::resource::contract::probe::{Observed, Probe};
use crate::resource::contract::refusal::Refusal;
use crate::resource::contract::step::Step;
use crate::resource::fields::field_error::FieldError;
use crate::resource::fields::field_spec::FieldSpec;
use crate::resource::fields::field_values::FieldValues;

pub const FIELDS: &[FieldSpec] = &[];

/// An image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    reference: String,
    ensure: Ensure,
}

impl Image {
    pub fn parse(name: &str, fields: &FieldValues) -> Result<Self, FieldError> {
        match fault(name) {
            None => Ok(Self { reference: name.to_owned(), ensure: fields.ensure }),
            Some(reason) => Err(fields.invalid_name(name, reason)),
        }
    }

    pub fn probes(&self) -> Vec<Probe> {
        vec![self.probe()]
    }

    fn probe(&self) -> Probe {
        Probe::Image { reference: without_tag(&self.reference) }
    }

    pub fn diff(&self, observed: &Observed) -> Result<Verdict, Refusal> {
        let stored = without_tag(&self.reference);
        let here = observed.holds(self.probe())?;
        let mut change = Change::default();
        match (self.ensure, here) {
            (Ensure::Present, false) => {
                change.field("image", None, Some(&self.reference));
                change.steps.push(Step::PullImage(stored));
            }
            (Ensure::Absent, true) => {
                change.field("image", Some(&self.reference), None);
                let script = format!("ctr -n k8s.io images rm {}", quote(&stored));
                change.steps.push(Step::Run { script });
            }
            _ => {}
        }
        Ok(change.into_verdict(if here { "is present" } else { "is absent" }))
    }
}

/// A full reference has a registry, and a tag or digest: containerd, unlike Docker, adds neither.
fn fault(reference: &str) -> Option<&'static str> {
    let (registry, rest) = reference.split_once('/').unwrap_or(("", reference));
    let allowed = |c: char| c.is_ascii_alphanumeric() || "./-_:@[]".contains(c);
    if !reference.chars().all(allowed) {
        Some("must contain only letters, digits and ./-_:@[]")
    } else if registry.starts_with('-') || !(registry.contains(['.', ':']) || registry == "localhost") {
        Some("must begin with a registry, such as registry.k8s.io/pause:3.10")
    } else if !rest.contains('@') && !rest.rsplit('/').next().is_some_and(|last| last.contains(':')) {
        Some("must end with a tag or digest, such as registry.k8s.io/pause:3.10")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_full_references_are_accepted() {
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
