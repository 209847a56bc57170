//! Caches of the objects that the machine controllers read, filled by watches.
//!
//! # Guarantees
//! - Nothing is due before all caches are filled; then everything is.
//! - A Node in which nothing has changed that is read here makes nothing due: kubelets report every few minutes.
//! - A watch that fails is begun again, with pauses; what it may have missed makes everything due.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::stream::{self, BoxStream};
use futures::{Stream, StreamExt};
use k8s_openapi::api::core::v1::Node;
use kube::api::Api;
use kube::runtime::reflector::store::Writer;
use kube::runtime::reflector::{ObjectRef, Store, store};
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
use crate::machine::host_index::HostIndex;
use crate::machine::node_observation;

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
    index: Arc<Mutex<HostIndex>>,
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
    let (deployments, from_deployments) = watched(client, ObjectChange::Deployment, nothing);
    let (sets, from_sets) = watched(client, ObjectChange::Set, nothing);
    let (machines, from_machines) = watched(client, ObjectChange::Machine, nothing);
    let (hosts, from_hosts) = watched(client, ObjectChange::Host, nothing);
    let (nodes, from_nodes) = watched(client, ObjectChange::Node, node_observation::forget_unread);
    let (index, changes) = (Arc::default(), Arc::default());
    let caches = MachineCaches { deployments, sets, machines, hosts, nodes, index, changes };
    let events = stream::select_all([from_deployments, from_sets, from_machines, from_hosts, from_nodes]);
    let view = caches.clone();
    let mut listed = BTreeSet::new();
    let due = events.filter_map(move |event| {
        view.noticed(&event);
        let woken = match event {
            CacheEvent::Listed(kind) => {
                listed.insert(kind);
                (listed.len() == KINDS).then(|| view.all())
            }
            CacheEvent::Changed(change) => (listed.len() == KINDS).then(|| view.woken_by(&change)),
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

    /// All Hosts, as the cache shows them.
    pub fn host_index(&self) -> MutexGuard<'_, HostIndex> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The MachineDeployment whose MachineSet controls a Machine.
    pub fn deployment_of(&self, machine: &Machine) -> Option<Arc<MachineDeployment>> {
        let set = controller(&self.sets, machine)?;
        controller(&self.deployments, &*set)
    }

    /// The passes that a change makes due, as [`WakeView::woken_by`].
    pub fn woken_by(&self, change: &ObjectChange) -> Vec<PassKey> {
        let host = match change {
            ObjectChange::Node(node) => self.hosts.get(&ObjectRef::new(&node.name_any())),
            _ => None,
        };
        self.wake_view(host.into_iter().collect()).woken_by(change)
    }

    fn all(&self) -> Vec<PassKey> {
        self.wake_view(self.hosts.state()).all()
    }

    fn wake_view(&self, hosts: Vec<Arc<HostObject>>) -> WakeView {
        let (sets, machines) = (self.sets.state(), self.machines.state());
        WakeView { deployments: self.deployments.state(), sets, machines, hosts }
    }

    fn noticed(&self, event: &CacheEvent) {
        match event {
            CacheEvent::Changed(ObjectChange::Host(host)) => {
                let shown = self.hosts.get(&ObjectRef::from_obj(host));
                self.host_index().set(&host.name_any(), shown);
            }
            CacheEvent::Listed(listed) if *listed == kind::<HostObject>() => {
                *self.host_index() = self.hosts.state().into_iter().collect();
            }
            _ => {}
        }
        self.changes.fetch_add(1, Ordering::Relaxed);
    }
}

fn controller<K>(owners: &Store<K>, object: &impl ResourceExt) -> Option<Arc<K>>
where
    K: Resource<DynamicType = ()> + Clone + 'static,
{
    let reference = object.owner_references().iter().find(|owner| owner.controller == Some(true))?;
    let owner = owners.get(&ObjectRef::new(&reference.name).within(&object.namespace()?))?;
    (owner.meta().uid.as_ref() == Some(&reference.uid)).then_some(owner)
}

/// `forget` removes from an object what is read by nothing here.
fn watched<K>(
    client: &Client,
    wrap: fn(K) -> ObjectChange,
    forget: fn(&mut K),
) -> (Store<K>, BoxStream<'static, CacheEvent>)
where
    K: Resource<DynamicType = ()> + Clone + Debug + PartialEq + DeserializeOwned + Send + Sync + 'static,
{
    let (reader, mut writer) = store();
    let api: Api<K> = Api::all(client.clone());
    let events = watcher(api, watcher::Config::default()).default_backoff().modify(move |object| {
        object.managed_fields_mut().clear();
        forget(object);
    });
    let events = events.filter_map(move |event| {
        std::future::ready(match event {
            Ok(event) => cache(&mut writer, event, wrap),
            Err(error) => {
                tracing::warn!(kind = kind::<K>(), %error, "watch");
                None
            }
        })
    });
    (reader, events.boxed())
}

/// Stores what a watch reports; `None` where nothing has changed, or its cache is not filled yet.
fn cache<K>(writer: &mut Writer<K>, event: Event<K>, wrap: fn(K) -> ObjectChange) -> Option<CacheEvent>
where
    K: Resource<DynamicType = ()> + Clone + PartialEq + 'static,
{
    let is_known = match &event {
        Event::Apply(object) => {
            let known = writer.as_reader().get(&ObjectRef::from_obj(object));
            known.is_some_and(|known| *known == *object)
        }
        _ => false,
    };
    if is_known {
        return None;
    }
    writer.apply_watcher_event(&event);
    match event {
        Event::Apply(object) | Event::Delete(object) => Some(CacheEvent::Changed(wrap(object))),
        Event::InitDone => Some(CacheEvent::Listed(kind::<K>())),
        Event::Init | Event::InitApply(_) => None,
    }
}

/// Nothing: writes apply to the version of the object.
fn nothing<K>(_: &mut K) {}

fn kind<K>() -> &'static str {
    std::any::type_name::<K>()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn node(version: &str, reported: &str, ready: &str) -> Node {
        let condition = json!({ "type": "Ready", "status": ready, "lastHeartbeatTime": reported });
        let mut node = serde_json::from_value(json!({
            "metadata": { "name": "h1", "uid": "n-1", "resourceVersion": version },
            "status": { "conditions": [condition], "images": [{ "names": [reported] }] },
        }))
        .unwrap();
        node_observation::forget_unread(&mut node);
        node
    }

    #[test]
    fn a_report_of_a_kubelet_without_news_makes_nothing_due() {
        let mut writer = store().1;
        let mut noticed = |event| match cache(&mut writer, event, ObjectChange::Node) {
            Some(CacheEvent::Changed(ObjectChange::Node(_))) => "changed",
            Some(CacheEvent::Changed(_)) => "another kind",
            Some(CacheEvent::Listed(_)) => "listed",
            None => "nothing",
        };
        let (early, late) = ("2026-01-01T00:00:00Z", "2026-01-01T00:05:00Z");
        for (event, expected) in [
            (Event::Init, "nothing"),
            (Event::InitApply(node("1", early, "True")), "nothing"),
            (Event::InitDone, "listed"),
            (Event::Apply(node("2", late, "True")), "nothing"),
            (Event::Apply(node("3", late, "False")), "changed"),
            (Event::Delete(node("4", late, "False")), "changed"),
            (Event::Apply(node("5", late, "False")), "changed"),
        ] {
            let label = format!("{event:?}");
            assert_eq!(noticed(event), expected, "{label}");
        }
    }
}
