//! State changes of objects, as a watch shows them: what explains a write.
//!
//! A version of an object is a state change if it differs from the one before in more than times and sentences; of the
//! sentences, that of a job in progress counts, as it is the phase that a user watches. `observedGeneration` counts too: by
//! it, clients know that a change of a specification is acted on.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use futures::StreamExt;
use k8s_openapi::api::core::v1::Node;
use kube::api::Api;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Client, Resource, ResourceExt};
use metalform::machine::api::host::HostObject;
use metalform::machine::api::machine::Machine;
use metalform::machine::api::machine_deployment::MachineDeployment;
use metalform::machine::api::machine_set::MachineSet;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::task::JoinSet;

/// Fields that repeat others as a sentence or as a time.
const NO_STATE: [&str; 7] = [
    "lastTransitionTime",
    "lastUpdated",
    "lastUpdateTime",
    "lastHeartbeatTime",
    "lastOperation",
    "since",
    "stateSince",
];

#[derive(Default)]
struct Seen {
    states: BTreeMap<String, State>,
    /// `patch machines/status` to how many.
    changes: BTreeMap<String, u64>,
    /// Versions without a change, each with its object.
    without: Vec<String>,
}

/// Of one object.
#[derive(Clone, PartialEq)]
struct State {
    deleting: bool,
    metadata: Value,
    spec: Value,
    status: Value,
}

/// Watches until it is dropped.
pub struct StateChanges {
    seen: Arc<Mutex<Seen>>,
    _watches: JoinSet<()>,
}

impl StateChanges {
    /// From the present objects on.
    pub async fn watch(client: &Client) -> Self {
        let seen = Arc::<Mutex<Seen>>::default();
        let mut watches = JoinSet::new();
        let (listed, mut all_listed) = tokio::sync::mpsc::channel(5);
        watches.spawn(record::<MachineDeployment>(Api::all(client.clone()), seen.clone(), listed.clone()));
        watches.spawn(record::<MachineSet>(Api::all(client.clone()), seen.clone(), listed.clone()));
        watches.spawn(record::<Machine>(Api::all(client.clone()), seen.clone(), listed.clone()));
        watches.spawn(record::<HostObject>(Api::all(client.clone()), seen.clone(), listed.clone()));
        watches.spawn(record::<Node>(Api::all(client.clone()), seen.clone(), listed));
        for _ in 0..5 {
            all_listed.recv().await.unwrap();
        }
        Self { seen, _watches: watches }
    }

    pub fn changes(&self) -> BTreeMap<String, u64> {
        self.seen.lock().unwrap().changes.clone()
    }

    pub fn without(&self) -> Vec<String> {
        self.seen.lock().unwrap().without.clone()
    }
}

async fn record<K>(api: Api<K>, seen: Arc<Mutex<Seen>>, listed: tokio::sync::mpsc::Sender<()>)
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Serialize + Send + 'static,
{
    let mut events = watcher(api, watcher::Config::default()).boxed();
    while let Some(event) = events.next().await {
        match event.unwrap() {
            Event::Init => {}
            Event::InitApply(object) => {
                seen.lock().unwrap().states.insert(object.uid().unwrap(), State::of(&object));
            }
            Event::InitDone => listed.send(()).await.unwrap(),
            Event::Apply(object) => seen.lock().unwrap().applied(&object),
            Event::Delete(object) => seen.lock().unwrap().deleted(&object),
        }
    }
}

impl Seen {
    fn applied<K: Resource<DynamicType = ()> + Serialize>(&mut self, object: &K) {
        let state = State::of(object);
        let before = self.states.insert(object.uid().unwrap(), state.clone());
        let Some(before) = before else { return self.count::<K>("create", "") };
        if state.deleting && !before.deleting {
            self.count::<K>("delete", "");
        } else if state.status != before.status {
            self.count::<K>("patch", "/status");
        } else if state != before {
            self.count::<K>("patch", "");
        } else {
            let status = serde_json::to_value(object).unwrap()["status"].take();
            self.without.push(format!("{}/{}: {status}", K::plural(&()), object.name_any()));
        }
    }

    /// The end of an object that was being deleted is the removal of its last finalizer.
    fn deleted<K: Resource<DynamicType = ()>>(&mut self, object: &K) {
        let before = self.states.remove(&object.uid().unwrap());
        let verb = if before.is_some_and(|before| before.deleting) { "patch" } else { "delete" };
        self.count::<K>(verb, "");
    }

    fn count<K: Resource<DynamicType = ()>>(&mut self, verb: &str, subresource: &str) {
        *self.changes.entry(format!("{verb} {}{subresource}", K::plural(&()))).or_default() += 1;
    }
}

impl State {
    fn of<K: Resource<DynamicType = ()> + Serialize>(object: &K) -> Self {
        let metadata = json!([
            object.labels(),
            object.annotations(),
            object.finalizers(),
            object.owner_references().len(),
        ]);
        let value = serde_json::to_value(object).unwrap();
        let mut status = value["status"].clone();
        reduce(&mut status);
        let deleting = object.meta().deletion_timestamp.is_some();
        Self { deleting, metadata, spec: value["spec"].clone(), status }
    }
}

/// Leaves the state.
fn reduce(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, _| !NO_STATE.contains(&name.as_str()));
            if fields.contains_key("reason") {
                fields.remove("observedGeneration");
                if fields["reason"] != "InProgress" {
                    fields.remove("message");
                }
            }
            fields.values_mut().for_each(reduce);
        }
        Value::Array(items) => items.iter_mut().for_each(reduce),
        _ => {}
    }
}
