//! Workers without SSH, and what really is on their hosts.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use jiff::Timestamp;
use metalform::controller::host_workers::HostWorkers;
use metalform::machine::api::host::HostObject;
use metalform::machine::api::host_facts::HostFacts;
use metalform::machine::host_job::{HostJob, HostWork};
use metalform::machine::job_order::JobOrder;
use metalform::machine::job_outcome::{HostFindings, HostPresence, JobError, JobOutcome};
use metalform::machine::job_queue::JobTurn;
use metalform::model::facts::Facts;
use metalform::model::name::HostName;

/// What is on a host, whoever works on it.
#[derive(Debug, Default)]
pub struct Metal {
    pub dirty: bool,
    pub cut_off: bool,
    /// What its kubelet registers as.
    pub kubelet: Option<JobOrder>,
    /// The largest token that it was given.
    token: i64,
    /// How often a job fails from now on.
    fails: BTreeMap<HostJob, u32>,
    /// All jobs that were begun.
    begun: Vec<HostJob>,
}

#[derive(Debug, Default)]
struct Slot {
    running: Option<JobOrder>,
    outcome: Option<JobOutcome>,
    presence: Option<(HostPresence, Timestamp)>,
    probing: bool,
}

#[derive(Default)]
pub struct Scripted {
    pub metals: BTreeMap<HostName, Metal>,
    slots: BTreeMap<HostName, Slot>,
}

/// The hosts, and the workers of the present controller.
#[derive(Clone, Default)]
pub struct ScriptedWorkers(Arc<Mutex<Scripted>>);

impl ScriptedWorkers {
    pub fn lock(&self) -> MutexGuard<'_, Scripted> {
        self.0.lock().unwrap()
    }

    pub fn add(&self, host: &str, dirty: bool) {
        self.lock().metals.insert(host.parse().unwrap(), Metal { dirty, ..Metal::default() });
    }

    fn metal<T>(&self, host: &str, with: impl FnOnce(&mut Metal) -> T) -> T {
        with(self.lock().metals.get_mut(&named(host)).unwrap())
    }

    pub fn jobs(&self, host: &str) -> Vec<HostJob> {
        self.metal(host, |metal| metal.begun.clone())
    }

    pub fn is_dirty(&self, host: &str) -> bool {
        self.metal(host, |metal| metal.dirty || metal.kubelet.is_some())
    }

    /// Its kubelet is not stopped.
    pub fn runs(&self, host: &str) -> bool {
        self.metal(host, |metal| metal.kubelet.is_some())
    }

    pub fn fail(&self, host: &str, job: HostJob, times: u32) {
        self.metal(host, |metal| metal.fails.insert(job, times));
    }

    pub fn cut_off(&self, host: &str, cut_off: bool) {
        self.metal(host, |metal| metal.cut_off = cut_off);
    }

    /// What ran is not started again.
    pub fn power_off(&self, host: &str) {
        self.metal(host, |metal| metal.kubelet = None);
    }

    pub fn unrecorded(&self, host: &str) -> Option<HostJob> {
        self.lock().slots.get(&named(host))?.outcome.as_ref().map(|outcome| outcome.job)
    }

    /// The controller is killed: its workers are gone, and what they know.
    pub fn kill(&self) {
        self.lock().slots.clear();
    }

    /// Every job and probe ends. Whether there was one.
    pub fn finish(&self, now: Timestamp) -> bool {
        let mut scripted = self.lock();
        let Scripted { metals, slots } = &mut *scripted;
        let mut any = false;
        for (host, slot) in slots {
            let metal = metals.get_mut(host).unwrap();
            let presence = if metal.cut_off { HostPresence::Silent } else { HostPresence::Answers };
            any |= slot.probing || slot.running.is_some();
            if std::mem::take(&mut slot.probing) {
                slot.presence = Some((presence, now));
            }
            if let Some(order) = slot.running.take() {
                let (job, fence) = (order.job, order.fence.clone());
                let result = metal.perform(order);
                let outcome = JobOutcome { job, fence, ended: now, result };
                slot.presence = Some((outcome.presence(), now));
                slot.outcome = Some(outcome);
            }
        }
        any
    }
}

fn named(host: &str) -> HostName {
    host.parse().unwrap()
}

impl Metal {
    fn perform(&mut self, order: JobOrder) -> Result<HostFindings, JobError> {
        let error = |message: &str, presence| JobError { message: message.to_owned(), presence, begun: true };
        if order.job == HostJob::PowerOff {
            if let Some(left) = self.fails.get_mut(&order.job).filter(|left| **left > 0) {
                *left -= 1;
                return Err(error("power hook ipmi status: exit status 1: no BMC", HostPresence::Silent));
            }
            self.kubelet = None;
            return Ok(HostFindings::default());
        }
        if self.cut_off {
            return Err(error("no answer", HostPresence::Silent));
        }
        // An inspection has no token.
        if order.job != HostJob::Inspect {
            if order.fence.token < self.token {
                return Err(error("refused: an earlier token", HostPresence::Answers));
            }
            self.token = order.fence.token;
        }
        if let Some(left) = self.fails.get_mut(&order.job).filter(|left| **left > 0) {
            *left -= 1;
            return Err(error("scripted", HostPresence::Answers));
        }
        let mut findings = HostFindings::default();
        match order.job {
            HostJob::Inspect | HostJob::Check => {
                findings.facts = Some(HostFacts::from(&Facts::examples()[0]));
                if self.dirty {
                    findings.residue = vec!["/etc/kubernetes".to_owned()];
                }
                if order.job == HostJob::Inspect {
                    findings.largest_token = self.token;
                }
                if self.dirty && order.job == HostJob::Check {
                    return Err(error("not clean", HostPresence::Answers));
                }
            }
            HostJob::Deploy => {
                self.dirty = true;
                self.kubelet = Some(order);
            }
            HostJob::StopKubelet => self.kubelet = None,
            HostJob::Reset => {
                assert!(self.kubelet.is_none(), "its kubelet is stopped first");
                self.dirty = false;
            }
            HostJob::UpgradePackages | HostJob::RestartKubelet | HostJob::PowerOff => {}
        }
        Ok(findings)
    }
}

impl HostWorkers for ScriptedWorkers {
    fn work(&self, host: &HostName) -> HostWork {
        let scripted = self.lock();
        let Some(slot) = scripted.slots.get(host) else { return HostWork::Idle };
        let running = slot.running.as_ref().map(|order| (order.job, order.fence.token));
        let ended = slot.outcome.as_ref().map(|outcome| (outcome.job, outcome.fence.token));
        running.or(ended).map_or(HostWork::Idle, |(job, token)| HostWork::Running {
            job,
            token,
            phase: String::new(),
        })
    }

    fn begin(&self, order: JobOrder) {
        let mut scripted = self.lock();
        let Scripted { metals, slots } = &mut *scripted;
        let slot = slots.entry(order.fence.host.clone()).or_default();
        if slot.running.is_none() && slot.outcome.is_none() {
            metals.get_mut(&order.fence.host).unwrap().begun.push(order.job);
            slot.running = Some(order);
        }
    }

    /// No job waits for others.
    fn turn(&self, _: &HostName) -> Option<JobTurn> {
        None
    }

    fn cancel(&self, host: &HostName) {
        let mut scripted = self.lock();
        let Some(slot) = scripted.slots.get_mut(host) else { return };
        if let Some(order) = slot.running.take() {
            let message = "interrupted".to_owned();
            let error = JobError { message, presence: HostPresence::Answers, begun: true };
            let ended = Timestamp::UNIX_EPOCH;
            slot.outcome = Some(JobOutcome { job: order.job, fence: order.fence, ended, result: Err(error) });
        }
    }

    fn outcome(&self, host: &HostName) -> Option<JobOutcome> {
        self.lock().slots.get(host)?.outcome.clone()
    }

    fn recorded(&self, outcome: &JobOutcome) {
        if let Some(slot) = self.lock().slots.get_mut(&outcome.fence.host)
            && slot.outcome.as_ref() == Some(outcome)
        {
            slot.outcome = None;
        }
    }

    fn probe(&self, host: &Arc<HostObject>) {
        let name = host.metadata.name.clone().unwrap().parse().unwrap();
        self.lock().slots.entry(name).or_default().probing = true;
    }

    fn presence(&self, host: &HostName) -> Option<(HostPresence, Timestamp)> {
        self.lock().slots.get(host)?.presence
    }
}
