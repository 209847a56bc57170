//! Reactions that are owed after a run was killed, something failed before them, or they failed themselves: with real
//! shells, files and markers. `systemctl` is a script.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use async_trait::async_trait;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::Desired;
use super::host::{Convergence, HostError, HostSession};
use super::nonce::Nonce;
use super::states::HostStates;
use crate::model::shell_word::quote;
use crate::resource::contract::change::{Difference, Verdict};
use crate::resource::contract::ensure::Ensure;
use crate::resource::contract::kind::Kind;
use crate::resource::contract::owed::Owed;
use crate::resource::contract::probe::{Answer, Observed, Probe, UnitState};
use crate::state::{Compiled, Location};
use crate::transport::error::TransportError;
use crate::transport::local::LocalTransport;
use crate::transport::{LineSink, Output, Program, Replies, Transport};

/// This machine, with commands of its own and other directories for the markers.
struct Machine {
    dir: tempfile::TempDir,
}

#[async_trait]
impl Transport for Machine {
    async fn converse(
        &self,
        program: &Program,
        replies: Replies,
        lines: &mut LineSink<'_>,
    ) -> Result<Output, TransportError> {
        let mut script = format!("PATH={}:$PATH\n{}", quote(&self.text("bin")), program.script);
        for (markers, here) in [("/var/lib/metalform/owed", "lasting"), ("/run/metalform/owed", "run")] {
            script = script.replace(markers, &self.text(here));
        }
        // A user who is not root has other directories.
        script = script.replace("[ ! -w /run ]", "false");
        LocalTransport.converse(&Program { script, payload: program.payload.clone() }, replies, lines).await
    }
}

impl Machine {
    fn new() -> Self {
        let machine = Self { dir: tempfile::tempdir().unwrap() };
        fs::create_dir(machine.at("bin")).unwrap();
        // A service that runs; a reload or restart works unless there is the file `broken`.
        let systemctl = format!(
            "cd {0} || exit\ncase $1 in\n\
             show) case $* in *--value*) ;; *) printf '%s\\n' Id=a.service LoadState=loaded ActiveState=active \
             SubState=running UnitFileState=enabled NeedDaemonReload=no ;; esac ;;\n\
             *) echo \"$1\" >>verbs; [ ! -e broken ] ;;\nesac",
            quote(&machine.text(""))
        );
        machine.command("systemctl", &systemctl);
        machine.command("journalctl", "echo the last line of the journal");
        machine
    }

    fn at(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.at(name).to_str().unwrap().to_owned()
    }

    fn command(&self, name: &str, text: &str) {
        fs::write(self.at("bin").join(name), format!("#!/bin/sh\n{text}\n")).unwrap();
        fs::set_permissions(self.at("bin").join(name), fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// What was noted there.
    fn noted(&self, name: &str) -> String {
        fs::read_to_string(self.at(name)).unwrap_or_default()
    }

    fn markers(&self) -> usize {
        let count = |name| fs::read_dir(self.at(name)).map_or(0, Iterator::count);
        count("lasting") + count("run")
    }

    async fn apply(&self, states: &HostStates) -> Result<Convergence, HostError> {
        let host = HostSession::new("here".parse().unwrap(), self, Nonce::new(3));
        let looked = host.look(Some(states.clone()), |_| Err(())).await.unwrap().unwrap();
        let no_signer = |_: &_, _: &str| Err("no signer".to_owned());
        host.converge(looked, &no_signer, &|_| ()).await
    }

    /// The changes of a plan, each with its first difference.
    async fn plan(&self, states: &HostStates) -> Vec<(String, String)> {
        let host = HostSession::new("here".parse().unwrap(), self, Nonce::new(4));
        let verdicts = host.plan(states).await.unwrap().verdicts;
        let change = |(id, verdict)| match verdict {
            Verdict::Change(change) => {
                let Some(Difference::Field { name, after, .. }) = change.differences.into_iter().next()
                else {
                    return Some((id, String::new()));
                };
                Some((id, format!("{name}: {}", after.unwrap_or_default())))
            }
            _ => None,
        };
        verdicts.into_iter().filter_map(change).collect()
    }

    /// A line, what is between, and two reactions to the line.
    fn states(&self, between: &str) -> HostStates {
        let line = "line:A line".to_owned();
        states([
            ("line", "A line", json!({"path": self.text("a.conf"), "text": "x", "create": true}), vec![]),
            ("command", "Between", json!({"run": between, "creates": self.text("passed")}), vec![]),
            (
                "command",
                "React",
                json!({"run": format!("echo again >>{}", quote(&self.text("ran")))}),
                vec![&line],
            ),
            ("service", "a", json!({"reload_when_changed": [line]}), vec![]),
        ])
    }
}

fn states<const N: usize>(resources: [(&str, &str, Value, Vec<&String>); N]) -> HostStates {
    let compiled = resources.into_iter().map(|(kind, name, fields, only_if_changed)| Compiled {
        id: format!("{kind}:{name}").parse().unwrap(),
        fields: fields.as_object().unwrap().clone(),
        ensure: Ensure::Present,
        places: BTreeMap::new(),
        sensitive: false,
        only_if_changed: only_if_changed.into_iter().map(|id| id.parse().unwrap()).collect(),
        after: Vec::new(),
        source: Location::of_file("states/a.yaml"),
        state: "a".parse().unwrap(),
    });
    HostStates::new(compiled.collect(), BTreeMap::new(), Timestamp::UNIX_EPOCH).unwrap()
}

/// The plan shows both reactions, the next run does them once, and nothing is owed after it.
async fn assert_made_up_for(machine: &Machine, between: &str) {
    let states = machine.states(between);
    let owed = "line:A line changed in an earlier run";
    let expected = [
        ("command:React".to_owned(), format!("owed: {owed}")),
        ("service:a".to_owned(), format!("reload: {owed}")),
    ];
    assert_eq!(machine.plan(&states).await, expected);
    assert_eq!(machine.plan(&states).await, expected, "a plan changes nothing");
    let done = machine.apply(&states).await.unwrap();
    assert_eq!(done.changed, ["command:React", "service:a"]);
    assert_eq!(
        (machine.noted("ran"), machine.noted("verbs")),
        ("again\n".to_owned(), "reload-or-restart\n".to_owned())
    );
    assert_eq!(machine.markers(), 0);
    assert_eq!(machine.apply(&states).await.unwrap().changed, Vec::<String>::new());
}

#[tokio::test]
async fn a_failure_between_a_change_and_its_reactions_loses_none() {
    let machine = Machine::new();
    let failed = machine.apply(&machine.states("exit 7")).await.unwrap_err();
    assert!(matches!(failed, HostError::Failed { status: 7, .. }), "{failed}");
    assert_eq!(machine.markers(), 2);
    for directory in ["lasting", "run"] {
        let mode = fs::metadata(machine.at(directory)).unwrap().permissions().mode() & 0o7777;
        assert_eq!(mode, 0o700, "only its owner may know what is owed");
    }
    fs::write(machine.at("passed"), "").unwrap();
    assert_made_up_for(&machine, "exit 7").await;
}

#[tokio::test]
async fn a_run_that_is_killed_loses_no_reaction() {
    let machine = Machine::new();
    // The whole group: this program and all that it started.
    let kill = format!(": >{}; kill -9 0", quote(&machine.text("passed")));
    machine.apply(&machine.states(&kill)).await.unwrap_err();
    assert_made_up_for(&machine, &kill).await;
}

#[tokio::test]
async fn a_reload_that_failed_is_repeated_until_it_works() {
    let machine = Machine::new();
    fs::write(machine.at("passed"), "").unwrap();
    fs::write(machine.at("broken"), "").unwrap();
    let states = machine.states("");
    for run in 1..=3 {
        let failed = machine.apply(&states).await.unwrap_err().to_string();
        assert!(failed.starts_with("service:a failed with status 1: the last line"), "run {run}: {failed}");
    }
    assert_eq!(machine.noted("ran"), "again\n", "the command succeeded in the first run");
    fs::remove_file(machine.at("broken")).unwrap();
    assert_eq!(machine.apply(&states).await.unwrap().changed, ["service:a"]);
    assert_eq!(machine.noted("verbs"), "reload-or-restart\n".repeat(4));
    assert_eq!((machine.markers(), machine.apply(&states).await.unwrap().changed), (0, Vec::new()));
}

#[tokio::test]
async fn a_boot_does_for_a_service_and_not_for_a_command() {
    let machine = Machine::new();
    machine.apply(&machine.states("exit 7")).await.unwrap_err();
    fs::write(machine.at("passed"), "").unwrap();
    // A boot empties it.
    fs::remove_dir_all(machine.at("run")).unwrap();
    assert_eq!(machine.apply(&machine.states("exit 7")).await.unwrap().changed, ["command:React"]);
}

/// In the first pass a file does not exist yet, and a configuration is broken.
#[tokio::test]
async fn a_reaction_that_the_change_makes_possible_follows_in_the_next_pass() {
    let machine = Machine::new();
    let (made, checked) = (machine.text("made"), machine.text("checked"));
    fs::write(&checked, "broken\n").unwrap();
    let [make, good] = ["command:Make", "line:Good"].map(str::to_owned);
    let run = format!("echo again >>{}", quote(&machine.text("ran")));
    let only_if = format!("grep -qx good {}", quote(&checked));
    let states = states([
        ("command", "Make", json!({"run": format!("echo a >{}", quote(&made)), "creates": made}), vec![]),
        ("line", "Added", json!({"path": made, "text": "b"}), vec![&make]),
        ("line", "Good", json!({"path": checked, "text": "good", "match": "broken"}), vec![]),
        ("command", "Reload", json!({"run": run, "only_if": only_if}), vec![&good]),
    ]);
    let done = machine.apply(&states).await.unwrap();
    assert_eq!(done.changed, ["command:Make", "line:Good", "line:Added", "command:Reload"]);
    assert_eq!((machine.noted("made"), machine.noted("ran")), ("a\nb\n".to_owned(), "again\n".to_owned()));
    assert_eq!((machine.markers(), machine.apply(&states).await.unwrap().changed), (0, Vec::new()));
}

/// Every kind can be named, whatever of it the host can show afterwards.
#[test]
fn the_marker_of_any_kind_requires_its_reactions() {
    for kind in Kind::ALL {
        let cause = format!("{kind}:x");
        let all = states([
            ("service", "a", json!({"restart_when_changed": [cause]}), vec![]),
            ("service", "b", json!({"reload_when_changed": [cause]}), vec![]),
            ("command", "c", json!({"run": "true"}), vec![&cause]),
            ("reboot", "r", json!({}), vec![&cause]),
            ("file", "/f", json!({"content": ""}), vec![&cause]),
        ]);
        let answers = |owed: bool| {
            let unit = UnitState {
                load: "loaded".to_owned(),
                active: "active".to_owned(),
                sub: "running".to_owned(),
                unit_file: "enabled".to_owned(),
                needs_daemon_reload: false,
                started: None,
                changed: None,
            };
            let probes = all.items().into_iter().flat_map(|item| item.probes);
            let answer = |probe: &Probe| match probe {
                Probe::Owed(_) => Answer::Owed(owed),
                Probe::Unit { .. } => Answer::Unit(unit.clone()),
                Probe::Guard { .. } => Answer::Guard(1),
                Probe::Written { .. } => Answer::Written(None),
                Probe::Sysctl { .. } => Answer::Sysctl(Some("a boot".to_owned())),
                _ => Answer::Path(crate::resource::contract::probe::PathState::Absent),
            };
            Observed(probes.map(|probe| (probe.clone(), answer(&probe))).collect())
        };
        let changes = |owed: bool| -> usize {
            let verdicts = all.verdicts(&answers(owed));
            verdicts.iter().filter(|(_, verdict)| matches!(verdict, Verdict::Change(_))).count()
        };
        assert_eq!((changes(false), changes(true)), (0, 5), "{kind}");
        let until_boot: Vec<bool> =
            all.reactions().iter().map(|Owed { until_boot, .. }| *until_boot).collect();
        assert_eq!(until_boot, [true, true, false, true, false], "{kind}");
    }
}
