//! One line for each thing that ends.

use std::time::Duration;

use crate::model::event::Event;

/// The line of an event, if it has one. A resource that is done has none: a phase would have dozens.
pub fn line(event: &Event) -> Option<String> {
    match event {
        Event::PhaseBegun { .. }
        | Event::ResourceBegun { .. }
        | Event::ResourceDone { .. }
        | Event::Planned { .. } => None,
        Event::PhaseEnded { host, phase, elapsed, holds } => {
            let outcome = if *holds { "" } else { "  FAILED" };
            Some(format!("{host}: {phase:<24} {:>8}{outcome}", seconds(*elapsed)))
        }
        Event::Acted { host, action } => Some(format!("{host}:   {action}")),
        Event::Waiting { host, condition, last_seen, elapsed } => {
            Some(format!("{host}:   waiting for {condition} ({}): {last_seen}", seconds(*elapsed)))
        }
        Event::ResourceFailed { host, resource, status, .. } => {
            Some(format!("{host}:   {resource} failed with status {status}"))
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
    fn a_phase_is_one_line_with_its_time() {
        let event = Event::PhaseEnded {
            host: "node-1".parse().unwrap(),
            phase: "Base system".to_owned(),
            elapsed: Duration::from_millis(4321),
            holds: true,
        };
        assert_eq!(line(&event).unwrap(), "node-1: Base system                4.32 s");
    }
}
