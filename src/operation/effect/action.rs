//! Actions.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::NodeAddress;

use super::look_key::LookKey;
use super::member_id::member_id;
use super::observation::Observation;
use super::own_learner::OwnLearner;
use super::target::Target;
use crate::etcd::member::Membership;
use crate::etcd::membership::MembershipChange;
use crate::etcd::quorum::quorum;
use crate::kube_api::nodes::Capacity;
use crate::kube_api::pod_name::PodName;
use crate::model::api_contract::UNINITIALIZED_TAINT;
use crate::model::event::Milestone;
use crate::operation::class::FailureClass;
use crate::operation::host_access::HostPlan;
use crate::operation::inputs::NodeInputs;
use crate::operation::layer::Layer;
use crate::operation::observed::proxy::ProxyView;
use crate::operation::resource_change::ResourceChange;

const SECOND: Duration = Duration::from_secs(1);

/// One thing to do. Doing it twice is the same as doing it once.
#[derive(Debug, Clone)]
pub enum Action {
    /// Carry out a plan for a layer, until nothing differs.
    Apply(Layer, Arc<HostPlan>),
    /// Move the data of a removed member out of the data directory, and its static pod away.
    SetAsideMemberData,
    /// Remove the static pod of an etcd member that has no data, so that it cannot start again.
    RemoveMemberManifest,
    /// Restart the kubelet, which would request its certificate again only after its back-off.
    RestartKubelet,
    /// Create the token with which the kubelet requests its first certificate.
    CreateJoinToken,
    /// Delete every token for this node.
    DeleteJoinTokens,
    /// Set the capacity of a Node that no kubelet has reported for.
    SetCapacity(Capacity),
    /// Annotate the Node with its addresses, and set the addresses of its status.
    RecordAddresses {
        /// On the control plane.
        control_plane: IpAddr,
        /// On the workload plane.
        workload_plane: IpAddr,
        /// `status.addresses`, in order.
        status: Vec<NodeAddress>,
    },
    /// Remove the taint of a Node that a kubelet created itself.
    RemoveUninitializedTaint,
    /// Annotate the Node: its API server was ready once, so proxies may use it.
    MarkApiServerReady,
    /// Create the Node object of the bootstrap node, with this address for SSH, or complete that of its kubelet.
    RegisterNode(IpAddr),
    /// Start the pod on the node that answers over HTTP.
    StartReachabilityPod,
    /// Delete that pod.
    DeleteReachabilityPod,
    /// Acquire the lease on etcd membership, if it is free.
    TakeLease,
    /// Release it.
    ReleaseLease,
    /// Change etcd membership, through a member of this list.
    ChangeMembership(MembershipChange, Arc<Membership>),
    /// Remove the node's own learner, if there is one: the run ends before it votes.
    WithdrawLearner(OwnLearner),
    /// Let this voter lead etcd; the leader of the list hands over.
    MoveLeader(u64, Arc<Membership>),
    /// Let no new pod be placed on the node, and record who did so.
    Cordon,
    /// Undo that.
    Uncordon,
    /// Evict these pods, as far as their budgets allow it.
    EvictPods(BTreeSet<PodName>),
    /// Remove the annotation by which proxies use the node's API server.
    WithdrawApiServer,
    /// Remove the static pods of the control plane, and wait until their containers have ended.
    StopControlPlane,
    /// Stop the kubelet and all that it has started, for good.
    StopNode,
    /// Remove what programs wrote on the host, and put back what was recorded before metalform changed it; the data of the
    /// node too, unless it shall stay.
    ClearHost(Arc<NodeInputs>, KeepData),
    /// Remove the record, and all that metalform keeps on the host for itself.
    ForgetHost,
    /// Delete the Node object.
    DeleteNode,
    /// Carry out a plan for the proxy of another node.
    UpdateProxy(String, Arc<HostPlan>),
    /// Create these files: CAs and keys, and what they issue to this machine.
    CreateTrust(BTreeSet<String>),
    /// Create the data of a new etcd cluster with one member, at this address, unless there is data.
    BeginCluster(IpAddr),
    /// Remove the mark of a cluster that has yet to begin: etcd has begun.
    RemoveNewClusterMark,
    /// Load these images into the registry.
    LoadImages(BTreeSet<String>),
    /// Create or update these objects of the cluster, rendered from the inputs.
    ApplyObjects(BTreeSet<String>, Arc<NodeInputs>),
}

/// Whether the data of a node stays: etcd's, images, volumes, logs of pods.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeepData(pub bool);

/// What an action returns.
#[derive(Debug, Clone, Default)]
pub struct Returned {
    /// Resources and objects that were changed.
    pub changed: usize,
    /// What the action itself observed at its end.
    pub observed: Vec<Observation>,
}

impl Action {
    /// What users of the cluster notice when it has changed something.
    pub fn milestone(&self) -> Option<Milestone> {
        match self {
            Self::Cordon | Self::EvictPods(_) => Some(Milestone::DrainBegun),
            Self::ChangeMembership(change, _) => match change {
                MembershipChange::AddLearner { .. } => Some(Milestone::EtcdMemberAdded),
                MembershipChange::Promote { .. } => Some(Milestone::EtcdMemberPromoted),
                MembershipChange::Remove { .. }
                | MembershipChange::Replace { .. }
                | MembershipChange::Retire { .. } => Some(Milestone::EtcdMemberRemoved),
                // The member of another node.
                MembershipChange::Evict { .. } => None,
            },
            Self::WithdrawLearner(_) => Some(Milestone::EtcdMemberRemoved),
            _ => None,
        }
    }

    /// For people: `add https://192.0.2.11:2380 to etcd as a learner`.
    pub fn sentence(&self) -> String {
        match self {
            Self::Apply(Layer::Removed, _) => "remove packages, files and settings".to_owned(),
            Self::Apply(Layer::OtherRoles, _) => {
                "remove the files of roles that the node does not have".to_owned()
            }
            Self::Apply(layer, _) => format!("apply {}", layer.title()),
            Self::SetAsideMemberData => "set aside the data of a removed etcd member".to_owned(),
            Self::RemoveMemberManifest => "remove the static pod of an etcd member without data".to_owned(),
            Self::RestartKubelet => "restart the kubelet".to_owned(),
            Self::CreateJoinToken => "create a join token".to_owned(),
            Self::DeleteJoinTokens => "delete the join token".to_owned(),
            Self::SetCapacity(_) => "set the capacity of the Node".to_owned(),
            Self::RecordAddresses { .. } => "record the node's addresses".to_owned(),
            Self::RemoveUninitializedTaint => format!("remove the taint {UNINITIALIZED_TAINT}"),
            Self::MarkApiServerReady => "record that the API server is ready".to_owned(),
            Self::RegisterNode(_) => "create the Node object".to_owned(),
            Self::StartReachabilityPod => "start a pod on the node".to_owned(),
            Self::DeleteReachabilityPod => "delete that pod".to_owned(),
            Self::TakeLease => "take the lease on etcd membership".to_owned(),
            Self::ReleaseLease => "release the lease on etcd membership".to_owned(),
            Self::ChangeMembership(MembershipChange::AddLearner { peer_url }, _) => {
                format!("add {peer_url} to etcd as a learner")
            }
            Self::ChangeMembership(MembershipChange::Promote { id }, _) => {
                format!("promote etcd learner {} to voter", member_id(*id))
            }
            Self::ChangeMembership(MembershipChange::Remove { id, why }, _) => {
                format!("remove etcd member {}: it {why}", member_id(*id))
            }
            Self::ChangeMembership(MembershipChange::Evict { id, why }, _) => {
                format!("remove abandoned etcd learner {}: {why}", member_id(*id))
            }
            Self::ChangeMembership(MembershipChange::Replace { id, .. }, _) => {
                format!("remove etcd member {}, whose data is lost, to add it again", member_id(*id))
            }
            Self::ChangeMembership(MembershipChange::Retire { id, .. }, observed) => {
                retirement(*id, observed)
            }
            Self::MoveLeader(to, observed) => {
                let voter = observed.members.iter().find(|member| member.id == *to);
                format!(
                    "let {} lead etcd",
                    voter.map_or_else(|| member_id(*to), |voter| voter.title().to_owned())
                )
            }
            Self::Cordon => "cordon the node".to_owned(),
            Self::Uncordon => "uncordon the node".to_owned(),
            Self::EvictPods(pods) => {
                format!("evict {}", pods.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))
            }
            Self::WithdrawApiServer => "withdraw the API server".to_owned(),
            Self::StopControlPlane => "stop the control plane".to_owned(),
            Self::StopNode => "stop the kubelet and all pods".to_owned(),
            Self::ClearHost(_, KeepData(false)) => "clear the host".to_owned(),
            Self::ClearHost(_, KeepData(true)) => "clear the host, but for its data".to_owned(),
            Self::ForgetHost => "remove the record of what was on the host".to_owned(),
            Self::DeleteNode => "delete the Node object".to_owned(),
            Self::WithdrawLearner(learner) => {
                format!("remove {} from etcd: it has no vote yet", learner.peer_url)
            }
            Self::UpdateProxy(node, _) => {
                format!("update the addresses of API servers and mirrors on {node}")
            }
            Self::CreateTrust(_) => "create the CAs and the certificates of this machine".to_owned(),
            Self::BeginCluster(_) => "begin the etcd cluster".to_owned(),
            Self::RemoveNewClusterMark => "record that the etcd cluster has begun".to_owned(),
            Self::LoadImages(_) => "load images into the registry".to_owned(),
            Self::ApplyObjects(..) => "apply access rules and CoreDNS".to_owned(),
        }
    }

    /// Whether anything of it remains after the run. The run that creates a token, the lease or the
    /// reachability pod also deletes it.
    pub fn lasts(&self) -> bool {
        !matches!(
            self,
            Self::CreateJoinToken
                | Self::DeleteJoinTokens
                | Self::TakeLease
                | Self::ReleaseLease
                | Self::WithdrawLearner(_)
                | Self::MoveLeader(..)
                | Self::StartReachabilityPod
                | Self::DeleteReachabilityPod
        )
    }

    /// Whether other members of etcd may vote after it. What comes with a change counts too: the answer to the change itself
    /// may be lost.
    pub fn may_change_voters(&self) -> bool {
        matches!(self, Self::ChangeMembership(..) | Self::SetAsideMemberData)
    }

    /// What it changes.
    pub fn target(&self) -> Target {
        match self {
            Self::Apply(..)
            | Self::SetAsideMemberData
            | Self::RemoveMemberManifest
            | Self::BeginCluster(_)
            | Self::StopControlPlane
            | Self::StopNode
            | Self::ClearHost(..)
            | Self::ForgetHost
            | Self::RestartKubelet => Target::Host,
            Self::CreateJoinToken | Self::DeleteJoinTokens => Target::JoinTokens,
            Self::SetCapacity(_)
            | Self::RecordAddresses { .. }
            | Self::RemoveUninitializedTaint
            | Self::MarkApiServerReady
            | Self::RegisterNode(_)
            | Self::Cordon
            | Self::Uncordon
            | Self::EvictPods(_)
            | Self::WithdrawApiServer
            | Self::DeleteNode => Target::Node,
            Self::StartReachabilityPod | Self::DeleteReachabilityPod => Target::ReachabilityPod,
            Self::TakeLease
            | Self::ReleaseLease
            | Self::ChangeMembership(..)
            | Self::WithdrawLearner(_)
            | Self::MoveLeader(..) => Target::Etcd,
            Self::UpdateProxy(node, _) => Target::Peer(node.clone()),
            Self::CreateTrust(_) | Self::RemoveNewClusterMark => Target::Trust,
            Self::LoadImages(_) => Target::Registry,
            Self::ApplyObjects(..) => Target::Objects,
        }
    }

    /// What was observed before and may no longer be so. While the action is in flight, no such look starts.
    pub fn disturbs(&self) -> Vec<LookKey> {
        match self {
            Self::Apply(layer, _) => {
                let mut disturbed = vec![
                    LookKey::PendingPlans,
                    LookKey::Plan(layer.clone()),
                    LookKey::Survey,
                    LookKey::Api,
                    LookKey::PackageService,
                    LookKey::Registry,
                    LookKey::Pods,
                ];
                // Another run may have written a newer list of API servers before this one.
                disturbed.extend((*layer == Layer::Proxy).then_some(LookKey::Peers));
                if layer.initial_cluster().is_some() {
                    disturbed.extend([LookKey::Membership, LookKey::OwnMember]);
                }
                // While etcd or an API server restarts, the lease may not be renewed.
                disturbed.extend(layer.restarts_in_turn().then_some(LookKey::Lease));
                disturbed
            }
            Self::CreateJoinToken | Self::DeleteJoinTokens => {
                vec![LookKey::JoinTokens, LookKey::Plan(Layer::Base), LookKey::Plan(Layer::Joined)]
            }
            // Until this run had it, another one may have changed the voters that an API server is given, and restarted
            // an API server.
            Self::TakeLease => vec![
                LookKey::Membership,
                LookKey::Lease,
                LookKey::Plan(Layer::ControlPlane),
                LookKey::ApiServers,
                LookKey::AllEtcdServers,
            ],
            Self::ReleaseLease
            | Self::ChangeMembership(..)
            | Self::WithdrawLearner(_)
            | Self::MoveLeader(..) => vec![LookKey::Membership, LookKey::Lease],
            Self::Cordon | Self::Uncordon | Self::DeleteNode => vec![LookKey::Node],
            Self::EvictPods(_) => vec![LookKey::PodsToDrain],
            Self::ClearHost(..) | Self::ForgetHost => vec![LookKey::Survey, LookKey::HostDifferences],
            Self::StopControlPlane | Self::StopNode => vec![LookKey::Survey, LookKey::Pods, LookKey::Api],
            Self::SetAsideMemberData | Self::RemoveMemberManifest => {
                vec![
                    LookKey::Survey,
                    LookKey::Pods,
                    LookKey::PendingPlans,
                    LookKey::Container("etcd".to_owned()),
                ]
            }
            Self::SetCapacity(_) | Self::RecordAddresses { .. } | Self::RemoveUninitializedTaint => {
                vec![LookKey::Node, LookKey::Peers]
            }
            Self::MarkApiServerReady | Self::RegisterNode(_) => {
                vec![LookKey::Node, LookKey::Peers, LookKey::Plan(Layer::Proxy)]
            }
            // Whether it may stop depends on the others as they are then.
            Self::WithdrawApiServer => {
                vec![LookKey::Node, LookKey::Peers, LookKey::Plan(Layer::Proxy), LookKey::ApiServers]
            }
            Self::CreateTrust(_) => vec![LookKey::Trust, LookKey::NewClusterMark],
            // Whether the data is there is decided by what is seen after the mark is gone.
            Self::RemoveNewClusterMark => vec![LookKey::NewClusterMark, LookKey::Survey],
            Self::LoadImages(_) => vec![LookKey::Images],
            Self::ApplyObjects(..) => vec![LookKey::Objects],
            Self::RestartKubelet | Self::BeginCluster(_) => vec![LookKey::Survey],
            Self::UpdateProxy(node, _) => vec![LookKey::Proxy(node.clone()), LookKey::Peers],
            Self::StartReachabilityPod | Self::DeleteReachabilityPod => vec![LookKey::Reachability],
        }
    }

    /// How long it may take.
    pub fn deadline(&self) -> Duration {
        match self {
            // The engine limits each resource, and names the one that hangs; a program that this limit ended would stay on
            // the host.
            Self::Apply(..) => 12 * 3600 * SECOND,
            Self::LoadImages(_) => 3600 * SECOND,
            // Data of a node can be millions of files.
            Self::ClearHost(..) => 1800 * SECOND,
            Self::SetAsideMemberData
            | Self::RemoveMemberManifest
            | Self::RestartKubelet
            | Self::StopControlPlane
            | Self::StopNode
            | Self::ForgetHost
            | Self::BeginCluster(_) => 120 * SECOND,
            Self::UpdateProxy(..) => 120 * SECOND,
            Self::CreateTrust(_) | Self::ApplyObjects(..) => 120 * SECOND,
            _ => 30 * SECOND,
        }
    }

    /// Where a failure is to be looked for when nothing more is known than that it did not finish.
    pub fn class(&self) -> FailureClass {
        match self.target() {
            Target::Host | Target::Peer(_) | Target::Registry => FailureClass::Host,
            Target::Etcd if !matches!(self, Self::TakeLease | Self::ReleaseLease) => FailureClass::Etcd,
            Target::Trust => FailureClass::Configuration,
            _ => FailureClass::Api,
        }
    }

    /// What is taken as observed when it fails on another host, and the operation goes on without that host.
    pub fn without_answer(&self, reason: &str) -> Option<Observation> {
        match self {
            Self::UpdateProxy(node, _) => {
                Some(Observation::Proxy(node.clone(), ProxyView::Unreachable(reason.to_owned())))
            }
            _ => None,
        }
    }

    /// What it would change, for a dry run.
    pub fn changes(&self) -> Vec<ResourceChange> {
        let created = |kind: &str, name: &String| ResourceChange::creation(kind, name, Vec::new());
        match self {
            Self::Apply(_, plan) | Self::UpdateProxy(_, plan) => plan.changes(),
            Self::CreateTrust(files) => {
                files.iter().map(|path| ResourceChange::creation("file", path, vec![path.clone()])).collect()
            }
            Self::BeginCluster(_) => {
                let path = "/var/lib/etcd/member";
                vec![ResourceChange::creation("directory", path, vec![path.to_owned()])]
            }
            Self::LoadImages(images) => images.iter().map(|image| created("image", image)).collect(),
            Self::ApplyObjects(objects, _) => {
                objects.iter().map(|object| created("object", object)).collect()
            }
            _ => Vec::new(),
        }
    }
}

/// With the arithmetic of quorum, where it costs a vote.
fn retirement(id: u64, observed: &Membership) -> String {
    let title = observed
        .members
        .iter()
        .find(|member| member.id == id)
        .map_or_else(String::new, |member| member.title().to_owned());
    let voters = observed.voters().count();
    if observed.voters().all(|voter| voter.id != id) {
        return format!("remove {title} from etcd: it has no vote");
    }
    let (before, after) = (quorum(voters), quorum(voters.saturating_sub(1)));
    format!(
        "remove {title} from etcd: {voters} -> {} voters, quorum {before} -> {after}",
        voters.saturating_sub(1)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_of_the_cluster_notice_drains_and_changes_of_the_nodes_own_member() {
        let observed = Membership { cluster_id: 1, members: Vec::new(), alarms: Vec::new() };
        let change = |change| Action::ChangeMembership(change, Arc::new(observed.clone()));
        for (action, milestone) in [
            (Action::Cordon, Some(Milestone::DrainBegun)),
            (Action::EvictPods(BTreeSet::new()), Some(Milestone::DrainBegun)),
            (Action::Uncordon, None),
            (
                change(MembershipChange::AddLearner { peer_url: String::new() }),
                Some(Milestone::EtcdMemberAdded),
            ),
            (change(MembershipChange::Promote { id: 1 }), Some(Milestone::EtcdMemberPromoted)),
            (change(MembershipChange::Retire { id: 1, voter: true }), Some(Milestone::EtcdMemberRemoved)),
            (change(MembershipChange::Replace { id: 1, voter: true }), Some(Milestone::EtcdMemberRemoved)),
            (
                change(MembershipChange::Remove { id: 1, why: String::new() }),
                Some(Milestone::EtcdMemberRemoved),
            ),
            (change(MembershipChange::Evict { id: 1, why: String::new() }), None),
        ] {
            assert_eq!(action.milestone(), milestone, "{action:?}");
        }
    }
}
