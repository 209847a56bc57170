//! Guards: each a shell of its own, silent, without input, and for a limited time.

use std::collections::BTreeSet;

use super::{Answers, ObserveError, Section};
use crate::engine::frame::Sections;
use crate::resource::probe::{Answer, Probe};
use crate::transport::shell::quote;

/// A guard is a question, and questions are quick.
const SECONDS: u32 = 30;

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
    let runs = scripts
        .into_iter()
        .map(|script| format!("timeout {SECONDS} sh -c {} >/dev/null 2>&1; echo $?\n", quote(script)));
    vec![("guards", runs.collect())]
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
    let statuses: Vec<i32> = text.lines().filter_map(|line| line.parse().ok()).collect();
    if statuses.len() != scripts.len() {
        return Err(ObserveError::Unreadable { section: "guards", found: text });
    }
    for (script, status) in scripts.into_iter().zip(statuses) {
        let answer = match status {
            TIMED_OUT => Answer::Failed(format!("the guard did not end within {SECONDS} s")),
            status => Answer::Guard(status),
        };
        answers.insert(Probe::Guard { script: script.to_owned() }, answer);
    }
    Ok(())
}
