//! Conditions of a status (apimachinery, `metav1.Condition`).

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

/// The API server refuses longer ones (apimachinery, `metav1.Condition`).
const LONGEST_MESSAGE: usize = 32_768;

/// A condition without its times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NewCondition {
    /// `Ready`.
    pub(super) kind: &'static str,
    /// `None`: Unknown.
    pub(super) status: Option<bool>,
    /// `CamelCase`.
    pub(super) reason: &'static str,
    /// For people.
    pub(super) message: String,
}

/// The conditions of a status after these are set. Those of other types stay; a transition time changes with the status
/// alone.
pub(super) fn set(
    present: &[Condition],
    new: impl IntoIterator<Item = NewCondition>,
    generation: i64,
    now: Timestamp,
) -> Vec<Condition> {
    let mut conditions = present.to_vec();
    for condition in new {
        let at = conditions.iter().position(|one| one.type_ == condition.kind);
        let condition = with_times(condition, at.and_then(|at| conditions.get(at)), generation, now);
        match at.and_then(|at| conditions.get_mut(at)) {
            Some(present) => *present = condition,
            None => conditions.push(condition),
        }
    }
    conditions
}

fn with_times(new: NewCondition, earlier: Option<&Condition>, generation: i64, now: Timestamp) -> Condition {
    let status = match new.status {
        Some(true) => "True",
        Some(false) => "False",
        None => "Unknown",
    };
    let since = earlier.filter(|earlier| earlier.status == status);
    Condition {
        type_: new.kind.to_owned(),
        status: status.to_owned(),
        reason: new.reason.to_owned(),
        message: new.message.chars().take(LONGEST_MESSAGE).collect(),
        observed_generation: Some(generation),
        last_transition_time: since
            .map_or(Time(whole_seconds(now)), |earlier| earlier.last_transition_time.clone()),
    }
}

/// As the API stores times: what is read back is what was written.
pub(super) fn whole_seconds(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn condition(kind: &'static str, status: bool, reason: &'static str) -> NewCondition {
        NewCondition { kind, status: Some(status), reason, message: String::new() }
    }

    #[test]
    fn a_transition_time_changes_with_the_status() {
        let at = |second: i64| Timestamp::from_millisecond(second * 1_000 + 500).unwrap();
        let first = set(&[], [condition("A", true, "X"), condition("B", false, "X")], 1, at(10));
        let second = set(&first, [condition("B", true, "Y"), condition("C", true, "X")], 2, at(20));
        let third = set(&second, [condition("B", true, "Z")], 3, at(30));
        let shown: Vec<String> = third
            .iter()
            .map(|one| {
                let since = one.last_transition_time.0.as_millisecond();
                let generation = one.observed_generation.unwrap();
                format!("{} {} {} {since} {generation}", one.type_, one.status, one.reason)
            })
            .collect();
        let long = NewCondition { message: "x".repeat(40_000), ..condition("A", true, "X") };
        assert_eq!(set(&[], [long], 1, at(10))[0].message.len(), 32_768);
        assert_eq!(shown, ["A True X 10000 1", "B True Z 20000 3", "C True X 20000 2"]);
    }
}
