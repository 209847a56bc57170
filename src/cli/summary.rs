//! The outcome of an operation: the table of phases, the counts, the errors.

use std::time::Duration;

use super::failure::{Exit, Failure};
use crate::model::error_chain::error_chain;
use crate::operation::class::FailureClass;
use crate::operation::contract::Blocker;
use crate::operation::run::{RunError, RunSummary};
use crate::report::plain::seconds;

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

/// What the operator must know of a run that failed.
pub fn failure(name: &str, error: &RunError) -> Failure {
    if let RunError::Blocked { blocker, .. } = error {
        return blocked(name, blocker);
    }
    let Some(class) = error.class() else {
        return Failure::new(Exit::Interrupted, format!("{name}: {error}"))
            .hint("run the same command again; it resumes");
    };
    let exit = match class {
        FailureClass::Configuration => Exit::Configuration,
        FailureClass::Ssh => Exit::Ssh,
        FailureClass::Host => Exit::Host,
        FailureClass::Etcd => Exit::Etcd,
        FailureClass::Api => Exit::Api,
        FailureClass::Own => Exit::Bug,
    };
    let failure = Failure::new(exit, format!("{name}: {}", error_chain(error)));
    match hint(exit, name) {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

fn hint(exit: Exit, name: &str) -> Option<String> {
    match exit {
        Exit::Ssh => Some(format!("metalform node check {name} tests the connection to the host")),
        Exit::Host => Some("fix this, then run the same command again; it resumes".to_owned()),
        Exit::Etcd => Some("metalform etcd health shows every member".to_owned()),
        Exit::Api => {
            Some("kubectl get --raw /readyz?verbose shows which checks of the API server fail".to_owned())
        }
        _ => None,
    }
}

/// One line for each reason.
pub fn blocked(name: &str, blocker: &Blocker) -> Failure {
    match blocker {
        Blocker::Preflight(failures) => Failure {
            exit: Exit::Host,
            errors: failures.iter().map(|failure| format!("{name}: {}", failure.what)).collect(),
            hints: failures.iter().map(|failure| failure.hint.clone()).collect(),
        },
        Blocker::Refused(refusals) => Failure {
            exit: Exit::Refused,
            errors: refusals.iter().map(|(id, reason)| format!("{name}: {id}: {reason}")).collect(),
            hints: Vec::new(),
        },
        Blocker::StillDiffers(ids) => {
            Failure::new(Exit::Host, format!("{name}: still differs after apply: {}", ids.join(", ")))
                .hint("journalctl on the host shows what reverts it or keeps it from starting")
        }
        Blocker::Etcd(obstacle) => Failure::new(Exit::Etcd, format!("{name}: {obstacle}"))
            .hint("metalform etcd members shows every member"),
        Blocker::LearnerRemoved(why) => Failure::new(
            Exit::Etcd,
            format!("{name}: its etcd learner was removed again: it {why}"),
        )
        .hint("look at journalctl -u kubelet and /var/log/pods on the host, then run the same command again"),
    }
}
