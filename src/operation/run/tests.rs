use std::collections::BTreeSet;
use std::sync::Mutex;

use async_trait::async_trait;

use super::*;
use crate::kube_api::client::{ApiCall, ApiError};
use crate::model::cluster_networks::{Networks, WorkloadPlane};
use crate::operation::phase::{Action, Condition, Look, Next};
use crate::operation::site::Done;
use crate::operation::world::{Seen, World};

/// Decides by the time and by whether the Node was just seen.
struct Scripted(fn(u64, bool) -> Next);

impl Phase for Scripted {
    fn title(&self) -> &'static str {
        "Scripted"
    }

    fn next(&self, _goal: &Goal, world: &World) -> Next {
        (self.0)(world.elapsed.as_secs(), world.node.is_some())
    }
}

/// The Node can be looked at, except in these seconds since the beginning.
struct Flaky(Instant, &'static [(u64, u64)]);

#[async_trait]
impl Site for Flaky {
    async fn look(&mut self, _look: &Look, _world: &World) -> Result<Seen, Trouble> {
        let second = self.0.elapsed().as_secs();
        if self.1.iter().any(|away| (away.0..away.1).contains(&second)) {
            let call = ApiCall { verb: "get", object: "node/n".to_owned() };
            return Err(ApiError::Unreachable { call, reason: "refused".to_owned() }.into());
        }
        Ok(Seen::Node(None))
    }

    async fn act(&mut self, _action: &Action, _world: &World) -> Result<Done, Trouble> {
        Ok(Done { changed: 1 })
    }
}

fn goal() -> Goal {
    Goal {
        name: "n".parse().unwrap(),
        roles: BTreeSet::new(),
        first: false,
        control_plane_ip: "192.0.2.1".parse().unwrap(),
        networks: Networks {
            control_plane: Vec::new(),
            workload_plane: WorkloadPlane { cidrs: Vec::new(), mtu: 1500 },
            node_ports: Vec::new(),
            pods: "10.233.0.0/16".parse().unwrap(),
            services: "10.96.0.0/12".parse().unwrap(),
            api_service_ip: "10.96.0.1".parse().unwrap(),
            dns_ip: "10.96.0.10".parse().unwrap(),
        },
        platforms: BTreeSet::new(),
        authority: None,
        clock: 0,
    }
}

async fn outcome(
    next: fn(u64, bool) -> Next,
    away: &'static [(u64, u64)],
) -> (Result<Summary, String>, Vec<String>) {
    let told = Mutex::new(Vec::new());
    let report = |event| {
        if let Event::Waiting { condition, elapsed, .. } = event {
            told.lock().unwrap().push(format!("{condition} {} s", elapsed.as_secs()));
        }
    };
    let phase = Scripted(next);
    let summary = run(&[&phase], &goal(), &mut Flaky(Instant::now(), away), &report).await;
    (summary.map_err(|error| error.to_string()), told.into_inner().unwrap())
}

fn until(sentence: &str) -> Next {
    within(30, sentence)
}

fn within(seconds: u64, sentence: &str) -> Next {
    Next::Wait(Condition {
        sentence: sentence.to_owned(),
        last_seen: "nothing".to_owned(),
        limit: Duration::from_secs(seconds),
        looks: vec![Look::Node],
    })
}

#[tokio::test(start_paused = true)]
async fn a_wait_ends_at_its_limit_and_is_told_of_now_and_then() {
    let (summary, told) = outcome(|_, _| until("a"), &[]).await;
    assert_eq!(summary.unwrap_err(), "Scripted: waited 30 s for a; last seen: nothing");
    assert_eq!(told, ["a 0 s", "a 10 s", "a 20 s"]);
}

#[tokio::test(start_paused = true)]
async fn time_spent_on_other_things_takes_nothing_from_a_wait() {
    let next = |second, _| match second {
        0..5 => until("a"),
        5..30 => until("b"),
        30..50 => until("a"),
        _ => Next::Holds,
    };
    assert!(outcome(next, &[]).await.0.is_ok(), "a was waited for 25 s in all");
}

#[tokio::test(start_paused = true)]
async fn conditions_that_take_turns_do_not_go_on_for_ever() {
    let next = |second: u64, _| until(if second.is_multiple_of(2) { "a" } else { "b" });
    assert!(outcome(next, &[]).await.0.unwrap_err().contains("waited 30 s"));
}

#[tokio::test(start_paused = true)]
async fn each_outage_is_waited_out_for_itself() {
    let next = |second, seen| match (second, seen) {
        (200.., _) => Next::Holds,
        (_, true) => within(1000, "a"),
        (_, false) => Next::Look(Look::Node),
    };
    assert!(outcome(next, &[(0, 50), (52, 100), (102, 150), (152, 200)]).await.0.is_ok());
    let (summary, _) = outcome(next, &[(0, 100)]).await;
    assert_eq!(summary.unwrap_err(), "Scripted: could not look at the Node");
}

#[tokio::test(start_paused = true)]
async fn what_does_not_help_is_not_done_for_ever() {
    let (summary, _) = outcome(|_, _| Next::Act(Action::ApplyClusterObjects), &[]).await;
    assert_eq!(
        summary.unwrap_err(),
        "Scripted: it was done 10 times and is still called for: apply access rules and CoreDNS"
    );
}
