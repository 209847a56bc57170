//! What a run would do, phase by phase, with diffs.

use super::diff::{self, Paint, printable};
use crate::model::name::HostName;
use crate::operation::dry_run::{PhasePreview, PlannedAction, Preview, Unforeseen};
use crate::service::operation_failure::blocker_lines;

/// What a run would do: a paragraph for each phase that does not hold.
pub fn text(name: &HostName, preview: &Preview, paint: Paint) -> String {
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

fn phase_text(name: &HostName, phase: &PhasePreview, paint: Paint) -> String {
    if phase.actions.is_empty() && phase.end.is_none() {
        return format!("{}: holds\n", phase.title);
    }
    let mut text = format!("{}:\n", phase.title);
    for planned in &phase.actions {
        text.push_str(&action_text(planned, paint));
    }
    for line in phase.end.iter().flat_map(|end| unforeseen(name, end)) {
        text.push_str(&format!("  {}\n", printable(&line)));
    }
    text
}

/// What is not known of the actions after this point, as lines.
pub(super) fn unforeseen(name: &HostName, end: &Unforeseen) -> Vec<String> {
    match end {
        Unforeseen::Wait { condition, last_seen } => vec![format!("wait for {condition} (now: {last_seen})")],
        Unforeseen::Unseen { look, reason } => {
            vec![format!("further actions depend on the result (could not {look}: {reason})")]
        }
        Unforeseen::Blocked(blocker) => {
            let lines = blocker_lines(name, blocker).into_iter();
            lines.map(|line| format!("blocked as things are now: {line}")).collect()
        }
    }
}

fn action_text(planned: &PlannedAction, paint: Paint) -> String {
    let mut text = format!("  {}\n", planned.action.sentence());
    for change in &planned.changes {
        let differences = diff::text(&change.id, &change.differences, paint);
        let unnamed = change.files.iter().filter(|path| !differences.contains(*path));
        let unnamed: String = unnamed.map(|path| format!("    writes {}\n", printable(path))).collect();
        for line in differences.lines().chain(unnamed.lines()) {
            text.push_str(&format!("  {line}\n"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operation::effect::Action;
    use crate::operation::resource_change::ResourceChange;
    use crate::resource::contract::change::Difference;

    #[test]
    fn a_phase_shows_its_actions_with_diffs_and_the_end_of_foresight() {
        let text_of =
            Difference::Text { path: "/etc/a".to_owned(), before: String::new(), after: "a\n".to_owned() };
        let kubelet = PlannedAction {
            action: Action::RestartKubelet,
            changes: vec![ResourceChange {
                id: "file:/etc/a".to_owned(),
                differences: vec![text_of],
                files: vec!["/etc/a".to_owned(), "/etc/a.key".to_owned()],
            }],
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
            ..Preview::default()
        };
        insta::assert_snapshot!(text(&"node-1".parse().unwrap(), &preview, Paint::Plain), @"
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
              writes /etc/a.key
        Control plane:
          further actions depend on the result (could not check the API server: connection refused)
        1 action planned
        ");
    }
}
