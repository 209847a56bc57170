//! The lines of a terminal at one moment of a run: one for each host that is worked on, and a summary.
//!
//! Pure: takes events and returns lines. [`super::live`] draws them.

use std::collections::BTreeMap;
use std::time::Duration;

use super::diff::printable_line;
use crate::model::event::{Event, HostOutcome};
use crate::model::name::HostName;

/// The state of a run. Times are relative to its beginning.
#[derive(Debug, Default)]
pub struct Screen {
    /// Hosts that are worked on.
    hosts: BTreeMap<HostName, Line>,
    /// Hosts of a fleet; `None` for other operations.
    total: Option<usize>,
    ended: BTreeMap<HostOutcome, usize>,
    stopping: bool,
}

#[derive(Debug, Default)]
struct Line {
    /// The current activity.
    doing: String,
    /// When the activity began.
    since: Duration,
    done: usize,
    /// Resources to change; 0 until the host was planned.
    changes: usize,
}

impl Screen {
    /// Updates the state with an event at this time.
    pub fn take_in(&mut self, event: &Event, now: Duration) {
        match event {
            // The command prints it itself, or its phases and actions are shown.
            Event::PlanMade { .. }
            | Event::NodeBegun { .. }
            | Event::NodeEnded { .. }
            | Event::Reached { .. } => {}
            Event::RunBegun { hosts } => self.total = Some(*hosts),
            Event::StopAsked => self.stopping = true,
            Event::HostBegun { host } => self.doing(host, "connecting", now),
            Event::HostEnded { host, outcome, .. } => {
                self.hosts.remove(host);
                *self.ended.entry(*outcome).or_default() += 1;
            }
            Event::PhaseBegun { host, phase } => self.doing(host, phase, now),
            Event::PhaseEnded { host, .. } => {
                self.hosts.remove(host);
            }
            Event::Acted { host, action } => self.doing(host, action, now),
            Event::Waiting { host, condition, last_seen, elapsed } => {
                let text = format!("waiting for {condition}: {last_seen}");
                self.doing(host, &text, now.saturating_sub(*elapsed));
            }
            Event::Planned { host, changes, .. } => {
                let line = self.hosts.entry(host.clone()).or_default();
                (line.done, line.changes) = (0, changes.len());
            }
            Event::ResourceBegun { host, resource } => self.doing(host, resource, now),
            Event::ResourceDone { host, .. } => self.hosts.entry(host.clone()).or_default().done += 1,
            Event::ResourceFailed { host, resource, .. } => {
                self.doing(host, &format!("{resource} failed"), now);
            }
        }
    }

    fn doing(&mut self, host: &HostName, text: &str, now: Duration) {
        let line = self.hosts.entry(host.clone()).or_default();
        line.doing = printable_line(text);
        line.since = now;
    }

    /// At most `height` lines of at most `width` characters. If there are more hosts than lines, the hosts whose
    /// activity began earliest are shown.
    pub fn lines(&self, now: Duration, height: usize, width: usize) -> Vec<String> {
        let summary = self.summary(now);
        let room = height.saturating_sub(usize::from(summary.is_some()));
        let mut shown: Vec<(&HostName, &Line)> = self.hosts.iter().collect();
        let hidden = if shown.len() > room { shown.len() - room.saturating_sub(1) } else { 0 };
        if hidden > 0 {
            shown.sort_by_key(|(name, line)| (line.since, *name));
            shown.truncate(shown.len() - hidden);
            shown.sort_by_key(|(name, _)| *name);
        }
        let names = shown.iter().map(|(name, _)| name.as_str().len()).max().unwrap_or(0);
        let mut lines: Vec<String> = shown.iter().map(|(name, line)| line.text(name, names, now)).collect();
        if hidden > 0 {
            lines.push(format!("and {hidden} more"));
        }
        lines.extend(summary);
        lines.truncate(height);
        lines.into_iter().map(|line| line.chars().take(width).collect()).collect()
    }

    /// `12 of 300 hosts (1 failed), 32 in progress, 0:31`.
    fn summary(&self, now: Duration) -> Option<String> {
        let total = self.total?;
        let ended: usize = self.ended.values().sum();
        let bad: Vec<String> = [HostOutcome::Failed, HostOutcome::Unreachable, HostOutcome::Stopped]
            .iter()
            .filter_map(|outcome| Some(format!("{} {outcome}", self.ended.get(outcome)?)))
            .collect();
        let bad = if bad.is_empty() { String::new() } else { format!(" ({})", bad.join(", ")) };
        let stopping = if self.stopping { ", stopping" } else { "" };
        let in_progress = self.hosts.len();
        Some(format!("{ended} of {total} hosts{bad}, {in_progress} in progress{stopping}, {}", minutes(now)))
    }
}

impl Line {
    fn text(&self, name: &HostName, width: usize, now: Duration) -> String {
        let count =
            if self.changes > 0 { format!("{}/{}  ", self.done, self.changes) } else { String::new() };
        let elapsed = minutes(now.saturating_sub(self.since));
        format!("{:<width$}  {elapsed:>5}  {count}{}", name.as_str(), self.doing)
    }
}

/// `1:02`.
fn minutes(elapsed: Duration) -> String {
    format!("{}:{:02}", elapsed.as_secs() / 60, elapsed.as_secs() % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> HostName {
        text.parse().unwrap()
    }

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn begun(host: &str, resource: &str) -> Event {
        Event::ResourceBegun { host: name(host), resource: resource.to_owned() }
    }

    fn screen() -> Screen {
        let mut screen = Screen::default();
        let changes = vec!["package:a".to_owned(), "file:/b".to_owned()];
        for (at, event) in [
            (0, Event::RunBegun { hosts: 5 }),
            (0, Event::HostBegun { host: name("a") }),
            (0, Event::HostBegun { host: name("b-long") }),
            (1, Event::Planned { host: name("b-long"), changes, unchanged: 3 }),
            (1, begun("b-long", "package:a")),
            (3, Event::ResourceDone { host: name("b-long"), resource: "package:a".to_owned() }),
            (3, begun("b-long", "file:/b\u{1b}[2J\nx")),
            (3, Event::HostBegun { host: name("c") }),
            (
                4,
                Event::HostEnded {
                    host: name("c"),
                    outcome: HostOutcome::Failed,
                    changed: 0,
                    elapsed: seconds(1),
                },
            ),
            (5, Event::HostBegun { host: name("d") }),
        ] {
            screen.take_in(&event, seconds(at));
        }
        screen
    }

    #[test]
    fn each_host_in_progress_has_a_line_and_the_run_has_one() {
        let lines = screen().lines(seconds(62), 24, 80);
        insta::assert_snapshot!(lines.join("\n"), @r"
        a        1:02  connecting
        b-long   0:59  1/2  file:/b\u{1b}[2J x
        d        0:57  connecting
        1 of 5 hosts (1 failed), 3 in progress, 1:02
        ");
    }

    #[test]
    fn no_more_lines_and_columns_than_the_terminal() {
        let screen = screen();
        for (height, expected) in [
            (4, vec!["a", "b-long", "d", "1 of 5"]),
            (3, vec!["a", "and 2 more", "1 of 5"]),
            (2, vec!["and 3 more", "1 of 5"]),
            (1, vec!["and 3 more"]),
            (0, vec![]),
        ] {
            let lines = screen.lines(seconds(9), height, 20);
            assert_eq!(lines.len(), expected.len(), "{lines:?}");
            for (line, start) in lines.iter().zip(expected) {
                assert!(line.starts_with(start) && line.chars().count() <= 20, "{line}: {start}");
            }
        }
    }

    #[test]
    fn a_wait_shows_the_time_since_it_began() {
        let mut screen = Screen::default();
        let event = Event::Waiting {
            host: name("a"),
            condition: "a free upload slot".to_owned(),
            last_seen: "8 uploads in progress".to_owned(),
            elapsed: seconds(3),
        };
        screen.take_in(&event, seconds(5));
        assert_eq!(
            screen.lines(seconds(5), 9, 80),
            ["a   0:03  waiting for a free upload slot: 8 uploads in progress"]
        );
    }
}
