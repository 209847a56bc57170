//! `static_pod`: a manifest in the kubelet's directory.
//!
//! The kubelet starts the pod anew when its manifest changes, and only then: what must start it anew (a
//! changed configuration file) stands in the manifest as a digest, usually in an annotation.

use crate::resource::contract::change::Verdict;
use crate::resource::contract::context::Context;
use crate::resource::contract::ensure::Ensure;
use crate::resource::contract::probe::{Observed, Probe};
use crate::resource::contract::refusal::Refusal;
use crate::resource::contract::step::Access;
use crate::resource::fields::field::{FieldSort, FieldSpec};
use crate::resource::fields::given::{FieldError, Given};
use crate::resource::text::contents::{Contents, removal, removal_probe};

/// Its fields.
pub const FIELDS: &[FieldSpec] = &[FieldSpec {
    name: "content",
    sort: FieldSort::Text,
    required: true,
    about: "The manifest; holds the digests of what must start the pod anew.",
}];

/// A static pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StaticPod {
    path: String,
    /// `None` when it should be absent.
    wanted: Option<Contents>,
}

impl StaticPod {
    pub(in crate::resource) fn parse(name: &str, given: &Given) -> Result<Self, FieldError> {
        let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if name.is_empty() || !name.chars().all(inner) || name.starts_with('-') || name.ends_with('-') {
            let reason = "use lowercase letters, digits and '-' (RFC 1123)";
            return Err(FieldError::Name { kind: "static_pod", name: name.to_owned(), reason });
        }
        let path = format!("/etc/kubernetes/manifests/{name}.yaml");
        let wanted = match given.ensure {
            Ensure::Absent => None,
            Ensure::Present => Some(Contents {
                path: path.clone(),
                text: given.need("content")?,
                access: Access { owner: "root".to_owned(), group: "root".to_owned(), mode: 0o600 },
                sensitive: given.sensitive,
            }),
        };
        Ok(Self { path, wanted })
    }

    pub(in crate::resource) fn probes(&self) -> Vec<Probe> {
        vec![self.wanted.as_ref().map_or_else(|| removal_probe(&self.path), Contents::probe)]
    }

    pub(in crate::resource) fn diff(
        &self,
        observed: &Observed,
        context: &Context<'_>,
    ) -> Result<Verdict, Refusal> {
        let (change, reason) = match &self.wanted {
            Some(wanted) => (wanted.compare(observed, context.pending)?, "has this manifest"),
            None => (removal(&self.path, observed, context.pending)?, "is absent"),
        };
        Ok(change.or(reason))
    }
}
