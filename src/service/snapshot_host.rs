//! The snapshots on one host: listing, copying and removing them, each by a program on the host.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use sha2::{Digest, Sha256};
use tokio::fs::File;
use tokio::io::AsyncReadExt;
use tokio::time::timeout;

use crate::etcd::snapshot_copies::{HostSnapshots, SnapshotCopy};
use crate::etcd::snapshot_name::SnapshotName;
use crate::model::error_chain::error_chain;
use crate::model::name::HostName;
use crate::model::shell_word::quote;
use crate::transport::error::TransportError;
use crate::transport::{Program, Transport};
use crate::workspace::layout::Layout;

/// How long one program may take: computing the SHA-256 of several databases of 8 GiB, etcd's largest recommended, on a
/// slow disk.
const LIMIT: Duration = Duration::from_secs(1800);
/// What is sent at a time, so that no database is in memory.
const PART: usize = 8 << 20;

/// A host with snapshots, or one that can have some.
#[derive(Clone)]
pub(super) struct SnapshotHost {
    /// Its Node.
    pub name: HostName,
    /// Reaches it.
    pub transport: Arc<dyn Transport>,
    /// Its paths.
    pub layout: Layout,
}

/// Why a host has no copy, or is not known to have one.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotHostError {
    /// It was not reached.
    #[error("{}", error_chain(.0))]
    Transport(#[from] TransportError),
    /// A program took too long.
    #[error("no answer within {} s", LIMIT.as_secs())]
    TimedOut,
    /// A program failed.
    #[error("exit status {status}: {}", output.trim_end())]
    Failed {
        /// Of the program.
        status: i32,
        /// Its standard error.
        output: String,
    },
    /// A line of the list cannot be read.
    #[error("unexpected output: {0:?}")]
    Output(String),
    /// The snapshot of this machine cannot be read.
    #[error(transparent)]
    Read(#[from] io::Error),
}

impl SnapshotHost {
    /// The snapshots. Files with other names are not listed.
    ///
    /// # Errors
    /// When the host is not reached, or its list cannot be read.
    pub async fn look(&self) -> Result<HostSnapshots, SnapshotHostError> {
        let printed = self.run(include_str!("snapshot_host/look.sh"), &[], Vec::new()).await?;
        parse(&printed)
    }

    /// Copies a snapshot of this machine to the host, in place of a file of its name. It appears once its SHA-256 is that
    /// of what was sent.
    ///
    /// # Errors
    /// The host has the file that it had before.
    pub async fn copy(&self, name: &SnapshotName, from: &Path) -> Result<(), SnapshotHostError> {
        let copied = self.send(name, from).await;
        if copied.is_err() {
            // The next copy to the host would do so too; until then the space may be needed.
            let _not_reached_either = self.remove(&[]).await;
        }
        copied
    }

    async fn send(&self, name: &SnapshotName, from: &Path) -> Result<(), SnapshotHostError> {
        let mut file = File::open(from).await?;
        let size = file.metadata().await?.len();
        let node = quote(&self.layout.pki().join("ca.crt").display().to_string());
        let begin = include_str!("snapshot_host/begin.sh");
        self.run(begin, &[("size", &size.to_string()), ("node", &node)], Vec::new()).await?;
        let (mut hash, mut end) = (Sha256::new(), 0);
        loop {
            let mut part = Vec::new();
            (&mut file).take(PART as u64).read_to_end(&mut part).await?;
            if part.is_empty() {
                break;
            }
            hash.update(&part);
            end += part.len();
            self.run(include_str!("snapshot_host/add.sh"), &[("end", &end.to_string())], part).await?;
        }
        let (digest, name) = (hex::encode(hash.finalize()), name.to_string());
        let finish = include_str!("snapshot_host/finish.sh");
        self.run(finish, &[("digest", &digest), ("name", &name)], Vec::new()).await.map(drop)
    }

    /// Removes snapshots, and a copy that was only begun.
    ///
    /// # Errors
    /// When the host is not reached, or one of them cannot be removed.
    pub async fn remove(&self, names: &[SnapshotName]) -> Result<(), SnapshotHostError> {
        let names = names.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
        self.run(include_str!("snapshot_host/remove.sh"), &[("names", &quote(&names))], Vec::new())
            .await
            .map(drop)
    }

    /// What a script prints. The values of its variables are words of the shell.
    async fn run(
        &self,
        script: &str,
        variables: &[(&str, &str)],
        payload: Vec<u8>,
    ) -> Result<String, SnapshotHostError> {
        let directory = quote(&self.layout.etcd_snapshots().display().to_string());
        let given = variables.iter().map(|(name, word)| format!("{name}={word}\n")).collect::<String>();
        let program = Program { script: format!("directory={directory}\n{given}{script}"), payload };
        let mut ignore = |_: &str| {};
        let running = timeout(LIMIT, self.transport.run(&program, &mut ignore)).await;
        let output = running.map_err(|_| SnapshotHostError::TimedOut)??;
        match output.status {
            0 => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
            status => {
                let output = String::from_utf8_lossy(&output.stderr).into_owned();
                Err(SnapshotHostError::Failed { status, output })
            }
        }
    }
}

fn parse(printed: &str) -> Result<HostSnapshots, SnapshotHostError> {
    let mut snapshots = BTreeMap::new();
    for line in printed.lines() {
        let [size, found, appended, file] = line.splitn(4, ' ').collect::<Vec<_>>()[..] else {
            return Err(SnapshotHostError::Output(line.to_owned()));
        };
        // A file of an administrator's.
        let Ok(name) = file.parse() else { continue };
        let size = size.parse().map_err(|_| SnapshotHostError::Output(line.to_owned()))?;
        let hash = (found == appended).then(|| found.to_owned());
        snapshots.insert(name, SnapshotCopy { size, hash });
    }
    Ok(snapshots)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::MetadataExt;

    use super::*;
    use crate::transport::local::LocalTransport;

    const NAME: &str = "etcd-20261123T045830Z-769.db";

    fn host(root: &Path) -> SnapshotHost {
        let layout = Layout::below(root);
        fs::create_dir_all(layout.pki()).unwrap();
        fs::write(layout.pki().join("ca.crt"), "").unwrap();
        SnapshotHost { name: "b".parse().unwrap(), transport: Arc::new(LocalTransport), layout }
    }

    /// A file as `etcd snapshot` saves it, larger than what is sent at a time.
    fn snapshot(root: &Path) -> std::path::PathBuf {
        let mut content: Vec<u8> = (0..=255).cycle().take(PART + 512).collect();
        content.extend(Sha256::digest(&content));
        let path = root.join("taken");
        fs::write(&path, content).unwrap();
        path
    }

    #[tokio::test]
    async fn a_copy_is_whole_private_and_replaces_a_damaged_one() {
        let (root, own) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (host, taken, name) = (host(root.path()), snapshot(own.path()), NAME.parse().unwrap());
        assert_eq!(host.look().await.unwrap(), BTreeMap::new());
        host.copy(&name, &taken).await.unwrap();
        let path = host.layout.etcd_snapshots().join(NAME);
        assert_eq!(fs::read(&path).unwrap(), fs::read(&taken).unwrap());
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o7777;
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
        let found = host.look().await.unwrap();
        assert!(found[&name].hash.is_some() && found[&name].size == fs::metadata(&taken).unwrap().len());
        for left in [0, 16, 32, 5000] {
            fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(left).unwrap();
            assert_eq!(host.look().await.unwrap()[&name], SnapshotCopy { size: left, hash: None });
        }
        host.copy(&name, &taken).await.unwrap();
        assert_eq!(host.look().await.unwrap(), found);
    }

    #[tokio::test]
    async fn only_named_snapshots_are_listed_and_removed() {
        let (root, own) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (host, taken, name) = (host(root.path()), snapshot(own.path()), NAME.parse().unwrap());
        host.copy(&name, &taken).await.unwrap();
        let directory = host.layout.etcd_snapshots();
        for other in ["etcd-before upgrade.db", "etcd-0.db", "own.db", ".metalform-copy"] {
            fs::write(directory.join(other), "").unwrap();
        }
        assert_eq!(host.look().await.unwrap().keys().collect::<Vec<_>>(), [&name]);
        host.remove(&[name]).await.unwrap();
        let mut left: Vec<_> =
            fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, ["etcd-0.db", "etcd-before upgrade.db", "own.db"]);
    }

    #[tokio::test]
    async fn a_host_that_has_left_the_cluster_gets_no_copy() {
        let (root, own) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (host, taken) = (host(root.path()), snapshot(own.path()));
        fs::remove_file(host.layout.pki().join("ca.crt")).unwrap();
        let error = host.copy(&NAME.parse().unwrap(), &taken).await.unwrap_err();
        assert_eq!(error.to_string(), "exit status 1: the host is not a node of this cluster");
        assert!(!host.layout.etcd_snapshots().exists());
    }
}
