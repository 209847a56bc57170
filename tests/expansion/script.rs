//! Plays a script against the simulated cluster, and returns it with what happened.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use metalform::model::api_contract::API_SERVER;
use metalform::model::facts::Cidr;
use metalform::model::role::Role;
use metalform::operation::effect::Action;
use metalform::operation::foreseen_changes::ForeseenChanges;
use metalform::operation::run::RunError;
use metalform::service::foreseen_deployment::ForeseenDeployment;
use tokio::time::Instant;

use metalform::engine::cancel::{self, Cancel, CancelLevel};

use crate::support::attempt::{Attempt, Ended, Recipe, outcome};
use crate::support::cluster::{Cluster, ReachPod};
use crate::support::fault::{Fault, Faults};
use crate::support::foreseen::{deployment, planned, refused};
use crate::support::given;
use crate::support::host::Host;
use crate::support::site::Shared;

/// The script, with the output of each command as it is now.
pub fn play(script: &str) -> String {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let world = Arc::new(Mutex::new(Cluster::default()));
        let mut stage = Stage { world, runs: 0, saved: ForeseenDeployment::default() };
        let mut text = String::new();
        let mut commands = 0;
        for line in script.lines() {
            if let Some(command) = line.strip_prefix("> ") {
                let gap = if commands > 0 { "\n" } else { "" };
                commands += 1;
                let output = stage.play(command).await;
                text.push_str(&format!("{gap}> {command}\n"));
                output.iter().for_each(|line| text.push_str(&format!("{line}\n")));
            } else if commands == 0 {
                stage.prepare(line).await;
                text.push_str(&format!("{line}\n"));
            }
        }
        let violations = &stage.world.lock().unwrap().violations;
        assert!(violations.is_empty(), "{violations:?}\n{text}");
        text
    })
}

struct Stage {
    world: Shared,
    runs: usize,
    /// The plan of the last `plan`.
    saved: ForeseenDeployment,
}

impl Stage {
    /// `host NAME ROLE...` and `deployed NAME...`, before the first command.
    async fn prepare(&mut self, line: &str) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["host", name, roles @ ..] => {
                let roles: BTreeSet<Role> = roles.iter().map(|role| role.parse().unwrap()).collect();
                self.world.lock().unwrap().add_host(name, roles);
            }
            ["deployed", names @ ..] => {
                for name in names {
                    let recipe = if *name == "bootstrap" { Recipe::Bootstrap } else { Recipe::Deploy };
                    let (lines, ended) = self.attempt(recipe, name, no_faults()).await;
                    assert!(matches!(ended, Ended::Held(_)), "{lines:?} {:?}", outcome(&ended));
                }
            }
            _ => assert!(line.is_empty() || line.starts_with('#'), "what is {line:?}?"),
        }
    }

    async fn attempt(&mut self, recipe: Recipe, name: &str, faults: Faults) -> (Vec<String>, Ended) {
        self.interruptible(recipe, name, faults, Cancel::never()).await
    }

    async fn interruptible(
        &mut self,
        recipe: Recipe,
        name: &str,
        faults: Faults,
        cancel: Cancel,
    ) -> (Vec<String>, Ended) {
        self.runs += 1;
        let seen = Mutex::new(Vec::new());
        let (world, number) = (&self.world, self.runs);
        let ended =
            Attempt { world, recipe, name, beside: &[], number, cancel, seen: &seen }.run(faults).await;
        (seen.into_inner().unwrap(), ended)
    }

    async fn play(&mut self, command: &str) -> Vec<String> {
        let (what, how) = command.split_once(", ").unwrap_or((command, ""));
        let words: Vec<&str> = what.split_whitespace().collect();
        match words.as_slice() {
            ["bootstrap"] => {
                let faults = without_api(&self.world, how).unwrap_or_else(|| faults(how));
                self.shown(Recipe::Bootstrap, "bootstrap", faults).await
            }
            ["deploy", name] => {
                if let Some(action) = how.strip_prefix("interrupted during ") {
                    return self.interrupted(name, action).await;
                }
                let faults = match how.split_once(" before ") {
                    Some(("whose etcd crashes", action)) => {
                        meanwhile(self.world.clone(), name, action, |host| host.etcd_crashes = true)
                    }
                    Some(("which loses power", action)) => {
                        meanwhile(self.world.clone(), name, action, |host| host.on = false)
                    }
                    Some(("whose etcd stops", action)) => {
                        meanwhile(self.world.clone(), name, action, |host| host.etcd_works = false)
                    }
                    Some((going, action)) if going.ends_with(" goes off") => {
                        let name = going.trim_end_matches(" goes off");
                        meanwhile(self.world.clone(), name, action, |host| host.on = false)
                    }
                    _ => without_api(&self.world, how).unwrap_or_else(|| faults(how)),
                };
                self.shown(Recipe::Deploy, name, faults).await
            }
            ["plan", name] => match self.foresee(name).await {
                Ok((foreseen, _)) => {
                    self.saved = foreseen;
                    planned(&self.saved)
                }
                Err(error) => outcome(&Ended::Failed(error)),
            },
            ["deploy", name, "--plan"] => match self.foresee(name).await {
                Ok((now, _)) if now != self.saved => refused(&self.saved, &now),
                Ok((_, changes)) => {
                    self.world.lock().unwrap().host(name).foreseen = Some(changes);
                    let lines = self.shown(Recipe::Deploy, name, faults(how)).await;
                    self.world.lock().unwrap().host(name).foreseen = None;
                    lines
                }
                Err(error) => outcome(&Ended::Failed(error)),
            },
            ["deploy", name, "--replace-member"] => {
                self.set_replace_member(&[name], true);
                let lines = self.shown(Recipe::Deploy, name, faults(how)).await;
                self.set_replace_member(&[name], false);
                lines
            }
            ["deploy", name, "--replace"] => {
                self.set_replace_member(&[name], true);
                self.world.lock().unwrap().host(name).replace_machine = true;
                let lines = self.shown(Recipe::Deploy, name, faults(how)).await;
                self.world.lock().unwrap().host(name).replace_machine = false;
                self.set_replace_member(&[name], false);
                lines
            }
            ["remove", name, options @ ..] => {
                let offline = match options {
                    [] => false,
                    ["--offline"] => true,
                    other => panic!("what is {other:?}?"),
                };
                let recipe = Recipe::Remove { offline };
                let faults = match how.split_once(" before ") {
                    Some((going, action)) if going.ends_with(" goes off") => {
                        let gone = going.trim_end_matches(" goes off");
                        meanwhile(self.world.clone(), gone, action, |host| host.on = false)
                    }
                    Some((event, action)) if withdrawn(event).is_some() => {
                        withdrawn_meanwhile(self.world.clone(), withdrawn(event).unwrap(), action)
                    }
                    _ => faults(how),
                };
                self.shown(recipe, name, faults).await
            }
            ["reset", name] => self.shown(Recipe::Reset, name, faults(how)).await,
            ["deploy", one, "and", other] => self.side_by_side(one, other).await,
            ["deploy", one, "and", other, "--replace-member"] => {
                self.set_replace_member(&[one, other], true);
                let lines = self.side_by_side(one, other).await;
                self.set_replace_member(&[one, other], false);
                lines
            }
            ["show"] => {
                let mut cluster = self.world.lock().unwrap();
                cluster.pass(Instant::now());
                cluster.show()
            }
            ["wait", seconds, "s"] => {
                let seconds = seconds.parse().unwrap();
                tokio::time::sleep(Duration::from_secs(seconds)).await;
                Vec::new()
            }
            words => {
                happen(&mut self.world.lock().unwrap(), words);
                Vec::new()
            }
        }
    }

    /// Whether the members of these hosts may be replaced.
    fn set_replace_member(&self, names: &[&str], allowed: bool) {
        let mut cluster = self.world.lock().unwrap();
        for name in names {
            cluster.host(name).replace_member = allowed;
        }
    }

    /// Ctrl-C while an action is performed.
    async fn interrupted(&mut self, name: &str, action: &str) -> Vec<String> {
        let (handle, cancel) = cancel::channel();
        let mut action = Named::new(action);
        let faults: Faults = Box::new(move |next| {
            if action.is(next) {
                handle.cancel(CancelLevel::AfterResource);
            }
            Fault::None
        });
        let (mut lines, ended) = self.interruptible(Recipe::Deploy, name, faults, cancel).await;
        lines.extend(outcome(&ended));
        lines
    }

    async fn foresee(&self, name: &str) -> Result<(ForeseenDeployment, Arc<ForeseenChanges>), RunError> {
        let (cancel, seen) = (Cancel::never(), Mutex::new(Vec::new()));
        // As the dry runs of the command, each with the same token.
        let attempt = Attempt {
            world: &self.world,
            recipe: Recipe::Deploy,
            name,
            beside: &[],
            number: 0,
            cancel,
            seen: &seen,
        };
        let (spec, preview) = attempt.foresee().await;
        let preview = preview?;
        Ok((deployment(&spec, &preview), Arc::new(preview.foreseen)))
    }

    async fn shown(&mut self, recipe: Recipe, name: &str, faults: Faults) -> Vec<String> {
        let (mut lines, ended) = self.attempt(recipe, name, faults).await;
        lines.extend(outcome(&ended));
        lines
    }

    /// Both runs at once; each line begins with its node.
    async fn side_by_side(&mut self, one: &str, other: &str) -> Vec<String> {
        self.runs += 2;
        let (first, second) = (Mutex::new(Vec::new()), Mutex::new(Vec::new()));
        let beside: &[&str] = &[one, other];
        let attempt = |name, number, seen| {
            let (world, recipe, cancel) = (&self.world, Recipe::Deploy, Cancel::never());
            Attempt { world, recipe, name, beside, number, cancel, seen }.run(no_faults())
        };
        let (ended, also) =
            tokio::join!(attempt(one, self.runs - 1, &first), attempt(other, self.runs, &second));
        let mut lines = Vec::new();
        for (name, shown, ended) in [(one, first, ended), (other, second, also)] {
            let shown = shown.into_inner().unwrap();
            lines.extend(shown.iter().chain(&outcome(&ended)).map(|line| format!("{name} | {line}")));
        }
        lines
    }
}

pub fn no_faults() -> Faults {
    Box::new(|_| Fault::None)
}

/// An action that a script names: one that never comes is a fault of the script.
pub struct Named {
    action: String,
    came: bool,
}

impl Named {
    pub fn new(action: &str) -> Self {
        Self { action: action.to_owned(), came: false }
    }

    pub fn is(&mut self, next: &Action) -> bool {
        let is = next.sentence().starts_with(&self.action);
        self.came |= is;
        is
    }
}

impl Drop for Named {
    fn drop(&mut self) {
        assert!(self.came || std::thread::panicking(), "no action begins with {:?}", self.action);
    }
}

/// Something happens to a host just before an action.
fn meanwhile(world: Shared, name: &str, action: &str, happens: fn(&mut Host)) -> Faults {
    let (name, mut action) = (name.to_owned(), Named::new(action));
    Box::new(move |next| {
        if action.is(next) {
            happens(world.lock().unwrap().host(&name));
        }
        Fault::None
    })
}

/// The node of which `the API server of NODE is withdrawn`.
pub fn withdrawn(event: &str) -> Option<&str> {
    event.strip_prefix("the API server of ")?.strip_suffix(" is withdrawn")
}

/// Another run withdraws the API server of a node just before an action.
fn withdrawn_meanwhile(world: Shared, name: &str, action: &str) -> Faults {
    let (name, mut action) = (name.to_owned(), Named::new(action));
    Box::new(move |next| {
        if action.is(next) {
            world.lock().unwrap().nodes.get_mut(&name).unwrap().annotations.remove(API_SERVER);
        }
        Fault::None
    })
}

/// `with the API away for SECONDS s before ACTION`.
pub fn outage(how: &str) -> Option<(Duration, &str)> {
    let (seconds, action) = how.strip_prefix("with the API away for ")?.split_once(" s before ")?;
    Some((Duration::from_secs(seconds.parse().unwrap()), action))
}

/// The API is away for so long from just before an action on.
fn without_api(world: &Shared, how: &str) -> Option<Faults> {
    let (time, action) = outage(how)?;
    let (world, mut action) = (world.clone(), Named::new(action));
    Some(Box::new(move |next| {
        if action.is(next) {
            world.lock().unwrap().away_until = Some(Instant::now() + time);
        }
        Fault::None
    }))
}

/// `killed before ACTION`, `killed during`, `killed after`, `failing before` and `losing the answer to` it: at its
/// first time. The action is named by the beginning of its sentence.
pub fn faults(how: &str) -> Faults {
    let known = [
        ("killed before ", Fault::KilledBefore),
        ("killed during ", Fault::KilledMidway),
        ("killed after ", Fault::KilledAfter),
        ("failing before ", Fault::FailsBefore),
        ("losing the answer to ", Fault::FailsAfter),
    ];
    if how.is_empty() {
        return no_faults();
    }
    let (action, fault) = known
        .iter()
        .find_map(|(words, fault)| Some((how.strip_prefix(words)?.to_owned(), *fault)))
        .unwrap_or_else(|| panic!("what is {how:?}?"));
    let (mut pending, mut action) = (Some(fault), Named::new(&action));
    Box::new(move |next| if action.is(next) { pending.take().unwrap_or(Fault::None) } else { Fault::None })
}

/// What happens to machines, without anybody asking for it.
fn happen(cluster: &mut Cluster, words: &[&str]) {
    let foreign = "AUTHORITY OF ANOTHER CLUSTER";
    match words {
        ["power-off", name] => cluster.host(name).on = false,
        ["power-on", name] => cluster.host(name).on = true,
        ["cut", name] => cluster.host(name).reached = false,
        ["heal", name] => cluster.host(name).reached = true,
        [name, "also", "has", "the", "address", address, "on", interface] => {
            let cidr = Cidr { address: address.parse().unwrap(), prefix: 32 };
            cluster.host(name).facts.addresses.insert((*interface).to_owned(), vec![cidr]);
        }
        ["the", "control-plane", "address", "of", name, "is", address] => {
            let cidr = Cidr { address: address.parse().unwrap(), prefix: 24 };
            cluster.host(name).facts.addresses.insert("eth0".to_owned(), vec![cidr]);
        }
        ["the", "disk", "of", name, "is", times, "times", "slower"] => {
            cluster.host(name).slowness = times.parse().unwrap();
        }
        ["the", "disk", "of", name, "is", "full"] => cluster.host(name).full = true,
        ["the", "disk", "of", name, "is", "not", "full"] => cluster.host(name).full = false,
        ["etcd", "on", name, "cannot", "start"] => cluster.host(name).etcd_works = false,
        ["etcd", "on", name, "can", "start"] => {
            let host = cluster.host(name);
            (host.etcd_works, host.etcd_crashes) = (true, false);
        }
        ["the", "certificate", "of", "the", "kubelet", "of", name, "expires"] => {
            cluster.host(name).joined = false;
        }
        ["the", "manifest", "of", pod, "on", name, "is", "lost"] => {
            cluster.host(name).things.remove(&format!("static_pod:{pod}"));
        }
        ["the", "data", "of", "etcd", "on", name, "is", "lost"] => drop(cluster.host(name).lose_data()),
        ["the", "disk", "of", "etcd", "on", name, "is", "not", "mounted"] => {
            let host = cluster.host(name);
            let data = host.lose_data().unwrap();
            host.things.insert("unmounted".to_owned(), data.to_string());
        }
        ["the", "disk", "of", "etcd", "on", name, "is", "mounted"] => {
            let host = cluster.host(name);
            let data = host.things.remove("unmounted").unwrap();
            host.gain_data(data.parse().unwrap(), Instant::now());
        }
        ["the", "roles", "of", name, "are", roles @ ..] => {
            cluster.host(name).change_roles(roles.iter().map(|role| role.parse().unwrap()).collect());
        }
        ["another", "machine", "takes", "the", "place", "of", name] => {
            cluster.host(name).reinstall();
            cluster.host(name).on = true;
        }
        ["the", "address", "of", name, "leads", "to", other] => {
            let other = cluster.host(other).facts.clone();
            let facts = &mut cluster.host(name).facts;
            (facts.hostname, facts.machine_id) = (other.hostname, other.machine_id);
        }
        ["another", "machine", "takes", "the", "place", "of", name, "at", "another", "address"] => {
            let number = cluster.hosts.len() + 1;
            let host = cluster.host(name);
            host.reinstall();
            host.move_to(number);
            host.on = true;
        }
        ["the", "kubelet", "of", name, "claims", "the", "machine", "of", other] => {
            let machine_id = cluster.host(other).facts.machine_id.clone();
            cluster.nodes.get_mut(*name).unwrap().machine_id = machine_id;
        }
        ["the", "workload", "address", "of", name, "is", "that", "of", other] => {
            let workload = cluster.host(other).facts.addresses["eth1"].clone();
            cluster.host(name).facts.addresses.insert("eth1".to_owned(), workload);
        }
        ["the", "configuration", "changes"] => cluster.configuration += 1,
        ["the", "configuration", "changes", "so", "that", "no", "API", "server", "starts"] => {
            cluster.configuration += 1;
            cluster.broken = Some(cluster.configuration);
        }
        ["the", "API", "server", "of", name, "is", "recorded", "again"] => {
            let node = cluster.nodes.get_mut(*name).unwrap();
            node.annotations.insert(API_SERVER.to_owned(), "ready".to_owned());
        }
        ["pod", pod, "runs", "on", node] => cluster.run_pod(pod, node, true),
        ["pod", pod, "runs", "on", node, "without", "a", "controller"] => cluster.run_pod(pod, node, false),
        ["a", "budget", "keeps", pod] => cluster.pods.get_mut(*pod).unwrap().kept = true,
        ["no", "budget", "keeps", pod] => cluster.pods.get_mut(*pod).unwrap().kept = false,
        ["an", "administrator", "cordons", node] => {
            cluster.nodes.get_mut(*node).unwrap().unschedulable = true
        }
        ["the", "Node", name, "is", "deleted"] => drop(cluster.nodes.remove(*name)),
        ["the", "Node", name, "is", "applied", "again"] => {
            cluster.nodes.entry((*name).to_owned()).or_default();
        }
        ["the", "kubelet", "of", name, "stops"] => {
            cluster.host(name).things.remove("service:kubelet");
        }
        [name, "belongs", "to", "another", "cluster"] => {
            cluster.host(name).found.authority = Some(foreign.to_owned());
        }
        [name, "held", "a", "member", "that", "was", "removed"] => {
            let host = cluster.host(name);
            host.found.authority = Some(given::AUTHORITY.to_owned());
            host.etcd_data = Some(99);
        }
        [name, "is", "unfit"] => {
            let host = cluster.host(name);
            host.facts.hostname = "localhost".to_owned();
            host.facts.memory = 1 << 30;
            host.facts.disk_free = 1 << 30;
            host.found.packages.insert("docker.io".to_owned());
            host.found.busy_ports.insert(7443);
        }
        ["the", "proof's", "pod", "of", name, "has", "ended"] => {
            cluster.reach_pods.insert((*name).to_owned(), ReachPod::Ended);
        }
        ["the", "API", "is", "away", "for", seconds, "s", "after", "each", "change", "of", "members"] => {
            cluster.away_after_change = Duration::from_secs(seconds.parse().unwrap());
        }
        ["the", "API", "is", "away", "for", seconds, "s"] => {
            let seconds = Duration::from_secs(seconds.parse().unwrap());
            cluster.away_until = Some(Instant::now() + seconds);
        }
        other => panic!("what is {other:?}?"),
    }
}
