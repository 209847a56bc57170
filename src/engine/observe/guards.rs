//! Guards: each a shell of its own, silent, without input, and for a limited time.

use std::collections::{BTreeMap, BTreeSet};

use super::{Answers, ObserveError, Section};
use crate::engine::frame::Sections;
use crate::model::shell_word::quote;
use crate::resource::contract::probe::{Answer, Probe};

/// A guard is a question, and questions are quick.
const SECONDS: u32 = 30;

/// As many as run at the same time.
const AT_ONCE: usize = 8;

/// What timeout(1) ends with when it had to step in.
const TIMED_OUT: i32 = 124;

fn scripts(probes: &BTreeSet<Probe>) -> Vec<&str> {
    probes
        .iter()
        .filter_map(|probe| match probe {
            Probe::Guard { script } => Some(script.as_str()),
            _ => None,
        })
        .collect()
}

pub(super) fn ask(probes: &BTreeSet<Probe>) -> Vec<Section> {
    let scripts = scripts(probes);
    if scripts.is_empty() {
        return Vec::new();
    }
    // Side by side: a guard mostly waits for other processes.
    let run = |(number, script)| {
        format!("(timeout {SECONDS} sh -c {} >/dev/null 2>&1; echo {number} $?) &\n", quote(script))
    };
    let mut runs: String = String::new();
    for some in scripts.into_iter().enumerate().collect::<Vec<_>>().chunks(AT_ONCE) {
        runs.extend(some.iter().copied().map(run));
        runs.push_str("wait\n");
    }
    vec![("guards", runs)]
}

pub(super) fn answer(
    probes: &BTreeSet<Probe>,
    sections: &Sections,
    answers: &mut Answers,
) -> Result<(), ObserveError> {
    let scripts = scripts(probes);
    if scripts.is_empty() {
        return Ok(());
    }
    let text = sections.text("guards")?;
    let statuses: BTreeMap<usize, i32> = text
        .lines()
        .filter_map(|line| line.split_once(' '))
        .filter_map(|(number, status)| Some((number.parse().ok()?, status.parse().ok()?)))
        .collect();
    for (number, script) in scripts.into_iter().enumerate() {
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
