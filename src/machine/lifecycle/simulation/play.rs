//! One seed: faults first, then none.

use jiff::{SignedDuration, Timestamp};

use super::Defect;
use super::api::{Api, Cache};
use super::controllers::Shared;
use super::hosts::{Metal, Metals};
use super::people::{disturb, release, settle};
use crate::machine::api::host_state::HostState;
use crate::machine::dice::Dice;
use crate::machine::host_state::{HostOrders, HostView};
use crate::machine::lifecycle::{MachineView, NodeSettings};
use crate::machine::seeded_play::SeededPlay;
use crate::model::name::HostName;

/// Steps in which everything may happen.
const STEPS: usize = 500;
/// Rounds within which all ends that is left alone.
const ROUNDS: usize = 600;

pub(super) struct Play {
    api: Api,
    metals: Metals,
    dice: Dice,
    now: Timestamp,
    defect: Option<Defect>,
    /// How many Machines shall exist.
    replicas: usize,
    created: usize,
    failed: Vec<String>,
    /// Of Machines and of Hosts.
    caches: [Cache; 2],
    /// Those of a leader that has lost its Lease, and does not know it.
    former_caches: [Cache; 2],
    budget_blocks: bool,
    /// No fault from here on.
    settled: bool,
    wake: Option<Timestamp>,
    story: Vec<String>,
}

impl SeededPlay for Play {
    fn run(&mut self) -> Result<(), String> {
        for _ in 0..STEPS {
            self.step()?;
            self.check()?;
        }
        settle(&mut self.api, &mut self.metals);
        (self.budget_blocks, self.settled, self.metals.orphans) = (false, true, Vec::new());
        self.story.push("settled".to_owned());
        self.ends()
    }

    fn story(&self) -> String {
        self.story.join("\n")
    }
}

impl Play {
    pub(super) fn new(seed: u64, defect: Option<Defect>) -> Self {
        let mut dice = Dice::new(seed);
        let (mut api, mut metals) = (Api::default(), Metals { defect, ..Metals::default() });
        for index in 0..dice.roll(5) + 1 {
            let name: HostName = format!("h{index}").parse().unwrap();
            // Some are not what a pool expects.
            let dirty = dice.one_in(8);
            metals.metals.insert(name.clone(), Metal { on: true, dirty, ..Metal::default() });
            api.now.hosts.insert(name.clone(), host(name));
        }
        api.written();
        let replicas = dice.roll(metals.metals.len() + 1) + 1;
        Self {
            story: vec![format!("{} hosts, {replicas} machines", metals.metals.len())],
            api,
            metals,
            dice,
            now: Timestamp::from_second(1_000_000).unwrap(),
            defect,
            replicas,
            created: 0,
            failed: Vec::new(),
            caches: [Cache::default(); 2],
            former_caches: [Cache::default(); 2],
            budget_blocks: false,
            settled: false,
            wake: None,
        }
    }

    fn step(&mut self) -> Result<(), String> {
        let longest = if self.dice.one_in(30) { 4_000 } else { 20 };
        self.now += SignedDuration::from_secs(i64::try_from(self.dice.roll(longest)).unwrap());
        match self.dice.roll(20) {
            0..7 => {
                let uids: Vec<String> = self.api.now.machines.keys().cloned().collect();
                let former = self.advance(0);
                if let Some(uid) = self.dice.pick(&uids) {
                    self.machine(&uid, former)?;
                }
            }
            7..14 => {
                let names: Vec<HostName> = self.metals.metals.keys().cloned().collect();
                let former = self.advance(1);
                if let Some(name) = self.dice.pick(&names) {
                    self.host(&name, former)?;
                }
            }
            14..17 => {
                self.work(false)?;
            }
            17 => {
                self.probe();
                self.metals.kubelets(&mut self.api);
                self.replace();
            }
            18 => {
                let happened = disturb(&mut self.api, &mut self.metals, &mut self.dice, self.now);
                self.story.extend(happened);
            }
            _ if self.dice.one_in(3) => {
                self.story.push("the leader is killed".to_owned());
                // Its workers may not have noticed yet.
                self.metals.orphans.extend(std::mem::take(&mut self.metals.workers).into_values());
            }
            _ => self.budget_blocks = self.dice.one_in(3),
        }
        Ok(())
    }

    fn check(&mut self) -> Result<(), String> {
        let shown = self.shown();
        if self.story.last() != Some(&shown) {
            self.story.push(shown);
        }
        for uid in self.api.now.machines.keys() {
            let claims = self.api.now.hosts.values().filter_map(|host| host.claim.as_ref());
            if claims.filter(|claim| claim.machine_uid == *uid).count() > 1 {
                return Err(format!("{uid} has two hosts"));
            }
        }
        for host in self.api.now.hosts.values() {
            let metal = &self.metals.metals[&host.name];
            if host.state == HostState::Available && (metal.dirty || metal.kubelet.is_some()) {
                return Err(format!("{} is available and not clean", host.name));
            }
        }
        Ok(())
    }

    /// Whose turn it is: the leader's, or that of a former one, whose cache seldom becomes newer.
    fn advance(&mut self, kind: usize) -> bool {
        let former = self.dice.one_in(4);
        if !former {
            self.caches[kind].advance(&self.api, &mut self.dice);
        } else if self.dice.one_in(12) {
            self.former_caches[kind].advance(&self.api, &mut self.dice);
        }
        former
    }

    fn shared(&mut self, former: bool) -> Shared<'_> {
        let late = if self.settled || !self.dice.one_in(3) { 0 } else { self.dice.roll(6) };
        Shared {
            api: &mut self.api,
            metals: &mut self.metals,
            budget_blocks: self.budget_blocks,
            failed: &mut self.failed,
            now: self.now,
            defect: self.defect,
            wake: &mut self.wake,
            former,
            late,
        }
    }

    fn machine(&mut self, uid: &str, former: bool) -> Result<bool, String> {
        let caches = if former { &self.former_caches } else { &self.caches };
        let cached = self.api.seen_by(caches[0]);
        self.shared(former).reconcile_machine(&cached, uid)
    }

    fn host(&mut self, name: &HostName, former: bool) -> Result<bool, String> {
        let caches = if former { &self.former_caches } else { &self.caches };
        let cached = self.api.seen_by(caches[1]);
        self.shared(former).reconcile_host(&cached, name)
    }

    /// Workers end.
    fn work(&mut self, all: bool) -> Result<bool, String> {
        let mut ended = Vec::new();
        for index in (0..self.metals.orphans.len()).rev() {
            if all || self.dice.one_in(3) {
                ended.push(self.metals.orphans.remove(index));
            }
        }
        for name in self.metals.workers.keys().cloned().collect::<Vec<_>>() {
            if all || self.dice.one_in(2) {
                ended.extend(self.metals.workers.remove(&name));
            }
        }
        for worker in &ended {
            self.metals.work(&mut self.api, &mut self.dice, worker, self.now)?;
            self.story
                .push(format!("{} of {} with token {}", worker.job, worker.fence.host, worker.fence.token));
        }
        Ok(!ended.is_empty())
    }

    /// Which hosts answer.
    fn probe(&mut self) -> bool {
        let mut written = false;
        for name in self.metals.metals.keys() {
            let answers = self.metals.answers(name);
            let silent = self.api.now.hosts[name].silent_since;
            if answers == silent.is_some() {
                let since = (!answers).then_some(self.now);
                self.api.change_host(name, |host| host.silent_since = since);
                written = true;
            }
        }
        written
    }

    /// The machine set: as many Machines as there shall be.
    fn replace(&mut self) -> bool {
        let live = self.api.now.machines.values().filter(|(machine, _)| machine.deleting_since.is_none());
        let missing = self.replicas.saturating_sub(live.count());
        for _ in 0..missing {
            self.created += 1;
            let uid = format!("m{}", self.created);
            self.api.now.machines.insert(uid.clone(), (machine(&uid), 0));
            self.api.written();
        }
        missing > 0
    }

    fn ends(&mut self) -> Result<(), String> {
        let mut quiet = 0;
        for _ in 0..ROUNDS {
            let written = self.round()?;
            quiet = if written || self.wake.is_some() { 0 } else { quiet + 1 };
            if quiet == 5 {
                return self.reached();
            }
            self.now += SignedDuration::from_secs(30);
            if let Some(wake) = self.wake.filter(|_| !written) {
                self.now = self.now.max(wake);
            }
        }
        Err(format!("does not end in {ROUNDS} rounds: {}", self.shown()))
    }

    /// Everything once, with caches up to date.
    fn round(&mut self) -> Result<bool, String> {
        self.wake = None;
        let mut written = self.probe();
        written |= self.metals.kubelets(&mut self.api);
        written |= self.replace();
        written |= release(&mut self.api);
        written |= self.work(true)?;
        for name in self.metals.metals.keys().cloned().collect::<Vec<_>>() {
            self.caches[1].catch_up(&self.api);
            written |= self.host(&name, false)?;
            self.check()?;
        }
        for uid in self.api.now.machines.keys().cloned().collect::<Vec<_>>() {
            self.caches[0].catch_up(&self.api);
            written |= self.machine(&uid, false)?;
            self.check()?;
        }
        Ok(written)
    }

    fn reached(&self) -> Result<(), String> {
        let expected = self.replicas.min(self.metals.metals.len());
        let in_use = self.api.now.hosts.values().filter(|host| host.state == HostState::InUse).count();
        let ready = self.api.now.nodes.values().filter(|node| node.ready && node.taints.is_empty()).count();
        let deleting = self.api.now.machines.values().any(|(machine, _)| machine.deleting_since.is_some());
        if in_use == expected && ready == expected && !deleting {
            return Ok(());
        }
        Err(format!("ends before its goal: {}", self.shown()))
    }

    fn shown(&self) -> String {
        let hosts = self.api.now.hosts.values().map(|host| {
            let claim = host.claim.as_ref().map_or("-", |claim| claim.machine_uid.as_str());
            let silent = if host.silent_since.is_some() { " silent" } else { "" };
            let node = if self.api.now.nodes.contains_key(&host.name) { " node" } else { "" };
            format!("{} {} {claim}{silent}{node}", host.name, host.state)
        });
        let machines = self.api.now.machines.iter().map(|(uid, (machine, _))| {
            let noted = machine.noted.as_ref().map_or("-", HostName::as_str);
            let deleting = if machine.deleting_since.is_some() { " deleting" } else { "" };
            let drained = if machine.drained { " drained" } else { "" };
            let joined = if machine.joined { " joined" } else { "" };
            format!("{uid}@{noted}{joined}{deleting}{drained}")
        });
        hosts.chain(machines).collect::<Vec<_>>().join(" | ")
    }
}

fn host(name: HostName) -> HostView {
    HostView {
        name,
        version: String::new(),
        state: HostState::Unknown,
        claim: None,
        last_token: 0,
        failures: 0,
        finalizer: false,
        deleting: false,
        done: std::collections::BTreeSet::new(),
        failure: None,
        residue: Vec::new(),
        silent_since: None,
        orders: HostOrders::default(),
        has_power_hook: false,
        hook_reports_off: false,
    }
}

fn machine(uid: &str) -> MachineView {
    MachineView {
        uid: uid.to_owned(),
        deleting_since: None,
        finalizers: false,
        owned: true,
        noted: None,
        provider_id: None,
        joined: false,
        unlinked_since: None,
        drained: false,
        deletion_announced: None,
        upgrades_packages: uid.ends_with('1'),
        drain_timeout: None,
        settings: NodeSettings::default().of_machine("kube-system", uid, uid),
    }
}
