//! Units and containers as their host reports them: the causes of most waits.

use std::time::Duration;

/// So many failed starts are no accident.
const FAILURES: u32 = 3;

/// A systemd unit, from systemctl(1) show and journalctl(1).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UnitReport {
    /// `ActiveState`.
    pub active: String,
    /// `SubState`.
    pub sub: String,
    /// `Result`: `exit-code`, `start-limit-hit`.
    pub result: String,
    /// `ExecMainStatus`.
    pub status: i32,
    /// `NRestarts`, since it was last started by hand.
    pub restarts: u32,
    /// Its last error in the journal.
    pub last_error: String,
}

/// The container of a static pod, from its logs and containerd.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ContainerReport {
    /// Whether it runs; `None` when no container was ever created.
    pub running: Option<bool>,
    /// How often it has exited since its manifest was written.
    pub exits: u32,
    /// Those of them that are of this run. A scheduler exits whenever its API server restarts: many exits in a year are no
    /// failure.
    pub recent_exits: u32,
    /// How long ago its manifest was written.
    pub age: Duration,
    /// The last line of its log.
    pub last_line: String,
    /// Of etcd: the size of its files, bytes.
    pub files: Option<u64>,
    /// Its last line, of the last minute, is that no space is left on a device.
    pub disk_full: bool,
}

impl UnitReport {
    /// Why it does not run; `None` when it does.
    pub fn complaint(&self, name: &str) -> Option<String> {
        if self.active.is_empty() || self.active == "active" {
            return None;
        }
        let result = match self.result.as_str() {
            "" | "success" => String::new(),
            "exit-code" => format!(", exit status {}", self.status),
            other => format!(", {other}"),
        };
        let restarts =
            if self.restarts > 0 { format!(", {} restarts", self.restarts) } else { String::new() };
        Some(with_line(
            format!("{name} is {} ({}){result}{restarts}", self.active, self.sub),
            &self.last_error,
        ))
    }

    /// Why it will not run without a person.
    pub fn hopeless(&self, name: &str) -> Option<String> {
        let permanent = matches!(self.result.as_str(), "exec-condition" | "start-limit-hit")
            && self.active == "failed"
            || self.restarts >= FAILURES;
        self.complaint(name).filter(|_| permanent)
    }
}

impl ContainerReport {
    /// Why it does not run; `None` when it does.
    pub fn complaint(&self, name: &str) -> Option<String> {
        match self.running {
            // etcd keeps running without the snapshot that it cannot save.
            Some(true) if self.disk_full => {
                Some(with_line(format!("container {name} cannot write: its disk is full"), &self.last_line))
            }
            Some(true) => None,
            None => Some(format!("container {name} was not created")),
            Some(false) => Some(with_line(
                format!("container {name} is not running, it exited {}", times(self.exits)),
                &self.last_line,
            )),
        }
    }

    /// Why it will not run without a person.
    pub fn hopeless(&self, name: &str) -> Option<String> {
        let fails = self.running == Some(false) && self.recent_exits >= FAILURES;
        self.complaint(name).filter(|_| fails || self.disk_full)
    }
}

fn times(count: u32) -> String {
    if count == 1 { "once".to_owned() } else { format!("{count} times") }
}

fn with_line(text: String, line: &str) -> String {
    if line.is_empty() { text } else { format!("{text}: {line}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_that_does_not_run_is_described_by_its_own_last_error() {
        let unit = UnitReport {
            active: "activating".to_owned(),
            sub: "auto-restart".to_owned(),
            result: "exit-code".to_owned(),
            status: 1,
            restarts: 2,
            last_error: "failed to load kubelet config file".to_owned(),
        };
        let complaint = "kubelet.service is activating (auto-restart), exit status 1, 2 restarts: failed to load kubelet config file";
        assert_eq!(unit.complaint("kubelet.service").as_deref(), Some(complaint));
        assert_eq!(unit.hopeless("kubelet.service"), None, "it may start yet");
        let again = UnitReport { restarts: 3, ..unit.clone() };
        assert!(again.hopeless("kubelet.service").is_some());
        let running = UnitReport { active: "active".to_owned(), ..again };
        assert_eq!(running.hopeless("kubelet.service"), None, "earlier failures do not count");
        let refused = UnitReport {
            active: "failed".to_owned(),
            result: "start-limit-hit".to_owned(),
            restarts: 0,
            ..unit
        };
        assert!(refused.hopeless("kubelet.service").is_some());
    }

    #[test]
    fn a_container_is_given_up_after_its_third_exit() {
        let mut container = ContainerReport {
            running: Some(false),
            exits: 2,
            recent_exits: 2,
            last_line: "bad flag".to_owned(),
            ..ContainerReport::default()
        };
        let complaint = "container etcd is not running, it exited 2 times: bad flag";
        assert_eq!(container.complaint("etcd").as_deref(), Some(complaint));
        assert_eq!(container.hopeless("etcd"), None);
        container.recent_exits = 3;
        assert!(container.hopeless("etcd").is_some());
        container.running = Some(true);
        assert_eq!(container.complaint("etcd"), None);
    }

    #[test]
    fn a_container_without_space_is_given_up_while_it_runs() {
        let container = ContainerReport {
            running: Some(true),
            last_line: "failed to save KV snapshot: no space left on device".to_owned(),
            disk_full: true,
            ..ContainerReport::default()
        };
        let complaint = "container etcd cannot write: its disk is full: failed to save KV snapshot: no space left on device";
        assert_eq!(container.complaint("etcd").as_deref(), Some(complaint));
        assert_eq!(container.hopeless("etcd").as_deref(), Some(complaint));
    }
}
