//! Units: one `systemctl show`, which prints a block for each unit, in the order of its arguments.

use std::collections::BTreeMap;

use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use super::questions::Questions;
use super::{Answers, ObserveError, Section};
use crate::engine::frame::Sections;
use crate::model::shell_word::quote_all;
use crate::resource::contract::probe::{Answer, Probe, UnitState};

const PROPERTIES: &str = "Id,LoadState,ActiveState,SubState,UnitFileState,NeedDaemonReload,\
                          ActiveEnterTimestamp,StateChangeTimestamp";

pub(super) fn ask(questions: &Questions<'_>) -> Vec<Section> {
    let show = format!(
        "TZ=UTC systemctl show --no-pager -p {PROPERTIES} -- {} 2>&1\n",
        quote_all(questions.units.iter().copied())
    );
    vec![("units", show)]
}

pub(super) fn answer(
    questions: &Questions<'_>,
    sections: &Sections,
    answers: &mut Answers,
) -> Result<(), ObserveError> {
    let text = sections.text("units")?;
    let states: Vec<Result<UnitState, String>> =
        text.split("\n\n").filter(|block| !block.trim().is_empty()).filter_map(state).collect();
    // systemctl stops at the first invalid name; then the blocks cannot be assigned to names.
    let certain = states.len() == questions.units.len();
    let mut states = states.into_iter();
    for &name in &questions.units {
        let answer = match states.next() {
            Some(Ok(state)) if certain => Answer::Unit(state),
            Some(Err(error)) if certain => Answer::Failed(error),
            _ => Answer::Failed(text.trim().lines().last().unwrap_or("systemctl printed nothing").to_owned()),
        };
        answers.insert(Probe::Unit { name: name.to_owned() }, answer);
    }
    Ok(())
}

/// `None` if the block describes no unit; an error for a time that cannot be read: without it, a restart that is due
/// would be missed.
fn state(block: &str) -> Option<Result<UnitState, String>> {
    let fields: BTreeMap<&str, &str> = block.lines().filter_map(|line| line.split_once('=')).collect();
    let time = |name: &str| match fields.get(name).copied() {
        // Before the first start.
        None | Some("" | "n/a") => Ok(None),
        Some(text) => seconds(text).map(Some).ok_or_else(|| format!("{name}={text} is not a time in UTC")),
    };
    let state = |started, changed| {
        Some(UnitState {
            load: (*fields.get("LoadState")?).to_owned(),
            active: (*fields.get("ActiveState")?).to_owned(),
            sub: (*fields.get("SubState")?).to_owned(),
            unit_file: (*fields.get("UnitFileState")?).to_owned(),
            needs_daemon_reload: *fields.get("NeedDaemonReload")? == "yes",
            started,
            changed,
        })
    };
    match (time("ActiveEnterTimestamp"), time("StateChangeTimestamp")) {
        (Ok(started), Ok(changed)) => state(started, changed).map(Ok),
        (Err(error), _) | (_, Err(error)) => Some(Err(error)),
    }
}

/// Of a time as systemd.time(7) writes it: `Mon 2026-11-23 18:11:53 UTC`.
fn seconds(text: &str) -> Option<i64> {
    let time = DateTime::strptime("%a %Y-%m-%d %H:%M:%S UTC", text).ok()?;
    Some(time.to_zoned(TimeZone::UTC).ok()?.timestamp().as_second())
}
