//! `metalform apply`.

use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};

use clap::Args;
use serde::Serialize;

use super::failure::Failure;
use super::host_trouble::{self, HostTrouble, Outcomes};
use super::output::{Format, document, print};
use super::states::{StateArguments, StateWork};
use super::{Global, plan, setting};
use crate::engine::host::HostError;
use crate::model::event::Event;
use crate::report::Reporter;
use crate::report::diff::printable;
use crate::resource::step::CertificateRequest;

/// Make hosts what states say, without a cluster
///
/// Applied again, it changes nothing that is right. A host that cannot be reached is set aside and listed: exit
/// code 3 when nothing else went wrong, 4 when a host failed.
#[derive(Debug, Args)]
pub struct Apply {
    #[command(flatten)]
    states: StateArguments,
    /// Only show what would change, as `plan` does
    #[arg(long)]
    dry_run: bool,
    /// With --dry-run: exit with code 2 when there are changes
    #[arg(long, requires = "dry_run")]
    detailed_exitcode: bool,
    /// Output format
    #[arg(long, short, default_value = "table")]
    output: Format,
}

/// Lines of a failed resource's output that are shown.
const LAST_LINES: usize = 10;

/// What was done on a host, whether or not it came to the end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Done {
    changed: Vec<String>,
    unchanged: usize,
    failed: Option<HostError>,
}

impl Done {
    fn take_in(&mut self, event: &Event) {
        match event {
            Event::Planned { unchanged, .. } => self.unchanged = *unchanged,
            Event::ResourceDone { resource, .. } => self.changed.push(resource.clone()),
            _ => {}
        }
    }
}

impl Apply {
    /// Runs it.
    ///
    /// # Errors
    /// For each host that is not what its states say, one line.
    pub async fn run(&self, global: &Global) -> Result<ExitCode, Failure> {
        let work = self.states.read(global).await?;
        if self.dry_run {
            return plan::plan(&work, self.output, self.detailed_exitcode).await;
        }
        let outcomes = apply(&work, &setting::reporter(global)).await;
        show(&outcomes, self.output)?;
        let failed: Vec<(_, HostTrouble)> = outcomes
            .iter()
            .filter_map(|(host, outcome)| match outcome {
                Err(trouble) => Some((host, trouble.clone())),
                Ok(done) => Some((host, HostTrouble::Failed(done.failed.clone()?))),
            })
            .collect();
        match host_trouble::failure(failed.iter().map(|(host, trouble)| (*host, trouble))) {
            Some(failure) => Err(failure),
            None => Ok(ExitCode::SUCCESS),
        }
    }
}

async fn apply(work: &StateWork, reporter: &Reporter) -> Outcomes<Done> {
    // States with certificates were refused when they were compiled.
    let nobody = |_: &CertificateRequest, _: &str| Err("there is no authority outside a cluster".to_owned());
    work.each(async |seen| {
        let so_far = Mutex::new(Done::default());
        let events = |event: Event| {
            so_far.lock().unwrap_or_else(PoisonError::into_inner).take_in(&event);
            reporter.event(&event);
        };
        match seen.host.converge(seen.looked, &nobody, &events).await {
            Ok(done) => Ok(Done { changed: done.changed, unchanged: done.unchanged, failed: None }),
            // The way to the host broke: it says nothing of the host, and the fleet tells it apart.
            Err(error @ HostError::Transport(_)) => Err(error),
            Err(error) => Ok(Done {
                failed: Some(error),
                ..so_far.into_inner().unwrap_or_else(PoisonError::into_inner)
            }),
        }
    })
    .await
}

/// One host, for programs.
#[derive(Debug, Serialize)]
struct Row {
    host: String,
    outcome: &'static str,
    changed: Vec<String>,
    unchanged: usize,
    errors: Vec<String>,
    /// The last of what the failing resource printed.
    output: Vec<String>,
}

fn row(host: String, outcome: &Result<Done, HostTrouble>) -> Row {
    let nothing = |outcome, trouble: &HostTrouble| Row {
        host: host.clone(),
        outcome,
        changed: Vec::new(),
        unchanged: 0,
        errors: trouble.lines(),
        output: Vec::new(),
    };
    match outcome {
        Err(trouble @ HostTrouble::Unreachable(_)) => nothing("unreachable", trouble),
        Err(trouble) => nothing("failed", trouble),
        Ok(done) => Row {
            outcome: match (&done.failed, done.changed.is_empty()) {
                (Some(_), _) => "failed",
                (None, true) => "unchanged",
                (None, false) => "changed",
            },
            changed: done.changed.clone(),
            unchanged: done.unchanged,
            errors: done.failed.iter().flat_map(|error| HostTrouble::Failed(error.clone()).lines()).collect(),
            output: done.failed.as_ref().map(last_lines).unwrap_or_default(),
            host,
        },
    }
}

fn last_lines(error: &HostError) -> Vec<String> {
    let HostError::Failed { output, .. } = error else { return Vec::new() };
    let lines: Vec<&str> = output.trim_end().lines().collect();
    lines[lines.len().saturating_sub(LAST_LINES)..].iter().map(|line| (*line).to_owned()).collect()
}

fn show(outcomes: &Outcomes<Done>, format: Format) -> Result<(), Failure> {
    let rows: Vec<Row> = outcomes.iter().map(|(host, outcome)| row(host.to_string(), outcome)).collect();
    match format {
        Format::Json | Format::Yaml => document(format, &rows),
        Format::Name => print(&rows.iter().map(|row| format!("{}\n", row.host)).collect::<String>()),
        Format::Table | Format::Wide => print(&rows.iter().map(text).collect::<String>()),
    }
}

/// One line a host, and below it the end of what its failing resource printed.
fn text(row: &Row) -> String {
    let counts = format!("{}: changed={} unchanged={}", row.host, row.changed.len(), row.unchanged);
    let mut text = match row.outcome {
        "unreachable" => format!("{}: unreachable\n", row.host),
        "failed" => format!("{counts} failed\n"),
        _ => format!("{counts}\n"),
    };
    for line in &row.output {
        text.push_str(&format!("    {}\n", printable(line)));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_that_failed_is_one_line_and_the_end_of_what_it_printed() {
        let output = (0..20).map(|n| format!("line {n}\n")).collect();
        let error = HostError::Failed { resources: vec!["command:x".to_owned()], status: 1, output };
        let done = Done { changed: vec!["file:/a".to_owned()], unchanged: 3, failed: Some(error) };
        let text = text(&row("a".to_owned(), &Ok(done)));
        assert!(text.starts_with("a: changed=1 unchanged=3 failed\n    line 10\n"), "{text}");
        assert!(text.ends_with("line 19\n"), "{text}");
    }
}
