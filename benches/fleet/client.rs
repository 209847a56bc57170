//! The client: the real program, with a roster of simulated hosts and one state of many files.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use russh::keys::PrivateKey;
use russh::keys::ssh_key::LineEnding;
use russh::keys::ssh_key::private::Ed25519Keypair;
use serde::Serialize;

use super::hosts::Hosts;

/// One measurement.
#[derive(Debug, Clone, Serialize)]
pub struct Run {
    pub hosts: usize,
    pub resources: usize,
    pub seconds: f64,
    pub hosts_per_second: f64,
    /// The client's largest resident size (VmHWM), MB.
    pub peak_mb: f64,
}

/// Hosts that are to have the same files, which lie on this machine.
pub struct Fleet {
    directory: tempfile::TempDir,
    hosts: usize,
    resources: usize,
}

impl Fleet {
    pub fn new(hosts: usize, resources: usize, server: &Hosts) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        std::fs::create_dir_all(at("tree/states")).unwrap();
        std::fs::create_dir_all(at("tree/templates")).unwrap();
        let key = PrivateKey::from(Ed25519Keypair::from_seed(&[7; 32]));
        key.write_openssh_file(at("id"), LineEnding::LF).unwrap();
        let (port, pinned, root) = (server.port, &server.key, directory.path().display());
        let mut roster = format!(
            "defaults:\n  key: {root}/id\n  host_key: {pinned}\n  port: {port}\n  vars: {{user: {}, group: {}, greeting: hello}}\nhosts:\n",
            said("-un"),
            said("-gn")
        );
        for number in 0..hosts {
            writeln!(roster, "  host-{number}: {{address: 127.0.0.1}}").unwrap();
        }
        std::fs::write(at("roster.yaml"), roster).unwrap();
        let mut state = "about: Many files.\nresources:\n".to_owned();
        let owner = "    owner: \"{{ cluster.user }}\"\n    group: \"{{ cluster.group }}\"\n";
        writeln!(state, "  - directory: {root}/files\n{}", owner.trim_end()).unwrap();
        for number in 1..resources {
            let path = format!("{root}/files/{number}.conf");
            if number % 2 == 0 {
                write!(state, "  - template: {path}\n    source: a.j2\n{owner}").unwrap();
            } else {
                write!(state, "  - file: {path}\n    content: \"number = {number}\\n\"\n{owner}").unwrap();
            }
        }
        std::fs::write(at("tree/states/many.yaml"), state).unwrap();
        std::fs::write(at("tree/states/top.yaml"), "node: {states: [many]}\n").unwrap();
        let template = "# {{ cluster.greeting }}\n{% for n in range(20) %}line {{ n }}\n{% endfor %}";
        std::fs::write(at("tree/templates/a.j2"), template).unwrap();
        Self { directory, hosts, resources }
    }

    fn command(&self) -> Command {
        let at = |name: &str| -> PathBuf { self.directory.path().join(name) };
        let mut command = Command::new(env!("CARGO_BIN_EXE_metalform"));
        command.arg("apply").arg("many").arg("--quiet").arg("--tree").arg(at("tree"));
        command.arg("--roster").arg(at("roster.yaml")).arg("--known-hosts").arg(at("known_hosts"));
        command
    }

    /// Makes the files on this machine, which is what every host is taken for.
    pub fn settle(&self) {
        let status =
            self.command().args(["--local", "--on", "host-0"]).stdout(Stdio::null()).status().unwrap();
        assert!(status.success());
    }

    /// A run that finds nothing to do.
    pub async fn run(&self) -> Run {
        let mut command = self.command();
        let began = Instant::now();
        let child = command.stdout(Stdio::piped()).spawn().unwrap();
        let id = child.id();
        let waiting =
            tokio::task::spawn_blocking(move || (child.wait_with_output().unwrap(), began.elapsed()));
        let mut peak = 0.0_f64;
        while !waiting.is_finished() {
            peak = peak.max(largest(id).unwrap_or_default());
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let (output, elapsed) = waiting.await.unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let right = format!("unchanged={}", self.resources);
        let unchanged = text.lines().filter(|line| line.contains(&right)).count();
        assert!(output.status.success() && unchanged >= self.hosts, "{text}");
        Run {
            hosts: self.hosts,
            resources: self.resources,
            seconds: elapsed.as_secs_f64(),
            hosts_per_second: self.hosts as f64 / elapsed.as_secs_f64(),
            peak_mb: peak,
        }
    }
}

fn largest(process: u32) -> Option<f64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024.0 / 1e6)
}

fn said(option: &str) -> String {
    let output = Command::new("id").arg(option).output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}
