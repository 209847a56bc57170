//! Whether reactions are owed, by the markers of earlier runs, without a process.

use super::questions::Questions;
use super::{Answers, ObserveError, Section};
use crate::engine::frame::Sections;
use crate::engine::owed::{DIRECTORIES, marker};
use crate::resource::contract::probe::{Answer, Probe};

pub(super) fn ask(questions: &Questions<'_>) -> Vec<Section> {
    let mut script =
        format!("{DIRECTORIES}is_owed() {{ if [ -e \"$1/$2\" ]; then echo yes; else echo no; fi; }}\n");
    for owed in &questions.owed {
        script.push_str(&format!("is_owed {}\n", marker(owed)));
    }
    vec![("owed", script)]
}

pub(super) fn answer(
    questions: &Questions<'_>,
    sections: &Sections,
    answers: &mut Answers,
) -> Result<(), ObserveError> {
    let text = sections.text("owed")?;
    let lines: Vec<&str> = text.lines().collect();
    if lines.len() != questions.owed.len() {
        return Err(ObserveError::Unreadable { section: "owed", found: text });
    }
    for (&owed, line) in questions.owed.iter().zip(lines) {
        answers.insert(Probe::Owed(owed.clone()), Answer::Owed(line == "yes"));
    }
    Ok(())
}
