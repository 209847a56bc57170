//! When a host is asked whether it answers. Jobs find out by themselves: this is for hosts without one.

use jiff::{SignedDuration, Timestamp};

use super::api::host_state::HostState;
use super::host_state::HostView;

/// Between two probes of a host.
const INTERVAL: SignedDuration = SignedDuration::from_secs(15);

/// When the host is probed next; `None`: not before something changes. `node_ready` is that of the Node of its claim, and
/// `last` the end of the last probe or job. It may be in the past.
pub fn next_probe(
    host: &HostView,
    node_ready: Option<bool>,
    last: Option<Timestamp>,
    now: Timestamp,
) -> Option<Timestamp> {
    let is_silent = host.silent_since.is_some();
    let is_doubted =
        node_ready == Some(false) && matches!(host.state, HostState::InUse | HostState::Draining);
    // What is confirmed counts only while it does not answer.
    let is_confirmed = host.orders.powered_off || host.orders.lost;
    let is_settled = host.state == HostState::Lost && is_silent;
    let is_wanted = (is_silent || is_doubted || is_confirmed) && !is_settled;
    let next = last.map_or(now, |last| last.checked_add(INTERVAL).unwrap_or(Timestamp::MAX));
    is_wanted.then_some(next)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::machine::host_state::HostOrders;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn hosts_in_doubt_are_probed() {
        for (text, node_ready, last, expected) in [
            ("Available", None, None, None),
            ("Available silent", None, None, Some(100)),
            ("Available silent", None, Some(90), Some(105)),
            ("Available silent", None, Some(10), Some(25)),
            ("InUse", Some(true), None, None),
            ("InUse", None, None, None),
            ("InUse", Some(false), Some(99), Some(114)),
            ("Draining", Some(false), None, Some(100)),
            // The kubelet is being stopped.
            ("Resetting", Some(false), None, None),
            ("Unreachable silent", Some(false), None, Some(100)),
            ("InUse off", Some(true), None, Some(100)),
            ("InUse lost", Some(true), None, Some(100)),
            ("Lost lost silent", None, None, None),
            ("Lost silent", None, None, None),
            ("Quarantined silent", None, None, Some(100)),
        ] {
            let words: Vec<&str> = text.split(' ').collect();
            let has = |word: &str| words.contains(&word);
            let host = HostView {
                name: "h1".parse().unwrap(),
                version: "1".to_owned(),
                state: serde_json::from_value(words[0].into()).unwrap(),
                claim: None,
                last_token: 0,
                failures: 0,
                finalizer: true,
                deleting: false,
                done: BTreeSet::new(),
                failure: None,
                residue: Vec::new(),
                silent_since: has("silent").then(|| at(50)),
                orders: HostOrders { lost: has("lost"), powered_off: has("off"), ..HostOrders::default() },
                has_power_hook: false,
                hook_reports_off: false,
            };
            let found = next_probe(&host, node_ready, last.map(at), at(100));
            assert_eq!(found, expected.map(at), "{text} {node_ready:?} {last:?}");
        }
    }
}
