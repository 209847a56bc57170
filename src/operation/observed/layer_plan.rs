//! The comparison of a host with a layer.

use std::sync::Arc;

use crate::operation::host_access::HostPlan;

/// The comparison of the host with a layer.
#[derive(Debug, Clone)]
pub enum LayerPlan {
    /// Nothing differs, of so many resources.
    Unchanged(usize),
    /// Carrying out the plan makes it so.
    Differs(Arc<HostPlan>),
    /// Resources that must not be changed: id and reason.
    Refused(Vec<(String, String)>),
}

impl LayerPlan {
    /// Of what a host returned.
    pub fn of(plan: HostPlan) -> Self {
        let verdicts = plan.0.plan();
        let refusals = verdicts.refusals();
        if !refusals.is_empty() {
            Self::Refused(refusals)
        } else if verdicts.works().is_empty() {
            Self::Unchanged(verdicts.unchanged())
        } else {
            Self::Differs(Arc::new(plan))
        }
    }
}
