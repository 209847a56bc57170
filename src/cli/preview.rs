//! `--dry-run` of operations: what each phase would do.

use std::process::ExitCode;

use clap::Args;

use super::failure::Exit;
use super::summary;
use crate::operation::dry_run::{PhasePreview, PlannedAction, Preview, Unforeseen};
use crate::report::diff::{self, Paint};

/// Options of a dry run.
#[derive(Debug, Args)]
pub struct DryRun {
    /// Only show what each phase would do, with diffs; changes nothing
    #[arg(long)]
    pub dry_run: bool,
    /// With --dry-run: exit with code 2 when there are changes
    #[arg(long, requires = "dry_run")]
    detailed_exitcode: bool,
}

impl DryRun {
    /// The exit code of a command that did not fail.
    pub fn exit_code(&self, changes: bool) -> ExitCode {
        if self.detailed_exitcode && changes {
            ExitCode::from(Exit::Changes as u8)
        } else {
            ExitCode::SUCCESS
        }
    }
}

/// What a run would do: a paragraph for each phase that does not hold.
pub fn text(name: &str, preview: &Preview, paint: Paint) -> String {
    let mut text = format!("Plan for {name}\n");
    for phase in &preview.phases {
        text.push_str(&phase_text(name, phase, paint));
    }
    let changes = preview.phases.iter().flat_map(|phase| &phase.actions);
    let lasting = changes.filter(|planned| planned.action.lasts()).count();
    match lasting {
        0 => text.push_str("Nothing to change\n"),
        1 => text.push_str("1 action planned\n"),
        _ => text.push_str(&format!("{lasting} actions planned\n")),
    }
    text
}

fn phase_text(name: &str, phase: &PhasePreview, paint: Paint) -> String {
    if phase.actions.is_empty() && phase.end.is_none() {
        return format!("{}: holds\n", phase.title);
    }
    let mut text = format!("{}:\n", phase.title);
    for planned in &phase.actions {
        text.push_str(&action_text(planned, paint));
    }
    match &phase.end {
        None => {}
        Some(Unforeseen::Wait { condition, last_seen }) => {
            text.push_str(&format!("  wait for {condition} (now: {last_seen})\n"));
        }
        Some(Unforeseen::Unseen { look, reason }) => {
            text.push_str(&format!("  further actions depend on the result (could not {look}: {reason})\n"));
        }
        Some(Unforeseen::Blocked(blocker)) => {
            for line in summary::blocked(name, blocker).errors {
                text.push_str(&format!("  blocked as things are now: {line}\n"));
            }
        }
    }
    text
}

fn action_text(planned: &PlannedAction, paint: Paint) -> String {
    let mut text = format!("  {}\n", planned.action.sentence());
    for (id, differences) in &planned.changes {
        for line in diff::text(id, differences, paint).lines() {
            text.push_str(&format!("  {line}\n"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operation::effect::Action;
    use crate::resource::contract::change::Difference;

    #[test]
    fn a_phase_shows_its_actions_with_diffs_and_the_end_of_foresight() {
        let text_of =
            Difference::Text { path: "/etc/a".to_owned(), before: String::new(), after: "a\n".to_owned() };
        let kubelet = PlannedAction {
            action: Action::RestartKubelet,
            changes: vec![("file:/etc/a".to_owned(), vec![text_of])],
        };
        let token = PlannedAction { action: Action::CreateJoinToken, changes: Vec::new() };
        let unseen = Unforeseen::Unseen {
            look: "check the API server".to_owned(),
            reason: "connection refused".to_owned(),
        };
        let phase = |title, actions, end| PhasePreview { title, actions, end };
        let preview = Preview {
            phases: vec![
                phase("Reachable", Vec::new(), None),
                phase("Base system", vec![token, kubelet], None),
                phase("Control plane", Vec::new(), Some(unseen)),
            ],
        };
        insta::assert_snapshot!(text("node-1", &preview, Paint::Plain), @"
        Plan for node-1
        Reachable: holds
        Base system:
          create a join token
          restart the kubelet
            file:/etc/a
              --- /etc/a
              +++ /etc/a
              @@ -0,0 +1 @@
              +a
        Control plane:
          further actions depend on the result (could not check the API server: connection refused)
        1 action planned
        ");
    }
}
