//! Units: one `systemctl show`, which prints a block a unit, in the order asked.

use std::collections::{BTreeMap, BTreeSet};

use super::{Answers, ObserveError, Section};
use crate::engine::frame::Sections;
use crate::model::shell_word::quote_all;
use crate::resource::contract::probe::{Answer, Probe, UnitState};

fn names(probes: &BTreeSet<Probe>) -> Vec<&str> {
    probes
        .iter()
        .filter_map(|probe| match probe {
            Probe::Unit { name } => Some(name.as_str()),
            _ => None,
        })
        .collect()
}

pub(super) fn ask(probes: &BTreeSet<Probe>) -> Vec<Section> {
    let names = names(probes);
    if names.is_empty() {
        return Vec::new();
    }
    let show = format!(
        "systemctl show --no-pager -p Id,LoadState,ActiveState,SubState,UnitFileState,NeedDaemonReload -- {} 2>&1\n",
        quote_all(names)
    );
    vec![("units", show)]
}

pub(super) fn answer(
    probes: &BTreeSet<Probe>,
    sections: &Sections,
    answers: &mut Answers,
) -> Result<(), ObserveError> {
    let names = names(probes);
    if names.is_empty() {
        return Ok(());
    }
    let text = sections.text("units")?;
    let states: Vec<UnitState> =
        text.split("\n\n").filter(|block| !block.trim().is_empty()).filter_map(state).collect();
    // systemctl stops at the first name it does not like, and then which block is whose is not certain.
    let certain = states.len() == names.len();
    let mut states = states.into_iter();
    for name in names {
        let answer = match states.next() {
            Some(state) if certain => Answer::Unit(state),
            _ => Answer::Failed(text.trim().lines().last().unwrap_or("systemctl printed nothing").to_owned()),
        };
        answers.insert(Probe::Unit { name: name.to_owned() }, answer);
    }
    Ok(())
}

fn state(block: &str) -> Option<UnitState> {
    let fields: BTreeMap<&str, &str> = block.lines().filter_map(|line| line.split_once('=')).collect();
    Some(UnitState {
        load: (*fields.get("LoadState")?).to_owned(),
        active: (*fields.get("ActiveState")?).to_owned(),
        sub: (*fields.get("SubState")?).to_owned(),
        unit_file: (*fields.get("UnitFileState")?).to_owned(),
        needs_daemon_reload: *fields.get("NeedDaemonReload")? == "yes",
    })
}
