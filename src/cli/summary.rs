//! How an expansion ended: the table of phases, the counts, the errors.

use super::failure::{Exit, Failure};
use crate::model::error_chain::error_chain;
use crate::operation::phase::Blocker;
use crate::operation::run::{RunError, Summary};
use crate::operation::site::Class;
use crate::report::plain::seconds;

/// The table of phases with their times, and the counts that the operator looks for.
pub fn text(name: &str, summary: &Summary) -> String {
    let width = summary.phases.iter().map(|phase| phase.title.len()).max().unwrap_or(0);
    let mut text = format!("Summary for {name}\n{}\n", "-".repeat(width + 24));
    for phase in &summary.phases {
        let changed = if phase.changed > 0 { format!("  {} changed", phase.changed) } else { String::new() };
        text.push_str(&format!("{:<width$}  {:>9}{changed}\n", phase.title, seconds(phase.elapsed)));
    }
    text.push_str(&format!(
        "{}\nSucceeded: {} (changed={})\nFailed:    0\nTotal run time: {}\n",
        "-".repeat(width + 24),
        summary.phases.len(),
        summary.changed,
        seconds(summary.elapsed)
    ));
    text
}

/// What the operator must know of a run that failed.
pub fn failure(name: &str, error: &RunError) -> Failure {
    match error {
        RunError::Blocked { blocker, .. } => blocked(name, blocker),
        RunError::TimedOut { .. } | RunError::Futile { .. } => {
            Failure::new(Exit::Host, format!("{name}: {error}")).hint(format!(
                "look at the node (journalctl -u kubelet), then run metalform deploy-node {name} again"
            ))
        }
        RunError::Trouble { source, .. } => {
            let exit = match source.class() {
                Class::Configuration => Exit::Configuration,
                Class::Ssh => Exit::Ssh,
                Class::Host => Exit::Host,
                Class::Etcd => Exit::Etcd,
                Class::Api => Exit::Api,
            };
            let failure = Failure::new(exit, format!("{name}: {}", error_chain(error)));
            match hint(exit, name) {
                Some(hint) => failure.hint(hint),
                None => failure,
            }
        }
    }
}

fn hint(exit: Exit, name: &str) -> Option<String> {
    match exit {
        Exit::Ssh => Some(format!("metalform node check {name} tests the way to the host")),
        Exit::Host => Some("when that is mended, the same command goes on from here".to_owned()),
        Exit::Etcd => Some("metalform etcd health shows every member".to_owned()),
        Exit::Api => Some("kubectl get --raw /readyz?verbose shows what the API server lacks".to_owned()),
        _ => None,
    }
}

/// What stands in the way, one line each.
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
        Blocker::StillDiffers(ids) => Failure::new(
            Exit::Host,
            format!("{name}: still not as it should be after it was changed: {}", ids.join(", ")),
        )
        .hint("journalctl on the host says what undoes it or keeps it from starting"),
        Blocker::Etcd(obstacle) => Failure::new(Exit::Etcd, format!("{name}: {obstacle}"))
            .hint("metalform etcd members shows every member"),
        Blocker::LearnerRemoved(why) => {
            Failure::new(Exit::Etcd, format!("{name}: its etcd learner was taken out again: it {why}")).hint(
                "look at the pod etcd on it (crictl, journalctl -u kubelet), then run the same command again",
            )
        }
    }
}
