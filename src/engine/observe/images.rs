//! Images: one listing of containerd's `k8s.io` namespace.

use std::collections::BTreeSet;

use super::{Answers, ObserveError, Section};
use crate::engine::frame::Sections;
use crate::resource::contract::probe::{Answer, Probe};

/// Where containerd does not run, or does not answer, no image is usable: pulling will say why.
const LIST: &str = "[ ! -S /run/containerd/containerd.sock ] || \
                    timeout 20 ctr --connect-timeout 5s -n k8s.io images ls -q 2>/dev/null\n";

fn references(probes: &BTreeSet<Probe>) -> Vec<&str> {
    probes
        .iter()
        .filter_map(|probe| match probe {
            Probe::Image { reference } => Some(reference.as_str()),
            _ => None,
        })
        .collect()
}

pub(super) fn ask(probes: &BTreeSet<Probe>) -> Vec<Section> {
    if references(probes).is_empty() { Vec::new() } else { vec![("images", LIST.to_owned())] }
}

pub(super) fn answer(
    probes: &BTreeSet<Probe>,
    sections: &Sections,
    answers: &mut Answers,
) -> Result<(), ObserveError> {
    let references = references(probes);
    if references.is_empty() {
        return Ok(());
    }
    let text = sections.text("images")?;
    let present: BTreeSet<&str> = text.lines().collect();
    for reference in references {
        let answer = Answer::Image(present.contains(reference));
        answers.insert(Probe::Image { reference: reference.to_owned() }, answer);
    }
    Ok(())
}
