//! Images: one listing of containerd's `k8s.io` namespace.

use std::collections::BTreeSet;

use super::questions::Questions;
use super::{Answers, ObserveError, Section};
use crate::engine::frame::Sections;
use crate::resource::contract::probe::{Answer, Probe};

/// Where containerd does not run or does not answer, no image is present: pulling fails with the reason.
const LIST: &str = "[ ! -S /run/containerd/containerd.sock ] || \
                    timeout 20 ctr --connect-timeout 5s -n k8s.io images ls -q 2>/dev/null\n";

pub(super) fn ask(_: &Questions<'_>) -> Vec<Section> {
    vec![("images", LIST.to_owned())]
}

pub(super) fn answer(
    questions: &Questions<'_>,
    sections: &Sections,
    answers: &mut Answers,
) -> Result<(), ObserveError> {
    let text = sections.text("images")?;
    let present: BTreeSet<&str> = text.lines().collect();
    for reference in questions.images.iter().copied() {
        let answer = Answer::Image(present.contains(reference));
        answers.insert(Probe::Image { reference: reference.to_owned() }, answer);
    }
    Ok(())
}
