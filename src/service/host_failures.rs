//! The failures of all hosts of a run, as one error.

use std::collections::BTreeMap;

use super::command_error::{CommandFailure, ErrorClass};
use super::fleet_work::HostResults;
use super::host_failure::HostFailure;
use super::remedies::retry;
use crate::model::name::HostName;
use crate::model::resumption::ResumedBy;

/// The failures among these results; `None` when every host succeeded.
pub fn among<T>(results: &HostResults<T>) -> Option<CommandFailure> {
    let failed = results.iter().filter_map(|(host, result)| Some((host, result.as_ref().err()?)));
    of(failed, ResumedBy::SameCommand)
}

/// The failures of these hosts, in a command that is resumed so; `None` when there are none.
pub fn of<'a>(
    failures: impl IntoIterator<Item = (&'a HostName, &'a HostFailure)>,
    resumed: ResumedBy,
) -> Option<CommandFailure> {
    let mut all = CommandFailure { class: ErrorClass::Ssh, errors: Vec::new(), hints: Vec::new() };
    let mut common: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (host, failure) in failures {
        if weight(failure.class()) > weight(all.class) {
            all.class = failure.class();
        }
        if let Some(line) = failure.common_line() {
            common.entry(line).or_default().push(host.as_str());
            continue;
        }
        all.errors.extend(failure.lines().into_iter().map(|line| format!("{host}: {line}")));
        all.add_hints(failure.hints(resumed));
    }
    all.errors.extend(common.into_iter().map(|(line, hosts)| format!("{line}: {}", hosts.join(", "))));
    if all.class == ErrorClass::Interrupted && !all.hints.contains(&retry(resumed)) {
        all.add_hints(vec![resumed.instruction()]);
    }
    (!all.errors.is_empty()).then_some(all)
}

/// Of several classes the one that counts: an interrupted run is known to be incomplete; a host that failed halfway
/// needs a person sooner than one that was never reached.
fn weight(class: ErrorClass) -> u8 {
    match class {
        ErrorClass::Interrupted => 4,
        ErrorClass::Host => 3,
        ErrorClass::Refused => 2,
        ErrorClass::Configuration => 1,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::host::HostError;
    use crate::model::resumption::PlanMaker;
    use crate::service::command_error::CommandError;
    use crate::transport::error::TransportError;

    #[test]
    fn a_plan_that_was_begun_is_made_again() {
        let plan = ResumedBy::NewPlan(PlanMaker::Plan);
        let name: HostName = "a".parse().unwrap();
        for failure in [failed(), HostFailure::Failed(HostError::Interrupted)] {
            let all = of([(&name, &failure)], plan).unwrap();
            let hints = all.hints().join("\n");
            assert!(hints.contains("`metalform plan --out FILE`"), "{hints}");
            assert!(!hints.contains("same command"), "{hints}");
        }
    }

    fn unreachable() -> HostFailure {
        let reason = "no route".to_owned();
        HostFailure::Unreachable(TransportError::Unreachable { host: "192.0.2.1:22".to_owned(), reason })
    }

    fn failed() -> HostFailure {
        let output = "one\nlast words\n\n".to_owned();
        HostFailure::Failed(HostError::Failed { resources: vec!["command:x".to_owned()], status: 3, output })
    }

    #[test]
    fn a_failed_host_outweighs_an_unreachable_one() {
        let names: [HostName; 2] = ["a".parse().unwrap(), "b".parse().unwrap()];
        let all = [unreachable(), failed()];
        let both = of(names.iter().zip(&all), ResumedBy::SameCommand).unwrap();
        assert_eq!(both.class(), ErrorClass::Host);
        assert_eq!(
            both.errors(),
            ["a: 192.0.2.1:22: no SSH connection: no route", "b: command:x failed with status 3: last words"]
        );
        let one = of(names.iter().zip(&all[..1]), ResumedBy::SameCommand).unwrap();
        assert_eq!(one.class(), ErrorClass::Ssh);
        assert!(of(std::iter::empty(), ResumedBy::SameCommand).is_none());
    }
}
