//! What actions do to the simulated cluster.

use std::sync::atomic::Ordering;
use std::time::Duration;

use metalform::kube_api::node_addresses::address_annotations;
use metalform::model::api_contract::{API_SERVER, CORDONED, SSH_HOST};
use metalform::operation::effect::{Action, Observation, Returned};
use metalform::operation::goal::peer_url;
use metalform::operation::layer::Layer;
use metalform::operation::observed::layer_plan::LayerPlan;
use metalform::operation::observed::lease::LeaseView;
use metalform::operation::site::EffectError;
use tokio::time::Instant;

use super::cluster::{ReachPod, UserPod};
use super::fault::{failing, full_peer, lost_peer};
use super::host::{ETCD, KUBELET, address};
use super::site::ModelSite;

impl ModelSite {
    /// `late`: when a request for a change of members arrives, if not now.
    pub fn effect(
        &self,
        action: &Action,
        midway: bool,
        late: Option<Duration>,
    ) -> Result<Returned, EffectError> {
        let now = Instant::now();
        match action {
            Action::Apply(..)
            | Action::SetAsideMemberData
            | Action::RemoveMemberManifest
            | Action::BeginCluster(_)
            | Action::StopControlPlane
            | Action::StopNode
            | Action::ClearHost(..)
            | Action::ForgetHost
            | Action::RestartKubelet => self.ssh()?,
            Action::CreateTrust(_)
            | Action::RemoveNewClusterMark
            | Action::LoadImages(_)
            | Action::ChangeMembership(..)
            | Action::MoveLeader(..)
            | Action::WithdrawLearner(_) => {}
            _ => self.write()?,
        }
        let name = self.name().to_owned();
        let mut cluster = self.lock();
        let mut changed = usize::from(action.lasts());
        let mut observed = Vec::new();
        match action {
            Action::Apply(layer, plan) => {
                let keeps = self.keeps_lease(&cluster, now);
                if layer.restarts_in_turn() && self.leased.load(Ordering::Relaxed) && !keeps {
                    // What was sent to the host already is done there all the same.
                    if self.luck.late().is_some() {
                        cluster.host(&name).apply(plan, None, now);
                    }
                    return Err(self.lost_lease());
                }
                let changes: Vec<String> = plan.changes().into_iter().map(|change| change.id).collect();
                let holds = cluster.lease.as_ref().is_some_and(|lease| lease.holder == self.run);
                // The bootstrap node repairs what the API needs: it has no lease where no API server answers.
                if !self.goal.first || holds {
                    cluster.check_restart(&name, &changes, holds);
                }
                let only = midway.then(|| plan.changes().len() / 2);
                changed = cluster.host(&name).apply(plan, only, now);
                if *layer != Layer::Proxy {
                    observed.push(Observation::Plan(layer.clone(), LayerPlan::Unchanged(changed)));
                }
            }
            Action::CreateJoinToken => {
                cluster.tokens.insert(self.token(), now);
            }
            Action::DeleteJoinTokens => {
                for token in cluster.tokens_of(self.name()) {
                    cluster.tokens.remove(&token);
                }
            }
            Action::TakeLease => {
                let view = self.take_lease(&mut cluster, now);
                self.leased.store(view == LeaseView::Ours, Ordering::Relaxed);
                observed.push(Observation::Lease(view));
            }
            Action::ReleaseLease => {
                self.leased.store(false, Ordering::Relaxed);
                self.check_leaving(&mut cluster, now);
                if cluster.lease.as_ref().is_some_and(|lease| lease.holder == self.run) {
                    cluster.lease = None;
                }
            }
            Action::ChangeMembership(change, seen) => {
                self.change_membership(&mut cluster, change, seen, late)?;
            }
            Action::SetAsideMemberData => {
                let data = cluster.host(&name).set_aside();
                cluster.host(&name).things.remove(ETCD);
                if cluster.etcd.members.iter().any(|member| Some(member.id) == data) {
                    cluster.violations.push("data of a member that is in the list was set aside".to_owned());
                }
            }
            Action::SetCapacity(_) => {
                changed = 0;
                cluster.nodes.entry(name).or_default().has_capacity = true;
            }
            Action::RecordAddresses { control_plane, workload_plane, status } => {
                if let Some(node) = cluster.nodes.get_mut(&name) {
                    node.annotations.extend(address_annotations(*control_plane, *workload_plane, status));
                    node.addresses.clone_from(status);
                }
            }
            Action::RemoveUninitializedTaint => {
                if let Some(node) = cluster.nodes.get_mut(&name) {
                    node.uninitialized = false;
                }
            }
            Action::MarkApiServerReady => {
                if let Some(node) = cluster.nodes.get_mut(&name) {
                    node.annotations.insert(API_SERVER.to_owned(), "ready".to_owned());
                }
            }
            Action::RegisterNode(address) => {
                let annotations = &mut cluster.nodes.entry(name).or_default().annotations;
                annotations.insert(SSH_HOST.to_owned(), address.to_string());
            }
            Action::RemoveMemberManifest => {
                if cluster.host(&name).etcd_data.is_some() {
                    // The script looks for the data itself.
                    return Err(failing(action, &name));
                }
                cluster.host(&name).things.remove(ETCD);
            }
            Action::WithdrawLearner(learner) => {
                changed =
                    self.withdraw_learner(&mut cluster, (&learner.peer_url, &learner.endpoints), late)?;
            }
            Action::CreateTrust(_) => {
                cluster.new_cluster |= !cluster.trust;
                cluster.trust = true;
            }
            Action::BeginCluster(address) => cluster.begin_etcd(&name, &peer_url(*address), now),
            Action::RemoveNewClusterMark => cluster.new_cluster = false,
            Action::LoadImages(_) => cluster.images = true,
            Action::ApplyObjects(..) => cluster.objects = true,
            Action::RestartKubelet => {}
            Action::MoveLeader(to, _) => self.move_leader(&mut cluster, *to)?,
            Action::Cordon | Action::Uncordon => {
                if let Some(node) = cluster.nodes.get_mut(&name) {
                    node.unschedulable = matches!(action, Action::Cordon);
                    node.annotations.remove(CORDONED);
                    if node.unschedulable {
                        node.annotations.insert(CORDONED.to_owned(), "now".to_owned());
                    }
                }
            }
            Action::EvictPods(pods) => {
                changed = 0;
                for pod in pods {
                    if let Some(pod) = cluster.pods.get_mut(&pod.name).filter(|pod| !pod.kept) {
                        pod.leaving.get_or_insert(now);
                        changed += 1;
                    }
                }
            }
            Action::WithdrawApiServer => {
                if let Some(node) = cluster.nodes.get_mut(&name) {
                    node.annotations.remove(API_SERVER);
                }
            }
            Action::StopControlPlane => {
                cluster.check_stopping(&name);
                cluster.host(&name).things.retain(|id, _| !id.starts_with("static_pod:kube-"));
            }
            Action::StopNode => {
                let data = cluster.hosts[&name].etcd_data;
                if cluster.etcd.members.iter().any(|member| Some(member.id) == data) {
                    cluster.violations.push(format!("{name} was stopped before its member was removed"));
                }
                // Those that it would have to end itself are ended with it.
                let stays = |pod: &UserPod| pod.leaving.is_none() || cluster.hosts[&name].runs(KUBELET);
                if cluster.pods.values().any(|pod| pod.node == name && stays(pod)) {
                    cluster.violations.push(format!("{name} was stopped with pods on it"));
                }
                cluster.host(&name).stop_node();
            }
            Action::ClearHost(..) => {
                let machine = cluster.hosts[&name].facts.machine_id.clone();
                cluster.bridges.remove(&machine);
                let host = cluster.host(&name);
                if host.joined || host.runs(KUBELET) {
                    cluster.violations.push(format!("{name} was cleared while its kubelet runs"));
                }
                let url = peer_url(address(cluster.hosts[&name].number));
                if cluster.etcd.members.iter().any(|member| member.peer_url == url) {
                    cluster.violations.push(format!("{name} was cleared before its member was removed"));
                }
                cluster.host(&name).lose_data();
            }
            Action::ForgetHost => cluster.host(&name).recorded = false,
            Action::DeleteNode => {
                if cluster.reaches(&name) && cluster.hosts[&name].runs(KUBELET) && cluster.hosts[&name].joined
                {
                    cluster.violations.push(format!("the Node {name} was deleted while its kubelet runs"));
                }
                let url = peer_url(address(cluster.hosts[&name].number));
                if cluster.etcd.members.iter().any(|member| member.peer_url == url) {
                    cluster
                        .violations
                        .push(format!("the Node {name} was deleted before its member was removed"));
                }
                cluster.nodes.remove(&name);
            }
            Action::UpdateProxy(node, plan) => {
                if !cluster.reaches(node) {
                    return Err(lost_peer(node));
                }
                if cluster.host(node).full {
                    return Err(full_peer(node));
                }
                changed = cluster.host(node).apply(plan, None, now);
            }
            Action::StartReachabilityPod => {
                cluster.reach_pods.entry(name).or_insert(ReachPod::Since(now));
            }
            Action::DeleteReachabilityPod => {
                cluster.reach_pods.remove(&name);
                let machine = cluster.hosts[&name].facts.machine_id.clone();
                cluster.bridges.insert(machine);
            }
        }
        Ok(Returned { changed, observed })
    }
}
