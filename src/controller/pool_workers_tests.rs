use async_trait::async_trait;
use serde_json::json;
use tokio::sync::Notify;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::*;
use crate::machine::host_job::JobFence;

/// Jobs that last until they are released, one after the other.
#[derive(Default)]
struct Scripted {
    begun: Mutex<Vec<String>>,
    release: Notify,
    dropped: Arc<Mutex<usize>>,
    panics: bool,
}

struct CountDrop(Arc<Mutex<usize>>);

impl Drop for CountDrop {
    fn drop(&mut self) {
        *self.0.lock().unwrap() += 1;
    }
}

#[async_trait]
impl JobPerformer for Scripted {
    async fn perform(&self, order: &JobOrder, context: &JobContext<'_>) -> Result<HostFindings, JobError> {
        let _count = CountDrop(self.dropped.clone());
        self.begun.lock().unwrap().push(format!("{} of {}", order.job, order.fence.host));
        (context.phase)("Base system");
        assert!(!self.panics, "as scripted");
        tokio::select! {
            () = self.release.notified() => Ok(HostFindings::default()),
            () = context.cancel.reached(CancelLevel::AfterResource) => Err(interrupted()),
        }
    }

    async fn probe(&self, _: &HostObject) -> HostPresence {
        HostPresence::Silent
    }
}

fn now() -> Timestamp {
    Timestamp::from_second(1_000).unwrap()
}

fn host(name: &str) -> Arc<HostObject> {
    let object = json!({ "metadata": { "name": name }, "spec": { "address": "10.0.0.2" } });
    Arc::new(serde_json::from_value(object).unwrap())
}

fn order(job: HostJob, name: &str, token: i64) -> JobOrder {
    let fence = JobFence { host: name.parse().unwrap(), machine: None, token };
    JobOrder { job, fence, host: host(name), node: None }
}

fn workers(scripted: &Arc<Scripted>, limit: usize) -> (PoolWorkers, UnboundedReceiver<HostName>) {
    let (sender, receiver) = unbounded_channel();
    let limit = NonZeroUsize::new(limit).unwrap();
    (PoolWorkers::new(scripted.clone(), limit, now, sender), receiver)
}

fn interrupted() -> JobError {
    JobError { message: "interrupted".to_owned(), presence: HostPresence::Answers, begun: true }
}

/// All tasks run until they wait.
async fn settle() {
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
}

fn name(text: &str) -> HostName {
    text.parse().unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_host_has_one_job_until_its_outcome_is_recorded() {
    let scripted = Arc::new(Scripted::default());
    let (workers, mut changed) = workers(&scripted, 1);
    let a = name("a");
    assert_eq!(workers.work(&a), HostWork::Idle);
    workers.begin(order(HostJob::Deploy, "a", 3));
    workers.begin(order(HostJob::Reset, "a", 4));
    settle().await;
    let phase = STARTING.to_owned();
    let running = HostWork::Running { job: HostJob::Deploy, token: 3, phase };
    assert_eq!(workers.work(&a), running);
    assert_eq!(*scripted.begun.lock().unwrap(), ["deployment of a"]);
    assert_eq!(workers.outcome(&a), None);
    scripted.release.notify_one();
    settle().await;
    let outcome = workers.outcome(&a).unwrap();
    assert_eq!((outcome.job, outcome.fence.token, outcome.ended), (HostJob::Deploy, 3, now()));
    assert_eq!(outcome.result, Ok(HostFindings::default()));
    assert_eq!(workers.presence(&a), Some((HostPresence::Answers, now())));
    assert_eq!(workers.work(&a), running, "it is not recorded yet");
    workers.recorded(&JobOutcome { ended: Timestamp::UNIX_EPOCH, ..outcome.clone() });
    assert_eq!(workers.work(&a), running, "that was another outcome");
    workers.recorded(&outcome);
    assert_eq!((workers.work(&a), workers.outcome(&a)), (HostWork::Idle, None));
    assert_eq!(count(&mut changed), 2, "its end, and its record: its phase was over too soon to be shown");
}

/// What it shows of the job of a host.
fn phase(workers: &PoolWorkers, host: &str) -> String {
    match workers.work(&name(host)) {
        HostWork::Running { phase, .. } => phase,
        HostWork::Idle => "idle".to_owned(),
    }
}

fn count(changed: &mut UnboundedReceiver<HostName>) -> usize {
    std::iter::from_fn(|| changed.try_recv().ok()).count()
}

#[tokio::test(start_paused = true)]
async fn a_phase_is_shown_after_half_a_second() {
    let scripted = Arc::new(Scripted::default());
    let (workers, mut changed) = workers(&scripted, 1);
    workers.begin(order(HostJob::Deploy, "a", 1));
    workers.begin(order(HostJob::Deploy, "b", 1));
    settle().await;
    assert_eq!((count(&mut changed), phase(&workers, "a")), (0, STARTING.to_owned()));
    tokio::time::sleep(SHOWN_AFTER).await;
    settle().await;
    assert_eq!(
        (count(&mut changed), phase(&workers, "a")),
        (2, "Base system".to_owned()),
        "one of each host"
    );
    tokio::time::sleep(SHOWN_AFTER * 9).await;
    settle().await;
    assert_eq!(count(&mut changed), 0, "nothing has changed since");
    workers.cancel(&name("a"));
    settle().await;
    assert_eq!(count(&mut changed), 2, "the end of one and the turn of the next are shown at once");
}

#[tokio::test(start_paused = true)]
async fn provisionings_are_limited_and_nothing_else_is() {
    let scripted = Arc::new(Scripted::default());
    let (workers, _changed) = workers(&scripted, 1);
    for (job, host) in [
        (HostJob::Deploy, "a"),
        (HostJob::UpgradePackages, "b"),
        (HostJob::Deploy, "c"),
        (HostJob::Reset, "d"),
    ] {
        workers.begin(order(job, host, 1));
        settle().await;
    }
    assert_eq!(*scripted.begun.lock().unwrap(), ["deployment of a", "reset of d"]);
    tokio::time::sleep(SHOWN_AFTER).await;
    settle().await;
    assert_eq!((phase(&workers, "a").as_str(), phase(&workers, "b").as_str()), ("Base system", WAITING));
    let turn = |host: &str| workers.turn(&name(host)).map(|turn| (turn.token, turn.since, turn.waits));
    assert_eq!([turn("a"), turn("b")], [Some((1, now(), false)), Some((1, now(), true))]);
    // One that waits is interrupted at once, and nothing has become of it.
    workers.cancel(&name("b"));
    settle().await;
    assert_eq!((workers.outcome(&name("b")), workers.work(&name("b"))), (None, HostWork::Idle));
    assert_eq!((turn("b"), turn("c")), (None, Some((1, now(), true))));
    workers.cancel(&name("a"));
    settle().await;
    assert_eq!(workers.outcome(&name("a")).unwrap().result, Err(interrupted()));
    assert_eq!(*scripted.begun.lock().unwrap(), ["deployment of a", "reset of d", "deployment of c"]);
    assert_eq!(turn("c"), Some((1, now(), false)));
}

#[tokio::test]
async fn a_job_that_panics_has_failed() {
    let scripted = Arc::new(Scripted { panics: true, ..Scripted::default() });
    let (workers, _changed) = workers(&scripted, 1);
    workers.begin(order(HostJob::Deploy, "a", 1));
    settle().await;
    let error = workers.outcome(&name("a")).unwrap().result.unwrap_err();
    assert!(error.message.contains("panicked"), "{error}");
    workers.begin(order(HostJob::Deploy, "b", 1));
    settle().await;
    assert_eq!(scripted.begun.lock().unwrap().len(), 2, "its turn is free again");
}

#[tokio::test]
async fn dropped_workers_drop_their_jobs() {
    let scripted = Arc::new(Scripted::default());
    let (workers, _changed) = workers(&scripted, 2);
    workers.begin(order(HostJob::Deploy, "a", 1));
    workers.begin(order(HostJob::Reset, "b", 1));
    settle().await;
    assert_eq!(*scripted.dropped.lock().unwrap(), 0);
    drop(workers);
    settle().await;
    assert_eq!(*scripted.dropped.lock().unwrap(), 2);
}

#[tokio::test]
async fn a_probe_is_known_with_its_time() {
    let scripted = Arc::new(Scripted::default());
    let (workers, mut changed) = workers(&scripted, 1);
    assert_eq!(workers.presence(&name("a")), None);
    workers.probe(&host("a"));
    workers.probe(&host("a"));
    settle().await;
    assert_eq!(workers.presence(&name("a")), Some((HostPresence::Silent, now())));
    assert_eq!(changed.try_recv(), Ok(name("a")));
    assert!(changed.try_recv().is_err(), "a second probe does not begin before the first has ended");
}
