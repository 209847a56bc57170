//! `static_pod`: a manifest in the kubelet's directory.
//!
//! The kubelet restarts the pod only when its manifest changes. Where a change of another file must restart it, the
//! compiler has put the digest of that file into the manifest (`state::PLACEHOLDER`).

use crate::resource::contract::change::Verdict;
use crate::resource::contract::context::Context;
use crate::resource::contract::ensure::Ensure;
use crate::resource::contract::probe::{Observed, Probe};
use crate::resource::contract::refusal::Refusal;
use crate::resource::contract::step::Access;
use crate::resource::fields::field_error::FieldError;
use crate::resource::fields::field_spec::{FieldSpec, FieldType};
use crate::resource::fields::field_values::FieldValues;
use crate::resource::text::contents::{Contents, removal};

/// The kubelet's directory.
const MANIFESTS: &str = "/etc/kubernetes/manifests";

pub const FIELDS: &[FieldSpec] = &[
    FieldSpec::required("content", FieldType::String, "The manifest."),
    FieldSpec::optional(
        "restart_when_changed",
        FieldType::StringList,
        "Ids of earlier resources that the pod reads at its start. The digest of their desired state takes the place of `<config-digest>` in the manifest.",
    ),
];

/// A static pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StaticPod {
    path: String,
    /// `None` when it should be absent.
    desired: Option<Contents>,
}

impl StaticPod {
    pub fn parse(name: &str, fields: &FieldValues) -> Result<Self, FieldError> {
        let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if name.is_empty() || !name.chars().all(inner) || name.starts_with('-') || name.ends_with('-') {
            let reason = "use lowercase letters, digits and '-' (RFC 1123)";
            return Err(fields.invalid_name(name, reason));
        }
        let path = format!("{MANIFESTS}/{name}.yaml");
        fields.ids("restart_when_changed")?;
        let desired = match fields.ensure {
            Ensure::Absent => None,
            Ensure::Present => Some(Contents {
                path: path.clone(),
                text: fields.need("content")?,
                access: Access::root(0o600),
                sensitive: fields.sensitive,
            }),
        };
        Ok(Self { path, desired })
    }

    pub fn probes(&self) -> Vec<Probe> {
        vec![self.desired.as_ref().map_or_else(|| Probe::path(&self.path), Contents::probe)]
    }

    pub fn diff(&self, observed: &Observed, context: &Context<'_>) -> Result<Verdict, Refusal> {
        let (change, reason) = match &self.desired {
            Some(desired) => (desired.compare(observed, context.pending)?, "has this manifest"),
            None => (removal(&self.path, observed, context.pending)?, "is absent"),
        };
        Ok(change.into_verdict(reason))
    }
}
