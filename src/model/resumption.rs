//! What an operator runs after an operation that did not complete: errors, records and signals name the same command.

/// What resumes an operation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ResumedBy {
    /// The same command.
    #[default]
    SameCommand,
    /// Of a recovery of etcd, once etcd and the API serve: a snapshot would be restored a second time, without what was
    /// written since.
    Expansion,
    /// Of API servers that use another member of etcd, once one answers: their own may have lost its data.
    MemberReplacement,
    /// Of a recovery of etcd that ended at an unknown step: refused once etcd and the API answer.
    Recovery,
    /// Of the restoration of a snapshot that ended at an unknown step.
    Restoration,
    /// Of a saved plan: what was done of it differs from the plan now.
    NewPlan(PlanMaker),
}

/// A command that saves plans.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlanMaker {
    /// `expand`.
    Expand,
    /// `deploy-node`.
    DeployNode,
    /// `plan`.
    Plan,
}

impl ResumedBy {
    /// Of a command that ended at an unknown step, by the words of its command line.
    pub fn of<'a>(command: impl IntoIterator<Item = &'a str>) -> Self {
        let words: Vec<&str> = command.into_iter().collect();
        let has = |word: &str| words.contains(&word);
        let etcd =
            |command: &str| words.iter().skip_while(|word| **word != "etcd").any(|word| *word == command);
        if words.iter().any(|word| *word == "--plan" || word.starts_with("--plan=")) {
            let deploys = has("deploy-node") || has("deploy_node");
            Self::NewPlan(match (has("apply"), deploys) {
                (true, _) => PlanMaker::Plan,
                (false, true) => PlanMaker::DeployNode,
                (false, false) => PlanMaker::Expand,
            })
        } else if etcd("restore") {
            Self::Restoration
        } else if etcd("recover") {
            Self::Recovery
        } else {
            Self::SameCommand
        }
    }

    /// What to do.
    pub fn instruction(self) -> String {
        match self {
            Self::SameCommand => "run the same command again; it resumes".to_owned(),
            Self::Expansion => {
                "run `metalform expand` (not the same command again: etcd works already); it resumes"
                    .to_owned()
            }
            Self::MemberReplacement => "run `metalform deploy-node NAME --replace-member` for each node that failed \
                                        (not the same command again: API servers use etcd already); it resumes"
                .to_owned(),
            Self::Recovery => "run the same command again; where it is refused since etcd works, run `metalform expand`; \
                               both resume"
                .to_owned(),
            Self::Restoration => {
                "where `metalform etcd health` shows that etcd works, run `metalform expand`; otherwise run the \
                 same command again"
                    .to_owned()
            }
            Self::NewPlan(maker) => {
                format!("a plan that was begun cannot be used again: make a new one, {}", maker.command())
            }
        }
    }

    /// What to do after something else: `fix this`.
    pub fn after(self, first: &str) -> String {
        match self {
            Self::SameCommand | Self::Expansion | Self::MemberReplacement | Self::Recovery => {
                format!("{first}, then {}", self.instruction())
            }
            Self::Restoration | Self::NewPlan(_) => format!("{first}; {}", self.instruction()),
        }
    }
}

impl PlanMaker {
    fn command(self) -> &'static str {
        match self {
            Self::Expand => "`metalform expand --dry-run --out FILE`",
            Self::DeployNode => "`metalform deploy-node NAME --dry-run --out FILE`",
            Self::Plan => "`metalform plan --out FILE`",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_is_restored_once_and_a_plan_is_used_once() {
        for (command, expected) in [
            ("metalform expand", ResumedBy::SameCommand),
            ("metalform deploy-node restore", ResumedBy::SameCommand),
            ("metalform etcd recover --member etcd-1", ResumedBy::Recovery),
            ("metalform etcd restore a.db", ResumedBy::Restoration),
            ("metalform --tree etc etcd -q restore a.db --yes-i-have-read-the-plan", ResumedBy::Restoration),
            ("metalform expand --plan p", ResumedBy::NewPlan(PlanMaker::Expand)),
            ("metalform deploy_node --plan=p", ResumedBy::NewPlan(PlanMaker::DeployNode)),
            ("metalform apply --plan p", ResumedBy::NewPlan(PlanMaker::Plan)),
        ] {
            assert_eq!(ResumedBy::of(command.split(' ')), expected, "{command}");
        }
    }

    #[test]
    fn what_resumes_is_one_sentence_after_what_is_to_be_done_first() {
        for (resumed, expected) in [
            (ResumedBy::SameCommand, "fix this, then run the same command again; it resumes"),
            (
                ResumedBy::Expansion,
                "fix this, then run `metalform expand` (not the same command again: etcd works already); it resumes",
            ),
            (
                ResumedBy::NewPlan(PlanMaker::Expand),
                "fix this; a plan that was begun cannot be used again: make a new one, `metalform expand --dry-run --out FILE`",
            ),
        ] {
            assert_eq!(resumed.after("fix this"), expected);
        }
    }
}
