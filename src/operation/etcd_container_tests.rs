//! The scripts with a containerd that is a directory: `tasks/` and `containers/`, a file each.

use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use super::FUNCTIONS;
use crate::engine::shells::{run, shells};
use crate::transport::{Output, Program};

const BEGIN: &str = concat!(
    "set -- m1 https://192.0.2.1:2380 https://192.0.2.1:2379 image\n",
    include_str!("cluster_site/begin_cluster.sh")
);
const RECOVER: &str =
    concat!("set -- image m1 https://192.0.2.1:2380 data 0\n", include_str!("member_host/recover.sh"));

const KEEP: &str = concat!("set -eu\n", include_str!("member_host/keep_manifests.sh"));

/// As ctr(1): a task without its container is not found, and no other one gets its name.
const CONTAINERD: &str = r#"
ctr() {
    shift 2
    case "$1 $2" in
    "containers list") ls "$root/containers" ;;
    "containers delete") rm "$root/containers/$3" ;;
    "tasks delete") test -e "$root/containers/$4" && rm "$root/tasks/$4" ;;
    "tasks exec") test -e "$root/containers/$5" && test -e "$root/tasks/$5" ;;
    "tasks kill") test -e "$root/containers/$5" && rm "$root/tasks/$5" ;;
    "run --rm")
        if test -e "$root/tasks/$6"; then
            echo "ctr: task $6: already exists" >&2
            return 1
        fi
        mkdir -p "$work/member/wal"
        : >"$root/containers/$6"
        : >"$root/tasks/$6"
        while test -e "$root/tasks/$6"; do sleep 0.05; done
        rm "$root/containers/$6"
        ;;
    esac
}
systemctl() { echo "$*" >>"$root/systemctl"; }
"#;

/// A host whose containers have names of its own: processes are ended by them.
struct Host {
    root: tempfile::TempDir,
    containers: String,
}

impl Host {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        for directory in ["etcd", "tasks", "containers", "manifests"] {
            std::fs::create_dir(root.path().join(directory)).unwrap();
        }
        let unique = root.path().file_name().unwrap().to_str().unwrap().trim_start_matches('.');
        let containers = format!("etcd-{unique}");
        Self { root, containers }
    }

    fn with_data() -> Self {
        let host = Self::new();
        std::fs::create_dir(host.root.path().join("etcd/member")).unwrap();
        std::fs::write(host.root.path().join("etcd/member/writes"), "acknowledged").unwrap();
        host
    }

    fn run(&self, shell: &str, script: &str) -> Output {
        let root = self.root.path().to_str().unwrap();
        let (arguments, script) = script.split_once('\n').unwrap();
        let script = format!("{arguments}\n{FUNCTIONS}\n{script}")
            .replace("/var/lib/etcd", &format!("{root}/etcd"))
            .replace("/etc/kubernetes/manifests", &format!("{root}/manifests"))
            .replace("=metalform-etcd", &format!("={}", self.containers));
        run(shell, &Program { script: format!("root={root}\n{CONTAINERD}\n{script}"), payload: Vec::new() })
    }

    /// What supervises a task, of a container that is gone.
    fn orphan(&self) -> Child {
        std::fs::write(self.root.path().join("tasks").join(&self.containers), "").unwrap();
        let script = "echo containerd-shim >/proc/$$/comm; echo; read -r line";
        let mut orphan = Command::new("sh")
            .args(["-c", script, "sh", "-id", &self.containers])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        BufReader::new(orphan.stdout.as_mut().unwrap()).read_line(&mut String::new()).unwrap();
        orphan
    }

    fn names(&self, directory: impl AsRef<Path>) -> Vec<String> {
        let entries = std::fs::read_dir(self.root.path().join(directory)).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }
}

#[track_caller]
fn succeeded(output: &Output, shell: &str) {
    assert_eq!(output.status, 0, "{shell}: {}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_recovery_keeps_what_the_data_was() {
    for shell in shells() {
        let host = Host::with_data();
        succeeded(&host.run(shell, RECOVER), shell);
        let mut kept = host.names("etcd");
        kept.sort();
        assert!(matches!(&*kept, [_, removed] if removed.starts_with("removed-")), "{shell}: {kept:?}");
        for place in ["member", &*kept[1]] {
            let writes = host.root.path().join("etcd").join(place).join("writes");
            assert_eq!(std::fs::read(writes).unwrap(), b"acknowledged", "{shell} {place}");
        }
        assert_eq!(host.names("containers"), [""; 0], "{shell}");
        let units = std::fs::read_to_string(host.root.path().join("systemctl")).unwrap();
        assert_eq!(units, "start kubelet.service\n", "{shell}");
    }
}

#[test]
fn a_member_that_a_recovery_has_stopped_continues_with_the_static_pods_that_it_had() {
    for shell in shells() {
        let host = Host::with_data();
        let manifest = |pod: &str| host.root.path().join(format!("manifests/{pod}.yaml"));
        for pod in ["etcd", "kube-apiserver"] {
            std::fs::write(manifest(pod), pod).unwrap();
        }
        succeeded(&host.run(shell, KEEP), shell);
        std::fs::remove_file(manifest("etcd")).unwrap();
        // With the etcd of another member, which is lost; and a run that resumes.
        std::fs::write(manifest("kube-apiserver"), "of another").unwrap();
        succeeded(&host.run(shell, KEEP), shell);
        succeeded(&host.run(shell, RECOVER), shell);
        for pod in ["etcd", "kube-apiserver"] {
            assert_eq!(std::fs::read_to_string(manifest(pod)).unwrap(), pod, "{shell}");
        }
        assert!(!host.root.path().join("etcd/stopped").exists(), "{shell}");
        let mut present = host.names("manifests");
        present.sort();
        assert_eq!(present, ["etcd.yaml", "kube-apiserver.yaml"], "{shell}");
    }
}

#[test]
fn a_cluster_begins_once() {
    for shell in shells() {
        let host = Host::new();
        succeeded(&host.run(shell, BEGIN), shell);
        assert_eq!(host.names("etcd"), ["member"], "{shell}");
        assert_eq!(host.names("containers"), [""; 0], "{shell}");
        std::fs::remove_dir(host.root.path().join("containers")).unwrap();
        succeeded(&host.run(shell, BEGIN), shell);
    }
}

#[test]
fn what_a_run_that_was_killed_has_left_ends_and_does_not_block_the_next() {
    for shell in shells() {
        for (host, script) in [(Host::with_data(), RECOVER), (Host::new(), BEGIN)] {
            let mut orphan = host.orphan();
            let output = host.run(shell, script);
            let ended = orphan.try_wait().unwrap();
            // So that it ends where the script has not ended it.
            drop(orphan.stdin.take());
            orphan.wait().unwrap();
            succeeded(&output, shell);
            assert_eq!(ended.and_then(|status| status.signal()), Some(9), "{shell}");
        }
    }
}
