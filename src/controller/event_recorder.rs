//! Events about the objects that the controllers pass over.
//!
//! # Guarantees
//! - No pass waits for an Event or fails with one: the queue is bounded, and what does not fit is dropped.
//! - What is repeated within [`WINDOW`] is one Event, whose count and time change (client-go, `record.EventRecorder`). Unlike
//!   `kube::runtime::events::Recorder`, Events with different messages stay different ones.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Event, EventSource};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kube::Client;
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use tokio::sync::mpsc::Receiver;

use crate::kube_api::FIELD_MANAGER;
use crate::kube_api::client::ApiError;
use crate::machine::object_event::ObjectEvent;
use crate::model::error_chain::error_chain;

/// Events that wait until the API server has the ones before them.
pub const QUEUE: usize = 4_096;

/// The component that reports them.
const COMPONENT: &str = "metalform-machine-controller";
/// Where the API keeps Events about objects without a namespace.
const CLUSTER_NAMESPACE: &str = "default";
/// An Event that is repeated later than this is a new one.
const WINDOW: SignedDuration = SignedDuration::from_mins(10);
/// In bytes (events.k8s.io/v1, `note`).
const LONGEST_MESSAGE: usize = 1_024;

/// Object, reason and message of an Event.
type EventKey = (String, String, String);

/// Events that were created a short time ago.
#[derive(Default)]
struct RecentEvents {
    known: BTreeMap<EventKey, RecentEvent>,
    /// Part of the name of the last one, in nanoseconds.
    last: i128,
}

#[derive(Clone)]
struct RecentEvent {
    name: String,
    count: i32,
    seen: Timestamp,
}

enum EventWrite {
    Create(Box<Event>),
    Repeat(Value),
}

/// Writes the Events of a queue, in order, until its senders are gone. Failures are logged.
pub async fn record(client: Client, mut queue: Receiver<ObjectEvent>, clock: fn() -> Timestamp) {
    let mut recent = RecentEvents::default();
    while let Some(event) = queue.recv().await {
        let now = clock();
        let (recorded, write) = recent.plan(&event, now);
        match carry_out(&client, &event, &recorded.name, &write).await {
            Ok(()) => recent.keep(&event, recorded),
            Err(error) => {
                recent.known.remove(&key(&event));
                tracing::warn!(reason = event.reason, "machines: {}", error_chain(&error));
            }
        }
    }
}

impl RecentEvents {
    fn plan(&mut self, event: &ObjectEvent, now: Timestamp) -> (RecentEvent, EventWrite) {
        self.known.retain(|_, recent| now.duration_since(recent.seen) < WINDOW);
        if let Some(recent) = self.known.get(&key(event)) {
            let count = recent.count.saturating_add(1);
            let patch = json!({ "count": count, "lastTimestamp": Time(now) });
            return (RecentEvent { count, seen: now, name: recent.name.clone() }, EventWrite::Repeat(patch));
        }
        // Two of one time have different names.
        self.last = now.as_nanosecond().max(self.last + 1);
        let name = format!("{}.{:x}", event.object.name.as_deref().unwrap_or_default(), self.last);
        let created = EventWrite::Create(Box::new(object(event, &name, now)));
        (RecentEvent { name, count: 1, seen: now }, created)
    }

    fn keep(&mut self, event: &ObjectEvent, recent: RecentEvent) {
        self.known.insert(key(event), recent);
    }
}

fn key(event: &ObjectEvent) -> EventKey {
    (event.object.uid.clone().unwrap_or_default(), event.reason.clone(), event.message.clone())
}

fn namespace(event: &ObjectEvent) -> &str {
    event.object.namespace.as_deref().unwrap_or(CLUSTER_NAMESPACE)
}

fn object(event: &ObjectEvent, name: &str, now: Timestamp) -> Event {
    let message = &event.message[..event.message.floor_char_boundary(LONGEST_MESSAGE)];
    Event {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            namespace: Some(namespace(event).to_owned()),
            ..ObjectMeta::default()
        },
        involved_object: event.object.clone(),
        type_: Some(if event.warning { "Warning" } else { "Normal" }.to_owned()),
        reason: Some(event.reason.clone()),
        message: Some(message.to_owned()),
        first_timestamp: Some(Time(now)),
        last_timestamp: Some(Time(now)),
        count: Some(1),
        reporting_component: Some(COMPONENT.to_owned()),
        source: Some(EventSource { component: Some(COMPONENT.to_owned()), host: None }),
        ..Event::default()
    }
}

async fn carry_out(
    client: &Client,
    event: &ObjectEvent,
    name: &str,
    write: &EventWrite,
) -> Result<(), ApiError> {
    let api: Api<Event> = Api::namespaced(client.clone(), namespace(event));
    let manager = Some(FIELD_MANAGER.to_owned());
    let (verb, written) = match write {
        EventWrite::Create(object) => {
            let creating = PostParams { field_manager: manager, ..PostParams::default() };
            ("create", api.create(&creating, object).await)
        }
        EventWrite::Repeat(patch) => {
            let patching = PatchParams { field_manager: manager, ..PatchParams::default() };
            ("patch", api.patch(name, &patching, &Patch::Merge(patch)).await)
        }
    };
    written.map(drop).map_err(|error| ApiError::new(verb, format!("event/{name}"), error))
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ObjectReference;

    use super::*;

    fn event(kind: &str, reason: &str, message: &str) -> ObjectEvent {
        let object = ObjectReference {
            api_version: Some("cluster.k8s.io/v1alpha1".to_owned()),
            kind: Some(kind.to_owned()),
            name: Some("m1".to_owned()),
            namespace: (kind != "Host").then(|| "a".to_owned()),
            uid: Some(kind.to_owned()),
            ..ObjectReference::default()
        };
        ObjectEvent { object, warning: true, reason: reason.to_owned(), message: message.to_owned() }
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).unwrap()
    }

    #[test]
    fn an_event_has_what_describe_and_older_programs_read() {
        let (_, EventWrite::Create(created)) =
            RecentEvents::default().plan(&event("Machine", "HostLost", "x"), at(0))
        else {
            panic!("it is new");
        };
        insta::assert_yaml_snapshot!(created, @r#"
        apiVersion: v1
        kind: Event
        count: 1
        firstTimestamp: "2027-01-15T08:00:00Z"
        involvedObject:
          apiVersion: cluster.k8s.io/v1alpha1
          kind: Machine
          name: m1
          namespace: a
          uid: Machine
        lastTimestamp: "2027-01-15T08:00:00Z"
        message: x
        metadata:
          name: m1.18fae27693b40000
          namespace: a
        reason: HostLost
        reportingComponent: metalform-machine-controller
        source:
          component: metalform-machine-controller
        type: Warning
        "#);
    }

    /// Each row: when, which Event, its count, and whether its name is new.
    #[test]
    fn what_is_repeated_within_ten_minutes_is_counted() {
        let mut recent = RecentEvents::default();
        let mut names = std::collections::BTreeSet::new();
        let table = [
            (0, event("Machine", "A", "x"), (1, true)),
            (0, event("Machine", "A", "y"), (1, true)),
            (0, event("Host", "A", "x"), (1, true)),
            (0, event("Machine", "B", "x"), (1, true)),
            (1, event("Machine", "A", "x"), (2, false)),
            (600, event("Machine", "A", "x"), (3, false)),
            (600, event("Machine", "A", "y"), (1, true)),
            (1_200, event("Machine", "A", "x"), (1, true)),
        ];
        for (second, event, expected) in table {
            let (planned, write) = recent.plan(&event, at(second));
            match &write {
                EventWrite::Create(created) => assert_eq!(created.metadata.name, Some(planned.name.clone())),
                EventWrite::Repeat(patch) => {
                    let expected = json!({ "count": planned.count, "lastTimestamp": Time(at(second)) });
                    assert_eq!(*patch, expected);
                }
            }
            assert_eq!((planned.count, names.insert(planned.name.clone())), expected, "{second} {event:?}");
            recent.keep(&event, planned);
        }
    }

    #[test]
    fn an_event_about_a_host_is_in_the_default_namespace_and_a_long_message_is_cut() {
        let long = object(&event("Host", "A", &"ä".repeat(600)), "n", at(0));
        assert_eq!(long.metadata.namespace.as_deref(), Some("default"));
        assert_eq!(long.involved_object.namespace, None);
        assert_eq!(long.message.unwrap(), "ä".repeat(512));
        let odd = object(&event("Host", "A", &format!("a{}", "ä".repeat(600))), "n", at(0));
        assert_eq!(odd.message.unwrap().len(), 1_023, "no character is cut");
    }
}
