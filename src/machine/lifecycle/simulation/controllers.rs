//! The controllers of Machines and Hosts: one step of a plan.

use jiff::Timestamp;

use super::Defect;
use super::api::{Api, Objects};
use super::hosts::{Metals, Worker};
use crate::kube_api::eviction::DrainPod;
use crate::kube_api::pod_name::PodName;
use crate::machine::api::host_state::HostState;
use crate::machine::api::machine_status::MachineError;
use crate::machine::host_choice::{self, HostRequirement, PoolHost, PoolState, WaitingMachine};
use crate::machine::host_job::{HostJob, HostWork, JobFence};
use crate::machine::host_state::{self, ClaimView, Claimant, HostScene, HostStep, HostView};
use crate::machine::job_queue::JobQueue;
use crate::machine::join_deadline::FAILED_JOINS;
use crate::machine::lifecycle::{
    self, LifecycleLimits, MachineConditionKind, MachineScene, MachineStep, NodeSettingsChange,
};
use crate::model::name::HostName;

pub(super) struct Shared<'a> {
    pub(super) api: &'a mut Api,
    pub(super) metals: &'a mut Metals,
    /// Machines whose pods must not be evicted now.
    pub(super) budget_blocks: bool,
    /// Machines that did not join in time.
    pub(super) failed: &'a mut Vec<String>,
    pub(super) now: Timestamp,
    pub(super) defect: Option<Defect>,
    /// The earliest time at which a plan is due.
    pub(super) wake: &'a mut Option<Timestamp>,
    /// Whether the Lease is another's by now.
    pub(super) former: bool,
    /// How many writes come between what is read from the API server and what is written after it.
    pub(super) late: usize,
}

fn claimed<'a>(objects: &'a Objects, uid: &str) -> Option<&'a HostView> {
    let is_own = |host: &&HostView| host.claim.as_ref().is_some_and(|claim| claim.machine_uid == uid);
    objects.hosts.values().find(is_own)
}

impl Shared<'_> {
    fn work(&self, host: &HostName) -> HostWork {
        let mut orphans = self.metals.orphans.iter();
        let worker = if self.former {
            orphans.find(|worker| worker.fence.host == *host)
        } else {
            self.metals.workers.get(host)
        };
        match worker {
            Some(Worker { job, fence }) => {
                HostWork::Running { job: *job, token: fence.token, phase: String::new() }
            }
            None => HostWork::Idle,
        }
    }

    fn machine_scene(&self, objects: &Objects, uid: &str) -> Option<MachineScene> {
        let machine = objects.machines.get(uid)?.0.clone();
        let host = claimed(objects, uid).or_else(|| objects.hosts.get(machine.noted.as_ref()?)).cloned();
        let choice = choices(objects).remove(uid);
        let node = host.as_ref().and_then(|host| objects.nodes.get(&host.name)).cloned();
        let work = host.as_ref().map_or(HostWork::Idle, |host| self.work(&host.name));
        let name = PodName { namespace: "a".to_owned(), name: "web".to_owned() };
        let pod = DrainPod {
            name,
            terminating: false,
            managed: true,
            blocked: self.budget_blocks.then(|| "budget".to_owned()),
        };
        // The pods of a cordoned node leave as soon as their budget allows it.
        let pods = Some(if self.budget_blocks { vec![pod] } else { Vec::new() });
        let limits = LifecycleLimits::DEFAULT;
        Some(MachineScene { machine, host, choice, node, work, pods, elsewhere: true, skew: None, limits })
    }

    /// Whether anything was written.
    pub(super) fn reconcile_machine(&mut self, cached: &Objects, uid: &str) -> Result<bool, String> {
        let Some(scene) = self.machine_scene(cached, uid) else { return Ok(false) };
        let plan = lifecycle::next(&scene, self.now);
        let read_live = plan.lost || plan.step.as_ref().is_some_and(MachineStep::needs_live_read);
        let (objects, plan) = if read_live && self.defect != Some(Defect::LiveNotRead) {
            let live = self.api.read(self.late);
            let Some(scene) = self.machine_scene(&live, uid) else { return Ok(false) };
            let again = lifecycle::next(&scene, self.now);
            if again.step != plan.step || again.lost != plan.lost {
                return Ok(false);
            }
            (live, again)
        } else {
            (cached.clone(), plan)
        };
        let version = |objects: &Objects| objects.machines.get(uid).map(|(_, version)| *version);
        let is_current = version(&objects) == version(&self.api.now);
        // Only writes to the Machine are compared with it.
        let elsewhere = matches!(
            plan.step,
            Some(
                MachineStep::ClaimHost { .. }
                    | MachineStep::Begin(..)
                    | MachineStep::Cancel(_)
                    | MachineStep::ChangeNode(_)
                    | MachineStep::Cordon
                    | MachineStep::DeletePods(_)
            )
        );
        if !is_current && !elsewhere {
            return Ok(false);
        }
        if let Some(wake) = plan.wake {
            *self.wake = Some(self.wake.map_or(wake, |earlier| earlier.min(wake)));
        }
        if plan.lost {
            let now = self.now;
            self.api.change_machine(uid, |machine| machine.deleting_since = Some(now));
            return Ok(true);
        }
        let linked = plan.conditions.iter().find(|one| one.kind == MachineConditionKind::NodeLinked);
        let linked = linked.map(|condition| condition.status == Some(true));
        let written = match plan.step {
            Some(step) => self.machine_step(&objects, uid, step)?,
            None => false,
        };
        Ok((is_current && self.note_link(uid, linked)) || written)
    }

    /// The transition time of the condition `NodeLinked`.
    fn note_link(&mut self, uid: &str, linked: Option<bool>) -> bool {
        let Some((machine, _)) = self.api.now.machines.get(uid) else { return false };
        let since = match (linked, machine.unlinked_since) {
            (Some(false), None) => Some(self.now),
            (Some(true), Some(_)) => None,
            _ => return false,
        };
        self.api.change_machine(uid, |machine| machine.unlinked_since = since);
        true
    }

    fn machine_step(&mut self, objects: &Objects, uid: &str, step: MachineStep) -> Result<bool, String> {
        let now = self.now;
        let host = claimed(objects, uid).map(|host| host.name.clone());
        match step {
            MachineStep::AddFinalizers => self.api.change_machine(uid, |machine| machine.finalizers = true),
            MachineStep::NoteHost(host) => self.api.change_machine(uid, |machine| machine.noted = Some(host)),
            MachineStep::ForgetHost(_) => self.api.change_machine(uid, |machine| machine.noted = None),
            MachineStep::ClaimHost { host, version, token } => {
                let live = self.api.now.hosts.get(&host);
                if live.is_none_or(|live| live.version != version) {
                    return Ok(false);
                }
                let (machine_uid, machine) = (uid.to_owned(), uid.to_owned());
                let claim = ClaimView { machine_uid, machine, since: now, queue: JobQueue::default() };
                self.api.change_host(&host, |host| {
                    (host.claim, host.state, host.last_token) = (Some(claim), HostState::Claimed, token);
                    host.done.clear();
                    host.failure = None;
                });
            }
            MachineStep::Begin(job, fence) => return Ok(self.begin(job, fence)),
            MachineStep::Cancel(_) => return Ok(self.cancel(host.as_ref())),
            MachineStep::SetProviderId(id) => {
                let present =
                    self.api.now.machines.get(uid).and_then(|(machine, _)| machine.provider_id.clone());
                if present.is_some_and(|present| present != id) {
                    return Err(format!("the provider ID of {uid} is set twice"));
                }
                self.api.change_machine(uid, |machine| machine.provider_id = Some(id));
            }
            MachineStep::LinkNode => self.api.change_machine(uid, |machine| machine.joined = true),
            MachineStep::ChangeNode(change) => self.change_node(uid, host.as_ref(), change),
            MachineStep::Delete(error) => {
                assert_eq!(error, MachineError::JoinClusterTimeoutError);
                self.failed.push(uid.to_owned());
                self.api.change_machine(uid, |machine| machine.deleting_since = Some(now));
            }
            MachineStep::Cordon => self.api.change_nodes(|nodes| {
                if let Some(node) = host.and_then(|host| nodes.get_mut(&host)) {
                    node.unschedulable = true;
                }
            }),
            MachineStep::AnnounceDeletion(_) => {
                self.api.change_machine(uid, |machine| machine.deletion_announced = Some(now));
            }
            MachineStep::DeletePods(_) => return Ok(true),
            MachineStep::ListPods | MachineStep::Evict(_) => return Err("no pod can be evicted".to_owned()),
            MachineStep::MarkDrained(_) => self.api.change_machine(uid, |machine| machine.drained = true),
            MachineStep::RemoveFinalizers => {
                self.api.now.machines.remove(uid);
                self.api.written();
            }
        }
        Ok(true)
    }

    fn change_node(&mut self, uid: &str, host: Option<&HostName>, change: NodeSettingsChange) {
        self.api.change_nodes(|nodes| {
            let Some(node) = host.and_then(|host| nodes.get_mut(host)) else { return };
            // With its UID as precondition.
            let is_own = node.provider_id.as_ref().is_some_and(|id| id.ends_with(&format!("/{uid}")));
            if !is_own {
                return;
            }
            for (present, changes) in
                [(&mut node.labels, change.labels), (&mut node.annotations, change.annotations)]
            {
                for (key, value) in changes {
                    match value {
                        Some(value) => present.insert(key, value),
                        None => present.remove(&key),
                    };
                }
            }
            if let Some(taints) = change.taints {
                node.taints = taints;
            }
        });
    }

    /// One worker a host and leader.
    fn begin(&mut self, job: HostJob, fence: JobFence) -> bool {
        if self.former {
            self.metals.orphans.push(Worker { job, fence });
            return true;
        }
        if self.metals.workers.contains_key(&fence.host) {
            return false;
        }
        self.metals.workers.insert(fence.host.clone(), Worker { job, fence });
        true
    }

    fn cancel(&mut self, host: Option<&HostName>) -> bool {
        if self.former {
            self.metals.orphans.retain(|worker| Some(&worker.fence.host) != host);
            return true;
        }
        host.is_some_and(|host| self.metals.workers.remove(host).is_some())
    }

    fn host_scene(&self, objects: &Objects, name: &HostName) -> Option<HostScene> {
        let mut host = objects.hosts.get(name)?.clone();
        if self.defect == Some(Defect::SilentIsOff) {
            host.hook_reports_off = host.silent_since.is_some();
        }
        let uid = host.claim.as_ref().map(|claim| claim.machine_uid.clone()).unwrap_or_default();
        let claimant = match objects.machines.get(&uid) {
            Some((machine, _)) if machine.noted.as_ref() == Some(name) => Claimant::Present {
                deleting: machine.deleting_since.is_some(),
                drained: machine.drained,
                joined: machine.joined,
                join_failed: self.failed.contains(&uid),
            },
            _ => Claimant::Gone,
        };
        let id = Some(format!("metalform://{name}/{uid}"));
        let node_exists = objects.nodes.get(name).is_some_and(|node| node.provider_id == id);
        let work = self.work(name);
        Some(HostScene { host, claimant, node_exists, conflict: None, work, failed_joins: FAILED_JOINS })
    }

    /// Whether anything was written.
    pub(super) fn reconcile_host(&mut self, cached: &Objects, name: &HostName) -> Result<bool, String> {
        let Some(scene) = self.host_scene(cached, name) else { return Ok(false) };
        let mut scene = scene;
        let mut plan = host_state::next(&scene, self.now);
        let live_read = plan.step.as_ref().is_some_and(HostStep::needs_live_read);
        if live_read && self.defect != Some(Defect::LiveNotRead) {
            let live = self.api.read(self.late);
            let Some(again) = self.host_scene(&live, name) else { return Ok(false) };
            scene = again;
            let again = host_state::next(&scene, self.now);
            if again.step != plan.step {
                return Ok(false);
            }
            plan = again;
        }
        if let Some(wake) = plan.wake {
            *self.wake = Some(self.wake.map_or(wake, |earlier| earlier.min(wake)));
        }
        let Some(step) = plan.step else { return Ok(false) };
        if self.api.now.hosts.get(name).is_none_or(|live| live.version != scene.host.version) {
            return Ok(false);
        }
        self.host_step(name, step)
    }

    fn host_step(&mut self, name: &HostName, step: HostStep) -> Result<bool, String> {
        match step {
            HostStep::AddFinalizer => self.api.change_host(name, |host| host.finalizer = true),
            HostStep::RemoveFinalizer => {
                self.api.now.hosts.remove(name);
                self.api.written();
            }
            HostStep::ClearReleaseOrder => self.api.change_host(name, |host| host.orders.release = false),
            HostStep::Enter(state) => self.api.change_host(name, |host| {
                host.state = state;
                if matches!(state, HostState::Unknown | HostState::Inspecting) {
                    host.done.clear();
                    host.failure = None;
                }
            }),
            HostStep::BeginReset { token, failures } => {
                let raised = self.defect != Some(Defect::TokenNotRaised);
                self.api.change_host(name, |host| {
                    (host.state, host.failures) = (HostState::Resetting, failures);
                    host.last_token = if raised { token } else { host.last_token };
                    host.done.clear();
                    host.failure = None;
                });
            }
            HostStep::Begin(job, fence) => return Ok(self.begin(job, fence)),
            HostStep::Cancel(_) => return Ok(self.cancel(Some(name))),
            HostStep::DeleteNode(id) => {
                if self.metals.runs(name, &id.machine_uid) {
                    return Err(format!("the node of {name} is deleted, and its kubelet runs"));
                }
                let id = Some(id.to_string());
                self.api.change_nodes(|nodes| nodes.retain(|_, node| node.provider_id != id));
            }
            HostStep::Release { state, failures } => self.api.change_host(name, |host| {
                (host.state, host.failures, host.claim) = (state, failures, None);
            }),
            HostStep::Quarantine => {
                self.api.change_host(name, |host| host.state = HostState::Quarantined);
            }
        }
        Ok(true)
    }
}

fn choices(objects: &Objects) -> std::collections::BTreeMap<String, host_choice::HostChoice> {
    let waiting = objects
        .machines
        .iter()
        .filter(|(uid, (machine, _))| machine.deleting_since.is_none() && claimed(objects, uid).is_none());
    let waiting = waiting.map(|(uid, (machine, _))| WaitingMachine {
        uid: uid.clone(),
        name: uid.clone(),
        created: Timestamp::UNIX_EPOCH,
        group: String::new(),
        noted: machine.noted.clone(),
        requirement: HostRequirement::default(),
    });
    let hosts = objects.hosts.values().map(|host| PoolHost {
        name: host.name.clone(),
        state: match host.state {
            _ if host.is_free() => PoolState::Available,
            HostState::Quarantined => PoolState::Quarantined,
            _ => PoolState::Busy,
        },
        claim: host.claim.as_ref().map(|claim| claim.machine_uid.clone()),
        labels: std::collections::BTreeMap::new(),
        distribution: None,
        architecture: None,
        failure_domain: None,
        last_failure: None,
    });
    let hosts: Vec<PoolHost> = hosts.collect();
    host_choice::choose(&waiting.collect::<Vec<_>>(), &hosts.iter().collect::<Vec<_>>(), |_| "")
}
