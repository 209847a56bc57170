//! A line that changes while something is under way, and one that stays for each thing that ended.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use super::plain;
use crate::model::event::Event;

/// A spinner with what is being done, for how long.
#[derive(Debug)]
pub struct Live {
    bar: ProgressBar,
}

impl Live {
    /// On standard error.
    pub fn new() -> Self {
        let bar = ProgressBar::new_spinner();
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} ({elapsed})") {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(120));
        Self { bar }
    }

    /// Tells of one event.
    pub fn event(&self, event: &Event) {
        match event {
            Event::PhaseBegun { host, phase } => self.bar.set_message(format!("{host}: {phase}")),
            Event::Acted { host, action } => self.bar.set_message(format!("{host}: {action}")),
            Event::Planned { .. } | Event::ResourceDone { .. } => {}
            Event::ResourceBegun { host, resource } => self.bar.set_message(format!("{host}: {resource}")),
            Event::Waiting { host, condition, last_seen, .. } => {
                self.bar.set_message(format!("{host}: waiting for {condition}: {last_seen}"));
            }
            Event::PhaseEnded { .. } | Event::ResourceFailed { .. } => {
                if let Some(line) = plain::line(event) {
                    self.bar.suspend(|| super::to_stderr(&line));
                }
            }
        }
    }
}

impl Default for Live {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
