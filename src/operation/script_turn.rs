//! Turns of scripts that work on the same files of one host.

/// The beginning of each script that works on etcd's data.
pub(super) fn member_data_turn() -> String {
    script_turn("etcd-data", "the data of etcd")
}

/// The beginning of each script that records what the host was.
pub(super) fn host_record_turn() -> String {
    script_turn("host-record", "the record of this host")
}

/// A run that is killed does not end its script: without turns, that of the next run would work on the same files at the
/// same time. Waits for up to 100 s, and then ends where nobody reads its output any more: the script of a run that was
/// killed while it waited must not begin after that of the next. The lock is released when the shell ends; what may
/// outlive it must not inherit descriptor 9. Signals are trapped: dash would end at one without running the script's own
/// trap on EXIT, which starts the kubelet again.
fn script_turn(lock: &str, work: &str) -> String {
    format!(
        "trap 'exit 129' HUP\n\
         trap 'exit 130' INT\n\
         trap 'exit 141' PIPE\n\
         trap 'exit 143' TERM\n\
         mkdir -p /run/metalform\n\
         exec 9>/run/metalform/{lock}.lock\n\
         if ! flock -n 9; then\n\
         if ! flock -w 100 9; then\n\
         echo 'the script of a run that was killed still works on {work}' >&2\n\
         exit 1\n\
         fi\n\
         echo >&2\n\
         fi\n"
    )
}

#[cfg(test)]
pub(in crate::operation) mod tests {
    use std::fs::{self, File};
    use std::os::unix::fs::MetadataExt;
    use std::time::{Duration, Instant};

    use super::*;
    use crate::engine::shells::{run, shells, start};
    use crate::transport::Program;

    #[test]
    fn a_script_begins_when_the_one_before_it_has_ended() {
        let root = tempfile::tempdir().unwrap();
        let turn = member_data_turn()
            .replace("/run/metalform", root.path().to_str().unwrap())
            .replace("flock -w 100", "flock -w 0");
        let program = Program { script: format!("{turn}echo begins\n"), payload: Vec::new() };
        for shell in shells() {
            let begins = || {
                let output = run(shell, &program);
                (output.status, String::from_utf8(output.stdout).unwrap())
            };
            assert_eq!(begins(), (0, "begins\n".to_owned()), "{shell}");
            let before = File::open(root.path().join("etcd-data.lock")).unwrap();
            before.lock().unwrap();
            assert_eq!(begins(), (1, String::new()), "{shell}");
            drop(before);
            assert_eq!(begins(), (0, "begins\n".to_owned()), "{shell}");
        }
    }

    #[test]
    fn a_script_that_nobody_reads_any_more_does_not_begin_late() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().to_str().unwrap();
        let lock = File::create(root.path().join("etcd-data.lock")).unwrap();
        let inode = lock.metadata().unwrap().ino();
        let turn = member_data_turn().replace("/run/metalform", path);
        let script = format!("trap ': >{path}/left' EXIT\n{turn}: >{path}/begun\n");
        for shell in shells() {
            for read in [true, false] {
                for file in ["begun", "left"] {
                    drop(fs::remove_file(root.path().join(file)));
                }
                lock.lock().unwrap();
                let mut child = start(shell, &script);
                let deadline = Instant::now() + Duration::from_secs(30);
                while !waits_for(inode) {
                    assert!(Instant::now() < deadline, "{shell} does not wait");
                    std::thread::yield_now();
                }
                let reader = (child.stdout.take(), child.stderr.take());
                let reader = read.then_some(reader);
                lock.unlock().unwrap();
                let status = child.wait().unwrap();
                drop(reader);
                assert_eq!(root.path().join("begun").exists(), read, "{shell}: {status}");
                assert!(root.path().join("left").exists(), "{shell}: {status}: its own trap did not run");
            }
        }
    }

    /// Whether a process waits for the lock on this file.
    pub(in crate::operation) fn waits_for(inode: u64) -> bool {
        let locks = fs::read_to_string("/proc/locks").unwrap();
        locks.lines().any(|line| line.contains("->") && line.contains(&format!(":{inode} ")))
    }
}
