//! What really is on the hosts, and the workers on them.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::Defect;
use super::api::Api;
use crate::machine::dice::Dice;
use crate::machine::host_job::{HostJob, JobFailure, JobFence};
use crate::machine::lifecycle::MachineNode;
use crate::model::api_contract::NOT_READY_TAINT;
use crate::model::name::HostName;
use crate::model::node::Taint;

#[derive(Debug, Clone, Default)]
pub(super) struct Metal {
    pub(super) on: bool,
    /// Its network is cut.
    pub(super) cut: bool,
    /// Resets fail.
    pub(super) broken: bool,
    /// The Machine whose kubelet is enabled, and runs while the host is on.
    pub(super) kubelet: Option<String>,
    /// The kubelet has registered since it was started.
    pub(super) registered: bool,
    pub(super) dirty: bool,
    /// The largest token that it was given.
    pub(super) fence: i64,
}

#[derive(Debug, Clone)]
pub(super) struct Worker {
    pub(super) job: HostJob,
    pub(super) fence: JobFence,
}

#[derive(Default)]
pub(super) struct Metals {
    pub(super) metals: BTreeMap<HostName, Metal>,
    /// Those of the present leader.
    pub(super) workers: BTreeMap<HostName, Worker>,
    /// Those of earlier leaders that have not noticed yet.
    pub(super) orphans: Vec<Worker>,
    pub(super) defect: Option<Defect>,
}

impl Metals {
    pub(super) fn answers(&self, host: &HostName) -> bool {
        let metal = &self.metals[host];
        metal.on && !metal.cut
    }

    /// A worker ends. `Err`: it has done what must not be done.
    pub(super) fn work(
        &mut self,
        api: &mut Api,
        dice: &mut Dice,
        worker: &Worker,
        now: Timestamp,
    ) -> Result<(), String> {
        let defect = self.defect;
        let host = worker.fence.host.clone();
        if !self.answers(&host) {
            record(api, worker, Err("no answer"), now);
            return Ok(());
        }
        let elsewhere = self.metals.iter().find(|(name, metal)| {
            **name != host && metal.kubelet.is_some() && metal.kubelet == worker.fence.machine
        });
        let elsewhere = elsewhere.map(|(name, _)| name.clone());
        let metal = self.metals.get_mut(&host).ok_or("no such host")?;
        // An inspection has no token; that of an earlier claim is not recorded.
        if worker.job == HostJob::Inspect {
            if api.now.hosts[&host].last_token == worker.fence.token {
                let residue = if metal.dirty { vec!["/etc/kubernetes".to_owned()] } else { Vec::new() };
                api.change_host(&host, |view| view.residue = residue);
            }
            record(api, worker, Ok(()), now);
            return Ok(());
        }
        if worker.fence.token < metal.fence && defect != Some(Defect::NotFenced) {
            return Ok(());
        }
        metal.fence = metal.fence.max(worker.fence.token);
        let result = match worker.job {
            HostJob::Check => {
                let first = api.now.hosts[&host].done.is_empty() && self.orphans.is_empty();
                let current = api.now.hosts[&host].last_token == worker.fence.token;
                if metal.dirty && first && current {
                    return Err(format!("{host} is claimed and not clean"));
                }
                if metal.dirty { Err("not clean") } else { Ok(()) }
            }
            HostJob::Inspect | HostJob::UpgradePackages | HostJob::PowerOff => Ok(()),
            HostJob::Deploy => {
                if metal.kubelet.is_some() && metal.kubelet != worker.fence.machine {
                    return Err(format!("{host} serves two machines"));
                }
                if let Some(other) = elsewhere {
                    return Err(format!("a machine is deployed on {host} and {other}"));
                }
                metal.dirty = true;
                if dice.one_in(6) {
                    Err("deployment failed")
                } else {
                    metal.registered &= metal.kubelet == worker.fence.machine;
                    metal.kubelet.clone_from(&worker.fence.machine);
                    Ok(())
                }
            }
            HostJob::RestartKubelet => {
                metal.registered = false;
                Ok(())
            }
            HostJob::StopKubelet => {
                metal.kubelet = None;
                Ok(())
            }
            HostJob::Reset if metal.broken => {
                if defect == Some(Defect::ResetNotVerified) {
                    Ok(())
                } else {
                    Err("reset failed")
                }
            }
            HostJob::Reset => {
                metal.dirty = false;
                Ok(())
            }
        };
        record(api, worker, result, now);
        Ok(())
    }

    /// Kubelets register, and report whether they run.
    pub(super) fn kubelets(&mut self, api: &mut Api) -> bool {
        let mut written = false;
        for (host, metal) in &mut self.metals {
            let node = api.now.nodes.get(host);
            let id = metal.kubelet.as_ref().map(|uid| format!("metalform://{host}/{uid}"));
            let runs = metal.on && metal.kubelet.is_some();
            let is_own = node.is_some_and(|node| node.provider_id == id);
            if runs && node.is_none() && !metal.registered {
                let taint = Taint {
                    key: NOT_READY_TAINT.to_owned(),
                    value: String::new(),
                    effect: "NoSchedule".to_owned(),
                };
                let node = MachineNode {
                    provider_id: id,
                    labels: BTreeMap::new(),
                    annotations: BTreeMap::new(),
                    taints: vec![taint],
                    unschedulable: false,
                    ready: false,
                    message: String::new(),
                    pod_network: false,
                };
                api.change_nodes(|nodes| {
                    nodes.insert(host.clone(), node);
                });
                written = true;
            } else if let Some(node) = node {
                let ready = runs && is_own && !metal.cut;
                if node.ready != ready {
                    api.change_nodes(|nodes| {
                        if let Some(node) = nodes.get_mut(host) {
                            (node.ready, node.pod_network) = (ready, node.pod_network || ready);
                        }
                    });
                    written = true;
                }
            }
            metal.registered |= runs && (node_of(api, host) == metal.kubelet.as_deref());
            if !metal.on {
                metal.registered = false;
            }
        }
        written
    }

    /// Whether a kubelet of this Machine runs on a host.
    pub(super) fn runs(&self, host: &HostName, uid: &str) -> bool {
        let metal = &self.metals[host];
        metal.on && metal.kubelet.as_deref() == Some(uid)
    }
}

fn node_of<'a>(api: &'a Api, host: &HostName) -> Option<&'a str> {
    api.now.nodes.get(host)?.provider_id.as_deref()?.rsplit('/').next()
}

/// Only of the present token.
fn record(api: &mut Api, worker: &Worker, result: Result<(), &str>, now: Timestamp) {
    let host = &worker.fence.host;
    let Some(view) = api.now.hosts.get(host) else { return };
    let claim = view.claim.as_ref().map(|claim| &claim.machine_uid);
    if view.last_token != worker.fence.token || claim != worker.fence.machine.as_ref() {
        return;
    }
    api.change_host(host, |view| match result {
        Ok(()) => {
            view.done.insert(worker.job);
            view.failure = None;
        }
        Err(message) => {
            let earlier = view.failure.as_ref().filter(|failure| failure.job == worker.job);
            let attempts = earlier.map_or(0, |failure| failure.attempts) + 1;
            let message = message.to_owned();
            view.failure = Some(JobFailure { job: worker.job, attempts, last: now, message });
        }
    });
}
