//! Images: one listing of those that are asked for in containerd's `k8s.io` namespace.

use std::collections::BTreeMap;

use super::questions::Questions;
use super::{Answers, ObserveError, Section};
use crate::engine::frame::Sections;
use crate::model::image_reference::digest;
use crate::model::shell_word::quote;
use crate::resource::contract::probe::{Answer, Probe};

/// Where containerd does not run or does not answer, no image is present: pulling fails with the reason.
const LIST: &str = "[ ! -S /run/containerd/containerd.sock ] || \
                    timeout 20 ctr --connect-timeout 5s -n k8s.io images ls";

/// For each image that it lists, containerd reads what the image consists of: the others are left out.
pub(super) fn ask(questions: &Questions<'_>) -> Vec<Section> {
    let filters =
        questions.images.iter().map(|reference| format!(" {}", quote(&format!("name==\"{reference}\""))));
    vec![("images", format!("{LIST}{} 2>/dev/null\n", filters.collect::<String>()))]
}

pub(super) fn answer(
    questions: &Questions<'_>,
    sections: &Sections,
    answers: &mut Answers,
) -> Result<(), ObserveError> {
    let text = sections.text("images")?;
    let present: BTreeMap<&str, &str> = text.lines().filter_map(name_and_digest).collect();
    for reference in questions.images.iter().copied() {
        let found = present.get(reference);
        // A name with a digest can be given to another image with `ctr images tag`.
        let answer =
            Answer::Image(found.is_some_and(|found| digest(reference).is_none_or(|wanted| *found == wanted)));
        answers.insert(Probe::Image { reference: reference.to_owned() }, answer);
    }
    Ok(())
}

/// Of a line of `ctr images ls`: REF, TYPE, DIGEST and more.
fn name_and_digest(line: &str) -> Option<(&str, &str)> {
    let mut columns = line.split_whitespace();
    Some((columns.next()?, columns.nth(1)?))
}
