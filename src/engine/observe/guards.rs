//! Guards: each in a subshell of its own, without input and output, and with a time limit. Its script is in no argument
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
const TIMED_OUT: &str = "124";

pub(super) fn ask(questions: &Questions<'_>) -> Vec<Section> {
    // Side by side: a guard mostly waits for its processes. The inner shell is the one that a guard may exit from.
    let run = |(number, guard): &(usize, &str)| {
        format!("((eval {}) >/dev/null; echo {number} $?) &\n", quote(guard))
    };
    let mut runs = String::new();
    let guards: Vec<(usize, &str)> = questions.guards.iter().copied().enumerate().collect();
    for some in guards.chunks(AT_ONCE) {
        let script = quote(&format!("{}wait", some.iter().map(run).collect::<String>()));
        runs.push_str(&format!(
            "printf %s {script} | timeout {SECONDS} {INTERPRETER} 9<&0 </dev/null 2>/dev/null\necho ended $?\n"
        ));
    }
    vec![("guards", runs)]
}

pub(super) fn answer(
    questions: &Questions<'_>,
    sections: &Sections,
    answers: &mut Answers,
) -> Result<(), ObserveError> {
    let text = sections.text("guards")?;
    let lines: Vec<(&str, &str)> = text.lines().filter_map(|line| line.split_once(' ')).collect();
    let late = lines.contains(&("ended", TIMED_OUT));
    let statuses: BTreeMap<usize, i32> = lines
        .into_iter()
        .filter_map(|(number, status)| Some((number.parse().ok()?, status.parse().ok()?)))
        .collect();
    for (number, script) in questions.guards.iter().copied().enumerate() {
        let answer = match statuses.get(&number) {
            Some(status) => Answer::Guard(*status),
            None if late => Answer::Failed(format!("the guard did not end within {SECONDS} s")),
            None => return Err(ObserveError::Unreadable { section: "guards", found: text }),
        };
        answers.insert(Probe::Guard { script: script.to_owned() }, answer);
    }
    Ok(())
}
