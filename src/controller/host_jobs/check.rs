//! What is on a host, and whether it is fit to be a node.

use super::Job;
use super::fault::JobFault;
use crate::engine::fenced_transport::{FENCE_FILE, largest_token};
use crate::kube_api::nodes;
use crate::machine::api::host_facts::HostFacts;
use crate::machine::host_identity;
use crate::machine::job_outcome::HostFindings;
use crate::model::facts::Facts;
use crate::operation::effect::{KeepData, Look, Observation};
use crate::operation::goal::NodeGoal;
use crate::operation::observed::node::{NodeView, Peer};
use crate::operation::preflight::{failures, identity, occupants};
use crate::operation::site::{EffectError, Site};
use crate::operation::survey::Survey;
use crate::resource::contract::probe::{Answer, Probe};
use crate::service::reset::compare_site;
use crate::transport::error::FenceRefusal;

impl Job<'_> {
    /// Facts, what a clean host does not have, and what shows that it is another machine. Without a token: a Host that
    /// was deleted and added again does not know the one that its host was given.
    pub(super) async fn inspect(&self) -> Result<HostFindings, JobFault> {
        let goal = self.goal(&self.spec);
        let site = self.looks(&goal);
        let (facts, mut residue) = compared(&site, &goal).await?;
        let survey = survey(&site).await?;
        let (own, peers) = (node(&site).await?, peers(&site).await?);
        let other = identity(&goal, &facts, own.as_ref(), peers.iter());
        residue.extend(other.into_iter().chain(occupants(&goal, &facts, &survey)).map(|one| one.what));
        let node = nodes::get(&self.pool.client, &self.spec.name).await?;
        residue.extend(
            host_identity::check_node(&goal.name, node.as_ref()).err().map(|error| error.to_string()),
        );
        let largest_token = self.largest_token().await?;
        Ok(HostFindings { facts: Some(HostFacts::from(&facts)), residue, largest_token })
    }

    async fn largest_token(&self) -> Result<i64, JobFault> {
        let probe = Probe::Content { path: FENCE_FILE.to_owned() };
        let host = self.pool.ports.ports(&self.spec, None, &self.context.cancel).host;
        let observed = host.observe(&[probe.clone()].into()).await?;
        match observed.get(&probe) {
            Some(Answer::Content(content)) => Ok(largest_token(content.as_deref())?),
            _ => Err(FenceRefusal::Unreadable.into()),
        }
    }

    /// Every reason against the host.
    pub(super) async fn check(&self) -> Result<HostFindings, JobFault> {
        let goal = self.goal(&self.spec);
        let site = self.site(&goal, &self.spec);
        let compared = async {
            let compared = compared(&site, &goal).await;
            (compared, (self.pool.workspace.now)().as_second())
        };
        let ((compared, received), survey, node, peers) =
            tokio::join!(compared, survey(&site), node(&site), peers(&site));
        let (facts, residue) = compared?;
        if !residue.is_empty() {
            return Err(JobFault::NotClean(residue));
        }
        let (survey, node, peers) = (survey?, node?, peers?);
        let found = failures(&goal, (&facts, received), &survey, (node.as_ref(), None), peers.iter());
        if !found.is_empty() {
            return Err(JobFault::Preflight(found));
        }
        Ok(HostFindings { facts: Some(HostFacts::from(&facts)), ..HostFindings::default() })
    }
}

/// The facts, and what metalform has left.
async fn compared(site: &dyn Site, goal: &NodeGoal) -> Result<(Facts, Vec<String>), JobFault> {
    let (facts, differences) = compare_site(site, goal.clone(), KeepData(false)).await?;
    let left = differences.iter().filter(|one| one.ours).map(ToString::to_string);
    Ok((facts, left.collect()))
}

async fn survey(site: &dyn Site) -> Result<Survey, JobFault> {
    match site.look_in_time(&Look::Survey).await? {
        Observation::Survey(survey) => Ok(survey),
        _ => Err(unexpected(&Look::Survey)),
    }
}

async fn node(site: &dyn Site) -> Result<Option<NodeView>, JobFault> {
    match site.look_in_time(&Look::Node).await? {
        Observation::Node(node) => Ok(node),
        _ => Err(unexpected(&Look::Node)),
    }
}

async fn peers(site: &dyn Site) -> Result<std::collections::BTreeMap<String, Peer>, JobFault> {
    match site.look_in_time(&Look::Peers).await? {
        Observation::Peers(peers) => Ok(peers),
        _ => Err(unexpected(&Look::Peers)),
    }
}

/// A site answers a look with its own observation.
pub(super) fn unexpected(look: &Look) -> JobFault {
    JobFault::Effect(EffectError::Impossible { what: look.sentence() })
}
