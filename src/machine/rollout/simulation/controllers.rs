//! The controllers, each on its own caches.

use jiff::Timestamp;

use super::Defect;
use super::api::{Api, HostObject, MachineObject, SetObject, count};
use super::limits::Limits;
use crate::machine::dice::Dice;
use crate::machine::host_choice::{
    HostChoice, HostRequirement, PoolHost, PoolState, WaitingMachine, choose, free_hosts,
};
use crate::machine::machine_set::{self, DeleteOrder, MachineSetGoal};
use crate::machine::observed_machine::{MachineStage, ObservedMachine};
use crate::machine::rollout::{ObservedSet, RolloutGoal, RolloutPlan, RolloutProgress, RolloutWorld, plan};

/// How far the cache of a controller is.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Cache {
    pub(super) sets: usize,
    pub(super) machines: usize,
    pub(super) hosts: usize,
}

impl Cache {
    /// Some events arrive; each kind is a stream of its own.
    pub(super) fn advance(&mut self, api: &Api, dice: &mut Dice) {
        let step = |seen: &mut usize, last: usize, dice: &mut Dice| {
            *seen += match dice.roll(6) {
                0..=2 => 0,
                3 => last - *seen,
                _ => dice.roll(last - *seen + 1),
            };
        };
        step(&mut self.sets, api.sets.version(), dice);
        step(&mut self.machines, api.machines.version(), dice);
        step(&mut self.hosts, api.hosts.version(), dice);
    }

    pub(super) fn catch_up(&mut self, api: &Api) {
        *self =
            Self { sets: api.sets.version(), machines: api.machines.version(), hosts: api.hosts.version() };
    }
}

/// What all controllers work on.
pub(super) struct Shared<'a> {
    pub(super) api: &'a mut Api,
    pub(super) dice: &'a mut Dice,
    pub(super) limits: &'a mut Limits,
    pub(super) goal: &'a RolloutGoal,
    pub(super) now: Timestamp,
    pub(super) defect: Option<Defect>,
    /// Controllers are killed between two writes.
    pub(super) kills: bool,
}

impl Shared<'_> {
    fn is_killed(&mut self) -> bool {
        self.kills && self.dice.one_in(6)
    }
}

#[derive(Default)]
pub(super) struct Deployment {
    pub(super) cache: Cache,
    /// The version of the sets after its last write.
    own_write: usize,
    progress: Option<RolloutProgress>,
    /// The last plan.
    pub(super) plan: Option<RolloutPlan>,
}

impl Deployment {
    /// Plans, and writes; true if it has written anything.
    pub(super) fn reconcile(&mut self, shared: &mut Shared<'_>) -> bool {
        let careless = shared.defect == Some(Defect::OwnWritesNotAwaited);
        if self.cache.sets < self.own_write && !careless {
            return false;
        }
        let mut basis = self.cache.machines;
        let mut next = plan(shared.goal, &self.world(shared, basis), shared.now);
        if !next.is_empty() && shared.defect != Some(Defect::MachinesNotListed) {
            basis = shared.api.machines.version();
            next = plan(shared.goal, &self.world(shared, basis), shared.now);
        }
        self.progress = Some(next.progress.clone());
        let written = self.write(shared, &next, basis);
        self.plan = Some(next);
        if written {
            self.own_write = shared.api.sets.version();
        }
        written
    }

    /// With the sets of the cache, and the Machines of this version.
    fn world(&self, shared: &Shared<'_>, machines: usize) -> RolloutWorld {
        let machines = shared.api.machines.at(machines);
        let own = |name: &str| -> Vec<ObservedMachine> {
            let own = machines.values().filter(|object| object.set == name);
            let mut own: Vec<ObservedMachine> = own.map(|object| object.machine.clone()).collect();
            if shared.defect == Some(Defect::DeletingNotCounted) {
                own.retain(|machine| !machine.deleting);
            }
            if shared.defect == Some(Defect::AvailabilityIgnored) {
                let ready = MachineStage::Joined { ready_since: Some(Timestamp::UNIX_EPOCH) };
                own.iter_mut().for_each(|machine| machine.stage = ready);
            }
            own
        };
        let sets = shared.api.sets.at(self.cache.sets).iter().map(|(name, object)| ObservedSet {
            machines: own(name),
            observed: object.set.observed || shared.defect == Some(Defect::SizesNotAwaited),
            ..object.set.clone()
        });
        let (waiting, hosts) = pool(shared.api, self.cache);
        let free_hosts = free_hosts(&HostRequirement::default(), &waiting, &hosts.iter().collect::<Vec<_>>());
        RolloutWorld { sets: sets.collect(), free_hosts, progress: self.progress.clone() }
    }

    /// What was planned on the Machines of this version.
    fn write(&self, shared: &mut Shared<'_>, plan: &RolloutPlan, machines: usize) -> bool {
        let seen = shared.api.machines.at(machines).values();
        let available = seen.filter(|object| object.machine.is_available(shared.goal.min_ready, shared.now));
        let basis = (machines, count(available));
        let mut written = false;
        let cached = shared.api.sets.at(self.cache.sets).clone();
        if let Some(new) = &plan.create {
            let name = new.hash.to_string();
            if shared.api.sets.now().contains_key(&name) {
                return written;
            }
            let set = ObservedSet {
                name: name.clone(),
                created: shared.now,
                hash: new.hash.clone(),
                deleting: false,
                replicas: new.replicas,
                observed: false,
                revision: new.revision,
                history: Vec::new(),
                desired: Some(new.desired),
                most: Some(new.most),
                machines: Vec::new(),
            };
            shared.limits.decides(&name, basis, shared.goal);
            let version = shared.api.sets.version() + 1;
            shared.api.promise(&name, new.replicas);
            shared.api.sets.write(|sets| drop(sets.insert(name, SetObject { set, version })));
            written = true;
        }
        for change in &plan.change {
            if shared.is_killed() {
                return written;
            }
            let Some(present) = shared.api.sets.now().get(&change.name) else { return written };
            let careless = shared.defect == Some(Defect::OwnWritesNotAwaited);
            if present.version != cached[&change.name].version && !careless {
                return written;
            }
            if change.to != change.from {
                shared.limits.decides(&change.name, basis, shared.goal);
            }
            let version = shared.api.sets.version() + 1;
            let promised = shared.api.promised(&change.name).max(change.to);
            shared.api.promise(&change.name, promised);
            shared.api.sets.write(|sets| {
                let object = sets.get_mut(&change.name).unwrap();
                object.version = version;
                let set = &mut object.set;
                set.observed &= set.replicas == change.to;
                (set.replicas, set.revision, set.history) =
                    (change.to, change.revision, change.history.clone());
                (set.desired, set.most) = (change.desired, change.most);
            });
            written = true;
        }
        for name in &plan.delete {
            if shared.is_killed() {
                return written;
            }
            shared.api.sets.write(|sets| drop(sets.remove(name)));
            written = true;
        }
        written
    }
}

#[derive(Default)]
pub(super) struct MachineSets {
    pub(super) cache: Cache,
    /// The version of the Machines after its last write.
    own_write: usize,
    created: usize,
}

impl MachineSets {
    /// One set; true if it has written anything.
    pub(super) fn reconcile(&mut self, shared: &mut Shared<'_>, name: &str) -> Result<bool, String> {
        let Some(cached) = shared.api.sets.at(self.cache.sets).get(name).cloned() else { return Ok(false) };
        if self.cache.machines < self.own_write {
            return Ok(false);
        }
        // Sizes before the one that it sees are forgotten.
        let later = (self.cache.sets..=shared.api.sets.version())
            .filter_map(|version| shared.api.sets.at(version).get(name).map(|object| object.set.replicas));
        let promised = later.max().unwrap_or(0);
        shared.api.promise(name, promised);
        let goal = MachineSetGoal {
            replicas: cached.set.replicas,
            delete_order: [DeleteOrder::Random, DeleteOrder::Newest, DeleteOrder::Oldest][name.len() % 3],
            min_ready: shared.goal.min_ready,
            deleting: false,
        };
        let own = |machines: &super::api::Machines| -> Vec<ObservedMachine> {
            let own = machines.values().filter(|object| object.set == name);
            own.map(|object| object.machine.clone()).collect()
        };
        let seen = own(shared.api.machines.at(self.cache.machines));
        let mut plan = machine_set::plan(&goal, &seen, shared.now);
        if shared.defect != Some(Defect::StaleList) && !plan.delete.is_empty() {
            plan = machine_set::plan(&goal, &own(shared.api.machines.now()), shared.now);
        }
        let mut written = false;
        let is_gone = !shared.api.sets.now().contains_key(name);
        for _ in 0..plan.create {
            // The garbage collector removes what has no owner.
            if is_gone || shared.is_killed() {
                return Ok(written);
            }
            self.create(shared, name);
            written = true;
        }
        for machine in &plan.delete {
            if shared.is_killed() {
                return Ok(written);
            }
            written |= delete(shared, name, machine)?;
            self.own_write = shared.api.machines.version();
        }
        Ok(self.report(shared, &cached) || written)
    }

    fn create(&mut self, shared: &mut Shared<'_>, set: &str) {
        self.created += 1;
        let name = format!("{set}-{:03}", self.created);
        let machine = ObservedMachine {
            name: name.clone(),
            created: shared.now,
            deleting: false,
            stage: MachineStage::WaitingForHost,
            marked: false,
        };
        let object = MachineObject { machine, set: set.to_owned(), noted: None, by_itself: false };
        shared.api.machines.write(|machines| drop(machines.insert(name, object)));
        self.own_write = shared.api.machines.version();
    }

    /// `status.observedGeneration`, by the generation that was acted on.
    fn report(&mut self, shared: &mut Shared<'_>, cached: &SetObject) -> bool {
        let name = &cached.set.name;
        let Some(present) = shared.api.sets.now().get(name) else { return false };
        let is_same = present.version == cached.version;
        if !is_same || present.set.observed {
            return false;
        }
        shared.limits.carried_out(name);
        let version = shared.api.sets.version() + 1;
        shared.api.sets.write(|sets| {
            let object = sets.get_mut(name).unwrap();
            (object.set.observed, object.version) = (true, version);
        });
        true
    }
}

fn delete(shared: &mut Shared<'_>, set: &str, machine: &str) -> Result<bool, String> {
    let Some(object) = shared.api.machines.now().get(machine) else { return Ok(false) };
    if object.machine.deleting {
        return Ok(false);
    }
    let counts = object.machine.is_available(shared.goal.min_ready, shared.now);
    shared.api.change_machine(machine, |object| object.machine.deleting = true);
    if counts {
        let left = shared.api.available(shared.goal.min_ready, shared.now);
        shared.limits.check_deletion(set, left)?;
    }
    Ok(true)
}

/// The pool as a cache shows it.
fn pool(api: &Api, cache: Cache) -> (Vec<WaitingMachine>, Vec<PoolHost>) {
    let name = |index: usize| format!("h{index:02}").parse().unwrap();
    let waiting =
        api.machines.at(cache.machines).values().filter(|object| {
            object.machine.stage == MachineStage::WaitingForHost && !object.machine.deleting
        });
    let waiting = waiting.map(|object| WaitingMachine {
        uid: object.machine.name.clone(),
        name: object.machine.name.clone(),
        created: object.machine.created,
        group: "md".to_owned(),
        noted: object.noted.map(name),
        requirement: HostRequirement::default(),
    });
    let hosts = api.hosts.at(cache.hosts).iter().enumerate().map(|(index, host)| PoolHost {
        name: name(index),
        state: if host.claim.is_some() { PoolState::Busy } else { PoolState::Available },
        claim: host.claim.clone(),
        labels: std::collections::BTreeMap::new(),
        distribution: None,
        architecture: None,
        failure_domain: Some(format!("rack-{}", index % 3)),
        last_failure: None,
    });
    (waiting.collect(), hosts.collect())
}

#[derive(Default)]
pub(super) struct Claims {
    pub(super) cache: Cache,
}

impl Claims {
    /// Notes a host in each Machine that waits, or claims the one that is noted; true if it has written anything.
    pub(super) fn reconcile(&mut self, shared: &mut Shared<'_>) -> bool {
        let (waiting, hosts) = pool(shared.api, self.cache);
        let seen = shared.api.hosts.at(self.cache.hosts).clone();
        let mut written = false;
        for (machine, choice) in choose(&waiting, &hosts.iter().collect::<Vec<_>>(), |_| "md") {
            if shared.is_killed() {
                return written;
            }
            let HostChoice::Host(host) = choice else {
                written |= Self::forget(shared, &machine);
                continue;
            };
            let host: usize = host.as_str()[1..].parse().unwrap();
            let Some(object) = shared.api.machines.now().get(&machine) else { continue };
            if object.machine.stage != MachineStage::WaitingForHost || object.machine.deleting {
                continue;
            }
            written |= match object.noted {
                None => {
                    shared.api.change_machine(&machine, |object| object.noted = Some(host));
                    true
                }
                Some(noted) if noted == host => Self::claim(shared, &machine, host, &seen[host]),
                Some(_) => false,
            };
        }
        written
    }

    /// A noted host that another Machine has.
    fn forget(shared: &mut Shared<'_>, machine: &str) -> bool {
        let Some(object) = shared.api.machines.now().get(machine) else { return false };
        let lost = object.noted.is_some_and(|host| {
            let claim = &shared.api.hosts.now()[host].claim;
            claim.as_ref().is_some_and(|claim| claim != machine)
        });
        let waits = object.machine.stage == MachineStage::WaitingForHost;
        if lost && waits {
            shared.api.change_machine(machine, |object| object.noted = None);
        }
        lost && waits
    }

    fn claim(shared: &mut Shared<'_>, machine: &str, host: usize, seen: &HostObject) -> bool {
        let present = &shared.api.hosts.now()[host];
        let own = present.claim.as_deref() == Some(machine);
        let unchanged = present.version == seen.version && present.claim.is_none();
        if !own && !unchanged && shared.defect != Some(Defect::ClaimNotCompared) {
            return false;
        }
        if !own {
            let claimed = HostObject { claim: Some(machine.to_owned()), version: present.version + 1 };
            shared.api.hosts.write(|hosts| hosts[host] = claimed);
        }
        shared.api.change_machine(machine, |object| object.machine.stage = MachineStage::Joining);
        true
    }
}
