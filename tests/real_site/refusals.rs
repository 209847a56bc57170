//! An operation that is refused or interrupted before it begins on its host: its exit code, and its end as an event.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use metalform::engine::cancel::{Cancel, CancelLevel, channel};
use metalform::model::event::{Event, HostOutcome, NodeFailure, OperationKind};
use metalform::model::resumption::ResumedBy;
use metalform::service::command_error::{CommandError, ErrorClass};
use metalform::service::operation_report::{NodeReport, RunOptions};
use metalform::service::reset::{ResetRequest, ResetSelection, reset};
use metalform::workspace::host_lock::HostLock;
use serde_json::json;

use crate::looks::{now, workspace};

#[tokio::test]
async fn each_has_the_exit_code_of_its_reason_and_ends_as_an_event() {
    let root = tempfile::tempdir().unwrap();
    let events: Arc<Mutex<Vec<Event>>> = Arc::default();
    let seen = events.clone();
    let workspace = workspace(root.path(), Arc::new(move |event| seen.lock().unwrap().push(event)));
    let file = root.path().join("node.yaml");
    let node = json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": { "name": "node-1", "annotations": { "metalform.dev/ssh-host": "192.0.2.11" } },
    });
    std::fs::write(&file, node.to_string()).unwrap();
    let run = async |dry_run, cancel: &Cancel| -> NodeReport {
        let lock_wait = if cancel.level() == CancelLevel::Continue { 0 } else { 3600 };
        let run = RunOptions {
            dry_run,
            lock_wait: Duration::from_secs(lock_wait),
            resumed: ResumedBy::SameCommand,
        };
        let hosts = ResetSelection::Manifest(file.clone());
        let mut reports =
            reset(&ResetRequest { hosts, run, keep_data: false }, workspace.clone(), cancel).await.unwrap();
        reports.pop().unwrap()
    };
    let ended = || match &events.lock().unwrap().split_off(0)[..] {
        [
            Event::PlanMade { .. },
            Event::NodeEnded { operation: OperationKind::Reset, failure: Some(failure), .. },
        ] => failure.clone(),
        other => panic!("{other:?}"),
    };

    let held = HostLock::acquire(&workspace.layout, &"node-1".parse().unwrap(), now()).unwrap();
    let refused = run(false, &Cancel::never()).await;
    assert_eq!(refused.failure.unwrap().class(), ErrorClass::Refused);
    let NodeFailure { interrupted, errors, .. } = ended();
    assert!(!interrupted && errors[0].contains("another operation is running"), "{errors:?}");

    // While it waits for the other one, too.
    let (handle, cancel) = channel();
    handle.cancel(CancelLevel::AfterResource);
    assert_eq!(run(false, &cancel).await.outcome(), HostOutcome::Stopped);
    assert!(ended().interrupted);
    drop(held);
    assert_eq!(run(false, &cancel).await.outcome(), HostOutcome::Stopped);
    assert!(ended().interrupted);
    assert_eq!(run(true, &cancel).await.outcome(), HostOutcome::Stopped);
    assert_eq!(*events.lock().unwrap(), [], "a dry run has no events");
}
