//! Routes of the main table, both families.

use super::questions::Questions;
use super::{Answers, ObserveError, Section};
use crate::engine::frame::Sections;
use crate::resource::contract::probe::{Answer, Probe};

pub(super) fn ask(questions: &Questions<'_>) -> Vec<Section> {
    let mut script = "ip -4 route show table main 2>&1 || echo failed\n".to_owned();
    if questions.routes.iter().any(|destination| destination.contains(':')) {
        script.push_str("echo inet6\nip -6 route show table main 2>&1 || echo failed\n");
    }
    vec![("routes", script)]
}

pub(super) fn answer(
    questions: &Questions<'_>,
    sections: &Sections,
    answers: &mut Answers,
) -> Result<(), ObserveError> {
    let text = sections.text("routes")?;
    let (v4, v6) = text.split_once("inet6\n").unwrap_or((text.as_str(), ""));
    for destination in questions.routes.iter().copied() {
        let table = if destination.contains(':') { v6 } else { v4 };
        let answer = match table.trim_end().strip_suffix("failed") {
            Some(message) => Answer::Failed(message.trim().to_owned()),
            None => Answer::Route(table.lines().find_map(|line| rest_of(line, destination))),
        };
        answers.insert(Probe::Route { destination: destination.to_owned() }, answer);
    }
    Ok(())
}

/// `ip` prints `default` for an empty prefix and leaves out the length of a full one.
fn rest_of(line: &str, destination: &str) -> Option<String> {
    let printed = match destination.rsplit_once('/') {
        Some((_, "0")) => "default",
        Some((address, "32")) if !address.contains(':') => address,
        Some((address, "128")) => address,
        _ => destination,
    };
    let (first, rest) = line.split_once(' ')?;
    (first == printed).then(|| rest.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn destinations_match_the_output_of_ip() {
        let cases = [
            ("default via 10.0.0.1 dev eth0 ", "0.0.0.0/0", Some("via 10.0.0.1 dev eth0")),
            ("10.96.0.0/12 dev eth0 scope link ", "10.96.0.0/12", Some("dev eth0 scope link")),
            ("10.96.0.0/16 dev eth0", "10.96.0.0/12", None),
            ("10.0.0.9 dev eth0", "10.0.0.9/32", Some("dev eth0")),
            ("fd00::1 dev eth0 metric 1024", "fd00::1/128", Some("dev eth0 metric 1024")),
        ];
        for (line, destination, rest) in cases {
            assert_eq!(rest_of(line, destination).as_deref(), rest, "{line}");
        }
    }
}
