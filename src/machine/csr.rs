//! Whether the kubelet of a Machine's Node may have its first client certificate.
//!
//! `crate::controller::csr_verdict` binds a token to the name of a node, which is that of its host. A token that a
//! killed controller has left may outlive its Machine, so the Machine is judged here. One that joined is not denied:
//! its tokens were deleted then, and a kubelet that has lost its certificate is deployed with a new token.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;

use super::api::host::HostObject;
use super::api::machine::Machine;
use super::api::provider_id::ProviderId;
use super::host_observation::{claimant, view};
use super::host_state::{ClaimView, Claimant};
use super::join_deadline::{self, JoinAttempt, JoinVerdict};
use super::machine_observation::created;
use super::node_observation;

/// Clocks of two API servers may differ.
const CLOCK_TOLERANCE: SignedDuration = SignedDuration::from_secs(10);

/// The provider ID of a Node, if metalform created it for a Machine.
pub fn machine_of(node: &Node) -> Option<ProviderId> {
    node_observation::provider_id(node)?.parse().ok()
}

/// What a Node, the Host of its provider ID and the Machine in the claim of that Host show of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeMachine {
    /// Of the Node.
    pub id: ProviderId,
    /// When the Node was created: after the claim, and before its kubelet starts. By the clock of an API server, as the
    /// time of a request is.
    pub node_created: Timestamp,
    /// The claim of the Host.
    pub claim: Option<ClaimView>,
    /// The Machine in the claim.
    pub claimant: Claimant,
    /// Whether a machine set owns it.
    pub owned: bool,
}

impl NodeMachine {
    /// From the objects of the API. `machine` has the namespace and name of the claim, and maybe another UID.
    pub fn observe(
        id: ProviderId,
        node: &Node,
        host: Option<&HostObject>,
        machine: Option<&Machine>,
    ) -> Self {
        let host = host.and_then(view);
        let owners = machine.map(ResourceExt::owner_references).unwrap_or_default();
        Self {
            id,
            node_created: created(node),
            claimant: host.as_ref().map_or(Claimant::Gone, |host| claimant(host, machine)),
            claim: host.and_then(|host| host.claim),
            owned: owners.iter().any(|owner| owner.controller == Some(true)),
        }
    }
}

/// Why a request is denied; the message of its condition.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MachineCsrDenial {
    /// Its host is free, or another Machine has it.
    #[error("host {} is not claimed by the machine of this node, which has UID {}", .0.host, .0.machine_uid)]
    NotClaimed(ProviderId),
    /// Its host is not reset yet.
    #[error("machine {0} does not exist, or has another host")]
    Gone(String),
    /// It is being deleted.
    #[error("machine {0} is being deleted")]
    Deleting(String),
    /// It is older than the Node: that of an earlier Machine.
    #[error("the request is from {created}, and the node of machine {machine} from {node}")]
    TooEarly {
        /// The Machine.
        machine: String,
        /// Of the request.
        created: Timestamp,
        /// When the Node was created.
        node: Timestamp,
    },
    /// The Machine is about to be replaced.
    #[error("the request is from {created}, after the join deadline of machine {machine}")]
    TooLate {
        /// The Machine.
        machine: String,
        /// Of the request.
        created: Timestamp,
    },
}

/// Judges a request from the time `created`, with a token for the Node. `timeout` is that of joins.
///
/// # Errors
/// When it is denied.
pub fn judge(
    node: &NodeMachine,
    created: Timestamp,
    timeout: Option<SignedDuration>,
) -> Result<(), MachineCsrDenial> {
    let Some(claim) = node.claim.as_ref().filter(|claim| claim.machine_uid == node.id.machine_uid) else {
        return Err(MachineCsrDenial::NotClaimed(node.id.clone()));
    };
    let machine = claim.machine.clone();
    let joined = match node.claimant {
        Claimant::Gone => return Err(MachineCsrDenial::Gone(machine)),
        Claimant::Present { deleting: true, .. } => return Err(MachineCsrDenial::Deleting(machine)),
        Claimant::Present { joined, .. } => joined,
    };
    if created < node.node_created.checked_sub(CLOCK_TOLERANCE).unwrap_or(Timestamp::MIN) {
        return Err(MachineCsrDenial::TooEarly { machine, created, node: node.node_created });
    }
    let (claimed, queue) = (Some(claim.since), claim.queue);
    let attempt = JoinAttempt { claimed, queue, joined, deleting: false, owned: node.owned };
    if join_deadline::judge(&attempt, timeout, created) == JoinVerdict::Expired {
        return Err(MachineCsrDenial::TooLate { machine, created });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::job_queue::JobQueue;
    use crate::machine::join_deadline::JOIN_TIMEOUT;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn claim(uid: &str, queue: JobQueue) -> Option<ClaimView> {
        let (machine_uid, machine) = (uid.to_owned(), "kube-system/md-1-x".to_owned());
        Some(ClaimView { machine_uid, machine, since: at(1_000), queue })
    }

    fn present(deleting: bool, joined: bool) -> Claimant {
        Claimant::Present { deleting, drained: false, joined, join_failed: false }
    }

    fn joining() -> NodeMachine {
        NodeMachine {
            id: "metalform://n1/u1".parse().unwrap(),
            node_created: at(1_100),
            claim: claim("u1", JobQueue::default()),
            claimant: present(false, false),
            owned: true,
        }
    }

    #[test]
    fn a_token_is_good_for_one_machine_while_it_joins() {
        let not_claimed = "host n1 is not claimed by the machine of this node, which has UID u1";
        let deleting = "machine kube-system/md-1-x is being deleted";
        let early = "the request is from 1970-01-01T00:18:09Z, and the node of machine kube-system/md-1-x from \
                     1970-01-01T00:18:20Z";
        let late =
            "the request is from 1970-01-01T02:16:40Z, after the join deadline of machine kube-system/md-1-x";
        let waited = JobQueue { since: None, waited: SignedDuration::from_secs(1) };
        let waits = JobQueue { since: Some(at(1_200)), waited: SignedDuration::ZERO };
        for (created, node, expected) in [
            (1_500, joining(), ""),
            (1_090, joining(), ""),
            (1_089, joining(), early),
            (8_199, joining(), ""),
            (8_200, joining(), late),
            (8_200, NodeMachine { claim: claim("u1", waited), ..joining() }, ""),
            (8_200, NodeMachine { claim: claim("u1", waits), ..joining() }, ""),
            (8_200, NodeMachine { owned: false, ..joining() }, ""),
            // Its kubelet has lost its certificate.
            (8_200, NodeMachine { claimant: present(false, true), ..joining() }, ""),
            (1_500, NodeMachine { claim: None, claimant: Claimant::Gone, ..joining() }, not_claimed),
            // The next Machine has claimed the host, and this Node is still that of the one before.
            (1_500, NodeMachine { claim: claim("u2", JobQueue::default()), ..joining() }, not_claimed),
            (
                1_500,
                NodeMachine { claimant: Claimant::Gone, ..joining() },
                "machine kube-system/md-1-x does not exist, or has another host",
            ),
            (1_500, NodeMachine { claimant: present(true, false), ..joining() }, deleting),
            (1_500, NodeMachine { claimant: present(true, true), ..joining() }, deleting),
        ] {
            let judged = judge(&node, at(created), Some(JOIN_TIMEOUT));
            let got = judged.err().map(|denial| denial.to_string()).unwrap_or_default();
            assert_eq!(got, expected, "{created} {node:?}");
        }
        assert_eq!(judge(&joining(), at(900_000), None), Ok(()));
    }

    #[test]
    fn no_time_overflows() {
        for node_created in [Timestamp::MIN, Timestamp::MAX] {
            for timeout in [SignedDuration::MAX, SignedDuration::ZERO] {
                let _ = judge(&NodeMachine { node_created, ..joining() }, at(0), Some(timeout));
            }
        }
    }
}
