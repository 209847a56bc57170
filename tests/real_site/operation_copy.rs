//! What the cluster has of operations, by the functions that write and read it.

use std::time::Duration;

use jiff::Timestamp;
use metalform::model::event::{Event, Milestone, NodeFailure, OperationKind};
use metalform::model::operation_record::{OperationBegun, OperationEnded};
use metalform::operation::cluster_site::ApiPort;
use metalform::report::operations::{summary, text};
use metalform::service::cluster_copy::{ClusterCopy, LIMIT};
use metalform::service::operations::{known, known_one};
use metalform::workspace::layout::Layout;
use metalform::workspace::operation_log::OperationLog;
use serde_json::Value;
use tokio::time::{Instant, sleep, timeout};

use crate::api::ScriptedApi;
use crate::api::rules::Fate;

fn begun(number: usize) -> OperationBegun {
    OperationBegun {
        id: format!("20270115T0800{number:02}Z-4711"),
        time: at(0),
        command: ["metalform", "deploy-node", "n1"].map(str::to_owned).into(),
        user: "ada".to_owned(),
        process: 4711,
        version: "1.0.0".to_owned(),
    }
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).unwrap()
}

/// An operation that runs on this machine.
struct Operation {
    log: OperationLog,
    copy: ClusterCopy,
}

impl Operation {
    fn begin(layout: &Layout, api: &ScriptedApi, number: usize) -> Self {
        let log = OperationLog::begin(layout, begun(number)).unwrap();
        let port = ApiPort::Client(api.client());
        Self { log, copy: ClusterCopy::begin(layout.clone(), port, begun(number), summary) }
    }

    fn event(&self, second: i64, event: &Event) {
        self.log.event(at(second), event);
        self.copy.event(at(second), event);
    }

    async fn end(&self) {
        let hints = vec!["fix this".to_owned()];
        self.log.end(OperationEnded { time: at(60), exit: 4, errors: vec!["n1: gave up".to_owned()], hints });
        self.copy.end().await;
    }
}

fn status(api: &ScriptedApi, number: usize) -> Option<String> {
    let name = metalform::kube_api::operation_records::name(&begun(number).id);
    let api = api.lock();
    let map = api.store.in_namespace("configmaps", "kube-system", &name)?;
    assert_eq!(map["metadata"]["labels"]["metalform.dev/operation"], map["data"]["status"]);
    map["data"]["status"].as_str().map(str::to_owned)
}

async fn until_status(api: &ScriptedApi, number: usize, expected: &str) {
    let reached = async {
        while status(api, number).as_deref() != Some(expected) {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(Duration::from_secs(10), reached).await.unwrap();
}

fn reasons(api: &ScriptedApi) -> Vec<String> {
    let reason = |event: &&Value| event["reason"].as_str().unwrap().to_owned();
    api.lock().store.all("events").iter().map(reason).collect()
}

fn node_begun() -> Event {
    Event::NodeBegun { host: "n1".parse().unwrap(), operation: OperationKind::Deployment }
}

fn reached(milestone: Milestone) -> Event {
    Event::Reached { host: "n1".parse().unwrap(), milestone }
}

fn node_failed() -> Event {
    let failure =
        NodeFailure { interrupted: false, errors: vec!["n1: gave up".to_owned()], hints: Vec::new() };
    Event::NodeEnded {
        host: "n1".parse().unwrap(),
        operation: OperationKind::Deployment,
        changed: 3,
        elapsed: Duration::from_secs(60),
        failure: Some(failure),
    }
}

fn phases() -> [Event; 3] {
    let (host, phase) = ("n1".parse().unwrap(), "Base system".to_owned());
    [
        Event::PhaseBegun { host, phase: phase.clone() },
        Event::Waiting {
            host: "n1".parse().unwrap(),
            condition: "the host".to_owned(),
            last_seen: "no answer".to_owned(),
            elapsed: Duration::from_secs(5),
        },
        Event::PhaseEnded {
            host: "n1".parse().unwrap(),
            phase,
            elapsed: Duration::from_secs(9),
            holds: false,
        },
    ]
}

#[tokio::test(start_paused = true)]
async fn the_cluster_shows_what_the_machine_shows_also_after_its_disk_is_lost() {
    let (here, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (here, elsewhere) = (Layout::below(here.path()), Layout::below(elsewhere.path()));
    let api = ScriptedApi::new();
    let operation = Operation::begin(&here, &api, 1);
    until_status(&api, 1, "running").await;
    operation.event(0, &node_begun());
    phases().iter().for_each(|event| operation.event(9, event));
    operation.event(60, &node_failed());
    operation.end().await;
    assert_eq!(status(&api, 1).as_deref(), Some("failed"));
    assert_eq!(reasons(&api), ["DeploymentBegun", "DeploymentFailed"]);
    let port = ApiPort::Client(api.client());
    let local = known(&here, &port, summary).await.unwrap();
    let copied = known(&elsewhere, &port, summary).await.unwrap();
    assert_eq!(local, copied);
    assert!(text(&copied[0]).contains("FAILED  waited for the host: no answer"), "{}", text(&copied[0]));
    for id in [None, Some(copied[0].id.as_str())] {
        assert_eq!(known_one(&elsewhere, &port, id, summary).await.unwrap(), copied[0]);
    }
    known_one(&elsewhere, &port, Some("another"), summary).await.unwrap_err();
}

/// A process: what it has begun ends with it.
fn process<T>(work: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_all().start_paused(true).build().unwrap().block_on(work)
}

#[test]
fn the_next_operation_records_that_one_was_killed_and_only_the_newest_are_kept() {
    let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (first, second) = (Layout::below(first.path()), Layout::below(second.path()));
    let api = ScriptedApi::new();
    let unrelated = serde_json::json!({ "metadata": { "name": "metalform-operation-0" }, "data": {} });
    api.lock().store.insert("configmaps", "kube-system", unrelated);
    for (layout, number) in [(&first, 1), (&second, 2)] {
        let killed = process(async {
            let operation = Operation::begin(layout, &api, number);
            until_status(&api, number, "running").await;
            operation
        });
        assert_eq!(status(&api, number).as_deref(), Some("running"));
        drop(killed);
    }
    // The disk with the first is lost.
    process(async {
        for number in 3..51 {
            Operation::begin(&second, &api, number).end().await;
        }
    });
    assert_eq!((status(&api, 1), status(&api, 2)), (Some("killed".to_owned()), Some("killed".to_owned())));
    process(async { Operation::begin(&second, &api, 51).end().await });
    assert_eq!((status(&api, 1), status(&api, 51)), (None, Some("failed".to_owned())));
    assert_eq!(api.lock().store.all("configmaps").len(), 51, "50, and one that is no record");
}

#[tokio::test(start_paused = true)]
async fn an_api_that_does_not_answer_delays_nothing_by_more_than_its_limit() {
    for fate in [Fate::Silent, Fate::Refused, Fate::Status(500), Fate::Status(403)] {
        let root = tempfile::tempdir().unwrap();
        let layout = Layout::below(root.path());
        let api = ScriptedApi::new();
        api.lock().rules.add("", fate, None);
        let began = Instant::now();
        let operation = Operation::begin(&layout, &api, 1);
        operation.event(0, &node_begun());
        assert_eq!(began.elapsed(), Duration::ZERO);
        operation.end().await;
        assert!(began.elapsed() <= LIMIT, "{:?}", began.elapsed());
        let began = Instant::now();
        let shown = known(&layout, &ApiPort::Client(api.client()), summary).await.unwrap();
        assert!(shown.len() == 1 && began.elapsed() <= LIMIT, "{:?}", began.elapsed());
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_not_answered_is_sent_again_and_there_once() {
    let root = tempfile::tempdir().unwrap();
    let api = ScriptedApi::new();
    api.lock().rules.add("create events", Fate::AnswerLost, Some(1));
    api.lock().rules.add("create events", Fate::Silent, Some(1));
    let operation = Operation::begin(&Layout::below(root.path()), &api, 1);
    for event in [node_begun(), reached(Milestone::EtcdMemberAdded), reached(Milestone::EtcdMemberPromoted)] {
        operation.event(0, &event);
        sleep(LIMIT * 2).await;
    }
    assert_eq!(reasons(&api), ["DeploymentBegun", "EtcdMemberAdded", "EtcdMemberPromoted"]);
    operation.event(60, &node_failed());
    operation.end().await;
    assert_eq!(reasons(&api).last().map(String::as_str), Some("DeploymentFailed"));
}
