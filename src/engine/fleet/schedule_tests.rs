use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

fn rules(limit: usize, batch: &str, max_failures: &str) -> Rules {
    let amount = |text: &str| (!text.is_empty()).then(|| text.parse().unwrap());
    Rules {
        limit: NonZeroUsize::new(limit).unwrap(),
        batch: amount(batch),
        max_failures: amount(max_failures),
        unreachable_fails: false,
    }
}

/// Runs a script: `b` a host begins; `w`, `f`, `u` one succeeds, fails, is unreachable; `s` the run is cancelled. Before
/// every `b` the schedule must decide to begin a host, and before anything else it must not.
fn played(rules: &Rules, total: usize, script: &str) -> Schedule {
    let mut schedule = Schedule::new(rules, total);
    for (at, event) in script.chars().enumerate() {
        let begins = matches!(schedule.next(), ScheduleStep::Begin(_));
        assert!(begins == (event == 'b') || event == 's', "{script}, at {at}: {:?}", schedule.next());
        match event {
            'b' => schedule.begin(),
            's' => schedule.cancel(),
            end => schedule.end(match end {
                'w' => HostEnd::Succeeded,
                'f' => HostEnd::Failed,
                _ => HostEnd::Unreachable,
            }),
        }
    }
    schedule
}

#[test]
fn hosts_begin_as_the_rules_say() {
    for (limit, batch, max_failures, total, script, next) in [
        (2, "", "", 0, "", ScheduleStep::Finished),
        (2, "", "", 3, "bb", ScheduleStep::Wait),
        (2, "", "", 3, "bbwbww", ScheduleStep::Finished),
        // By default failures stop no host.
        (2, "", "", 3, "bbfbff", ScheduleStep::Finished),
        (1, "", "0", 3, "bf", ScheduleStep::Finished),
        (2, "", "0", 3, "bbf", ScheduleStep::Wait),
        (2, "", "0", 3, "bbfw", ScheduleStep::Finished),
        (2, "", "1", 4, "bbfb", ScheduleStep::Wait),
        (2, "", "50%", 4, "bbfbfb", ScheduleStep::Wait),
        (2, "", "25%", 4, "bbfbff", ScheduleStep::Finished),
        // Those that cannot be reached are set aside.
        (2, "", "0", 3, "bbub", ScheduleStep::Wait),
        // A batch begins when all of the one before have ended, and none failed.
        (9, "2", "", 5, "bbw", ScheduleStep::Wait),
        (9, "2", "", 5, "bbwwbbwwbw", ScheduleStep::Finished),
        (9, "2", "", 5, "bbwf", ScheduleStep::Finished),
        (9, "2", "1", 5, "bbwf", ScheduleStep::Begin(2)),
        (9, "2", "1", 5, "bbffx", ScheduleStep::Finished),
        (1, "2", "", 5, "bwbwb", ScheduleStep::Wait),
        (9, "40%", "", 5, "bb", ScheduleStep::Wait),
        (9, "1%", "", 5, "bwb", ScheduleStep::Wait),
        // Running hosts finish after a cancellation.
        (2, "", "", 5, "bbs", ScheduleStep::Wait),
        (2, "", "", 5, "bbsww", ScheduleStep::Finished),
        (2, "", "", 5, "s", ScheduleStep::Finished),
    ] {
        let script = script.trim_end_matches('x');
        let schedule = played(&rules(limit, batch, max_failures), total, script);
        assert_eq!(schedule.next(), next, "limit {limit}, batch {batch}, failures {max_failures}: {script}");
    }
}

#[test]
fn unreachable_hosts_fail_where_that_was_said() {
    let strict = Rules { unreachable_fails: true, ..rules(1, "1", "") };
    let schedule = played(&strict, 2, "bu");
    assert_eq!(schedule.next(), ScheduleStep::Finished);
    assert_eq!(schedule.halted(), Some(Halt::Failures { failed: 1, allowed: 0 }));
}

fn amount() -> impl Strategy<Value = Option<Amount>> {
    prop::option::of(prop_oneof![
        (0..9_usize).prop_map(Amount::Hosts),
        (0..=100_u8).prop_map(Amount::Percent)
    ])
}

prop_compose! {
    fn any_rules()(limit in 1..9_usize, batch in amount(), max_failures in amount(), strict: bool) -> Rules {
        Rules {
            limit: NonZeroUsize::new(limit).unwrap(),
            batch,
            max_failures,
            unreachable_fails: strict,
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    /// The rules hold for any order and any result of hosts, and every run ends.
    #[test]
    fn rules_hold_whatever_becomes_of_the_hosts(
        rules in any_rules(),
        total in 0..40_usize,
        fates in prop::collection::vec((0..100_usize, prop_oneof![
            4 => Just(HostEnd::Succeeded), 1 => Just(HostEnd::Failed), 1 => Just(HostEnd::Unreachable)
        ]), 40),
        stop_after in prop::option::of(0..60_usize),
    ) {
        let batch = rules.batch.map_or(total, |amount| amount.of(total)).max(1);
        let allowed = match (rules.max_failures, rules.batch) {
            (Some(amount), _) => amount.of(total),
            (None, batch) => if batch.is_some() { 0 } else { total },
        };
        let mut schedule = Schedule::new(&rules, total);
        let (mut running, mut seen, mut failed) = (BTreeSet::new(), BTreeSet::new(), 0);
        let mut fates = fates.into_iter();
        for turn in 0.. {
            prop_assert!(turn <= 2 * total, "it does not end");
            if stop_after == Some(turn) {
                schedule.cancel();
            }
            match schedule.next() {
                ScheduleStep::Begin(host) => {
                    prop_assert!(host < total && seen.insert(host), "{host} begins twice");
                    prop_assert!(failed <= allowed, "{host} begins after {failed} failures");
                    prop_assert!(stop_after.is_none_or(|stop| turn < stop));
                    let first_of_batch = host - host % batch;
                    prop_assert!(running.iter().all(|other| *other >= first_of_batch));
                    running.insert(host);
                    prop_assert!(running.len() <= rules.limit.get());
                    schedule.begin();
                }
                ScheduleStep::Wait => {
                    prop_assert!(!running.is_empty(), "it waits, but no host is running");
                    let (which, end) = fates.next().unwrap();
                    let host = *running.iter().nth(which % running.len()).unwrap();
                    running.remove(&host);
                    failed += usize::from(end == HostEnd::Failed || (rules.unreachable_fails && end == HostEnd::Unreachable));
                    schedule.end(end);
                }
                ScheduleStep::Finished => {
                    prop_assert!(running.is_empty());
                    prop_assert_eq!(schedule.halted().is_none() || seen.len() == total, seen.len() == total);
                    break;
                }
            }
        }
    }
}
