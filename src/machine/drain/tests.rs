use std::time::Duration;

use super::*;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

/// `web`, `db:blocked`, `old:terminating`.
fn pods(text: &str) -> Vec<DrainPod> {
    let pod = |word: &str| {
        let (name, state) = word.split_once(':').unwrap_or((word, ""));
        let name = PodName { namespace: "a".to_owned(), name: name.to_owned() };
        let blocked = (state == "blocked").then(|| "budget".to_owned());
        DrainPod { name, terminating: state == "terminating", managed: true, blocked }
    };
    text.split_whitespace().map(pod).collect()
}

fn shown(step: DrainStep) -> String {
    let list =
        |pods: &BTreeSet<PodName>| pods.iter().map(|pod| pod.name.clone()).collect::<Vec<_>>().join(" ");
    match step {
        DrainStep::Done(end) => end.reason().to_owned(),
        DrainStep::Cordon => "cordon".to_owned(),
        DrainStep::ListPods => "list".to_owned(),
        DrainStep::Evict(pods) => format!("evict {}", list(&pods)),
        DrainStep::Announce(when) => format!("announce {}", when.as_second()),
        DrainStep::Delete(pods) => format!("delete {}", list(&pods)),
        DrainStep::Wait { until, deleted_at } => {
            let deleted = deleted_at.map(|when| format!(", deletes at {}", when.as_second()));
            format!("wait {}{}", until.as_second(), deleted.unwrap_or_default())
        }
    }
}

const SCENE: DrainScene<'_> = DrainScene {
    node_exists: true,
    node_ready: true,
    cordoned: true,
    host_off: false,
    elsewhere: true,
    pods: None,
    deleting_since: Timestamp::UNIX_EPOCH,
    timeout: DRAIN_TIMEOUT,
    announced: None,
};

#[test]
fn a_node_that_cannot_be_drained_is_not() {
    for (scene, expected) in [
        (DrainScene { node_exists: false, host_off: true, ..SCENE }, "NoNode"),
        (DrainScene { host_off: true, node_ready: false, ..SCENE }, "HostOff"),
        (DrainScene { node_ready: false, cordoned: false, ..SCENE }, "NodeNotReady"),
        (DrainScene { elsewhere: false, cordoned: false, ..SCENE }, "NowhereToGo"),
        (DrainScene { cordoned: false, ..SCENE }, "cordon"),
        (SCENE, "list"),
    ] {
        assert_eq!(shown(next(&scene, at(0))), expected, "{scene:?}");
    }
}

#[test]
fn pods_are_evicted_and_deleted_only_after_a_notice() {
    const NEVER: DrainTimeout = DrainTimeout::Never;
    const SHORT: DrainTimeout = DrainTimeout::After(Duration::from_secs(60));
    for (left, timeout, announced, now, expected) in [
        ("", DRAIN_TIMEOUT, None, 0, "Drained"),
        ("", NEVER, None, 9_000, "Drained"),
        ("web db:blocked old:terminating", DRAIN_TIMEOUT, None, 0, "evict web"),
        ("web db", DRAIN_TIMEOUT, None, 0, "evict db web"),
        // Also after the timeout.
        ("web db:blocked", DRAIN_TIMEOUT, Some(6_900), 9_000, "evict web"),
        ("db:blocked old:terminating", DRAIN_TIMEOUT, None, 0, "wait 10"),
        ("old:terminating", DRAIN_TIMEOUT, None, 0, "wait 10"),
        ("db:blocked", DRAIN_TIMEOUT, None, 6_895, "wait 6900"),
        ("db:blocked", DRAIN_TIMEOUT, None, 6_900, "announce 7200"),
        ("old:terminating", DRAIN_TIMEOUT, None, 6_900, "announce 7200"),
        ("db:blocked", DRAIN_TIMEOUT, Some(6_900), 7_000, "wait 7010, deletes at 7200"),
        ("db:blocked", DRAIN_TIMEOUT, Some(6_900), 7_195, "wait 7200, deletes at 7200"),
        ("db:blocked old:terminating", DRAIN_TIMEOUT, Some(6_900), 7_200, "delete db"),
        // The controller was down at the timeout.
        ("db:blocked", DRAIN_TIMEOUT, None, 9_000, "announce 9300"),
        ("db:blocked", DRAIN_TIMEOUT, Some(9_000), 9_299, "wait 9300, deletes at 9300"),
        ("db:blocked", DRAIN_TIMEOUT, Some(9_000), 9_300, "delete db"),
        ("old:terminating", DRAIN_TIMEOUT, Some(6_900), 7_200, "wait 7210, deletes at 7200"),
        ("old:terminating", DRAIN_TIMEOUT, Some(6_900), 7_320, "DrainTimeout"),
        ("db:blocked", NEVER, None, 1_000_000, "wait 1000010"),
        ("db:blocked", NEVER, Some(0), 1_000_000, "wait 1000010"),
        // A timeout that is shorter than the notice.
        ("db:blocked", SHORT, None, 0, "announce 300"),
        ("db:blocked", SHORT, Some(0), 299, "wait 300, deletes at 300"),
        ("db:blocked", SHORT, Some(0), 300, "delete db"),
    ] {
        let left_pods = pods(left);
        let scene = DrainScene { pods: Some(&left_pods), timeout, announced: announced.map(at), ..SCENE };
        assert_eq!(shown(next(&scene, at(now))), expected, "{left} {timeout:?} {announced:?} {now}");
    }
}

#[test]
fn no_time_overflows() {
    let left = pods("db:blocked old:terminating");
    for deleting_since in [Timestamp::MIN, Timestamp::MAX] {
        for announced in [None, Some(Timestamp::MIN), Some(Timestamp::MAX)] {
            for seconds in [1, u64::MAX] {
                let timeout = DrainTimeout::After(Duration::from_secs(seconds));
                let scene = DrainScene { pods: Some(&left), deleting_since, announced, timeout, ..SCENE };
                for now in [Timestamp::MIN, Timestamp::MAX] {
                    next(&scene, now);
                }
            }
        }
    }
}
