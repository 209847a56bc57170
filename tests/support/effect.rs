//! What actions do to the simulated cluster.

use std::time::Duration;

use metalform::kube_api::lease::LeaseError;
use metalform::operation::phase::Action;
use metalform::operation::site::{Done, Trouble};
use metalform::operation::world::World;
use tokio::time::{Instant, sleep};

use super::cluster::{Lease, ReachPod};
use super::host::{ETCD, PROXY};
use super::site::FakeSite;

/// As in the real site.
const LEASE_LIMIT: Duration = Duration::from_secs(900);

impl FakeSite {
    pub async fn effect(&mut self, action: &Action, world: &World, midway: bool) -> Result<Done, Trouble> {
        let now = Instant::now();
        match action {
            Action::Apply(_) | Action::SetAsideMemberData | Action::RestartKubelet => self.ssh()?,
            Action::CreateTrust | Action::LoadImages | Action::ChangeMembership(_) | Action::TakeLease => {}
            _ => self.api("change")?,
        }
        let name = self.name().to_owned();
        let mut changed = 1;
        match action {
            Action::Apply(layer) => {
                let token = self.token();
                let values = self.values(layer, world, &token);
                let mut cluster = self.lock();
                let host = cluster.host(&name);
                let only = midway.then(|| host.plan(layer, &values).changes.len() / 2);
                changed = host.apply(layer, &values, only, now);
            }
            Action::CreateJoinToken => {
                self.lock().tokens.insert(self.token(), now);
            }
            Action::DeleteJoinToken => {
                let mut cluster = self.lock();
                for token in cluster.tokens_of(self.name()) {
                    cluster.tokens.remove(&token);
                }
            }
            Action::TakeLease => self.take_lease().await?,
            Action::ReleaseLease => {
                let mut cluster = self.lock();
                if cluster.lease.as_ref().is_some_and(|lease| lease.holder == self.run) {
                    cluster.lease = None;
                }
            }
            Action::ChangeMembership(change) => {
                let mut cluster = self.lock();
                if cluster.lease.as_ref().is_none_or(|lease| lease.holder != self.run) {
                    cluster.violations.push(format!("{} without the lease", action.sentence()));
                }
                let voters = cluster.etcd.voters().count();
                cluster.etcd.change(change, now).map_err(Trouble::EtcdAct)?;
                if !cluster.etcd.has_quorum() || cluster.etcd.voters().count() < voters {
                    cluster.violations.push(format!("{} cost a vote", action.sentence()));
                }
                if !cluster.away_after_change.is_zero() {
                    cluster.away_until = Some(now + cluster.away_after_change);
                }
            }
            Action::SetAsideMemberData => {
                let mut cluster = self.lock();
                let data = cluster.host(&name).etcd_data.take();
                cluster.host(&name).things.remove(ETCD);
                if cluster.etcd.members.iter().any(|member| Some(member.id) == data) {
                    cluster.violations.push("data of a member that is in the list was set aside".to_owned());
                }
            }
            Action::Annotate(annotations) => {
                let mut cluster = self.lock();
                if let Some(node) = cluster.nodes.get_mut(&name) {
                    node.annotations.extend(annotations.iter().cloned());
                }
            }
            Action::RegisterNode => {
                self.lock().nodes.entry(name).or_default();
            }
            Action::CreateTrust => self.lock().trust = true,
            Action::LoadImages => self.lock().images = true,
            Action::ApplyClusterObjects => self.lock().objects = true,
            Action::RestartKubelet => {}
            Action::UpdateProxies(names) => {
                let mut wanted = self.proxies(world);
                wanted.retain(|(name, _)| names.contains(name));
                let mut cluster = self.lock();
                for (name, wanted) in wanted {
                    if let Ok(wanted) = wanted {
                        cluster.host(&name).things.insert(PROXY.to_owned(), wanted);
                    }
                }
            }
            Action::StartReachabilityPod => {
                changed = 0;
                self.lock().reach_pods.entry(name).or_insert(ReachPod::Since(now));
            }
            Action::DeleteReachabilityPod => {
                changed = 0;
                self.lock().reach_pods.remove(&name);
            }
        }
        Ok(Done { changed })
    }

    async fn take_lease(&self) -> Result<(), Trouble> {
        let began = Instant::now();
        loop {
            {
                let mut cluster = self.lock();
                let free = cluster.lease.as_ref().is_none_or(|lease| lease.holder == self.run);
                if free && cluster.api(Instant::now()).is_ok() {
                    cluster.lease = Some(Lease { holder: self.run.clone(), expires: None });
                    return Ok(());
                }
            }
            if began.elapsed() > LEASE_LIMIT {
                return Err(Trouble::Lease(LeaseError::Taken { by: "somebody".to_owned() }));
            }
            sleep(Duration::from_millis(200)).await;
        }
    }
}
