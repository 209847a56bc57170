//! Real members of etcd on loopback addresses, each a process with a data directory of its own. All end with their
//! cluster, by their process ids.

use std::fs::{self, File};
use std::net::IpAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use metalform::etcd::client::{DEADLINE, EtcdAccess};
use tempfile::TempDir;

use super::certificates::{EtcdCa, Pair};
use crate::{component_binary, loopback};

/// A cluster of its own.
pub struct EtcdProcesses {
    binary: PathBuf,
    directory: TempDir,
    ca: EtcdCa,
    running: Vec<(usize, Child)>,
    /// Of the database, bytes; etcd's own without one.
    pub quota: Option<u64>,
}

impl EtcdProcesses {
    /// None where there is no binary, as before the first bundle of a machine; `make real-etcd` requires one.
    pub fn find() -> Option<Self> {
        match component_binary::find("etcd") {
            Ok(binary) => {
                let directory = tempfile::tempdir().unwrap();
                Some(Self { binary, directory, ca: EtcdCa::new(), running: Vec::new(), quota: None })
            }
            Err(reason) => {
                assert!(std::env::var_os("METALFORM_REQUIRE_ETCD").is_none(), "{reason}");
                None
            }
        }
    }

    pub fn address(number: usize) -> IpAddr {
        loopback::own(u8::try_from(number).unwrap())
    }

    pub fn peer_url(number: usize) -> String {
        format!("https://{}:2380", Self::address(number))
    }

    pub fn client_url(number: usize) -> String {
        format!("https://{}:2379", Self::address(number))
    }

    /// What metalform reaches it with, by these members.
    pub fn access(&self, numbers: &[usize]) -> EtcdAccess {
        let endpoints = numbers.iter().map(|number| Self::client_url(*number)).collect();
        EtcdAccess { endpoints, connector: Arc::new(self.ca.credentials()), deadline: DEADLINE }
    }

    fn data(&self, number: usize) -> PathBuf {
        self.directory.path().join(format!("n{number}"))
    }

    /// Starts member `n<number>` with `--initial-cluster` and `--initial-cluster-state`.
    pub fn start(&mut self, number: usize, initial_cluster: &str, state: &str) {
        let home = self.data(number);
        fs::create_dir_all(&home).unwrap();
        let Pair { certificate, key } = self.ca.member(Self::address(number));
        let write = |name: &str, text: &str| {
            let path = home.join(name);
            fs::write(&path, text).unwrap();
            path.display().to_string()
        };
        let (ca, certificate, key) = (
            write("ca.crt", &self.ca.certificate),
            write("member.crt", &certificate),
            write("member.key", &key),
        );
        let log = File::create(home.join("log")).unwrap();
        let (peer, client) = (Self::peer_url(number), Self::client_url(number));
        let child = Command::new(&self.binary)
            .env_clear()
            .args([
                format!("--name=n{number}"),
                format!("--data-dir={}", home.join("data").display()),
                format!("--listen-client-urls={client}"),
                format!("--advertise-client-urls={client}"),
                format!("--listen-peer-urls={peer}"),
                format!("--initial-advertise-peer-urls={peer}"),
                format!("--initial-cluster={initial_cluster}"),
                format!("--initial-cluster-state={state}"),
                "--client-cert-auth=true".to_owned(),
                format!("--trusted-ca-file={ca}"),
                format!("--cert-file={certificate}"),
                format!("--key-file={key}"),
                "--peer-client-cert-auth=true".to_owned(),
                format!("--peer-trusted-ca-file={ca}"),
                format!("--peer-cert-file={certificate}"),
                format!("--peer-key-file={key}"),
                "--unsafe-no-fsync=true".to_owned(),
            ])
            .args(self.quota.map(|bytes| format!("--quota-backend-bytes={bytes}")))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        self.running.push((number, child));
    }

    /// Ends a member at once, as a power cut does; its data stays.
    pub fn kill(&mut self, number: usize) {
        for (_, child) in self.running.iter_mut().filter(|(running, _)| *running == number) {
            end(child);
        }
        self.running.retain(|(running, _)| *running != number);
    }

    /// Whether its process has not ended.
    pub fn runs(&mut self, number: usize) -> bool {
        let mut running = self.running.iter_mut().filter(|(running, _)| *running == number);
        running.any(|(_, child)| matches!(child.try_wait(), Ok(None)))
    }

    /// Removes the data of a member that does not run, if there is any.
    pub fn wipe(&self, number: usize) {
        let data = self.data(number).join("data");
        if data.exists() {
            fs::remove_dir_all(data).unwrap();
        }
    }

    /// What a member printed last.
    pub fn last_line(&self, number: usize) -> String {
        let log = fs::read_to_string(self.data(number).join("log")).unwrap_or_default();
        log.lines().last().unwrap_or_default().to_owned()
    }
}

impl Drop for EtcdProcesses {
    fn drop(&mut self) {
        self.running.iter_mut().for_each(|(_, child)| end(child));
    }
}

/// One that has ended already is only reaped.
fn end(child: &mut Child) {
    let _ = child.kill();
    let _ = child.wait();
}
