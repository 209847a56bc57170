//! The passes of the machine controllers over what the caches show.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, ObjectReference};
use kube::runtime::reflector::ObjectRef;
use kube::{Client, Resource, ResourceExt};
use tokio::sync::mpsc::Sender;
use tokio::time::Instant;

use super::chosen_hosts::ChosenHosts;
use super::controller_metrics::{ControllerMetrics, PassResult};
use super::host_life_pass::pass_over_host;
use super::host_workers::HostWorkers;
use super::life_context::LifeContext;
use super::machine_caches::MachineCaches;
use super::machine_life_pass::pass_over_machine;
use super::machine_pass::{MachinePass, MachinePassError, NextPass, pass_over_deployment, pass_over_set};
use super::pass_key::{ObjectKey, PassKey};
use super::pass_loop::Passes;
use crate::kube_api::client::ApiError;
use crate::machine::api::machine::Machine;
use crate::machine::api::machine_deployment::MachineDeployment;
use crate::machine::host_choice::HostChoice;
use crate::machine::life_observation::MachineObjects;
use crate::machine::life_rules::LifeRules;
use crate::machine::lifecycle::VERSIONS_KNOWN;
use crate::machine::machine_observation::node_name;
use crate::machine::object_event::ObjectEvent;
use crate::machine::pass_events;
use crate::machine::pool::Pool;
use crate::machine::rollout_decision::RolloutObjects;
use crate::machine::set_decision::SetObjects;
use crate::model::error_chain::error_chain;

/// What passes need besides the cluster.
#[derive(Debug, Clone)]
pub struct PassSettings {
    /// The most pods of a Node.
    pub max_pods: u32,
    /// Versions of Kubernetes in the bundles, that of the first one first.
    pub bundles: Vec<String>,
    /// Receives what reports the passes, as far as it has room.
    pub events: Sender<ObjectEvent>,
    /// Counts the passes.
    pub metrics: Arc<ControllerMetrics>,
}

/// Passes over one cluster.
pub struct ClusterPasses {
    client: Client,
    caches: MachineCaches,
    workers: Arc<dyn HostWorkers>,
    clock: fn() -> Timestamp,
    settings: PassSettings,
    rules: Mutex<Arc<LifeRules>>,
    rules_since: Mutex<Option<Timestamp>>,
    pool: Mutex<Option<KnownPool>>,
    chosen: Mutex<ChosenHosts>,
}

/// The pool at a version of the caches, under these rules.
struct KnownPool {
    version: u64,
    rules: Arc<LifeRules>,
    pool: Arc<Pool>,
}

impl ClusterPasses {
    /// Over this API; `caches` show what it had, a moment ago.
    pub fn new(
        client: Client,
        caches: MachineCaches,
        workers: Arc<dyn HostWorkers>,
        clock: fn() -> Timestamp,
        settings: PassSettings,
    ) -> Self {
        let rules = Mutex::new(Arc::new(LifeRules::DEFAULT));
        let (rules_since, pool, chosen) = (Mutex::default(), Mutex::default(), Mutex::default());
        Self { client, caches, workers, clock, settings, rules, rules_since, pool, chosen }
    }

    /// With the version of an API server, which is not asked for every pass.
    async fn rules(&self) -> Result<Arc<LifeRules>, MachinePassError> {
        let now = (self.clock)();
        let since = *lock(&self.rules_since);
        if since.is_none_or(|since| now.duration_since(since) >= VERSIONS_KNOWN) {
            let version = self.client.apiserver_version().await;
            let version = version.map_err(|error| ApiError::new("get", "version", error))?;
            let servers = version.git_version.parse().into_iter().collect();
            let present = LifeRules { servers, bundles: self.settings.bundles.clone(), ..LifeRules::DEFAULT };
            let mut rules = lock(&self.rules);
            if **rules != present {
                *rules = Arc::new(present);
            }
            *lock(&self.rules_since) = Some(now);
        }
        Ok(lock(&self.rules).clone())
    }

    fn pool(&self, rules: &Arc<LifeRules>) -> Arc<Pool> {
        self.renewed(&mut lock(&self.pool), rules)
    }

    /// Made again only after a change.
    fn renewed(&self, known: &mut Option<KnownPool>, rules: &Arc<LifeRules>) -> Arc<Pool> {
        let version = self.caches.version();
        if let Some(known) = &*known
            && known.version == version
            && Arc::ptr_eq(&known.rules, rules)
        {
            return known.pool.clone();
        }
        let caches = &self.caches;
        let (now, mut chosen) = ((self.clock)(), lock(&self.chosen));
        let machines = caches.machines.state().into_iter().map(|machine| chosen.shown(machine, now));
        let pool = Arc::new(Pool::new(machines, &caches.host_index(), caches.nodes.state(), rules));
        *known = Some(KnownPool { version, rules: rules.clone(), pool: pool.clone() });
        pool
    }

    /// What a pass over a Machine needs, and whether it begins with a new choice of a host, which no pool that is made from
    /// now on gives to another Machine.
    fn machine(&self, rules: &Arc<LifeRules>, uid: &str) -> Option<(MachineObjects, bool)> {
        let mut known = lock(&self.pool);
        let mut objects = self.renewed(&mut known, rules).machine(uid)?;
        if objects.machine.metadata.deletion_timestamp.is_some() {
            let deployment = self.caches.deployment_of(&objects.machine);
            // One that is no duration is refused by the API server.
            objects.drain_timeout = deployment.and_then(|one| one.spec.node_drain_timeout().ok().flatten());
        }
        let noted = objects.machine.status.as_ref().is_some_and(|status| status.host.is_some());
        let chose = match &objects.choice {
            Some(HostChoice::Host(host)) if !noted => lock(&self.chosen).choose(uid, host, (self.clock)()),
            _ => false,
        };
        Some((objects, chose))
    }

    fn report(&self, event: ObjectEvent) {
        if let Err(error) = self.settings.events.try_send(event) {
            tracing::debug!("an Event is dropped: {error}");
        }
    }

    /// The object, if it exists.
    fn object(&self, key: &PassKey) -> Option<ObjectReference> {
        let caches = &self.caches;
        Some(match key {
            PassKey::Deployment(key) => caches.deployments.get(&reference(key))?.object_ref(&()),
            PassKey::Set(key) => caches.sets.get(&reference(key))?.object_ref(&()),
            PassKey::Machine(key) => caches.machines.get(&reference(key))?.object_ref(&()),
            PassKey::Host(name) => caches.hosts.get(&ObjectRef::new(name))?.object_ref(&()),
        })
    }

    async fn over(&self, key: &PassKey) -> Result<Option<MachinePass>, MachinePassError> {
        let rules = self.rules().await?;
        let context = LifeContext { client: &self.client, workers: self.workers.as_ref(), rules: &rules };
        let (now, caches) = ((self.clock)(), &self.caches);
        match key {
            PassKey::Deployment(key) => {
                let Some(deployment) = caches.deployments.get(&reference(key)) else { return Ok(None) };
                let sets = caches.sets.state_filter(|one| is_in(one, key));
                let machines = caches.machines.state_filter(|one| is_in(one, key));
                let deployments = caches.deployments.state_filter(|one| is_in(one, key));
                let nodes = judged_nodes(&deployment, &machines, caches);
                let cached = RolloutObjects { deployment, deployments, sets, machines, nodes };
                let pool = self.pool(&rules);
                let max_pods = self.settings.max_pods;
                let offers = move |deployment: &_| pool.offer(deployment, max_pods);
                let pass = pass_over_deployment(&self.client, &cached, &offers, now).await;
                if let Err(MachinePassError::Decision { source, .. }) = &pass {
                    self.report(pass_events::of_undecided(&cached.deployment, source));
                }
                pass.map(Some)
            }
            PassKey::Set(key) => {
                let Some(set) = caches.sets.get(&reference(key)) else { return Ok(None) };
                let machines = caches.machines.state_filter(|one| is_in(one, key));
                pass_over_set(&self.client, &SetObjects { set, machines }, now).await.map(Some)
            }
            PassKey::Machine(key) => {
                let uid = caches.machines.get(&reference(key)).and_then(|machine| machine.uid());
                let Some(uid) = uid else { return Ok(None) };
                let Some((cached, chose)) = self.machine(&rules, &uid) else { return Ok(None) };
                let pass = pass_over_machine(context, &cached, now).await;
                let done = pass.as_ref().map_or(&[][..], |pass| &pass.done);
                lock(&self.chosen).end(&uid, chose, done);
                pass.map(Some)
            }
            PassKey::Host(name) => {
                let Some(cached) = self.pool(&rules).host(name) else { return Ok(None) };
                pass_over_host(context, &cached, now).await.map(Some)
            }
        }
    }
}

#[async_trait]
impl Passes for ClusterPasses {
    async fn pass(&self, key: &PassKey) -> Result<NextPass, MachinePassError> {
        let began = Instant::now();
        let ended = self.over(key).await;
        let is_conflict = matches!(&ended, Ok(Some(MachinePass { conflict: Some(_), .. })));
        let result = match &ended {
            Err(_) => PassResult::Error,
            Ok(_) if is_conflict => PassResult::Conflict,
            Ok(_) => PassResult::Success,
        };
        self.settings.metrics.reconciled(key, result, began.elapsed());
        match ended {
            Ok(None) => Ok(NextPass::OnChange),
            Ok(Some(pass)) => {
                if let Some(conflict) = &pass.conflict {
                    tracing::debug!("{key}: {conflict}");
                }
                pass.events.into_iter().for_each(|event| self.report(event));
                pass.ready_after.into_iter().for_each(|after| self.settings.metrics.machine_ready(after));
                Ok(pass.next)
            }
            Err(error) => {
                if error.is_reported()
                    && let Some(object) = self.object(key)
                {
                    self.report(pass_events::of_failed(object, error_chain(&error)));
                }
                Err(error)
            }
        }
    }
}

/// The Nodes of these Machines, if the MachineDeployment declares what is done with unhealthy ones.
fn judged_nodes(
    deployment: &MachineDeployment,
    machines: &[Arc<Machine>],
    caches: &MachineCaches,
) -> BTreeMap<String, Arc<Node>> {
    if deployment.spec.remediation.is_none() {
        return BTreeMap::new();
    }
    let names = machines.iter().filter_map(|machine| node_name(machine));
    names.filter_map(|name| Some((name.clone(), caches.nodes.get(&ObjectRef::new(name))?))).collect()
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn reference<K: Resource<DynamicType = ()>>(key: &ObjectKey) -> ObjectRef<K> {
    ObjectRef::new(&key.name).within(&key.namespace)
}

fn is_in<K: Resource>(object: &K, key: &ObjectKey) -> bool {
    object.meta().namespace.as_ref() == Some(&key.namespace)
}
