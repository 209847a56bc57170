//! What the events of a run show about each host, whether or not its work was completed.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::engine::host::EventSink;
use crate::model::event::Event;
use crate::model::name::HostName;

/// What the events of a run show about one host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostRecord {
    /// Ids of the resources to change, in order.
    pub planned: Vec<String>,
    /// Ids of the resources that were changed, in order.
    pub changed: Vec<String>,
    /// Resources that needed no change.
    pub unchanged: usize,
    /// How long the work took; `None` where it did not begin.
    pub elapsed: Option<Duration>,
}

/// Records the events of a run and passes them on.
pub struct RunRecorder<'a> {
    records: Mutex<BTreeMap<HostName, HostRecord>>,
    sink: EventSink<'a>,
}

impl<'a> RunRecorder<'a> {
    /// Passes events on to `sink`.
    pub fn new(sink: EventSink<'a>) -> Self {
        Self { records: Mutex::default(), sink }
    }

    /// Records an event and passes it on; the end of a host gets the number of resources that were changed, also
    /// where its work was not completed.
    pub fn event(&self, event: Event) {
        let event = {
            let mut records = self.records.lock().unwrap_or_else(PoisonError::into_inner);
            record(&mut records, event)
        };
        (self.sink)(event);
    }

    /// The record of every host with an event.
    pub fn into_records(self) -> BTreeMap<HostName, HostRecord> {
        self.records.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

fn record(records: &mut BTreeMap<HostName, HostRecord>, event: Event) -> Event {
    let Some(host) = event.host() else { return event };
    let record = records.entry(host.clone()).or_default();
    match event {
        Event::Planned { ref changes, unchanged, .. } => {
            record.planned.extend(changes.iter().cloned());
            // In a second pass, the resources changed by the first need no change.
            record.unchanged = unchanged.saturating_sub(record.changed.len());
        }
        Event::ResourceDone { ref resource, .. } => record.changed.push(resource.clone()),
        Event::HostEnded { host, outcome, elapsed, .. } => {
            record.elapsed = Some(elapsed);
            return Event::HostEnded { host, outcome, changed: record.changed.len(), elapsed };
        }
        _ => {}
    }
    event
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::event::HostOutcome;

    fn ids(ids: &[&str]) -> Vec<String> {
        ids.iter().map(|id| (*id).to_owned()).collect()
    }

    #[test]
    fn a_second_pass_adds_to_the_first_and_the_end_counts_what_was_changed() {
        let seen = Mutex::new(Vec::new());
        let sink = |event: Event| seen.lock().unwrap().push(event);
        let recorder = RunRecorder::new(&sink);
        let host = || "node-1".parse().unwrap();
        let ended = |changed| Event::HostEnded {
            host: host(),
            outcome: HostOutcome::Failed,
            changed,
            elapsed: Duration::from_millis(1234),
        };
        for event in [
            Event::RunBegun { hosts: 4 },
            Event::Planned { host: host(), changes: ids(&["file:/a", "command:x", "file:/b"]), unchanged: 3 },
            Event::ResourceDone { host: host(), resource: "file:/a".to_owned() },
            Event::Planned { host: host(), changes: ids(&["service:s"]), unchanged: 5 },
            ended(0),
        ] {
            recorder.event(event);
        }
        let records = recorder.into_records();
        let expected = HostRecord {
            planned: ids(&["file:/a", "command:x", "file:/b", "service:s"]),
            changed: ids(&["file:/a"]),
            unchanged: 4,
            elapsed: Some(Duration::from_millis(1234)),
        };
        assert_eq!(records.into_iter().collect::<Vec<_>>(), [(host(), expected)]);
        assert_eq!(seen.into_inner().unwrap().last(), Some(&ended(1)));
    }
}
