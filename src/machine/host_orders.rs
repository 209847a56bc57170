//! What an operator has ordered of a Host by annotations ([`super::host_change`]).

use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt;
use serde_json::{Map, json};

use super::api::host::HostObject;
use super::api::host_status::HostStatus;
use super::host_state::HostOrders;
use super::job_outcome::HostPresence;
use super::object_write::ObjectWrite;
use crate::model::api_contract::{HOST_INSPECT, HOST_LOST, HOST_POWERED_OFF, HOST_QUARANTINE, HOST_RELEASE};

/// How long a host may take to switch off after its operator has confirmed it.
const SWITCHING_OFF: SignedDuration = SignedDuration::from_mins(1);

/// The orders, for a Host with this status.
pub(super) fn orders(host: &HostObject, status: &HostStatus) -> HostOrders {
    let has = |key: &str| host.annotations().contains_key(key);
    let inspected = status.inspected_at.as_ref().map(|time| time.0);
    HostOrders {
        lost: has(HOST_LOST),
        powered_off: has(HOST_POWERED_OFF),
        quarantine: has(HOST_QUARANTINE),
        release: has(HOST_RELEASE),
        inspect: has(HOST_INSPECT) && inspected.is_none_or(|at| at < ordered_at(host, HOST_INSPECT)),
    }
}

/// Removes the confirmation that the host is off, once it answers: it is not to hold for the next time.
pub fn withdrawn_power_order(
    host: &HostObject,
    presence: Option<(HostPresence, Timestamp)>,
) -> Option<ObjectWrite<HostObject>> {
    let answered = presence.and_then(|(presence, at)| (presence == HostPresence::Answers).then_some(at))?;
    if !host.annotations().contains_key(HOST_POWERED_OFF) {
        return None;
    }
    let since = answered.duration_since(ordered_at(host, HOST_POWERED_OFF));
    (since > SWITCHING_OFF).then(|| without(host, HOST_POWERED_OFF))
}

/// Removes the order to release the host, which is carried out.
pub(super) fn without_release(host: &HostObject) -> ObjectWrite<HostObject> {
    without(host, HOST_RELEASE)
}

fn without(host: &HostObject, annotation: &str) -> ObjectWrite<HostObject> {
    let annotations = ("annotations".to_owned(), json!({ annotation: null }));
    ObjectWrite::patch(host, Map::from_iter([annotations]), Map::new())
}

/// A value that is no time is one long ago.
fn ordered_at(host: &HostObject, annotation: &str) -> Timestamp {
    let time = host.annotations().get(annotation).and_then(|text| text.parse().ok());
    time.unwrap_or(Timestamp::UNIX_EPOCH)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::api::host::HostSpec;

    fn host(annotations: &[(&str, &str)]) -> HostObject {
        let spec: HostSpec = serde_json::from_value(json!({ "address": "192.0.2.1" })).unwrap();
        let mut host = HostObject::new("h1", spec);
        let all = annotations.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        host.metadata.annotations = Some(all.collect());
        host
    }

    const NOON: &str = "2026-01-01T12:00:00Z";

    #[test]
    fn every_order_is_an_annotation() {
        let status = |inspected: &str| -> HostStatus {
            serde_json::from_value(json!({ "inspectedAt": inspected })).unwrap()
        };
        let never = HostStatus::default();
        let none = HostOrders::default();
        for (annotation, value, status, expected) in [
            (HOST_LOST, "stolen", &never, HostOrders { lost: true, ..none }),
            (HOST_POWERED_OFF, NOON, &never, HostOrders { powered_off: true, ..none }),
            (HOST_QUARANTINE, "", &never, HostOrders { quarantine: true, ..none }),
            (HOST_RELEASE, NOON, &never, HostOrders { release: true, ..none }),
            (HOST_INSPECT, NOON, &never, HostOrders { inspect: true, ..none }),
            (HOST_INSPECT, NOON, &status("2026-01-01T11:59:59Z"), HostOrders { inspect: true, ..none }),
            (HOST_INSPECT, NOON, &status(NOON), none),
            (HOST_INSPECT, "soon", &status(NOON), none),
            ("other", NOON, &never, none),
        ] {
            assert_eq!(orders(&host(&[(annotation, value)]), status), expected, "{annotation} {value}");
        }
    }

    #[test]
    fn a_confirmation_ends_when_the_host_answers_after_it() {
        let at = |text: &str| -> Timestamp { text.parse().unwrap() };
        let off = &[(HOST_POWERED_OFF, NOON)][..];
        for (annotations, presence, time, expected) in [
            (off, HostPresence::Answers, "2026-01-01T12:01:01Z", true),
            (off, HostPresence::Answers, "2026-01-01T12:01:00Z", false),
            (off, HostPresence::Answers, "2026-01-01T11:00:00Z", false),
            (off, HostPresence::Silent, "2026-01-01T13:00:00Z", false),
            (off, HostPresence::Off, "2026-01-01T13:00:00Z", false),
            (&[], HostPresence::Answers, "2026-01-01T13:00:00Z", false),
        ] {
            let found = withdrawn_power_order(&host(annotations), Some((presence, at(time))));
            assert_eq!(found.is_some(), expected, "{annotations:?} {presence:?} {time}");
        }
        assert_eq!(withdrawn_power_order(&host(off), None), None);
    }
}
