//! Events of a bundle's build: on a terminal the downloads are one line that changes; elsewhere, one line now and then.

use std::io::IsTerminal;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use super::to_stderr;
use crate::bundle::event::BundleEvent;

/// Between two lines about downloads in a log.
const PAUSE: Duration = Duration::from_secs(10);

/// Writes events of a build to standard error.
#[derive(Debug)]
pub struct BundleProgress {
    /// The last line of a terminal; cleared when dropped.
    bar: Option<ProgressBar>,
    /// Of the last line about downloads.
    last: Mutex<Duration>,
}

impl BundleProgress {
    /// For a terminal where standard error is one, else for a log.
    pub fn new() -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new_spinner();
            match ProgressStyle::with_template("{wide_msg}") {
                Ok(style) => bar.with_style(style),
                Err(_) => bar,
            }
        });
        Self { bar, last: Mutex::new(Duration::ZERO) }
    }

    /// Writes one event.
    pub fn event(&self, event: &BundleEvent) {
        match (&self.bar, event) {
            (Some(bar), BundleEvent::Downloading(progress)) => bar.set_message(progress.to_string()),
            (Some(bar), event) => {
                bar.set_message("");
                bar.suspend(|| to_stderr(&event.to_string()));
            }
            (None, event) => {
                let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
                if is_due(event, &mut last) {
                    to_stderr(&event.to_string());
                }
            }
        }
    }
}

impl Default for BundleProgress {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for BundleProgress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// Whether a log has a line of the event. `last` is the time of the last line about downloads.
fn is_due(event: &BundleEvent, last: &mut Duration) -> bool {
    let BundleEvent::Downloading(progress) = event else { return true };
    let is_due = progress.elapsed >= *last + PAUSE;
    if is_due {
        *last = progress.elapsed;
    }
    is_due
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bundle::download::progress::DownloadProgress;

    #[test]
    fn a_log_has_a_line_about_downloads_every_ten_seconds() {
        let mut last = Duration::ZERO;
        let mut lines = Vec::new();
        for second in 1..=35 {
            let elapsed = Duration::from_secs(second);
            let progress = DownloadProgress {
                elapsed,
                finished: 0,
                artefacts: 1,
                received: 0,
                size: 0,
                is_size_complete: true,
                rate: 0,
            };
            if is_due(&BundleEvent::Downloading(progress), &mut last) {
                lines.push(second);
            }
            assert!(is_due(&BundleEvent::Reused { part: "etcd".to_owned() }, &mut last));
        }
        assert_eq!(lines, [10, 20, 30]);
    }
}
