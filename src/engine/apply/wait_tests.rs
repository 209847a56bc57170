//! Waiting, by the shells of this machine.

use std::net::TcpListener;
use std::process::Command;

use super::progress::ProgressSummary;
use super::{PackageManager, Segment, Task, program};
use crate::engine::nonce::Nonce;
use crate::engine::shells::{run, shells};
use crate::resource::contract::host_condition::HostCondition;
use crate::resource::contract::step::Step;

/// The message of a wait that gave up; `None` when it did not.
fn awaited(shell: &str, condition: HostCondition, seconds: u32) -> Option<String> {
    let steps = vec![Step::Await { condition, seconds }];
    let task = Task { ids: vec!["wait:x".to_owned()], begins: true, ends: true, steps };
    let segment = Segment { tasks: vec![task], ..Segment::default() };
    let output = run(shell, &program(&segment, PackageManager::Apt, "", &Nonce::new(6)));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{shell}");
    ProgressSummary::of(&Nonce::new(6), &output.stdout).failed.map(|(_, _, output)| output)
}

#[test]
fn a_wait_ends_when_its_condition_holds_and_not_before() {
    for shell in shells() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("it's\n-here");
        let mut writer = Command::new("sh").args(["-c", "sleep 0.3; : >\"$0\""]).arg(&path).spawn().unwrap();
        assert_eq!(awaited(shell, HostCondition::File { path: path.to_str().unwrap().to_owned() }, 60), None);
        assert!(path.exists(), "{shell}");
        assert!(writer.wait().unwrap().success());
    }
}

#[test]
fn a_wait_that_is_in_vain_says_what_it_saw_last() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    for shell in shells() {
        let message = awaited(shell, HostCondition::Port { host: "127.0.0.1".to_owned(), port }, 1);
        let line = format!("waited 1 s for 127.0.0.1:{port} to accept connections: Connection refused\n");
        assert_eq!(message, Some(line), "{shell}");
    }
}
