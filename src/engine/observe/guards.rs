//! Guards: each in a shell of its own, without input and output, and with a time limit. Its script is in no argument
//! list: it may contain a secret.

use std::collections::BTreeMap;

use super::questions::Questions;
use super::{Answers, ObserveError, Section};
use crate::engine::frame::Sections;
use crate::engine::hidden_script::INTERPRETER;
use crate::model::shell_word::quote;
use crate::resource::contract::probe::{Answer, Probe};

/// The time limit.
const SECONDS: u32 = 30;

/// The most guards that run at the same time.
const AT_ONCE: usize = 8;

/// The exit status of timeout(1) after the limit.
const TIMED_OUT: i32 = 124;

pub(super) fn ask(questions: &Questions<'_>) -> Vec<Section> {
    // Side by side: a guard mostly waits for its processes.
    let run = |(number, script)| {
        format!(
            "(printf %s {} | timeout {SECONDS} {INTERPRETER} 9<&0 </dev/null >/dev/null 2>&1; echo {number} $?) &\n",
            quote(script)
        )
    };
    let mut runs: String = String::new();
    for some in questions.guards.iter().copied().enumerate().collect::<Vec<_>>().chunks(AT_ONCE) {
        runs.extend(some.iter().copied().map(run));
        runs.push_str("wait\n");
    }
    vec![("guards", runs)]
}

pub(super) fn answer(
    questions: &Questions<'_>,
    sections: &Sections,
    answers: &mut Answers,
) -> Result<(), ObserveError> {
    let text = sections.text("guards")?;
    let statuses: BTreeMap<usize, i32> = text
        .lines()
        .filter_map(|line| line.split_once(' '))
        .filter_map(|(number, status)| Some((number.parse().ok()?, status.parse().ok()?)))
        .collect();
    for (number, script) in questions.guards.iter().copied().enumerate() {
        let Some(status) = statuses.get(&number).copied() else {
            return Err(ObserveError::Unreadable { section: "guards", found: text });
        };
        let answer = match status {
            TIMED_OUT => Answer::Failed(format!("the guard did not end within {SECONDS} s")),
            status => Answer::Guard(status),
        };
        answers.insert(Probe::Guard { script: script.to_owned() }, answer);
    }
    Ok(())
}
