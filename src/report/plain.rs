//! Events as plain lines.

use std::time::Duration;

use super::diff::printable;
use crate::model::event::{Event, HostOutcome};

/// How much is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// Phases, their actions and waits; not their resources, of which there are dozens.
    Phases,
    /// Each changed resource too.
    Resources,
}

/// The line of an event; `None` for events that are not shown.
pub fn line(event: &Event, detail: Detail) -> Option<String> {
    match event {
        Event::RunBegun { .. }
        | Event::PlanMade { .. }
        | Event::HostBegun { .. }
        | Event::NodeBegun { .. }
        | Event::NodeEnded { .. }
        | Event::Reached { .. }
        | Event::PhaseBegun { .. }
        | Event::ResourceBegun { .. }
        | Event::Planned { .. } => None,
        Event::ResourceDone { .. } if detail == Detail::Phases => None,
        Event::ResourceDone { host, resource } => Some(format!("{host}: {} done", printable(resource))),
        Event::StopAsked => Some(
            "stopping: each host finishes its current resource, and no further host starts; interrupt again to \
             stop at once"
                .to_owned(),
        ),
        Event::HostEnded { host, outcome, changed, elapsed } => {
            let time = seconds(*elapsed);
            Some(match (outcome, changed) {
                (HostOutcome::Changed, changed) => format!("{host}: {changed} changed in {time}"),
                (outcome, 0) => format!("{host}: {outcome} in {time}"),
                (outcome, changed) => format!("{host}: {outcome} in {time}, {changed} changed"),
            })
        }
        Event::PhaseEnded { host, phase, elapsed, holds } => {
            let outcome = if *holds { "" } else { "  FAILED" };
            Some(format!("{host}: {phase:<24} {:>8}{outcome}", seconds(*elapsed)))
        }
        Event::Acted { host, action } => Some(format!("{host}:   {}", printable(action))),
        Event::Waiting { host, condition, last_seen, elapsed } => {
            let (condition, last_seen) = (printable(condition), printable(last_seen));
            Some(format!("{host}:   waiting for {condition} ({}): {last_seen}", seconds(*elapsed)))
        }
        Event::ResourceFailed { host, resource, status, .. } => {
            Some(format!("{host}:   {} failed with status {status}", printable(resource)))
        }
    }
}

/// `12.34 s`.
pub fn seconds(elapsed: Duration) -> String {
    format!("{:.2} s", elapsed.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_thing_that_ends_is_one_line() {
        let host = || "node-1".parse().unwrap();
        let elapsed = Duration::from_millis(4321);
        let ended = |outcome, changed| Event::HostEnded { host: host(), outcome, changed, elapsed };
        let resource = || "file:/a".to_owned();
        for (event, in_phases, with_resources) in [
            (
                Event::PhaseEnded { host: host(), phase: "Base system".to_owned(), elapsed, holds: true },
                Some("node-1: Base system                4.32 s"),
                Some("node-1: Base system                4.32 s"),
            ),
            (Event::ResourceDone { host: host(), resource: resource() }, None, Some("node-1: file:/a done")),
            (Event::ResourceBegun { host: host(), resource: resource() }, None, None),
            (
                ended(HostOutcome::Changed, 3),
                Some("node-1: 3 changed in 4.32 s"),
                Some("node-1: 3 changed in 4.32 s"),
            ),
            (
                ended(HostOutcome::Unchanged, 0),
                Some("node-1: unchanged in 4.32 s"),
                Some("node-1: unchanged in 4.32 s"),
            ),
            (
                ended(HostOutcome::Failed, 3),
                Some("node-1: failed in 4.32 s, 3 changed"),
                Some("node-1: failed in 4.32 s, 3 changed"),
            ),
        ] {
            assert_eq!(line(&event, Detail::Phases).as_deref(), in_phases, "{event:?}");
            assert_eq!(line(&event, Detail::Resources).as_deref(), with_resources, "{event:?}");
        }
    }
}
