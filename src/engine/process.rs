//! A running program on a host, as another program on the same host can find it.

use crate::transport::Program;

/// The identity of a running program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Process {
    id: u32,
    group: u32,
    /// In clock ticks since boot (proc_pid_stat(5), field 22): an id alone may belong to another process by now.
    started: u64,
}

impl Process {
    /// From its process id, process group and start time.
    pub(super) fn parse(id: &str, group: &str, started: &str) -> Option<Self> {
        // Signals to the groups 0 and 1 would reach the sender, or every process.
        let group = group.parse().ok().filter(|group| *group > 1)?;
        Some(Self { id: id.parse().ok()?, group, started: started.parse().ok()? })
    }

    /// Stops it before its next resource.
    pub(super) fn stop(&self) -> Program {
        self.if_it_runs(&format!("kill -s USR1 {}", self.id))
    }

    /// Ends it and all processes of its group: by SIGTERM, and a second later by SIGKILL.
    pub(super) fn end(&self) -> Program {
        let group = self.group;
        self.if_it_runs(&format!(
            "{{ kill -s TERM -- -{group}; n=0
            while [ $n -lt 10 ] && kill -s 0 -- -{group}; do n=$((n + 1)); sleep 0.1; done
            kill -s KILL -- -{group}; }} 2>/dev/null"
        ))
    }

    fn if_it_runs(&self, command: &str) -> Program {
        let Self { id, started, .. } = self;
        let script = format!(
            "read -r stat </proc/{id}/stat && set -- ${{stat##*\") \"}} && [ \"${{20}}\" = {started} ] &&\n{command}\n"
        );
        Program { script, payload: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::os::unix::process::{CommandExt, ExitStatusExt};
    use std::process::{Child, Command, Stdio};
    use std::time::{Duration, Instant};

    use super::*;
    use crate::engine::shells::{run, shells};

    /// Starts a shell in a process group of its own that reports its identity as an apply program does, and then runs this.
    fn started(shell: &str, script: &str) -> (Child, Process) {
        let mut words = shell.split(' ');
        let prelude = include_str!("apply/prelude.sh");
        let mut child = Command::new(words.next().unwrap())
            .args(words)
            .args(["-c", &format!("nonce=N\n(\n{prelude}\n{script}\n)\n")])
            .process_group(0)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let words: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(words[..2], ["N", "at"], "{shell}: {line}");
        let process = Process::parse(words[2], words[3], words[4]).unwrap();
        assert_eq!(process.group, child.id(), "{shell}");
        (child, process)
    }

    /// The running processes of a group, without zombies.
    fn members(group: u32) -> Vec<String> {
        let stats = std::fs::read_dir("/proc").unwrap().filter_map(|entry| {
            // A process may end during the listing.
            std::fs::read_to_string(entry.unwrap().path().join("stat")).ok()
        });
        let fields = |stat: &str| -> Option<(String, String)> {
            let mut words = stat.rsplit_once(") ")?.1.split(' ');
            Some((words.next()?.to_owned(), words.nth(1)?.to_owned()))
        };
        stats
            .filter(|stat| fields(stat).is_some_and(|(state, of)| state != "Z" && of == group.to_string()))
            .collect()
    }

    #[test]
    fn a_program_stops_before_its_next_resource_and_its_command_ends_first() {
        for shell in shells() {
            let dir = tempfile::tempdir().unwrap();
            let at = |name: &str| dir.path().join(name).display().to_string();
            let script = format!(
                "say begin 0\n(touch {ready}; while ! [ -e {go} ]; do sleep 0.01; done; touch {done}) || fail 0 $?\nsay done 0\nsay begin 1\ntouch {never}\n",
                ready = at("ready"),
                go = at("go"),
                done = at("done"),
                never = at("never"),
            );
            let (child, process) = started(shell, &script);
            while !dir.path().join("ready").exists() {}
            assert_eq!(run(shell, &process.stop()).status, 0, "{shell}");
            std::fs::write(dir.path().join("go"), "").unwrap();
            let output = child.wait_with_output().unwrap();
            assert!(output.status.success(), "{shell}: {:?}", output.status);
            assert!(dir.path().join("done").exists() && !dir.path().join("never").exists(), "{shell}");
        }
    }

    #[test]
    fn a_program_ends_with_all_its_processes() {
        for shell in shells() {
            for stubborn in ["", "trap '' TERM; "] {
                let (mut child, process) = started(shell, &format!("({stubborn}sleep 60; sleep 60)\n:\n"));
                run(shell, &process.end());
                let status = child.wait().unwrap();
                assert!(status.signal().is_some(), "{shell}: {status:?}");
                // A killed process is gone once it is scheduled again.
                let deadline = Instant::now() + Duration::from_secs(10);
                while !members(process.group).is_empty() && Instant::now() < deadline {
                    std::thread::yield_now();
                }
                assert_eq!(members(process.group), Vec::<String>::new(), "{shell}: {stubborn}");
            }
        }
    }

    #[test]
    fn another_process_with_the_same_id_is_not_signalled() {
        for shell in shells() {
            let (mut child, process) = started(shell, "sleep 60\n:\n");
            let other = Process { started: process.started + 1, ..process.clone() };
            assert_ne!(run(shell, &other.stop()).status, 0);
            assert_ne!(run(shell, &other.end()).status, 0);
            assert!(child.try_wait().unwrap().is_none(), "{shell}: it must still run");
            run(shell, &process.end());
            child.wait().unwrap();
        }
    }

    #[test]
    fn impossible_process_groups_are_refused() {
        for (group, believed) in [("0", false), ("1", false), ("-5", false), ("", false), ("17", true)] {
            assert_eq!(Process::parse("17", group, "100").is_some(), believed, "{group}");
        }
    }
}
