//! The host of an etcd member while etcd has no quorum: what is on its disk, and which member it continues as.
//!
//! Scripts, not states: what they change is data, and etcd must not run meanwhile.

use std::sync::Arc;

use jiff::Timestamp;

use super::host_access::HostAccess;
use super::member_data_turn::MEMBER_DATA_TURN;
use crate::engine::host::HostError;
use crate::etcd::recovery::{DiskState, MemberCopy};
use crate::model::shell_word::quote_all;
use crate::transport::Program;

const INSPECT: &str = include_str!("member_host/inspect.sh");
const STOP: &str = include_str!("cluster_site/stop_pods.sh");
const CONTROL_PLANE: &str = "kube-apiserver kube-controller-manager kube-scheduler";
const SET_ASIDE: &str = include_str!("cluster_site/set_aside_member_data.sh");
const RECOVER: &str = include_str!("member_host/recover.sh");

/// The host of a member.
#[derive(Clone)]
pub struct MemberHost(pub Arc<dyn HostAccess>);

/// The member that a host continues as, alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SoleMember {
    /// Its node.
    pub name: String,
    /// Its peer URL.
    pub peer_url: String,
    /// The image of etcd, with etcdutl(1), that the host has.
    pub image: String,
}

impl MemberHost {
    /// What is on its disk, but for how far the member has come. Changes nothing.
    ///
    /// # Errors
    /// When the host does not answer.
    pub async fn inspect(&self) -> Result<DiskState, HostError> {
        Ok(parse(&self.run("etcd-data:inspect", INSPECT.to_owned(), Vec::new()).await?))
    }

    /// Ends its etcd and its control plane, removes their static pods, and sets the data aside.
    ///
    /// # Errors
    /// When one of them does not end.
    pub async fn set_aside(&self) -> Result<(), HostError> {
        let script = format!(
            "pods='etcd {CONTROL_PLANE}'\n{MEMBER_DATA_TURN}{STOP}\n{}\n{SET_ASIDE}",
            without_control_plane()
        );
        self.run("etcd-data:set aside", script, Vec::new()).await.map(drop)
    }

    /// Ends its control plane, where other nodes' etcd was all it had.
    ///
    /// # Errors
    /// When it does not end.
    pub async fn stop_control_plane(&self) -> Result<(), HostError> {
        let script = format!("pods='{CONTROL_PLANE}'\n{MEMBER_DATA_TURN}{STOP}\n{}", without_control_plane());
        self.run("static_pod:kube-apiserver", script, Vec::new()).await.map(drop)
    }

    /// Makes its data that of the only member, the whole of it or nothing; what it was stays beside it.
    ///
    /// # Errors
    /// The data is what it was then.
    pub async fn recover(&self, member: &SoleMember) -> Result<(), HostError> {
        self.go_on(member, "data", Vec::new()).await
    }

    /// Puts a snapshot in the place of its data, as the only member; what it was stays beside it.
    ///
    /// # Errors
    /// The data is what it was then.
    pub async fn restore(&self, member: &SoleMember, snapshot: Vec<u8>) -> Result<(), HostError> {
        self.go_on(member, "snapshot", snapshot).await
    }

    async fn go_on(&self, member: &SoleMember, source: &str, payload: Vec<u8>) -> Result<(), HostError> {
        let SoleMember { name, peer_url, image } = member;
        let size = payload.len().to_string();
        let arguments = quote_all([image.as_str(), name, peer_url, source, &size]);
        let script =
            format!("set -- {arguments}\npods='etcd kube-apiserver'\n{MEMBER_DATA_TURN}{STOP}\n{RECOVER}");
        self.run("etcd-data:recover", script, payload).await.map(drop)
    }

    async fn run(&self, resource: &str, script: String, payload: Vec<u8>) -> Result<String, HostError> {
        let output = self.0.run(&Program { script, payload }).await?;
        if output.status == 0 {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        Err(HostError::of_script(resource, &output))
    }
}

/// Its manifests are written again once the node has its member.
fn without_control_plane() -> String {
    let manifests = CONTROL_PLANE.split(' ').map(|pod| format!(" /etc/kubernetes/manifests/{pod}.yaml"));
    format!("rm -f{}", manifests.collect::<String>())
}

fn parse(printed: &str) -> DiskState {
    let value = |key: &str| printed.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' '));
    let last_write = value("last-write").and_then(|seconds| seconds.parse().ok());
    let last_write = last_write.and_then(|seconds| Timestamp::from_second(seconds).ok());
    DiskState::Reached {
        pod: value("pod").is_some(),
        data: last_write.map(|last_write| MemberCopy { last_write, position: None }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_without_data_or_pod_says_so() {
        let state = |pod, seconds: Option<i64>| DiskState::Reached {
            pod,
            data: seconds.map(|seconds| MemberCopy {
                last_write: Timestamp::from_second(seconds).unwrap(),
                position: None,
            }),
        };
        assert_eq!(parse("pod yes\nlast-write 1763890000\n"), state(true, Some(1_763_890_000)));
        assert_eq!(parse("pod yes\n"), state(true, None));
        assert_eq!(parse(""), state(false, None));
    }
}
