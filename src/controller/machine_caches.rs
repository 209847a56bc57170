//! Caches of the objects that the machine controllers read, filled by watches.
//!
//! # Guarantees
//! - Nothing is due before all caches are filled; then everything is.
//! - A watch that fails is begun again, with pauses; what it may have missed makes everything due.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures::stream::{self, BoxStream};
use futures::{Stream, StreamExt};
use k8s_openapi::api::core::v1::Node;
use kube::api::Api;
use kube::runtime::reflector::{Store, store};
use kube::runtime::watcher::Event;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;

use super::pass_key::PassKey;
use super::wake::{ObjectChange, WakeView};
use crate::machine::api::host::HostObject;
use crate::machine::api::machine::Machine;
use crate::machine::api::machine_deployment::MachineDeployment;
use crate::machine::api::machine_set::MachineSet;

/// Kinds of objects that are watched.
const KINDS: usize = 5;

/// The caches.
#[derive(Clone)]
pub struct MachineCaches {
    /// Of all namespaces.
    pub deployments: Store<MachineDeployment>,
    /// Of all namespaces.
    pub sets: Store<MachineSet>,
    /// Of all namespaces.
    pub machines: Store<Machine>,
    /// All of them.
    pub hosts: Store<HostObject>,
    /// All of them.
    pub nodes: Store<Node>,
    changes: Arc<AtomicU64>,
}

/// What a watch reports.
#[expect(clippy::large_enum_variant, reason = "one exists at a time")]
enum CacheEvent {
    Changed(ObjectChange),
    /// Its cache is filled, for the first time or again.
    Listed(&'static str),
}

/// Begins the watches. The caches are filled, and the passes that are due returned, while the stream is polled.
pub fn watch(client: &Client) -> (MachineCaches, impl Stream<Item = Vec<PassKey>> + Send + Unpin + use<>) {
    let (deployments, from_deployments) = watched(Api::all(client.clone()), ObjectChange::Deployment);
    let (sets, from_sets) = watched(Api::all(client.clone()), ObjectChange::Set);
    let (machines, from_machines) = watched(Api::all(client.clone()), ObjectChange::Machine);
    let (hosts, from_hosts) = watched(Api::all(client.clone()), ObjectChange::Host);
    let (nodes, from_nodes) = watched(Api::all(client.clone()), ObjectChange::Node);
    let changes = Arc::new(AtomicU64::new(0));
    let caches = MachineCaches { deployments, sets, machines, hosts, nodes, changes };
    let events = stream::select_all([from_deployments, from_sets, from_machines, from_hosts, from_nodes]);
    let view = caches.clone();
    let mut listed = BTreeSet::new();
    let due = events.filter_map(move |event| {
        view.changes.fetch_add(1, Ordering::Relaxed);
        let woken = match event {
            CacheEvent::Listed(kind) => {
                listed.insert(kind);
                (listed.len() == KINDS).then(|| view.wake_view().all())
            }
            CacheEvent::Changed(change) => {
                (listed.len() == KINDS).then(|| view.wake_view().woken_by(&change))
            }
        };
        std::future::ready(woken)
    });
    (caches, due)
}

impl MachineCaches {
    /// Increases with each change.
    pub fn version(&self) -> u64 {
        self.changes.load(Ordering::Relaxed)
    }

    /// What they show, for [`WakeView`].
    pub fn wake_view(&self) -> WakeView {
        WakeView {
            deployments: self.deployments.state(),
            sets: self.sets.state(),
            machines: self.machines.state(),
            hosts: self.hosts.state(),
        }
    }
}

fn watched<K>(api: Api<K>, wrap: fn(K) -> ObjectChange) -> (Store<K>, BoxStream<'static, CacheEvent>)
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
{
    let (reader, writer) = store();
    let events = watcher(api, watcher::Config::default()).default_backoff().modify(|object| {
        // Large, and read by nothing here.
        object.managed_fields_mut().clear();
    });
    let events = events.reflect(writer).filter_map(move |event| {
        std::future::ready(match event {
            Ok(Event::Apply(object) | Event::Delete(object)) => Some(CacheEvent::Changed(wrap(object))),
            Ok(Event::InitDone) => Some(CacheEvent::Listed(kind::<K>())),
            Ok(Event::Init | Event::InitApply(_)) => None,
            Err(error) => {
                tracing::warn!(kind = kind::<K>(), %error, "watch");
                None
            }
        })
    });
    (reader, events.boxed())
}

fn kind<K>() -> &'static str {
    std::any::type_name::<K>()
}
