//! The table of the phases of a run.

use std::time::Duration;

use super::plain::seconds;
use crate::operation::run::RunSummary;

/// The table of phases: when each began, how long it took, what it changed; and the counts.
pub fn text(name: &str, summary: &RunSummary) -> String {
    let width = summary.phases.iter().map(|phase| phase.title.len()).max().unwrap_or(0);
    let line = "-".repeat(width + 35);
    let row = |title: &str, start: &str, duration: &str, changed: &str| {
        format!("{title:<width$}  {start:>9}  {duration:>9}{changed}\n")
    };
    let mut text = format!("Summary for {name}\n");
    text.push_str(&row("", "start", "duration", ""));
    text.push_str(&format!("{line}\n"));
    for phase in &summary.phases {
        let changed = if phase.changed > 0 { format!("  {} changed", phase.changed) } else { String::new() };
        text.push_str(&row(phase.title, &offset(phase.began), &seconds(phase.elapsed), &changed));
    }
    text.push_str(&format!(
        "{line}\nSucceeded: {} (changed={})\nFailed:    0\nSum of phases: {}\nTotal run time: {}\n",
        summary.phases.len(),
        summary.changed,
        seconds(summary.sum_of_phases()),
        seconds(summary.elapsed)
    ));
    text
}

fn offset(began: Duration) -> String {
    format!("+{}", seconds(began))
}
