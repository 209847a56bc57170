//! Copies of the snapshots of this machine on other hosts, and what is removed: carries out what
//! [`crate::etcd::snapshot_copies`] decides.

use std::collections::BTreeMap;

use futures::StreamExt;
use futures::stream;

use super::snapshot_host::{SnapshotHost, SnapshotHostError};
use super::snapshot_nodes::SnapshotHosts;
use crate::etcd::snapshot_copies::SnapshotCopies;
use crate::etcd::snapshot_name::SnapshotName;
use crate::model::name::HostName;

/// How many hosts are looked at at a time.
const SIDE_BY_SIDE: usize = 16;

/// What hosts have, and what went wrong with some of them.
#[derive(Debug)]
pub(super) struct Distribution {
    pub copies: SnapshotCopies,
    /// One line each.
    pub warnings: Vec<String>,
}

/// The snapshots of all hosts. Those of a host that is not reached are not known.
///
/// # Errors
/// When those of this machine cannot be listed.
pub(super) async fn look(hosts: &SnapshotHosts) -> Result<Distribution, SnapshotHostError> {
    let SnapshotHosts { local, others, faults, .. } = hosts;
    let mut found = BTreeMap::from([(local.name.clone(), local.look().await?)]);
    let mut warnings = faults.clone();
    let looks = stream::iter(others).map(|host| async { (host.name.clone(), host.look().await) });
    for (name, seen) in looks.buffered(SIDE_BY_SIDE).collect::<Vec<_>>().await {
        match seen {
            Ok(snapshots) => {
                found.insert(name, snapshots);
            }
            Err(error) => warnings.push(warning(&name, &error)),
        }
    }
    Ok(Distribution { copies: SnapshotCopies::new(&local.name, found), warnings })
}

/// Copies each snapshot to keep that only this machine has to the first host that takes it, and removes the older ones
/// everywhere. A host that fails is left out.
///
/// # Errors
/// When the snapshots of this machine cannot be listed.
pub(super) async fn distribute(
    hosts: &SnapshotHosts,
    latest: &SnapshotName,
    keep: usize,
) -> Result<Distribution, SnapshotHostError> {
    let Distribution { mut copies, mut warnings } = look(hosts).await?;
    let reached = |host: &&SnapshotHost| copies.reached(&host.name);
    let mut candidates: Vec<&SnapshotHost> = hosts.others.iter().filter(reached).collect();
    loop {
        let names: Vec<HostName> = candidates.iter().map(|host| host.name.clone()).collect();
        let Some((name, to)) = copies.next_copy(&hosts.local.name, (latest, keep), &names) else { break };
        let Some(host) = candidates.iter().find(|host| host.name == to) else { break };
        let from = hosts.local.layout.etcd_snapshots().join(name.to_string());
        // What was damaged there is reported, although it is replaced now.
        if copies.of(&name).any(|(holder, _)| *holder == to) {
            warnings.push(format!("{to}: {name} was damaged, and is copied again"));
        }
        match host.copy(&name, &from).await {
            Ok(()) => copies.copied(&name, &hosts.local.name, &to),
            Err(error) => {
                warnings.push(warning(&to, &error));
                candidates.retain(|host| host.name != to);
            }
        }
    }
    warnings.extend(remove_older(hosts, &mut copies, (latest, keep)).await);
    Ok(Distribution { copies, warnings })
}

/// Removes everywhere what is older than those to keep, before `next` is taken. Returns what went wrong, one line each.
///
/// # Errors
/// When the snapshots of this machine cannot be listed.
pub(super) async fn remove_surplus(
    hosts: &SnapshotHosts,
    next: &SnapshotName,
    keep: usize,
) -> Result<Vec<String>, SnapshotHostError> {
    let Distribution { mut copies, mut warnings } = look(hosts).await?;
    warnings.extend(remove_older(hosts, &mut copies, (next, keep)).await);
    Ok(warnings)
}

async fn remove_older(
    hosts: &SnapshotHosts,
    copies: &mut SnapshotCopies,
    (latest, keep): (&SnapshotName, usize),
) -> Vec<String> {
    let mut warnings = Vec::new();
    for (name, removable) in copies.removable(&hosts.local.name, (latest, keep)) {
        let all = std::iter::once(&hosts.local).chain(&hosts.others);
        let Some(host) = all.into_iter().find(|host| host.name == name) else { continue };
        match host.remove(&removable).await {
            Ok(()) => removable.iter().for_each(|snapshot| copies.forget(&name, snapshot)),
            Err(error) => warnings.push(warning(&name, &error)),
        }
    }
    warnings
}

fn warning(host: &HostName, error: &SnapshotHostError) -> String {
    format!("{host}: {error}")
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;
    use std::sync::Arc;

    use jiff::Timestamp;
    use sha2::{Digest, Sha256};

    use super::*;
    use crate::transport::local::LocalTransport;
    use crate::workspace::layout::Layout;

    /// Hosts with a directory each: a is this machine.
    struct Cluster {
        root: tempfile::TempDir,
        hosts: SnapshotHosts,
    }

    impl Cluster {
        fn new(others: &[&str]) -> Self {
            let root = tempfile::tempdir().unwrap();
            let host = |name: &str| {
                let layout = Layout::below(root.path().join(name));
                fs::create_dir_all(layout.etcd_snapshots()).unwrap();
                fs::create_dir_all(layout.pki()).unwrap();
                fs::write(layout.pki().join("ca.crt"), "").unwrap();
                SnapshotHost { name: name.parse().unwrap(), transport: Arc::new(LocalTransport), layout }
            };
            let others = others.iter().map(|name| host(name)).collect();
            let hosts = SnapshotHosts { local: host("a"), others, faults: Vec::new(), unlisted: None };
            Self { root, hosts }
        }

        fn directory(&self, host: &str) -> std::path::PathBuf {
            Layout::below(self.root.path().join(host)).etcd_snapshots()
        }

        fn leaves(&self, host: &str) {
            fs::remove_file(Layout::below(self.root.path().join(host)).pki().join("ca.crt")).unwrap();
        }

        /// Takes a snapshot.
        fn take(&self, second: i64) -> SnapshotName {
            let name = SnapshotName::new(Timestamp::from_second(second).unwrap(), 7);
            let mut content = vec![second as u8; 1024];
            content.extend(Sha256::digest(&content));
            fs::write(self.directory("a").join(name.to_string()), content).unwrap();
            name
        }

        /// The seconds of the files of a host, those that differ from this machine's marked.
        fn has(&self, host: &str) -> String {
            let content = |path: &Path| fs::read(path).ok();
            let mut files: Vec<String> = fs::read_dir(self.directory(host))
                .unwrap()
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .map(|file| {
                    let second = file.parse::<SnapshotName>().unwrap().time().as_second();
                    let same = content(&self.directory(host).join(&file))
                        == content(&self.directory("a").join(&file));
                    format!("{second}{}", if same { "" } else { "!" })
                })
                .collect();
            files.sort();
            files.join(" ")
        }
    }

    #[tokio::test]
    async fn snapshots_are_copied_once_kept_and_removed_on_both_hosts() {
        let cluster = Cluster::new(&["b", "c"]);
        for second in 1..=4 {
            let name = cluster.take(second);
            let done = distribute(&cluster.hosts, &name, 2).await.unwrap();
            assert_eq!(done.warnings, Vec::<String>::new());
            assert_eq!(
                done.copies,
                look(&cluster.hosts).await.unwrap().copies,
                "what was done is what is there"
            );
        }
        assert_eq!(["a", "b", "c"].map(|host| cluster.has(host)), ["3 4", "3 4", ""]);
    }

    #[tokio::test]
    async fn where_fewer_are_to_be_kept_the_surplus_goes_before_another_is_taken() {
        let cluster = Cluster::new(&["b"]);
        for second in 1..=4 {
            distribute(&cluster.hosts, &cluster.take(second), 4).await.unwrap();
        }
        let next = SnapshotName::new(Timestamp::from_second(5).unwrap(), 7);
        assert_eq!(remove_surplus(&cluster.hosts, &next, 2).await.unwrap(), Vec::<String>::new());
        assert_eq!(["a", "b"].map(|host| cluster.has(host)), ["3 4", "3 4"]);
        remove_surplus(&cluster.hosts, &next, 3).await.unwrap();
        assert_eq!(["a", "b"].map(|host| cluster.has(host)), ["3 4", "3 4"], "there is no surplus");
    }

    #[tokio::test]
    async fn a_truncated_copy_is_reported_and_replaced() {
        let cluster = Cluster::new(&["b"]);
        let first = cluster.take(1);
        distribute(&cluster.hosts, &first, 2).await.unwrap();
        let copy = cluster.directory("b").join(first.to_string());
        fs::OpenOptions::new().write(true).open(copy).unwrap().set_len(100).unwrap();
        let done = distribute(&cluster.hosts, &cluster.take(2), 2).await.unwrap();
        assert_eq!(done.warnings, [format!("b: {first} was damaged, and is copied again")]);
        assert_eq!(["a", "b"].map(|host| cluster.has(host)), ["1 2", "1 2"]);
    }

    #[tokio::test]
    async fn another_host_takes_what_the_first_refuses() {
        let cluster = Cluster::new(&["b", "c"]);
        cluster.leaves("b");
        let done = distribute(&cluster.hosts, &cluster.take(1), 2).await.unwrap();
        assert_eq!(done.warnings, ["b: exit status 1: the host is not a node of this cluster"]);
        assert_eq!(["a", "b", "c"].map(|host| cluster.has(host)), ["1", "", "1"]);
    }

    #[tokio::test]
    async fn the_last_copy_on_another_host_stays_while_none_takes_a_newer_one() {
        let cluster = Cluster::new(&["b"]);
        distribute(&cluster.hosts, &cluster.take(1), 2).await.unwrap();
        cluster.leaves("b");
        for second in 2..=4 {
            let name = cluster.take(second);
            let done = distribute(&cluster.hosts, &name, 2).await.unwrap();
            assert_eq!(done.copies.holders(&name).count(), 1);
        }
        assert_eq!(["a", "b"].map(|host| cluster.has(host)), ["1 3 4", "1"]);
    }
}
