//! Progress on a terminal: lines that change while hosts are worked on, and one that stays for each thing that ended.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use console::Term;
use indicatif::{ProgressBar, ProgressState, ProgressStyle};

use super::plain::{self, Detail};
use super::screen::Screen;
use crate::model::event::Event;

/// How often the lines are redrawn; often enough that seconds are not skipped.
const TICK: Duration = Duration::from_millis(200);

/// The lines at the bottom of a terminal; cleared when dropped.
#[derive(Debug)]
pub struct Live {
    bar: ProgressBar,
    screen: Arc<Mutex<Screen>>,
}

impl Live {
    /// On standard error.
    pub fn new() -> Self {
        let bar = ProgressBar::new_spinner();
        let screen = Arc::new(Mutex::new(Screen::default()));
        let drawn = Arc::clone(&screen);
        let draw = move |state: &ProgressState, out: &mut dyn std::fmt::Write| {
            let (height, width) = Term::stderr().size();
            let screen = drawn.lock().unwrap_or_else(PoisonError::into_inner);
            // The last line stays free, and so does the last column: a full one would wrap.
            let lines = screen.lines(
                state.elapsed(),
                usize::from(height).saturating_sub(1),
                usize::from(width).saturating_sub(1),
            );
            // Writing to a string does not fail.
            let _ = out.write_str(&lines.join("\n"));
        };
        if let Ok(style) = ProgressStyle::with_template("{screen}") {
            bar.set_style(style.with_key("screen", draw));
        }
        bar.enable_steady_tick(TICK);
        Self { bar, screen }
    }

    /// Shows one event.
    pub fn event(&self, event: &Event) {
        self.screen.lock().unwrap_or_else(PoisonError::into_inner).take_in(event, self.bar.elapsed());
        let stays =
            !matches!(event, Event::Acted { .. } | Event::Waiting { .. } | Event::ResourceDone { .. });
        if let Some(line) = plain::line(event, Detail::Resources).filter(|_| stays) {
            self.bar.suspend(|| super::to_stderr(&line));
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
