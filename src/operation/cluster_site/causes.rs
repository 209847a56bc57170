//! Units and static pods' containers of a host, as it reports them itself: no API is needed.

use std::collections::BTreeMap;
use std::time::Duration;

use super::ClusterSite;
use crate::operation::effect::Observation;
use crate::operation::observed::report::{ContainerReport, UnitReport};
use crate::operation::site::EffectError;
use crate::transport::Program;

/// How much of a log line is shown, bytes.
const LINE: usize = 400;
/// What an error reads like, as options of grep.
const ERRORS: &str = "-e error -e fail -e fatal -e panic -e invalid -e unknown -e 'not defined' -e cannot -e refused -e denied";

impl ClusterSite {
    pub(super) async fn unit(&self, name: &str) -> Result<Observation, EffectError> {
        let output = self.ports.host.run(&plain(unit_script(name))).await?;
        Ok(Observation::Unit(name.to_owned(), unit_report(&String::from_utf8_lossy(&output.stdout))))
    }

    pub(super) async fn container(&self, name: &str) -> Result<Observation, EffectError> {
        let output = self.ports.host.run(&plain(container_script(name))).await?;
        let report = container_report(&String::from_utf8_lossy(&output.stdout));
        Ok(Observation::Container(name.to_owned(), report))
    }
}

fn plain(script: String) -> Program {
    Program { script, payload: Vec::new() }
}

/// Unit names are ours: no quoting is needed. The journal's last line of this start is the error, if it has failed.
fn unit_script(name: &str) -> String {
    format!(
        "systemctl show {name} -p ActiveState -p SubState -p Result -p ExecMainStatus -p NRestarts\n\
         echo\n\
         journalctl -u {name} -n 20 -o cat --no-pager -q 2>/dev/null | grep -v \
         -e '^Start' -e '^Stop' -e '^Scheduled restart' -e '{name}: ' | tail -n 1 | head -c {LINE}\n\
         true\n"
    )
}

fn unit_report(text: &str) -> UnitReport {
    let (properties, log) = text.split_once("\n\n").unwrap_or((text, ""));
    let properties: BTreeMap<&str, &str> =
        properties.lines().filter_map(|line| line.split_once('=')).collect();
    let text = |key: &str| properties.get(key).map(|value| (*value).to_owned()).unwrap_or_default();
    UnitReport {
        active: text("ActiveState"),
        sub: text("SubState"),
        result: text("Result"),
        status: text("ExecMainStatus").parse().unwrap_or_default(),
        restarts: text("NRestarts").parse().unwrap_or_default(),
        last_error: log.trim().to_owned(),
    }
}

/// While etcd copies a snapshot, only its files show it.
const ETCD_FILES: &str = "b=$(du -sb /var/lib/etcd/member 2>/dev/null) && echo \"files ${b%%[!0-9]*}\"\n";

/// Logs that are older than the manifest are of another pod. A container runs while containerd's shim holds its task.
fn container_script(name: &str) -> String {
    let files = if name == "etcd" { ETCD_FILES } else { "" };
    let manifest = format!("/etc/kubernetes/manifests/{name}.yaml");
    let (starts, log, line) =
        (starts_script("\"$d\"", &manifest), log_script("\"$d\""), line_script("\"$f\""));
    format!(
        "d=$(ls -dt /var/log/pods/kube-system_{name}-*/{name} 2>/dev/null | head -n 1)\n\
         if test -n \"$d\" && test \"$d\" -nt {manifest}; then\n\
         i=$(ctr -n k8s.io containers ls -q \"labels.\\\"io.kubernetes.container.name\\\"=={name}\" 2>/dev/null)\n\
         r=no\n\
         for c in $i; do ctr -n k8s.io tasks ls 2>/dev/null | grep -q \"^$c .*RUNNING\" && r=yes; done\n\
         {starts}echo \"running $r\"\n{log}{files}echo\n\
         {line}\n\
         fi\ntrue\n"
    )
}

/// The kubelet numbers the log files of a container by its restarts: `/var/log/pods/NAMESPACE_POD_UID/NAME/2.log` is
/// that of its third start. A manifest that is written again as it was makes the same pod: what ended before that is no
/// failure of this one. Sets `n` to the number of the last log. The age of the manifest is in seconds.
fn starts_script(logs: &str, manifest: &str) -> String {
    let last = "sed -n 's/^\\(.*\\/\\)*\\([0-9]*\\)\\.log$/\\2/p' | sort -n | tail -n 1";
    format!(
        "echo \"age $(($(date +%s) - $(stat -c %Y {manifest})))\"\n\
         n=$(ls {logs} | {last})\n\
         m=$(find {logs} -name '*.log' ! -newer {manifest} | {last})\n\
         test -z \"$n\" || echo \"starts $((n - ${{m:--1}} - 1))\"\n"
    )
}

/// Sets `f` to the last log with text, after `n` and `r` were set. containerd creates the log with the container: one that
/// is empty while nothing runs is of a container that has yet to start, and what ended is the one before it.
fn log_script(logs: &str) -> String {
    format!(
        "f={logs}/$n.log\n\
         if ! test -s \"$f\"; then\n\
         f={logs}/$((n - 1)).log\n\
         test \"$r\" = yes || echo starting\n\
         fi\n"
    )
}

/// What a program reports when a write fails with ENOSPC.
const DISK_FULL: &str = "no space left on device";

/// The last line of a container's log that reads like an error, else the last one with text: a program prints its usage
/// after the flag that it does not know, and a stack after a panic. A full disk of the last minute comes before others,
/// which follow from it. A line is time, stream, tag, text.
fn line_script(log: &str) -> String {
    format!(
        "l=$(tail -n 100 {log} 2>/dev/null | grep -v '^[^ ]* [^ ]* [^ ]* *$')\n\
         s=$(date -d \"@$(($(date +%s) - 60))\" +%Y-%m-%dT%H:%M:%S)\n\
         e=$(printf '%s\\n' \"$l\" | awk -v s=\"$s\" '$1 >= s' | grep -i '{DISK_FULL}' | tail -n 1)\n\
         test -z \"$e\" || printf 'full '\n\
         e=${{e:-$(printf '%s\\n' \"$l\" | grep -i {ERRORS} | tail -n 1)}}\n\
         printf '%s\\n' \"${{e:-$(printf '%s\\n' \"$l\" | tail -n 1)}}\" | head -c {LINE}"
    )
}

fn container_report(text: &str) -> ContainerReport {
    let (head, log) = text.split_once("\n\n").unwrap_or((text, ""));
    let value = |key: &str| head.lines().find_map(|line| line.strip_prefix(key));
    let Some(last) = value("starts ").and_then(|number| number.trim().parse::<i64>().ok()) else {
        return ContainerReport::default();
    };
    let running = value("running ") == Some("yes");
    let starting = head.lines().any(|line| line == "starting");
    let exits = u32::try_from(if running || starting { last } else { last + 1 }).unwrap_or_default();
    let files = value("files ").and_then(|bytes| bytes.trim().parse().ok());
    let age = value("age ")
        .and_then(|seconds| seconds.trim().parse().ok())
        .map_or(Duration::ZERO, Duration::from_secs);
    if !running && exits == 0 {
        return ContainerReport { files, ..ContainerReport::default() };
    }
    let (disk_full, log) = log.trim().strip_prefix("full ").map_or((false, log.trim()), |log| (true, log));
    // A container log line (CRI): time, stream, tag, text.
    let line = log.splitn(4, ' ').nth(3).unwrap_or_default();
    let last_line = line.trim().to_owned();
    ContainerReport { running: Some(running), exits, recent_exits: exits, age, last_line, files, disk_full }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::engine::shells::{run, shells};

    #[test]
    fn a_unit_is_read_from_what_systemctl_and_the_journal_print() {
        let text = "Result=exit-code\nNRestarts=4\nExecMainStatus=1\nActiveState=activating\nSubState=auto-restart\n\n\"command failed\" err=\"no such file\"\n";
        let unit = unit_report(text);
        assert_eq!(
            unit.complaint("kubelet.service").unwrap(),
            "kubelet.service is activating (auto-restart), exit status 1, 4 restarts: \"command failed\" err=\"no such file\""
        );
        let running = unit_report("ActiveState=active\nSubState=running\nResult=success\nNRestarts=0\n\n");
        assert_eq!(running.complaint("kubelet.service"), None);
    }

    #[test]
    fn the_line_of_a_log_is_the_error_and_not_the_usage_after_it() {
        let cases: [(&[&str], &str); 4] = [
            (
                &["flag provided but not defined: -no-such-flag", "Usage:", "  etcd [flags]", ""],
                "flag provided but not defined: -no-such-flag",
            ),
            (
                &["panic: tocommit(7) is out of range", "", "goroutine 1 [running]:"],
                "panic: tocommit(7) is out of range",
            ),
            (&["starting", "listening", ""], "listening"),
            (&[], ""),
        ];
        for (lines, expected) in cases {
            let mut log = tempfile::NamedTempFile::new().unwrap();
            for line in lines {
                writeln!(log, "2026-11-21T22:00:00.1Z stderr F {line}").unwrap();
            }
            let script = line_script(log.path().to_str().unwrap());
            for shell in shells() {
                let output = run(shell, &plain(script.clone()));
                let text = format!("starts 0\nrunning no\n\n{}", String::from_utf8_lossy(&output.stdout));
                assert_eq!(container_report(&text).last_line, expected, "{shell}: {lines:?}");
            }
        }
    }

    #[test]
    fn a_full_disk_of_the_last_minute_comes_before_what_follows_from_it() {
        let now = jiff::Zoned::now();
        let stamp = |seconds: i64| {
            let time = now.checked_sub(jiff::Span::new().seconds(seconds)).unwrap();
            time.strftime("%Y-%m-%dT%H:%M:%S.123456789%:z").to_string()
        };
        let full =
            "failed to save KV snapshot: write /var/lib/etcd/member/snap/tmp1: no space left on device";
        for (age, expected) in [(5, (true, full)), (300, (false, "failed to publish local member"))] {
            let mut log = tempfile::NamedTempFile::new().unwrap();
            writeln!(log, "{} stderr F {full}", stamp(age)).unwrap();
            writeln!(log, "{} stderr F failed to publish local member", stamp(1)).unwrap();
            let script = line_script(log.path().to_str().unwrap());
            for shell in shells() {
                let output = run(shell, &plain(script.clone()));
                let text = format!("starts 0\nrunning yes\n\n{}", String::from_utf8_lossy(&output.stdout));
                let report = container_report(&text);
                assert_eq!((report.disk_full, report.last_line.as_str()), expected, "{shell}: {age}");
            }
        }
    }

    #[test]
    fn what_ended_before_the_manifest_was_written_is_not_counted() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        let write = |name: &str, second: u64| {
            let file = std::fs::File::create(path(name)).unwrap();
            file.set_modified(std::time::UNIX_EPOCH + Duration::from_secs(second)).unwrap();
        };
        std::fs::create_dir(path("logs")).unwrap();
        let (logs, manifest) = (path("logs").display().to_string(), path("etcd.yaml").display().to_string());
        write("etcd.yaml", 1000);
        let script = starts_script(&logs, &manifest);
        for (log, written, expected) in [
            ("logs/8.log", 900, "starts -1\n"),
            ("logs/9.log", 990, "starts -1\n"),
            ("logs/10.log", 1010, "starts 0\n"),
            ("logs/11.log", 1020, "starts 1\n"),
        ] {
            write(log, written);
            for shell in shells() {
                let output = run(shell, &plain(script.clone()));
                let text = String::from_utf8_lossy(&output.stdout);
                let (age, starts) = text.split_once('\n').unwrap();
                assert_eq!(starts, expected, "{shell}: {log}");
                assert!(
                    age.strip_prefix("age ").unwrap().parse::<u64>().unwrap() > 1_000_000,
                    "{shell}: {age}"
                );
            }
        }
    }

    #[test]
    fn a_container_that_has_yet_to_start_has_not_exited_and_the_log_is_that_of_the_one_before() {
        let directory = tempfile::tempdir().unwrap();
        let logs = directory.path().display().to_string();
        let line = "2026-11-21T22:00:00.1Z stderr F unknown flag: --bogus\n";
        std::fs::write(directory.path().join("1.log"), line).unwrap();
        for (newest, runs, exits) in [("", "no", 2), ("", "yes", 2), (line, "no", 3)] {
            std::fs::write(directory.path().join("2.log"), newest).unwrap();
            let script = format!(
                "n=2\nr={runs}\necho starts 2\necho running $r\n{}echo\n{}\n",
                log_script(&logs),
                line_script("\"$f\"")
            );
            for shell in shells() {
                let output = run(shell, &plain(script.clone()));
                let report = container_report(&String::from_utf8_lossy(&output.stdout));
                let found = (report.exits, report.last_line.as_str());
                assert_eq!(found, (exits, "unknown flag: --bogus"), "{shell}: {newest:?} {runs}");
            }
        }
    }

    #[test]
    fn a_container_is_read_from_its_log_files() {
        let text = "age 7\nstarts 2\nrunning no\nfiles 4711\n\n2026-11-21T22:00:00.1Z stderr F unknown flag: --bogus\n";
        let expected = ContainerReport {
            running: Some(false),
            exits: 3,
            recent_exits: 3,
            age: Duration::from_secs(7),
            last_line: "unknown flag: --bogus".to_owned(),
            files: Some(4711),
            disk_full: false,
        };
        assert_eq!(container_report(text), expected);
        let running = container_report("starts 0\nrunning yes\n\n2026-11-21T22:00:00.1Z stderr F ready\n");
        assert_eq!((running.running, running.exits), (Some(true), 0));
        assert_eq!(container_report(""), ContainerReport::default());
        // Nothing has started since the manifest was written, or what runs has yet to be restarted.
        assert_eq!(container_report("starts -1\nrunning no\n\n"), ContainerReport::default());
        let before = container_report("starts -1\nrunning yes\n\n");
        assert_eq!((before.running, before.exits), (Some(true), 0));
    }
}
