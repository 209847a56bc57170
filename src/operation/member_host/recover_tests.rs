//! `recover.sh` with a containerd that is a directory: `tasks/` and `containers/`, a file each.

use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use super::RECOVER;
use crate::engine::shells::{run, shells};
use crate::transport::{Output, Program};

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
        : >"$root/containers/$6"
        : >"$root/tasks/$6"
        while test -e "$root/tasks/$6"; do sleep 0.05; done
        rm "$root/containers/$6"
        ;;
    esac
}
systemctl() { echo "$*" >>"$root/systemctl"; }
"#;

/// The host of a member with data, whose containers have names of its own: they are ended by their names.
struct Host {
    root: tempfile::TempDir,
    containers: String,
}

impl Host {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        for directory in ["etcd", "etcd/member", "tasks", "containers"] {
            std::fs::create_dir(root.path().join(directory)).unwrap();
        }
        std::fs::write(root.path().join("etcd/member/wal"), "writes").unwrap();
        let unique = root.path().file_name().unwrap().to_str().unwrap().trim_start_matches('.');
        let containers = format!("recovery-{unique}");
        Self { root, containers }
    }

    fn recover(&self, shell: &str) -> Output {
        let root = self.root.path().to_str().unwrap();
        let script = RECOVER
            .replace("/var/lib/etcd", &format!("{root}/etcd"))
            .replace("metalform-etcd-recovery", &self.containers);
        let script =
            format!("root={root}\n{CONTAINERD}\nset -- image m1 https://192.0.2.1:2380 data 0\n{script}");
        run(shell, &Program { script, payload: Vec::new() })
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
}

fn names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn the_data_of_one_member_becomes_that_of_a_cluster_and_is_kept() {
    for shell in shells() {
        let host = Host::new();
        let output = host.recover(shell);
        assert_eq!(output.status, 0, "{shell}: {}", String::from_utf8_lossy(&output.stderr));
        let kept = names(&host.root.path().join("etcd"));
        assert!(kept.iter().any(|name| name.starts_with("removed-")), "{shell}: {kept:?}");
        assert_eq!(kept.len(), 2, "{shell}: {kept:?}");
        assert_eq!(std::fs::read(host.root.path().join("etcd/member/wal")).unwrap(), b"writes");
        assert_eq!(names(&host.root.path().join("containers")), [""; 0], "{shell}");
        let units = std::fs::read_to_string(host.root.path().join("systemctl")).unwrap();
        assert_eq!(units, "start kubelet.service\n", "{shell}");
    }
}

#[test]
fn what_a_run_that_was_killed_has_left_ends_and_does_not_block_the_next() {
    for shell in shells() {
        let host = Host::new();
        let mut orphan = host.orphan();
        let output = host.recover(shell);
        let ended = orphan.try_wait().unwrap();
        // So that it ends where the script has not ended it.
        drop(orphan.stdin.take());
        orphan.wait().unwrap();
        assert_eq!(output.status, 0, "{shell}: {}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(ended.and_then(|status| status.signal()), Some(9), "{shell}");
    }
}
