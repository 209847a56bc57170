//! A host becomes clean again: its kubelet is stopped, then it is reset.

use std::collections::BTreeSet;
use std::time::Duration;

use super::Job;
use super::check::unexpected;
use super::fault::JobFault;
use crate::kube_api::nodes;
use crate::machine::host_identity;
use crate::model::facts::Facts;
use crate::operation::effect::{Action, KeepData, Look, Observation};
use crate::operation::goal::NodeGoal;
use crate::operation::removal_goal::RemoveGoal;
use crate::operation::reset::{ResetCheckOperation, ResetOperation};
use crate::operation::site::Site;

impl Job<'_> {
    /// Once it returns, no program under this token or a smaller one starts the kubelet: its certificate and its
    /// configuration are gone; and no join token is left for the node: the CA signs by a token for whichever Machine the node
    /// is of. A host that must not be reset is left alone, and is not given the token.
    pub(super) async fn stop_kubelet(&self) -> Result<(), JobFault> {
        let goal = self.reset_goal();
        self.own_machine(&goal.node).await?;
        self.run::<ResetCheckOperation>(&goal, &self.looks(&goal.node)).await?;
        let site = self.site(&goal.node, &self.spec);
        site.act_in_time(&Action::StopNode).await?;
        // Afterwards: an earlier worker can no longer bring one to the host.
        site.act_in_time(&Action::DeleteJoinTokens).await?;
        Ok(())
    }

    /// Ends with a comparison that shows nothing of metalform's.
    pub(super) async fn reset(&self) -> Result<(), JobFault> {
        let goal = self.reset_goal();
        self.own_machine(&goal.node).await?;
        self.run::<ResetOperation>(&goal, &self.site(&goal.node, &self.spec)).await
    }

    /// The machine at the address is the one that the Host describes.
    async fn own_machine(&self, goal: &NodeGoal) -> Result<(), JobFault> {
        let facts = facts(&self.looks(goal)).await?;
        let node = nodes::get(&self.pool.client, &self.spec.name).await?;
        Ok(host_identity::check(&self.spec.name, &facts, node.as_ref())?)
    }

    fn reset_goal(&self) -> RemoveGoal {
        RemoveGoal {
            node: NodeGoal { leaves: true, ..self.goal(&self.spec) },
            offline: false,
            force: false,
            kubelet_stopped: true,
            dedicated: true,
            keep_data: KeepData(false),
            drain_limit: Duration::ZERO,
            together: BTreeSet::new(),
        }
    }
}

async fn facts(site: &dyn Site) -> Result<Facts, JobFault> {
    match site.look_in_time(&Look::Facts).await? {
        Observation::Facts(facts, _) => Ok(facts),
        _ => Err(unexpected(&Look::Facts)),
    }
}
