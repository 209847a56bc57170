//! The lives of Machines and Hosts over the scripted API, with workers that are scripted too.

mod pool;
mod workers;

use jiff::SignedDuration;
use metalform::controller::machine_pass::NextPass;
use metalform::machine::host_job::HostJob;
use serde_json::{Value, json};

use self::pool::{Cut, ScriptedPool};
use crate::api::rules::Fate;
use crate::api::{BUDGET, NOT_IN_EARNEST, TWO_BUDGETS};

/// More writes than the longest life has.
const MOST_WRITES: usize = 40;

#[tokio::test]
async fn a_machine_lives_from_a_bare_host_to_a_node_and_back() {
    let mut pool = ScriptedPool::new(&["h1", "h2"]);
    pool.add_machine("m1");
    pool.add_token("h1").await;
    pool.settle().await;
    assert_eq!(pool.shown(), "h1 InUse m1, h2 Available -, m1 Running Ready on h1");
    assert!(pool.all("secrets").is_empty(), "the token is revoked");
    let machine = pool.one("machines", "m1");
    let uid = machine["metadata"]["uid"].as_str().unwrap();
    assert_eq!(machine["spec"]["providerID"], json!(format!("metalform://h1/{uid}")));
    assert_eq!(machine["status"]["nodeRef"]["name"], json!("h1"));
    assert_eq!(machine["status"]["addresses"][0]["address"], json!("192.0.2.1"));
    assert_eq!(machine["status"]["lastOperation"]["state"], json!("Successful"));
    let node = pool.one("nodes", "h1");
    assert_eq!(node["metadata"]["labels"]["group"], json!("a"));
    assert_eq!(node["metadata"]["labels"]["kept"], json!("by another"));
    assert_eq!(node["spec"]["taints"], json!([{ "key": "machine", "value": "", "effect": "NoSchedule" }]));
    assert_eq!(pool.workers.jobs("h1"), [HostJob::Inspect, HostJob::Check, HostJob::Deploy]);

    let requests = pool.requests();
    assert_eq!(pool.round().await, vec![NextPass::OnChange; 3], "nothing is left to do");
    assert_eq!(pool.requests(), requests, "and nothing is requested");

    pool.add_pod("web", "h1", true);
    pool.delete_machine("m1").await;
    for _ in 0..4 {
        pool.step().await;
    }
    let drained = pool.condition("m1", "Drained");
    assert_eq!(drained["reason"], json!("Draining"));
    assert!(drained["message"].as_str().unwrap().contains("a/web: its budget forbids it"), "{drained}");
    assert_eq!(pool.one("nodes", "h1")["spec"]["unschedulable"], json!(true));
    assert_eq!(pool.state("h1"), "Draining");
    pool.change("pods", "a", "web", |pod| pod["metadata"]["annotations"] = json!({}));
    pool.settle().await;
    assert_eq!(pool.shown(), "h1 Available -, h2 Available -");
    assert_eq!(pool.remains(), 0);
    let ended = [HostJob::StopKubelet, HostJob::Reset];
    assert_eq!(pool.workers.jobs("h1")[3..], ended);
    assert!(!pool.workers.is_dirty("h1"));
}

#[tokio::test]
async fn writes_are_those_that_the_changes_explain() {
    let mut pool = ScriptedPool::new(&["h1"]);
    pool.add_machine("m1");
    pool.settle().await;
    let mut writes = pool.writes();
    writes.retain(|write| !write.contains("secrets"));
    insta::assert_snapshot!(writes.join("\n"), @"
    patch hosts/h1
    patch machines/a/m1
    patch hosts/h1/status
    patch machines/a/m1/status
    patch hosts/h1/status
    patch machines/a/m1/status
    patch hosts/h1/status
    patch machines/a/m1
    patch hosts/h1/status
    patch machines/a/m1/status
    patch hosts/h1/status
    patch machines/a/m1/status
    patch hosts/h1/status
    patch nodes/h1
    patch machines/a/m1/status
    ");
}

#[tokio::test]
async fn events_tell_a_whole_life() {
    let mut pool = ScriptedPool::new(&["h1"]);
    pool.workers.fail("h1", HostJob::Deploy, 1);
    pool.add_machine("m1");
    pool.settle().await;
    insta::assert_snapshot!(std::mem::take(&mut pool.events).join("\n"), @"
    Host h1 Normal Inspecting: the host is inspected
    Machine m1 Warning NoHostAvailable: no host is free: all with another distribution
    Host h1 Normal Clean: the host is clean and free
    Host h1 Normal Claimed: claimed by machine a/m1
    Host h1 Normal Provisioning: deployed for machine a/m1
    Machine m1 Normal HostClaimed: host h1 is claimed
    Machine m1 Normal HostChecked: the preflight check has succeeded
    Machine m1 Normal Deploying: the deployment is in progress
    Machine m1 Warning DeploymentFailed: the deployment failed and is repeated, attempts: 1: scripted
    Machine m1 Normal Deploying: the deployment is in progress
    Machine m1 Normal Deployed: the deployment has succeeded
    Machine m1 Normal NodeLinked: node h1 has registered
    Host h1 Normal InUse: runs the node of machine a/m1
    Machine m1 Normal NodeReady: the node is Ready and accepts pods
    ");

    // The eviction of a pod is refused until the drain timeout, and the first two resets fail.
    pool.add_pod("web", "h1", true);
    pool.workers.fail("h1", HostJob::Reset, 2);
    pool.delete_machine("m1").await;
    // The deletion of the pod is announced after the first pause, and due after the second.
    for _ in 0..2 {
        for _ in 0..4 {
            pool.step().await;
        }
        pool.now += SignedDuration::from_hours(24);
    }
    pool.settle().await;
    assert_eq!(pool.shown(), "h1 Available -");
    insta::assert_snapshot!(std::mem::take(&mut pool.events).join("\n"), @"
    Host h1 Normal Draining: machine a/m1 is being deleted, and its node drains
    Machine m1 Normal Cordoned: node h1 is cordoned
    Machine m1 Normal Deleting: the machine is being deleted
    Machine m1 Normal Draining: the pods of the node are evicted, left: a/web: its budget forbids it
    Machine m1 Warning DrainTimeoutAnnounced: the pods of the node are evicted, left: a/web: its budget forbids it; pods that are left at 2026-01-03T00:05:29Z are deleted without regard to their disruption budgets
    Machine m1 Normal Draining: the pods of the node are evicted, left: a/web: its budget forbids it
    Machine m1 Warning DeletingPods: pods that are deleted without regard to their disruption budgets: a/web
    Machine m1 Normal Drained: no pods are left that must leave the node
    Host h1 Normal Resetting: the host is reset
    Machine m1 Normal ResettingHost: host h1: the host is reset
    Host h1 Warning ResetFailed: the reset of the host failed, attempts: 1: scripted
    Machine m1 Warning HostResetFailed: host h1: the reset of the host failed, attempts: 1: scripted
    Machine m1 Normal ResettingHost: host h1: the host is reset
    Machine m1 Warning HostResetFailed: host h1: the reset of the host failed, attempts: 2: scripted
    Machine m1 Normal ResettingHost: host h1: the host is reset
    Host h1 Normal Resetting: the host is reset
    Host h1 Normal NodeDeleted: node h1 is deleted
    Machine m1 Normal NodeDeleted: node h1 is deleted
    Host h1 Normal Clean: the host is clean and free
    ");
    pool.advance(600).await;
    assert_eq!(pool.events, [""; 0], "nothing has changed");
}

#[tokio::test]
async fn whatever_refuses_an_eviction_ends_with_the_drain_timeout_and_keeps_no_other_pod() {
    for (refusal, message) in [
        (TWO_BUDGETS, "a/web: two budgets forbid it"),
        ("403", "a/web: a webhook forbids it"),
        (NOT_IN_EARNEST, "a/web: a webhook forbids it"),
    ] {
        let mut pool = ScriptedPool::new(&["h1"]);
        pool.add_machine("m1");
        pool.settle().await;
        pool.add_pod("web", "h1", false);
        pool.add_pod("free", "h1", false);
        pool.change("pods", "a", "web", |pod| pod["metadata"]["annotations"] = json!({ BUDGET: refusal }));
        pool.delete_machine("m1").await;
        for _ in 0..8 {
            pool.step().await;
        }
        assert_eq!(pool.all("pods").len(), 1, "{refusal}");
        let drained = pool.condition("m1", "Drained");
        assert!(drained["message"].as_str().unwrap().contains(message), "{refusal}: {drained}");
        assert!(!pool.round().await.contains(&NextPass::Now), "{refusal}");
        // The deletion of the pod is announced after the first pause, and due after the second.
        for _ in 0..2 {
            pool.now += SignedDuration::from_hours(24);
            for _ in 0..4 {
                pool.step().await;
            }
        }
        pool.settle().await;
        assert_eq!(pool.shown(), "h1 Available -", "{refusal}");
    }
}

#[tokio::test]
async fn one_of_two_machines_gets_the_only_host_and_the_other_waits() {
    let mut pool = ScriptedPool::new(&["h1"]);
    pool.settle().await;
    pool.add_machine("m1");
    pool.add_machine("m2");
    pool.settle().await;
    assert_eq!(pool.shown(), "h1 InUse m1, m1 Running Ready on h1, m2 Pending");
    let waits = pool.condition("m2", "HostClaimed");
    assert_eq!(waits["reason"], json!("NoHostAvailable"));
    assert_eq!(waits["message"], json!("no host is free: all in use"));
    pool.add_host("h2");
    pool.settle().await;
    assert_eq!(pool.shown(), "h1 InUse m1, h2 InUse m2, m1 Running Ready on h1, m2 Running Ready on h2");
}

#[tokio::test]
async fn a_machine_whose_host_vanishes_takes_no_other_and_is_replaced() {
    let mut pool = ScriptedPool::new(&["h1"]);
    pool.add_machine("m1");
    pool.settle().await;
    let owner = json!([{
        "apiVersion": "cluster.k8s.io/v1alpha1", "kind": "MachineSet", "name": "s", "uid": "s-1", "controller": true,
    }]);
    pool.change("machines", "a", "m1", |machine| machine["metadata"]["ownerReferences"] = owner);
    pool.add_host("h2");
    pool.settle().await;
    assert_eq!(pool.shown(), "h1 InUse m1, h2 Available -, m1 Running Ready on h1");
    // Its finalizer is removed by hand.
    pool.api.lock().store.remove("hosts", "", "h1");
    pool.events.clear();
    pool.settle().await;
    assert_eq!(pool.shown(), "h2 Available -");
    assert!(
        pool.events[0].ends_with("Warning HostLost: host h1 is off, lost or deleted"),
        "{:?}",
        pool.events
    );
}

/// As kubectl creates Hosts, which nothing compares before they exist.
#[tokio::test]
async fn a_host_that_is_another_machine_is_not_used_until_that_is_corrected() {
    let mut pool = ScriptedPool::new(&["h1"]);
    pool.settle().await;
    pool.add_host("h2");
    pool.add_host("other");
    let address = |address: &str| json!({ "address": address });
    pool.change("hosts", "", "h2", |host| host["spec"] = address("192.0.2.1"));
    pool.add_machine("m1");
    pool.add_machine("m2");
    // They are looked at again each minute.
    pool.advance(150).await;
    let shown = "h1 InUse m1, h2 Unknown -, other Unknown -, m1 Running Ready on h1, m2 Pending";
    assert_eq!(pool.shown(), shown);
    for (host, expected) in [
        ("h2", "address 192.0.2.1 is that of Host h1; correct this Host or delete it"),
        (
            "other",
            "a Node of this name exists, which no Machine has deployed; correct this Host or delete it",
        ),
    ] {
        let condition = pool.one("hosts", host)["status"]["conditions"][0].clone();
        assert_eq!((&condition["status"], &condition["reason"]), (&json!("False"), &json!("HostConflict")));
        assert_eq!(condition["message"], json!(expected));
        assert_eq!(pool.workers.jobs(host), [], "it is left alone");
    }
    assert!(pool.events.iter().any(|event| event.starts_with("Host h2 Warning HostConflict: address")));
    pool.change("hosts", "", "h2", |host| host["spec"] = address("192.0.2.2"));
    pool.advance(150).await;
    assert_eq!(pool.state("h2"), "InUse");
    assert_eq!(pool.claimant("h2"), "m2");
}

#[tokio::test]
async fn two_machines_that_have_noted_one_host_do_not_share_it() {
    let mut pool = ScriptedPool::new(&["h1"]);
    pool.settle().await;
    pool.add_machine("m1");
    pool.add_machine("m2");
    for name in ["m1", "m2"] {
        pool.note_host(name, "h1");
    }
    let stale = pool.cached();
    pool.pass_over_machine(&stale, "m2").await;
    pool.pass_over_machine(&stale, "m1").await;
    assert_eq!(pool.claimant("h1"), "m2");
    pool.settle().await;
    assert_eq!(pool.shown(), "h1 InUse m2, m1 Pending, m2 Running Ready on h1");
    assert_eq!(pool.condition("m1", "HostClaimed")["reason"], json!("NoHostAvailable"));
}

#[tokio::test]
async fn a_conflict_ends_the_pass_and_the_next_one_decides_again() {
    let mut pool = ScriptedPool::new(&["h1"]);
    pool.settle().await;
    pool.add_machine("m1");
    pool.note_host("m1", "h1");
    pool.api.lock().rules.add("patch hosts/h1", Fate::Status(409), Some(1));
    let cached = pool.cached();
    assert_eq!(pool.pass_over_machine(&cached, "m1").await, (0, NextPass::Now));
    assert_eq!(pool.claimant("h1"), "");
    assert_eq!(pool.pass_over_machine(&cached, "m1").await, (1, NextPass::Now));
    assert_eq!(pool.claimant("h1"), "m1");
    pool.settle().await;
    assert_eq!(pool.shown(), "h1 InUse m1, m1 Running Ready on h1");
}

#[tokio::test]
async fn an_old_cache_repeats_nothing() {
    let mut pool = ScriptedPool::new(&["h1", "h2"]);
    pool.settle().await;
    pool.add_machine("m1");
    let mut past = vec![pool.cached()];
    for _ in 0..20 {
        pool.step().await;
        past.push(pool.cached());
    }
    pool.settle().await;
    let (writes, jobs) = (pool.writes(), pool.workers.jobs("h1"));
    for cached in past.iter().chain(past.iter().rev()) {
        for host in ["h1", "h2"] {
            pool.pass_over_host(cached, host).await;
        }
        pool.pass_over_machine(cached, "m1").await;
    }
    assert_eq!((pool.writes(), pool.workers.jobs("h1")), (writes, jobs));
}

/// A controller that is killed at each write in turn: before it reaches the API server, or before the answer returns. Its
/// workers are gone with it, and what they have found is lost.
#[tokio::test]
async fn a_controller_that_is_killed_at_any_write_is_continued() {
    for fate in [Fate::Status(500), Fate::AnswerLost] {
        let mut killed = 0;
        for write in 0..MOST_WRITES {
            let mut pool = ScriptedPool::new(&["h1"]);
            pool.cut = Some(Cut { write, fate: fate.clone() });
            pool.add_machine("m1");
            pool.settle().await;
            assert_eq!(pool.shown(), "h1 InUse m1, m1 Running Ready on h1", "{fate:?} {write}");
            pool.add_pod("web", "h1", false);
            pool.delete_machine("m1").await;
            pool.settle().await;
            assert_eq!(pool.shown(), "h1 Available -", "{fate:?} {write}");
            assert_eq!(pool.remains(), 0, "{fate:?} {write}");
            // A write of a client, or one of several that a pass makes, is none of its own.
            killed += usize::from(pool.cut.is_none());
        }
        assert!(killed > 20, "{killed}");
    }
}

#[tokio::test]
async fn an_outcome_whose_record_has_no_answer_is_recorded_once() {
    let mut pool = ScriptedPool::new(&["h1"]);
    pool.settle().await;
    pool.workers.fail("h1", HostJob::Check, 1);
    pool.add_machine("m1");
    for _ in 0..20 {
        if pool.workers.unrecorded("h1") == Some(HostJob::Check) {
            break;
        }
        pool.step().await;
    }
    pool.api.lock().rules.add("patch hosts/h1/status", Fate::AnswerLost, Some(1));
    let cached = pool.cached();
    pool.try_pass_over_host(&cached, "h1").await.unwrap_err();
    let cached = pool.cached();
    pool.pass_over_host(&cached, "h1").await;
    assert_eq!(pool.one("hosts", "h1")["status"]["failedJob"]["attempts"], json!(1));
    assert_eq!(pool.workers.unrecorded("h1"), None);
    pool.settle().await;
    assert_eq!(pool.shown(), "h1 InUse m1, m1 Running Ready on h1");
}

#[tokio::test]
async fn a_host_that_cannot_be_reset_is_quarantined_and_its_machine_goes() {
    let mut pool = ScriptedPool::new(&["h1"]);
    pool.add_machine("m1");
    pool.settle().await;
    pool.workers.fail("h1", HostJob::Reset, 3);
    pool.delete_machine("m1").await;
    pool.settle().await;
    assert_eq!(pool.shown(), "h1 Quarantined m1");
    assert_eq!(pool.nodes(), 0, "its kubelet is stopped");
    let host = pool.one("hosts", "h1");
    let condition = &host["status"]["conditions"][0];
    assert_eq!(condition["reason"], json!("ResetFailed"));
    assert_eq!(condition["message"], json!("the reset of the host failed, attempts: 3: scripted"));
    pool.change("hosts", "", "h1", |host| {
        host["metadata"]["annotations"] = json!({ "metalform.dev/release": "2026-01-02T00:00:00Z" });
    });
    pool.settle().await;
    assert_eq!(pool.shown(), "h1 Available -");
    assert_eq!(pool.one("hosts", "h1")["metadata"]["annotations"], json!({}), "the order is carried out");
}

#[tokio::test]
async fn a_host_that_is_deleted_and_added_again_is_used_again() {
    let mut pool = ScriptedPool::new(&["h1"]);
    pool.add_machine("m1");
    pool.settle().await;
    pool.delete_machine("m1").await;
    pool.settle().await;
    let token = pool.one("hosts", "h1")["status"]["lastToken"].clone();
    assert_eq!((pool.state("h1").as_str(), &token), ("Available", &json!(2)));
    pool.add_again("h1");
    pool.settle().await;
    assert_eq!(pool.one("hosts", "h1")["status"]["lastToken"], token, "its host refuses smaller ones");
    pool.add_machine("m2");
    pool.settle().await;
    assert_eq!(pool.shown(), "h1 InUse m2, m2 Running Ready on h1");
}

#[tokio::test]
async fn a_host_that_is_not_clean_is_not_used_until_it_is_released() {
    let mut pool = ScriptedPool::new(&[]);
    pool.add_dirty_host("h1");
    pool.add_machine("m1");
    pool.settle().await;
    assert_eq!(pool.shown(), "h1 Quarantined -, m1 Pending");
    assert_eq!(pool.one("hosts", "h1")["status"]["residue"], json!(["/etc/kubernetes"]));
    pool.change("hosts", "", "h1", |host| {
        host["metadata"]["annotations"] = json!({ "metalform.dev/release": "2026-01-02T00:00:00Z" });
    });
    pool.settle().await;
    assert_eq!(pool.shown(), "h1 InUse m1, m1 Running Ready on h1");
}

#[tokio::test]
async fn a_host_that_is_silent_keeps_its_node_until_it_is_confirmed_off() {
    let mut pool = ScriptedPool::new(&["h1"]);
    pool.add_machine("m1");
    pool.settle().await;
    pool.workers.cut_off("h1", true);
    pool.advance(120).await;
    assert_eq!(pool.state("h1"), "Unreachable");
    pool.delete_machine("m1").await;
    pool.advance(600).await;
    assert_eq!(pool.nodes(), 1, "it may still run");
    pool.workers.power_off("h1");
    let confirmed = pool.now.to_string();
    pool.change("hosts", "", "h1", |host| {
        host["metadata"]["annotations"] = json!({ "metalform.dev/powered-off": confirmed });
    });
    pool.advance(60).await;
    assert_eq!(pool.shown(), "h1 Quarantined m1");
    assert_eq!(pool.nodes(), 0);
    // It is on again: what was confirmed does not hold for the next time.
    pool.workers.cut_off("h1", false);
    pool.advance(120).await;
    pool.change("hosts", "", "h1", |host| {
        assert_eq!(host["metadata"]["annotations"], json!({}));
        host["metadata"]["annotations"] = json!({ "metalform.dev/release": "2026-01-02T00:00:00Z" });
    });
    pool.settle().await;
    assert_eq!(pool.shown(), "h1 Available -");
}

#[tokio::test]
async fn a_power_hook_confirms_that_a_silent_host_is_off() {
    let mut pool = ScriptedPool::new(&["h1"]);
    pool.change("hosts", "", "h1", |host| host["spec"]["power"] = json!({ "hook": "ipmi" }));
    pool.add_machine("m1");
    pool.settle().await;
    pool.workers.cut_off("h1", true);
    pool.advance(600).await;
    assert_eq!(pool.shown(), "h1 Unreachable m1, m1 Running on h1", "its Machine may still run on it");
    pool.workers.fail("h1", HostJob::PowerOff, 2);
    pool.events.clear();
    pool.delete_machine("m1").await;
    pool.advance(40).await;
    let host = pool.one("hosts", "h1");
    assert_eq!(host["status"]["failedJob"]["attempts"], json!(2), "15 s lie between both, and 30 s follow");
    assert_eq!((pool.state("h1"), pool.nodes()), ("Unreachable".to_owned(), 1));
    pool.advance(60).await;
    assert_eq!((pool.shown(), pool.nodes()), ("h1 Quarantined m1".to_owned(), 0));
    let host = pool.one("hosts", "h1");
    let conditions = host["status"]["conditions"].as_array().unwrap();
    let condition = conditions.iter().find(|one| one["type"] == "PoweredOff").unwrap();
    assert_eq!(condition["message"], json!("power hook ipmi reports that the host is off"));
    let events = std::mem::take(&mut pool.events);
    let of_power = |event: &&String| event.contains("Power") || event.contains("NodeDeleted");
    insta::assert_snapshot!(events.iter().filter(of_power).cloned().collect::<Vec<_>>().join("\n"), @"
    Host h1 Normal PoweringOff: the host does not answer over SSH; its power hook is to confirm that it is off
    Machine m1 Normal PoweringOffHost: host h1: the host does not answer over SSH; its power hook is to confirm that it is off
    Host h1 Warning PowerHookFailed: the host does not answer over SSH, and is not confirmed to be off, attempts: 1: power hook ipmi status: exit status 1: no BMC
    Machine m1 Warning PowerHookFailed: host h1: the host does not answer over SSH, and is not confirmed to be off, attempts: 1: power hook ipmi status: exit status 1: no BMC
    Host h1 Warning PoweredOff: the host is off and was not reset; release it when it is on
    Host h1 Warning ConfirmedByPowerHook: power hook ipmi reports that the host is off
    Host h1 Normal NodeDeleted: node h1 is deleted
    Machine m1 Normal NodeDeleted: node h1 is deleted
    ");
    // It is on again: what was confirmed does not hold for the next time.
    pool.workers.cut_off("h1", false);
    pool.advance(60).await;
    let status = pool.one("hosts", "h1")["status"].clone();
    assert_eq!((&status["poweredOff"], &status["conditions"][1]), (&Value::Null, &Value::Null));
    pool.change("hosts", "", "h1", |host| {
        host["metadata"]["annotations"] = json!({ "metalform.dev/release": "2026-01-02T00:00:00Z" });
    });
    pool.settle().await;
    assert_eq!(pool.shown(), "h1 Available -");
}

#[tokio::test]
async fn a_machine_that_can_never_be_a_node_takes_no_host() {
    let mut pool = ScriptedPool::new(&["h1"]);
    pool.add_machine("m1");
    pool.change("machines", "a", "m1", |machine| {
        machine["spec"]["providerSpec"]["value"]["cloudProvider"] = json!("other");
    });
    pool.settle().await;
    assert_eq!(pool.shown(), "h1 Available -, m1 Failed");
    let status: Value = pool.one("machines", "m1")["status"].clone();
    assert_eq!(status["errorReason"], json!("InvalidConfiguration"));
    pool.delete_machine("m1").await;
    pool.settle().await;
    assert_eq!(pool.shown(), "h1 Available -");
}
